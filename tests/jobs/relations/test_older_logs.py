"""Logs of older brokers: records without times, and groups that a coordinator forgets without a record."""

from pathlib import Path

import pytest

from coordinator_core.records import CoordinatorRecord, LogPosition, MetadataRecordType, RecordType
from coordinator_core.simulator.brokers import Brokers, MetadataRecord
from coordinator_core.simulator.seeded_random import SeededRandom
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.sources.files import GROUP_LOG, METADATA_TOPIC, find_logs
from jobs.tables.folder_reader import FolderReader
from tests.core.wire.segments import message
from tests.jobs.logs import batch, metadata_batches, write_segment
from tests.jobs.relations.tables_of_logs import CLUSTER, fill

HOUR_MS = 3_600_000


def both(place: Path) -> tuple[LogAnswers, StoredAnswers]:
    """Answers from the logs in a folder, and from the tables of them."""
    fill(place / "tables", place / "logs", topics=(GROUP_LOG, METADATA_TOPIC))
    files = LogAnswers(find_logs([place / "logs"], snapshots=True), lambda text: None, load)
    return files, StoredAnswers(FolderReader(str(place / "tables")), CLUSTER, load().audit)


def old_commit(offset: int, group: str, time_ms: int | None) -> bytes:
    """A commit in message format 0, or the tombstone of one."""
    key = encode_key(RecordType.OFFSET_COMMIT, {"group": group, "topic": "t", "partition": 0})
    value = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": time_ms}
    return message(offset, key, None if time_ms is None else encode_value(RecordType.OFFSET_COMMIT, 3, value), magic=0)


def test_where_batches_have_no_times_those_of_values_count(tmp_path: Path) -> None:
    written = [old_commit(number, "g", HOUR_MS + number) for number in range(5)]
    written += [old_commit(5, "other", None), old_commit(6, "g", 9), old_commit(7, "g", 2 * HOUR_MS)]
    write_segment(tmp_path / "logs" / f"{GROUP_LOG}-0", written)
    found = []
    for answers in both(tmp_path):
        commits = answers.commits("g")
        assert sum(run.commits for run in commits.runs) == 7
        then = {
            time_ms: [held.committed for _, held, _ in answers.at(AsOf(time_ms=time_ms)).groups()]
            for time_ms in (HOUR_MS + 2, HOUR_MS + 4, 2 * HOUR_MS)
        }
        assert [[each.offset for each in held.values()] for (held,) in then.values()] == [[2], [6], [7]]
        said = [*answers.knowledge().reasons("g"), *answers.at(AsOf()).knowledge().reasons("g")]
        assert [text.split(" have no times")[0] for text in said] == [f"records of {GROUP_LOG}-0"] * 2
        found.append((then, answers.at(AsOf()).span(), said))
    assert found[0] == found[1]
    assert found[0][1] == (HOUR_MS, 2 * HOUR_MS)


def removed_simple_group(place: Path) -> None:
    """A group that only committed, whose offset was removed, and one that still has one."""
    value = {"offset": 5, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 0}
    records = [
        CoordinatorRecord(
            LogPosition(0, number, 1_000 + number),
            RecordType.OFFSET_COMMIT,
            {"group": group, "topic": "t", "partition": 0},
            each,
            3,
            number,
        )
        for number, (group, each) in enumerate([("gone", value), ("gone", None), ("stays", value)])
    ]
    write_segment(place / f"{GROUP_LOG}-0", [batch(record) for record in records])


def registered(level: int) -> MetadataRecord:
    """A broker that supports metadata.version up to a level."""
    first, _ = Brokers({1: None}, SeededRandom(1)).start(1, 0)
    features = [{"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": level}]
    return first._replace(value={**first.value, "features": features})


@pytest.mark.parametrize(
    ("level", "there"), [(None, ["stays"]), (21, ["stays"]), (22, ["gone", "stays"]), (27, ["gone", "stays"])]
)
def test_a_group_that_only_committed_is_gone_from_files_and_tables_alike(
    tmp_path: Path, level: int | None, there: list[str]
) -> None:
    """The metadata log has no topic: the brokers that are registered decide all the same."""
    removed_simple_group(tmp_path / "logs")
    if level is not None:
        lasts = MetadataRecord(MetadataRecordType.NO_OP, 0, {})
        write_segment(
            tmp_path / "logs" / f"{METADATA_TOPIC}-0", metadata_batches([(500, [registered(level)]), (9_000, [lasts])])
        )
    for answers in both(tmp_path):
        for moment in (AsOf(), AsOf(time_ms=1_002)):
            assert sorted(then.group.group_id for then in answers.at(moment).groups()) == there
