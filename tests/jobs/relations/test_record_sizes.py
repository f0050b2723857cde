"""The largest records and batches: the tables give what the log's own fold gives, byte for byte."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.folds.group_history import RecordSize
from coordinator_core.records import LogPosition
from coordinator_core.wire.batch_format import HEADER_SIZE
from coordinator_core.wire.batch_writer import NewRecord, record_bytes
from jobs.queries.from_logs.history import group_histories
from jobs.relations.groups import SUMS, given, rows_of
from jobs.relations.record_sizes import SIZES
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from tests.jobs.relations.engines import through_spark
from tests.jobs.relations.tables_of_logs import CLUSTER, GROUP_LOG, append, fill
from tests.shared_data import ROOT

LOGS = ROOT / "data" / "samples" / "logs"
Sizes = dict[str, set[RecordSize]]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tables")
    fill(place, LOGS)
    return place


@pytest.fixture(scope="module")
def in_logs() -> Sizes:
    logs = find_logs([LOGS])
    return {each.group_id: set(each.sizes) for each in group_histories(logs, pytest.fail) if each.sizes}


def test_the_sql_text_measures_what_the_fold_measures(tables: Path, in_logs: Sizes) -> None:
    found: Sizes = defaultdict(set)
    for group_id, size in rows_of(FolderReader(str(tables)), SUMS["sizes"], **given(CLUSTER)):
        found[group_id].add(size)
    assert found == in_logs
    assert any(row.record_type is None and row.records > 1 for rows in found.values() for row in rows)


def around(bound: int) -> tuple[int, int]:
    return bound - 1, bound


BOUNDS = [length for bound in (1 << 6, 1 << 13, 1 << 20) for length in around(bound)]
"""A varint takes a byte more from each second of these on."""
BATCHES = {
    **{f"key of {length}": [(0, length, 1)] for length in BOUNDS},
    **{f"value of {length}": [(0, 1, length)] for length in BOUNDS},
    # attributes, time, offset, number of headers and two lengths are before and behind a key of one byte
    **{
        f"body of {length} with a length of {1 + more}": [(0, 1, length - 7 - more)]
        for length in BOUNDS
        for more in (0, 1, 2)
    },
    **{f"offset {delta} behind the first": [(0, 1, 1), (delta, 1, 9)] for delta in [*BOUNDS, *around(1 << 27)]},
    "a tombstone": [(0, 5, 0)],
    "two of one size": [(0, 2, 3), (1, 3, 2)],
    "the last one is not the largest": [(0, 2, 30), (1, 2, 3), (2, 2, 4)],
}
"""By group, the records of one batch: offset behind the first, bytes of the key, bytes of the value."""


def row_of(group_id: str, base: int, record: tuple[int, int, int], **fields: Any) -> dict[str, Any]:
    delta, key, value = record
    place = {"log_topic": GROUP_LOG, "log_partition": 0, "log_offset": base + delta, "batch_base": base}
    bytes_ = {"key": bytes(key), "value": bytes(value) if value else None}
    return {"cluster": CLUSTER, "group_id": group_id, "record_type": 3, "timestamp_ms": delta} | place | bytes_ | fields


def test_sizes_at_each_bound_are_those_of_a_broker(tmp_path: Path) -> None:
    rows, expected = [], defaultdict(set)
    for number, (group_id, records) in enumerate(BATCHES.items()):
        base = number << 28
        rows += [row_of(group_id, base, record) for record in records]
        sizes = []
        for delta, key, value in records:
            record = NewRecord(base + delta, 0, bytes(key), bytes(value) if value else None)
            sizes.append(len(record_bytes(record, delta, 0)))
        largest = sizes.index(max(sizes))
        at = LogPosition(0, base + records[largest][0], records[largest][0])
        whole = LogPosition(0, base, records[-1][0])
        expected[group_id] = {
            RecordSize(GROUP_LOG, 3, HEADER_SIZE + max(sizes), 1, at),
            RecordSize(GROUP_LOG, None, HEADER_SIZE + sum(sizes), len(records), whole),
        }
    # What is not measured: of another cluster or log, and rows without a place.
    large, group_id = (0, 1, 99_000), "a tombstone"
    rows += [
        row_of(group_id, 0, large, cluster="another"),
        row_of(group_id, 0, large, log_topic="another"),
        row_of(group_id, 0, large, log_offset=None),
        row_of(group_id, 0, large, log_partition=None),
    ]
    # Larger records come first in a log than in the next batch, and equal ones count once.
    again = "two batches of one size"
    rows += [row_of(again, base, (0, 4, 4), batch_base=None) for base in (5, 7)]
    rows += [row_of(again, 9, (0, 4, 4), record_type=5), row_of(again, 10, (0, 1, 1), record_type=5)]
    alone = HEADER_SIZE + len(record_bytes(NewRecord(5, 0, bytes(4), bytes(4)), 0, 0))
    expected[again] = {
        RecordSize(GROUP_LOG, kind, alone, 1, LogPosition(0, offset, 0)) for kind, offset in ((3, 5), (5, 9), (None, 5))
    }
    append(tmp_path, "group_records", rows)
    found: Sizes = defaultdict(set)
    for of_group, size in rows_of(FolderReader(str(tmp_path)), SUMS["sizes"], **given(CLUSTER)):
        found[of_group].add(size)
    assert found == expected


MB_128 = 1 << 27
LARGE = {
    # bytes of the key and of the value: bytes of the record, where each length takes four bytes or five
    (MB_128 - 1, 1): (3 + 1) + (4 + MB_128 - 1) + (1 + 1) + 5,
    (MB_128, 1): (3 + 1) + (5 + MB_128) + (1 + 1) + 5,
    (1, MB_128 - 1): (3 + 1) + (1 + 1) + (4 + MB_128 - 1) + 5,
    (1, MB_128): (3 + 1) + (1 + 1) + (5 + MB_128) + 5,
    (1, MB_128 - 11): MB_128 - 1 + 4,
    (1, MB_128 - 10): MB_128 + 5,
}


def test_records_of_128_mb_have_longer_lengths(tmp_path: Path) -> None:
    """Two other columns stand for the bytes of key and value, as no test is to write so many."""
    text = SIZES.replace("bytes_of(key)", "batch_last").replace("bytes_of(value)", "place")
    sizes = {f"{key} and {value}": size for (key, value), size in LARGE.items()}
    columns = [{"batch_last": key, "place": value} for key, value in LARGE]
    rows = [row_of(of, 0, (0, 0, 0), **of_record) for of, of_record in zip(sizes, columns, strict=True)]
    append(tmp_path, "group_records", [*rows, {**rows[0], "cluster": "another", "group_id": "another"}])
    found = rows_of(FolderReader(str(tmp_path)), SUMS["sizes"]._replace(text=text), **given(CLUSTER))
    assert {of: size.size - HEADER_SIZE for of, size in found} == sizes


def test_spark_measures_the_same(tables: Path, in_logs: Sizes, spark: SparkSession) -> None:
    found: Sizes = defaultdict(set)
    for group_id, size in rows_of(through_spark(spark, tables), SUMS["sizes"], **given(CLUSTER)):
        found[group_id].add(size)
    assert found == in_logs
