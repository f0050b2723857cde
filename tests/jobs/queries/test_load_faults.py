"""Records that no coordinator loads, from log files and from tables."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator_core.records import CoordinatorRecord, Family, MetadataRecordType, RecordType
from tests.core.builders import GroupLog
from tests.jobs.logs import batch, write_segment
from tests.matrix.answers import questions
from tests.matrix.sources import Files, StoredTables, ThisProcess


def cluster(level: int) -> list[CoordinatorRecord]:
    """The metadata log of a broker that supports this level of metadata.version."""
    log = GroupLog("unused")
    features = [{"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": level}]
    broker = {"brokerId": 1, "incarnationId": "A" * 21 + "Q", "brokerEpoch": 1, "endPoints": [], "features": features}
    level_set = {"name": "metadata.version", "featureLevel": level}
    return [
        log.record(MetadataRecordType.FEATURE_LEVEL, level_set)._replace(key=None),
        log.record(MetadataRecordType.REGISTER_BROKER, broker | {"rack": None, "fenced": False})._replace(key=None),
    ]


def of_commits(log: GroupLog) -> list[CoordinatorRecord]:
    """Commits before the records of their streams group (KAFKA-20254)."""
    return [log.commit("orders", 0, 5), log.record(RecordType.STREAMS_GROUP_METADATA, {"epoch": 1, "metadataHash": 0})]


def of_a_forgotten_group(log: GroupLog) -> list[CoordinatorRecord]:
    """A consumer group that the coordinator forgot without a record, and the share group that took its name."""
    epoch = {"epoch": 1, "metadataHash": 0}
    return [
        log.record(RecordType.CONSUMER_GROUP_METADATA, epoch),
        log.share_member("m"),
        log.record(RecordType.SHARE_GROUP_METADATA, epoch),
    ]


@pytest.mark.parametrize("made", [of_commits, of_a_forgotten_group])
def test_files_and_tables_say_which_partition_does_not_load(
    made: Callable[[GroupLog], list[CoordinatorRecord]], tmp_path: Path
) -> None:
    records = made(GroupLog("orders"))
    folder = tmp_path / "logs"
    write_segment(folder / "__consumer_offsets-0", [batch(each) for each in records])
    write_segment(folder / "__cluster_metadata-0", [batch(each, family=Family.METADATA) for each in cluster(27)])
    tables = StoredTables(ThisProcess(), tmp_path / "tables", [[folder]])
    question = questions(["orders"], "orders", [])["findings"]
    of_files, of_tables = Files([folder]).ask(question), tables.ask(question)
    (row,) = (each for each in of_files.rows if each["kind"] == "will_not_load" and each["group_id"] is None)
    assert row["subject"] == "__consumer_offsets-0"
    assert of_tables.rows == of_files.rows
