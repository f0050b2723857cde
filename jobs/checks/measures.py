"""The measures that the checks test: a few numbers for each cluster, aggregated by Spark."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from datetime import datetime
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.rules.table import RULES, Severity
from coordinator_core.records import LOG_TOPICS, Family
from jobs.pipeline import gaps, given_partitions
from jobs.settings import CheckSettings, ExpectedFindings, FindingCheckSettings
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from jobs.tables.history import TOPIC_HISTORY
from jobs.tables.log import LOG_PARTITION, LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.results import FINDINGS

NOTICES = [entry.rule.value for entry in RULES if entry.severity is Severity.NOTICE]
"""Rules that clients of a healthy broker may violate, or that newer brokers do not have."""

OFFSETS_TOPIC = LOG_TOPICS[Family.GROUP]
MEASURES = (
    "unbalanced_partitions",
    "undecoded_runs",
    "missing_offsets",
    "damaged_offsets",
    "absent_partitions",
    "quarantine_rate",
    "unknown_types",
    "misplaced_groups",
    "violations",
    "notices",
    "invalid_targets",
    "divergent_targets",
    "failing_findings",
    "unexpected_findings",
    "hours_since_last_record",
)
NO_COUNTS: Final = ("absent_partitions", "quarantine_rate", "misplaced_groups", "hours_since_last_record")
"""Measures that are unknown if a table has no row of a cluster; the others are then 0."""

JOBS: Final = ("ingest", "decode")

Parts = dict[tuple[str, ...], DataFrame]
"""Names of measures, and rows with them by cluster. Clusters without a row have nothing to count, or are unknown."""


def measure(tables: Tables, now: datetime, chosen: CheckSettings) -> DataFrame:
    """Return one row for each cluster with a column for each of MEASURES; null: the tables do not show it.

    Raises:
        MissingTableError: nothing was ingested yet.
    """
    parts = _ledger(tables) | _gaps(tables) | _quarantine(tables) | _placement(tables, chosen.offsets_partitions)
    parts |= _absent(tables, chosen.offsets_partitions) | _protocol(tables) | _freshness(tables, now)
    parts |= _findings(tables, chosen.findings)
    measured = {name for names in parts for name in names}
    # One aggregation over one row for each cluster and part. Joins would shuffle once for each part.
    rows = [
        part.select("cluster", *((F.col(name) if name in names else F.lit(None)).cast("double") for name in MEASURES))
        for names, part in parts.items()
    ]
    together = reduce(DataFrame.union, rows).toDF("cluster", *MEASURES)
    found = together.groupBy("cluster").agg(*(F.max(name).alias(name) for name in MEASURES))
    return found.where("undecoded_runs IS NOT NULL").fillna(0, sorted(measured.difference(NO_COUNTS)))


def _ledger(tables: Tables) -> Parts:
    decoded = F.col("job") == "decode"
    unbalanced = decoded & F.expr("records <> decoded + quarantined + control")
    # A run that ingested nothing leaves nothing to decode.
    took = F.col("records") > 0
    taken, done = (F.collect_set(F.when(took & (F.col("job") == job), F.col("run_id"))) for job in JOBS)
    quarantined, records = (F.sum(F.when(decoded, F.col(name))) for name in ("quarantined", "records"))
    counted = (
        tables.read(RUNS)
        .where("cluster IS NOT NULL")
        .groupBy("cluster")
        .agg(
            F.count_if(F.coalesce(unbalanced, F.lit(False))).alias("unbalanced_partitions"),
            F.size(F.array_except(taken, done)).alias("undecoded_runs"),
            F.when(records > 0, quarantined / records).alias("quarantine_rate"),
        )
    )
    return {("unbalanced_partitions", "undecoded_runs", "quarantine_rate"): counted}


def _gaps(tables: Tables) -> Parts:
    """Return the offsets that are missing now: a later run may have filled a gap of an earlier one.

    Only log partitions in which a run found a gap are examined.
    """
    names = ("missing_offsets", "damaged_offsets")
    suspects = (
        tables.read(RUNS)
        .where("job = 'ingest' AND (missing_offsets > 0 OR damaged_offsets > 0)")
        .select("cluster", *LOG_PARTITION)
        .distinct()
    )
    found = tables.spark.createDataFrame([], "cluster string, missing_offsets long, damaged_offsets long")
    for row in suspects.select("cluster").distinct().collect():
        log = tables.read(LOG_RECORDS).where(F.col("cluster") == row.cluster)
        log = log.join(F.broadcast(suspects.drop("cluster").distinct()), list(LOG_PARTITION), "left_semi")
        sums = gaps.summary(gaps.find_gaps(log, log)).agg(*(F.sum(name).alias(name) for name in names))
        found = found.unionByName(sums.withColumn("cluster", F.lit(row.cluster)))
    return {names: found}


def _absent(tables: Tables, offsets_partitions: int | None) -> Parts:
    return {("absent_partitions",): given_partitions.absent(tables, OFFSETS_TOPIC, offsets_partitions)}


def _quarantine(tables: Tables) -> Parts:
    return _counted(tables, QUARANTINE.name, {"unknown_types": _is_unknown()})


def _is_unknown() -> Column:
    """Return whether a reason is that of an UnknownTypeError or UnknownVersionError."""
    return F.lower("reason").rlike("no (metadata )?record type|version \\d+, known are")


def _placement(tables: Tables, offsets_partitions: int | None) -> Parts:
    if not tables.exists(GROUP_RECORDS) or (offsets_partitions is None and not tables.exists(TOPIC_HISTORY)):
        return {}
    groups = (
        tables.read(GROUP_RECORDS)
        .where((F.col("log_topic") == OFFSETS_TOPIC) & F.col("group_id").isNotNull())
        .select("cluster", "group_id", "log_partition")
        .distinct()
    )
    if offsets_partitions is None:
        now = tables.read(TOPIC_HISTORY).where((F.col("topic") == OFFSETS_TOPIC) & F.col("until").isNull())
        groups = groups.join(F.broadcast(now.select("cluster", "partitions")), "cluster")
    else:
        groups = groups.withColumn("partitions", F.lit(offsets_partitions))
    misplaced = coordinator_partition(F.col("group_id"), F.col("partitions")) != F.col("log_partition")
    return {("misplaced_groups",): groups.groupBy("cluster").agg(F.count_if(misplaced).alias("misplaced_groups"))}


def coordinator_partition(group_id: Column, partitions: Column) -> Column:
    """Return the partition of ``__consumer_offsets`` of a group: the absolute Java hash of its id, modulo the count.

    The hash -2^31 has no absolute value in Java; Kafka uses 0 for it.
    """
    units = F.hex(F.encode(group_id, "UTF-16BE"))
    numbers = F.transform(
        F.sequence(F.lit(0), (F.length(units) / 4).cast("int") - 1),
        lambda index: F.conv(F.substring(units, index * 4 + 1, F.lit(4)), 16, 10).cast("long"),
    )
    hashed = F.aggregate(
        F.when(F.length(units) > 0, numbers).otherwise(F.array().cast("array<bigint>")),
        F.lit(0).cast("long"),
        lambda total, unit: (total * 31 + unit).bitwiseAND(F.lit(0xFFFFFFFF)),
    )
    signed = F.when(hashed >= 1 << 31, (1 << 32) - hashed).otherwise(hashed)
    return (F.when(hashed == 1 << 31, 0).otherwise(signed) % partitions).cast("int")


def _protocol(tables: Tables) -> Parts:
    """Return the measures from the tables of the audit, if they exist."""
    is_final = ~F.coalesce(F.col("is_open"), F.lit(False))
    is_notice = F.col("rule").isin(NOTICES)
    rules = {"violations": is_final & ~is_notice, "notices": is_final & is_notice}
    verdict = F.col("verdict")
    targets = {"invalid_targets": verdict == "invalid", "divergent_targets": verdict == "divergent"}
    return _counted(tables, "violations", rules) | _counted(tables, "target_audits", targets)


def _findings(tables: Tables, chosen: FindingCheckSettings) -> Parts:
    """Return how many findings count, and how many of them fail the run, if the setting names kinds that do."""
    counts = (F.col("score") >= chosen.min_score) & ~_is_expected(chosen.expected)
    conditions = {"unexpected_findings": counts}
    if chosen.fail_on:
        fails = F.lit(True) if "any" in chosen.fail_on else F.col("kind").isin(list(map(str, chosen.fail_on)))
        conditions["failing_findings"] = counts & fails
    return _counted(tables, FINDINGS.name, conditions)


def _is_expected(expected: Iterable[ExpectedFindings]) -> Column:
    found = F.lit(False)
    for each in expected:
        is_expected = F.col("group_id").rlike(fnmatch.translate(each.groups))
        if each.kinds:
            is_expected &= F.col("kind").isin(list(map(str, each.kinds)))
        if each.max_score is not None:
            is_expected &= F.col("score") <= each.max_score
        found |= is_expected
    return found


def _counted(tables: Tables, name: str, conditions: dict[str, Column]) -> Parts:
    """Return how many rows of a table meet each condition; nothing if the table does not exist."""
    table = CATALOG[name]
    if not tables.exists(table):
        return {}
    counts = [F.count_if(condition).alias(each) for each, condition in conditions.items()]
    return {tuple(conditions): tables.read(table).groupBy("cluster").agg(*counts)}


def _freshness(tables: Tables, now: datetime) -> Parts:
    name = "hours_since_last_record"
    # Records without a place in the log are in no range.
    strays = tables.read(LOG_RECORDS).where("stray IS NOT NULL AND timestamp_ms >= 0")
    times = strays.select("cluster", F.col("timestamp_ms").alias("t"))
    if tables.exists(LOG_RANGES):
        times = times.unionByName(tables.read(LOG_RANGES).selectExpr("cluster", "last_ms AS t"))
    newest = times.groupBy("cluster").agg(F.max("t").alias("t"))
    hours = (F.lit(int(now.timestamp() * 1000)) - F.col("t")) / 3_600_000
    return {(name,): newest.select("cluster", hours.alias(name))}
