"""The segment source's ranges: same rows however a file is cut, outcomes, and damage that costs nothing else."""

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coordinator_core.records import CoordinatorRecord, LogPosition
from coordinator_core.wire.batch_format import MAGIC_AT
from coordinator_core.wire.control import ABORT, COMMIT
from jobs.sources import dump, segments
from jobs.sources.dump import have_overlaps, layouts
from jobs.sources.files import FIRST_SEGMENT, METADATA_TOPIC, find_logs
from jobs.sources.segments import Range, SegmentsReader, read_range
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.logs import batch, marker, write_segment
from tests.matrix.removals import damaged, overlapping, without_segment

TOPIC = "__consumer_offsets"


def commit(offset: int, partition: int = 0) -> CoordinatorRecord:
    value = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1}
    key = {"group": "g", "topic": "t", "partition": partition}
    return CoordinatorRecord(LogPosition(0, offset, 1000 + offset), 1, key, value)


def rows_of(path: Path, split_bytes: int = 1 << 20) -> list[dict]:
    reader = SegmentsReader([str(path)], frozenset({TOPIC, ""}), TOPIC, split_bytes)
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.mark.parametrize("split_bytes", [1, 1000, 20_000])
def test_cuts_change_nothing(split_bytes: int) -> None:
    """Not even the outcomes of transactions that a cut goes through."""
    whole = rows_of(SAMPLE_LOGS)
    assert len(whole) == 313 + 412 + 442
    assert rows_of(SAMPLE_LOGS, split_bytes) == whole
    assert {row["outcome"] for row in whole} >= {"committed", "aborted", None}


def test_the_marker_in_the_next_segment_decides(tmp_path: Path) -> None:
    folder = tmp_path / f"{TOPIC}-0"
    write_segment(folder, [batch(commit(0), producer_id=1), batch(commit(1), producer_id=2)])
    write_segment(folder, [marker(COMMIT, 1, 2, 5), marker(ABORT, 2, 3, 5), batch(commit(4), producer_id=1)], 2)
    found = {row["log_offset"]: (row["kind"], row["outcome"]) for row in rows_of(tmp_path)}
    assert found == {
        0: ("record", "committed"),
        1: ("record", "aborted"),
        2: ("control", None),
        3: ("control", None),
        4: ("record", "open"),
    }


def test_beyond_a_hole_no_marker_decides(tmp_path: Path) -> None:
    """The hole may be compaction's work or lost data; only the whole log shows which, so the job decides it."""
    folder = tmp_path / f"{TOPIC}-0"
    write_segment(folder, [batch(commit(0), producer_id=1), batch(commit(1), producer_id=2), marker(ABORT, 2, 2, 5)])
    write_segment(folder, [batch(commit(4), producer_id=2), marker(COMMIT, 1, 5, 5), marker(COMMIT, 2, 6, 5)], 4)
    found = {row["log_offset"]: row["outcome"] for row in rows_of(tmp_path) if row["kind"] == "record"}
    assert found == {0: "unknown", 1: "aborted", 4: "committed"}


def test_a_flipped_byte_costs_one_batch_and_is_named(tmp_path: Path) -> None:
    folder = tmp_path / f"{TOPIC}-0"
    batches = [batch(commit(offset)) for offset in range(3)]
    data = bytearray(b"".join(batches))
    data[len(batches[0]) + 70] ^= 0xFF
    path = write_segment(folder, [bytes(data)])
    rows = rows_of(tmp_path)
    assert [(row["kind"], row["log_offset"]) for row in rows] == [("record", 0), ("damaged", None), ("record", 2)]
    damaged = rows[1]
    assert (damaged["source"], damaged["place"], damaged["batch_base"]) == (str(path), len(batches[0]), 1)
    assert "CRC" in damaged["error"]
    assert damaged["value"] == bytes(data[len(batches[0]) : len(batches[0]) + len(batches[1])])


def test_a_segment_whose_first_bytes_are_damaged_costs_one_batch_also_where_it_is_named_itself(tmp_path: Path) -> None:
    data = bytearray(batch(commit(0)) + batch(commit(1)))
    data[1], data[MAGIC_AT] = 5, 9  # as bytes that a console consumer prints begin
    path = write_segment(tmp_path / f"{TOPIC}-0", [bytes(data)])
    for place in (tmp_path, path):
        assert [row["kind"] for row in rows_of(place)] == ["damaged", "record"]


