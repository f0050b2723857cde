"""Findings that this process makes in parts, and those that Spark makes: the same rows."""

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from coordinator_core.audit.findings.thresholds import Thresholds
from jobs.api import CoordinatorAudit
from jobs.pipeline import made_findings
from jobs.pipeline.findings import parts_here
from jobs.pipeline.group_pages import INPUTS, Changed, SharedFacts
from jobs.pipeline.on_spark import findings as on_spark
from jobs.settings import EngineLimits
from jobs.tables.delta import Tables
from jobs.tables.results import FINDINGS

MOST_PARTS = EngineLimits().findings_parts


def here(tables: Tables, changed: Changed, limits: Thresholds, parts: int) -> pa.Table:
    """The rows of the table as this process makes them."""
    around = {cluster: SharedFacts.read(tables.engine(), cluster) for cluster in changed}
    return made_findings.here(tables, changed, limits, parts, around)[0]


def made(sample: CoordinatorAudit, changed: Changed, parts: int | None) -> list[str]:
    """The rows of the table, without what stays of it."""
    limits = sample.settings.findings
    if parts is None:
        sample.tables.replace(FINDINGS, on_spark.of_groups(sample.tables, changed, limits))
        found = {
            name: made_findings.about_one(sample.tables, name, made_findings.that_count(sample.tables, name), limits)
            for name in changed
        }
        rows = on_spark.with_clusters(sample.tables, found)
        assert isinstance(rows, DataFrame)
        rows = rows.toArrow()
        sample.tables.replace(FINDINGS, rows)
    else:
        rows = here(sample.tables, changed, limits, parts)
        assert isinstance(rows, pa.Table)
    return sorted(map(repr, rows.select(FINDINGS.schema.names).to_pylist()))


def test_findings_in_parts_are_those_of_one(sample: CoordinatorAudit) -> None:
    everything: Changed = {sample.cluster: None}
    whole = made(sample, everything, 1)
    assert len({row["group_id"] for row in sample.findings.select("group_id").collect()}) > 3
    assert len(whole) == sample.findings.count()
    for parts in (3, MOST_PARTS):
        assert made(sample, everything, parts) == whole
    for parts in (1, 2):
        assert made(sample, {sample.cluster: ["A-coop-a2d7", "no such group"]}, parts) == whole


def test_the_size_of_the_inputs_decides_on_the_parts(sample: CoordinatorAudit) -> None:
    tables = Tables(sample.tables.spark, sample.tables.location)
    size = sum(local.size() for table in INPUTS if (local := tables.local(table)) is not None)
    wanted = {size: 1, size - 1: 2, size // 3 + 1: 3, -(-size // MOST_PARTS): MOST_PARTS, size // 100: None, -1: None}
    for limit, parts in wanted.items():
        tables.limits = replace(EngineLimits(), findings_bytes=limit)
        assert parts_here(tables) == parts, limit


@pytest.mark.long
def test_findings_by_spark_are_those_of_this_process(sample: CoordinatorAudit) -> None:
    everything: Changed = {sample.cluster: None}
    assert made(sample, everything, None) == made(sample, everything, 1)
