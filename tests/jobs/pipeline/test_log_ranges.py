"""How many records the ranges of the log put in order: none of a log partition without a gap."""

from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from jobs.pipeline.log_ranges import TO_ORDER
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import RUNS
from jobs.tables.table import few


def test_only_records_of_log_partitions_with_gaps_are_put_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tables, "is_here", lambda self: True)
    tables = Tables(cast(SparkSession, None), str(tmp_path))
    tables.create(RUNS)
    given = [
        ("c", "2", 0, 5, 1004, 1000),  # whole
        ("c", "2", 1, 5, 1004, 60),  # compacted
        ("c", "2", None, None, None, 7),  # without positions
        ("c", "1", 2, 0, 99, 50),  # of an earlier run
        ("other", "2", 2, 0, 99, 50),
    ]
    names = ("cluster", "run_id", "log_partition", "first_offset", "last_offset", "records")
    rows = [{"job": "ingest", **dict(zip(names, row, strict=True))} for row in given]
    tables.append(RUNS, few(RUNS, rows), "runs")
    reader = FolderReader(tables.location)
    assert list(reader.tuples(TO_ORDER, cluster="c", done="1", upto="2")) == [(67,)]