def test_a_truncated_tail_is_kept(tmp_path: Path) -> None:
    write_segment(tmp_path / f"{TOPIC}-0", [batch(commit(0)), batch(commit(1))[:-5]])
    assert [row["kind"] for row in rows_of(tmp_path)] == ["record", "damaged"]


def test_a_file_that_is_no_log_leaves_the_others_alone(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE_LOGS / f"{TOPIC}-1", tmp_path / f"{TOPIC}-1")
    (tmp_path / f"{TOPIC}-2").mkdir()
    (tmp_path / f"{TOPIC}-2" / f"{0:020}.log").write_bytes(b"no log at all, but long enough to be looked at" * 9)
    rows = rows_of(tmp_path)
    assert [row["log_partition"] for row in rows if row["kind"] == "damaged"] == [2]
    assert len(rows) == 412 + 1


def test_a_file_outside_of_a_topics_folder_is_of_an_unknown_partition(tmp_path: Path) -> None:
    rows = rows_of(write_segment(tmp_path, [batch(commit(0))]))
    assert [(row["log_topic"], row["log_partition"], row["log_offset"]) for row in rows] == [(TOPIC, -1, 0)]


def test_a_range_reads_only_its_own_batches() -> None:
    (log, *_) = find_logs([str(SAMPLE_LOGS)], topics={TOPIC})
    reader = SegmentsReader([log.path], frozenset({TOPIC, ""}), TOPIC, 5000)
    parts = [pa.Table.from_batches(list(reader.read(part))) for part in reader.partitions()]
    assert len(parts) > 2
    for part, following in pairwise(parts):
        assert part["log_offset"][-1].as_py() + 1 == following["log_offset"][0].as_py()
    assert list(read_range(Range(log, log.size, log.size, None), TOPIC)) == []


def test_small_files_share_a_task() -> None:
    reader = SegmentsReader([str(SAMPLE_LOGS)], frozenset({TOPIC}), TOPIC, 1 << 30)
    (task,) = reader.partitions()
    assert len(task.ranges) == len(find_logs([str(SAMPLE_LOGS)], topics={TOPIC}))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda folder: None, False),
        (overlapping, True),
        (without_segment(2, 1), False),
        (damaged(0, 4), False),
        (lambda folder: _append(folder, b"\0" * 100), False),
        (lambda folder: _append(folder, b"\1" * 100), True),
    ],
    ids=["whole", "overlapping copies", "a segment lost", "a damaged batch", "reserved space", "no batch"],
)
def test_segments_that_may_have_a_record_twice_are_found(
    tmp_path: Path, change: Callable[[Path], object], expected: bool
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, logs)
    change(logs)
    files = [log for log in find_logs([logs]) if not log.is_snapshot]
    assert have_overlaps(files, layouts(cast(SparkSession, None), files)) == expected


def test_a_large_dump_is_walked_over_by_tasks(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they find is what this process finds; a reader that knows it walks over nothing."""
    logs = [log for log in find_logs([SAMPLE_LOGS]) if not log.is_snapshot]
    here = layouts(cast(SparkSession, None), logs, 1 << 12)
    monkeypatch.setattr(dump, "WALKED_HERE_BYTES", 0)
    assert layouts(spark, logs, 1 << 12) == here
    assert any(len(of.edges) > 3 for of in here.values())
    given = ([str(SAMPLE_LOGS)], frozenset({TOPIC, METADATA_TOPIC}), TOPIC, 1 << 12)
    expected = SegmentsReader(*given).partitions()
    monkeypatch.setattr(segments, "layout", None)
    edges = {name: of.edges for name, of in here.items()}
    assert SegmentsReader(*given, edges).partitions() == expected


def _append(folder: Path, data: bytes) -> None:
    """Let the first segment of partition 0 end with these bytes."""
    with (folder / "__consumer_offsets-0" / FIRST_SEGMENT).open("ab") as file:
        file.write(data)
