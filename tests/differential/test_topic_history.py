"""Topic history from real metadata logs, against what Admin listed and the hashes in the groups' own records."""

import pytest

from coordinator_core.groups.epochs import EpochGroup
from coordinator_core.groups.group import Group
from coordinator_core.history import epochs, topic_inputs
from coordinator_core.history.held_units import CONSUMER_KIND, SHARE_KIND, STREAMS_KIND
from coordinator_core.history.topics_of_epochs import topics_used
from coordinator_core.records import RecordType
from tests.differential.decoded import log_entries, read_lines
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS

EPOCHS = {
    RecordType.CONSUMER_GROUP_METADATA: CONSUMER_KIND,
    RecordType.SHARE_GROUP_METADATA: SHARE_KIND,
    RecordType.STREAMS_GROUP_METADATA: STREAMS_KIND,
}
OF_EPOCHS = epochs.HANDLERS.keys() | topic_inputs.HANDLERS.keys()
"""Records of groups with epochs."""


@pytest.mark.parametrize("corpus", ["scenarios", "misc", "upgrade", "wild"])
def test_image_at_each_checkpoint_is_what_admin_listed(corpus):
    history = topic_history(CORPUS / corpus / "logs")
    assert history.complete
    assert history.gaps == []
    compared = 0
    for checkpoint in read_lines(CORPUS / corpus / "checkpoints.jsonl.gz"):
        listed = {name: (topic["id"], topic["partitions"]) for name, topic in checkpoint["topics"].items()}
        images = history.window(checkpoint["ts_before"], checkpoint["ts_after"])
        ours = [{name: (t.id, t.partitions) for name, t in image.image.by_name.items()} for image in images]
        assert listed in ours
        compared += 1
    print(f"{corpus}: {compared} of {compared} checkpoints equal")


@pytest.mark.parametrize("corpus", ["scenarios", "misc", "upgrade", "wild", "churn/full", "churn/after_compaction"])
def test_every_metadata_hash_is_that_of_an_image(corpus):
    history = topic_history(CORPUS / corpus / "logs")
    groups: dict[str, Group] = {}
    proven = with_hash = 0
    unproven = []
    for entry in log_entries(CORPUS / corpus / "decoded.jsonl.gz"):
        record = entry.record
        if record is None or record.type not in OF_EPOCHS:
            continue
        group = groups.setdefault(record.group_id, Group(record.group_id))
        group.apply(record)
        wanted = (record.value or {}).get("metadataHash")
        if record.type in EPOCHS and wanted and isinstance(group.state, EpochGroup):
            with_hash += 1
            names = EPOCHS[RecordType(record.type)].subscribed(group.state, history)
            if topics_used(history, wanted, names, record.at).proven:
                proven += 1
            else:
                unproven.append((record.at, record.group_id))
    print(f"{corpus}: {proven} of {with_hash} metadata hashes proven")
    assert unproven == []
