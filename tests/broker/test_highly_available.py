"""``highly_available`` against the class of Kafka Streams that KIP-1071 calls it similar to, on groups of all kinds."""

from itertools import chain
from pathlib import Path

from tests.broker.highly_available import with_results
from tests.broker.highly_available.hand_picked import hand_picked
from tests.broker.highly_available.random_groups import random_case
from tests.core.assignors.streams.kafka_cases import differences

SEEDS = range(1_000)


def test_every_group_gets_what_kafka_streams_gives_or_what_the_document_asks_for(tmp_path: Path) -> None:
    cases = with_results(chain(hand_picked(), map(random_case, SEEDS)), tmp_path)
    assert len(cases) > len(SEEDS)
    assert not {case_id: found for case_id, found in differences(cases).items() if found}
