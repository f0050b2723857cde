"""The largest records and batches: the tables give what the log's own fold gives, byte for byte."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.folds.group_history import RecordSize
from jobs.queries.from_logs.history import group_histories
from jobs.relations.groups import SUMS, given, rows_of
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from tests.jobs.relations.engines import through_spark
from tests.jobs.relations.tables_of_logs import CLUSTER, fill
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


def test_spark_measures_the_same(tables: Path, in_logs: Sizes, spark: SparkSession) -> None:
    found: Sizes = defaultdict(set)
    for group_id, size in rows_of(through_spark(spark, tables), SUMS["sizes"], **given(CLUSTER)):
        found[group_id].add(size)
    assert found == in_logs
