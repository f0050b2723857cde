"""What the tables know of the logs as a whole."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from coordinator_core.wire.batch_format import ENDS_WITHIN
from jobs.relations.logs import lost_before_records, lost_records
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.table import Table

LOG = "__consumer_offsets"


def run(number: int, first: int, last: int, *gaps: tuple[int, int, str], unlisted: int = 0) -> dict[str, Any]:
    missing = sum(end - begin + 1 for begin, end, cause in gaps if cause == "missing")
    damaged = sum(end - begin + 1 for begin, end, cause in gaps if cause == "damaged")
    return {
        "run_id": f"run-{number}",
        "job": "ingest",
        "first_offset": first,
        "last_offset": last,
        "gaps": [{"first_offset": begin, "last_offset": end, "cause": cause} for begin, end, cause in gaps],
        "missing_offsets": missing + unlisted,
        "damaged_offsets": damaged,
    }


def lost(folder: Path, *runs: dict[str, Any], has_start: bool = True) -> list[tuple[int, int]]:
    """The offsets of partition 0 that are lost, as these runs tell them."""
    of_all = {"cluster": "c", "log_topic": LOG, "log_partition": 0}
    ranges = [{"run_id": each["run_id"], "first_offset": each["first_offset"], "has_start": has_start} for each in runs]
    for table, rows in ((RUNS, runs), (LOG_RANGES, ranges)):
        content = [{**of_all, **each} for each in rows]
        write_deltalake(folder / table.name, pa.Table.from_pylist(content, table.schema))
    found = lost_records(FolderReader(str(folder)), "c").ranges
    return sorted(found.get((LOG, 0), ()))


def test_gaps_are_lost_but_for_those_of_compaction_and_of_control_records(tmp_path: Path) -> None:
    gaps = (10, 12, "missing"), (20, 20, "damaged"), (30, 30, "unknown")
    assert lost(tmp_path, run(1, 0, 99, *gaps)) == [(10, 12), (20, 20)]


def test_a_later_run_tells_of_the_offsets_from_its_first_one_on(tmp_path: Path) -> None:
    before = run(1, 0, 99, (10, 12, "missing"), (40, 79, "missing"))
    filled = run(2, 50, 59, (60, 79, "missing"))
    assert lost(tmp_path, before, filled) == [(10, 12), (40, 49), (60, 79)]


def test_more_gaps_than_a_run_lists_may_be_anywhere(tmp_path: Path) -> None:
    assert lost(tmp_path, run(1, 5, 99, (10, 12, "missing"), unlisted=1)) == [(5, 99)]


def test_a_log_that_was_not_read_from_its_start_lacks_what_is_before(tmp_path: Path) -> None:
    assert lost(tmp_path, run(1, 1000, 1099), has_start=False) == [(0, 999)]
    assert lost(tmp_path / "whole", run(1, 1000, 1099)) == []


@pytest.mark.parametrize(
    ("base", "last", "error", "is_lost"),
    [
        (100, 104, "checksum", [(100, 104)]),
        (None, None, "no batch", [(100, 100)]),
        (40, 44, "checksum", []),  # a run has it among its gaps
        (None, None, f"{ENDS_WITHIN} a batch", []),
    ],
)
def test_bytes_behind_the_last_record_are_lost_unless_a_file_ends_in_them(
    tmp_path: Path, base: int | None, last: int | None, error: str, is_lost: list[tuple[int, int]]
) -> None:
    place = {"cluster": "c", "log_topic": LOG, "log_partition": 0}
    damaged = {
        "kind": "damaged",
        "batch_base": base,
        "batch_last": last,
        "source": "a.log",
        "place": 900,
        "error": error,
    }
    record = {"kind": "record", "log_offset": 99, "batch_base": 90, "batch_last": 99, "source": "a.log", "place": 800}
    rows: dict[Table, list[dict[str, Any]]] = {
        LOG_RECORDS: [record, damaged],
        QUARANTINE: [{"part": "damaged"}],
        RUNS: [run(1, 0, 99)],
        LOG_RANGES: [{"run_id": "run-1", "first_offset": 0, "last_offset": 99, "has_start": True}],
    }
    for table, of_table in rows.items():
        content = [{**place, **row} for row in of_table]
        write_deltalake(tmp_path / table.name, pa.Table.from_pylist(content, table.schema))
    tables = FolderReader(str(tmp_path))
    assert lost_records(tables, "c").ranges == ({(LOG, 0): is_lost} if is_lost else {})
    assert lost_before_records(tables, "c").ranges == {}
