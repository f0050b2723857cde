"""Vectors computed by Kafka 4.3.1's own classes."""

import json
from pathlib import Path

import pytest

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "metadata-hash-vectors.json").read_text())
TOPICS = {
    entry["name"]: Topic(entry["name"], entry["topic_id"], entry["partitions"], tuple(map(tuple, entry["racks"])))
    for entry in VECTORS["topics"]
}


@pytest.mark.parametrize("entry", VECTORS["topics"], ids=lambda entry: entry["name"][:20])
def test_topic_hash(entry):
    assert topic_hash(TOPICS[entry["name"]]) == entry["topic_hash"]


@pytest.mark.parametrize("entry", VECTORS["groups"], ids=lambda entry: "-".join(entry["topics"]) or "no topics")
def test_group_hash_does_not_depend_on_the_order_of_topics(entry):
    pairs = [(name, topic_hash(TOPICS[name])) for name in entry["topics"]]
    assert group_hash(pairs) == entry["group_hash"]
    assert group_hash(reversed(pairs)) == entry["group_hash"]
