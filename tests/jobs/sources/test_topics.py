"""The metadata log as brokers keep it: once its first segments are gone, a snapshot says what they said."""

import struct
from pathlib import Path

from coordinator_core.records import CoordinatorRecord, Family, LogPosition, MetadataRecordType
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER
from jobs.sources.files import find_logs
from jobs.sources.log_reader import by_partition
from jobs.sources.topics import topic_history
from tests.jobs.logs import batch, write_segment

FOLDER = "__cluster_metadata-0"
IDS = {"old": "rtBKLTkuQfqz2e1w3xbhRA", "new": "AAAAAAAAAAAAAAAAAAAAAQ"}


def topic(offset: int, name: str, time_ms: int = 0) -> CoordinatorRecord:
    value = {"name": name, "topicId": IDS[name]}
    return CoordinatorRecord(LogPosition(0, offset, time_ms), MetadataRecordType.TOPIC, {}, value)


def control(offset: int, control_type: int, value: bytes) -> bytes:
    return encode_batch([NewRecord(offset, 9_000, struct.pack(">hh", 0, control_type), value)], control=True)


def write_snapshot(folder: Path, end: int, *, name: str, is_whole: bool = True) -> None:
    """With one topic; written at 9000 ms, of a log whose last record was of 500 ms."""
    records = [control(0, SNAPSHOT_HEADER, b"\0\0" + (500).to_bytes(8, "big") + b"\0")]
    records.append(batch(topic(1, name, 9_000), family=Family.METADATA))
    if is_whole:
        records.append(control(2, SNAPSHOT_FOOTER, b"\0\0\0"))
    (folder / f"{end:020}-{3:010}.checkpoint").write_bytes(b"".join(records))


def names_at(folder: Path, time_ms: int, warnings: list[str] | None = None) -> set[str] | None:
    """The topics at a time; None where they are not known."""
    files = by_partition(find_logs([folder], snapshots=True))[Family.METADATA][0]
    history = topic_history(files, (warnings if warnings is not None else []).append)
    version = history.at(time_ms)
    return None if version is None else set(version.image.by_name)


def test_a_log_without_its_beginning_begins_with_the_snapshot(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    write_segment(folder, [batch(topic(105, "new", 600), family=Family.METADATA)], 100)
    assert names_at(tmp_path, 700) == {"new"}
    write_snapshot(folder, 102, name="old")
    assert names_at(tmp_path, 499) is None
    assert names_at(tmp_path, 500) == {"old"}
    assert names_at(tmp_path, 700) == {"old", "new"}


def test_what_the_snapshot_sums_up_is_not_taken_again(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    write_segment(folder, [batch(topic(100, "old", 400), family=Family.METADATA)], 100)
    write_snapshot(folder, 101, name="new")
    assert names_at(tmp_path, 700) == {"new"}


def test_a_whole_log_needs_no_snapshot(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    write_segment(folder, [batch(topic(0, "old", 400), family=Family.METADATA)])
    write_snapshot(folder, 1, name="new")
    assert names_at(tmp_path, 700) == {"old"}


def test_snapshots_that_are_cut_or_do_not_reach_the_log_are_left_out(tmp_path: Path) -> None:
    folder, warnings = tmp_path / FOLDER, list[str]()
    write_segment(folder, [batch(topic(105, "new", 600), family=Family.METADATA)], 100)
    write_snapshot(folder, 99, name="old")
    write_snapshot(folder, 101, name="old", is_whole=False)
    assert names_at(tmp_path, 700, warnings) == {"new"}
    assert [warning.split(": ")[1] for warning in warnings] == ["not a whole snapshot, and left out"]


def test_a_snapshot_alone_is_a_moment_of_the_cluster(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    write_snapshot(folder, 50, name="old")
    write_snapshot(folder, 60, name="new")
    assert names_at(tmp_path, 500) == {"new"}
