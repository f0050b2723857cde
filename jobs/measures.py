"""What the checks look at: a handful of numbers a cluster, aggregated by Spark."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from coordinator_core.audit.rules.table import RULES, Severity
from jobs import gaps
from jobs.log_schema import LOG_RECORDS, QUARANTINE, RUNS
from jobs.record_schema import CLUSTER_RECORDS, GROUP_RECORDS
from jobs.tables import Table, Tables

NOTICES = [entry.rule.value for entry in RULES if entry.severity is Severity.NOTICE]
"""Rules that a healthy broker lets its clients break, or that a newer one does not have."""

OFFSETS_TOPIC = "__consumer_offsets"
MEASURES = (
    "unbalanced_partitions",
    "undecoded_runs",
    "missing_offsets",
    "damaged_offsets",
    "quarantine_rate",
    "unknown_types",
    "misplaced_groups",
    "violations",
    "notices",
    "invalid_targets",
    "divergent_targets",
    "hours_since_last_record",
)


def measure(tables: Tables, now: datetime, offsets_partitions: int | None) -> DataFrame:
    """One row a cluster with a column for each of MEASURES; null: it cannot be told from the tables there are.

    ``offsets_partitions`` is the partition count of ``__consumer_offsets``; None: as the metadata log has it.
    """
    measured = _completeness(tables).join(_gaps(tables), "cluster", "left").fillna(0, ["missing_offsets"])
    measured = measured.fillna(0, ["damaged_offsets"])
    for more in (_validity(tables), _placement(tables, offsets_partitions), _protocol(tables), _freshness(tables, now)):
        measured = measured.join(more, "cluster", "left")
    return measured.select("cluster", *(F.col(name).cast("double") for name in MEASURES))


def _completeness(tables: Tables) -> DataFrame:
    runs = tables.read(RUNS)
    unbalanced = (F.col("job") == "decode") & (F.expr("records <> decoded + quarantined + control"))
    counted = (
        runs.where("cluster IS NOT NULL")
        .groupBy("cluster")
        .agg(F.count_if(F.coalesce(unbalanced, F.lit(False))).alias("unbalanced_partitions"))
    )
    decoded = runs.where("job = 'decode'").select("run_id").distinct()
    waiting = (
        runs.where("job = 'ingest' AND cluster IS NOT NULL")
        .join(decoded, "run_id", "left_anti")
        .groupBy("cluster")
        .agg(F.count_distinct("run_id").alias("undecoded_runs"))
    )
    return counted.join(waiting, "cluster", "left").fillna(0, ["undecoded_runs"])


def _gaps(tables: Tables) -> DataFrame:
    """Offsets in gaps as they are now: what a run missed, a later one may have brought.

    Only log partitions in which a run found a gap are looked at again.
    """
    suspects = (
        tables.read(RUNS)
        .where("job = 'ingest' AND (missing_offsets > 0 OR damaged_offsets > 0)")
        .select("cluster", *gaps.PARTITION)
        .distinct()
    )
    found = tables.spark.createDataFrame([], "cluster string, missing_offsets long, damaged_offsets long")
    for row in suspects.select("cluster").distinct().collect():
        log = tables.read(LOG_RECORDS).where(F.col("cluster") == row.cluster)
        log = log.join(F.broadcast(suspects.drop("cluster").distinct()), list(gaps.PARTITION), "left_semi")
        sums = gaps.summary(gaps.find_gaps(log, log)).agg(
            F.sum("missing_offsets").alias("missing_offsets"), F.sum("damaged_offsets").alias("damaged_offsets")
        )
        found = found.unionByName(sums.withColumn("cluster", F.lit(row.cluster)))
    return found


def _validity(tables: Tables) -> DataFrame:
    runs = tables.read(RUNS).where("job = 'decode' AND cluster IS NOT NULL")
    rates = runs.groupBy("cluster").agg(
        F.when(F.sum("records") > 0, F.sum("quarantined") / F.sum("records")).alias("quarantine_rate")
    )
    if not tables.exists(QUARANTINE):
        return rates.withColumn("unknown_types", F.lit(None))
    unknown = tables.read(QUARANTINE).groupBy("cluster").agg(F.count_if(_is_unknown()).alias("unknown_types"))
    return rates.join(unknown, "cluster", "left").fillna(0, ["unknown_types"])


def _is_unknown() -> Column:
    """Reasons are those of UnknownTypeError and UnknownVersionError."""
    return F.lower("reason").rlike("no (metadata )?record type|version \\d+, known are")


def _placement(tables: Tables, offsets_partitions: int | None) -> DataFrame:
    partitions = _offsets_partitions(tables) if offsets_partitions is None else None
    if not tables.exists(GROUP_RECORDS) or (offsets_partitions is None and partitions is None):
        return _nothing(tables, "misplaced_groups")
    groups = (
        tables.read(GROUP_RECORDS)
        .where((F.col("log_topic") == OFFSETS_TOPIC) & F.col("group_id").isNotNull())
        .select("cluster", "group_id", "log_partition")
        .distinct()
    )
    if partitions is None:
        groups = groups.withColumn("partitions", F.lit(offsets_partitions))
    else:
        groups = groups.join(F.broadcast(partitions), "cluster")
    misplaced = coordinator_partition(F.col("group_id"), F.col("partitions")) != F.col("log_partition")
    return groups.groupBy("cluster").agg(F.count_if(misplaced).alias("misplaced_groups"))


def _offsets_partitions(tables: Tables) -> DataFrame | None:
    """The partition count of ``__consumer_offsets`` by cluster, from the metadata log; None without such a table."""
    if not tables.exists(CLUSTER_RECORDS):
        return None
    records = tables.read(CLUSTER_RECORDS)
    topics = records.where(F.col("topic_record.value.name") == OFFSETS_TOPIC)
    topics = topics.select("cluster", F.col("topic_record.value.topicId").alias("topic_id")).distinct()
    partitions = records.where("partition_record IS NOT NULL").select(
        "cluster",
        F.col("partition_record.value.topicId").alias("topic_id"),
        F.col("partition_record.value.partitionId").alias("partition"),
    )
    counted = partitions.join(F.broadcast(topics), ["cluster", "topic_id"], "left_semi").groupBy("cluster", "topic_id")
    by_topic = counted.agg(F.count_distinct("partition").cast("int").alias("partitions"))
    return by_topic.groupBy("cluster").agg(F.max("partitions").alias("partitions"))


def coordinator_partition(group_id: Column, partitions: Column) -> Column:
    """The partition of ``__consumer_offsets`` that holds a group: the absolute value of Java's hash of its id, modulo.

    Of the one hash without an absolute value in Java, -2^31, Kafka takes 0.
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


def _protocol(tables: Tables) -> DataFrame:
    """Of the tables of the audit, where it has run."""
    is_final = ~F.coalesce(F.col("is_open"), F.lit(False))
    is_notice = F.col("rule").isin(NOTICES)
    rules = {"violations": is_final & ~is_notice, "notices": is_final & is_notice}
    violations = _counted(tables, "violations", rules)
    verdict = F.col("verdict")
    targets = {"invalid_targets": verdict == "invalid", "divergent_targets": verdict == "divergent"}
    return violations.join(_counted(tables, "target_audits", targets), "cluster", "full")


def _counted(tables: Tables, name: str, conditions: dict[str, Column]) -> DataFrame:
    """Rows of a table that meet each condition, by cluster, 0 where there are none; null where there is no table."""
    clusters = tables.read(RUNS).where("cluster IS NOT NULL").select("cluster").distinct()
    table = Table(name, "", StructType(), ())
    if not tables.exists(table):
        return clusters.select("cluster", *(F.lit(None).cast("long").alias(each) for each in conditions))
    counts = tables.read(table).groupBy("cluster").agg(*(F.count_if(c).alias(each) for each, c in conditions.items()))
    return clusters.join(counts, "cluster", "left").fillna(0, list(conditions))


def _freshness(tables: Tables, now: datetime) -> DataFrame:
    newest = (
        tables.read(LOG_RECORDS).where("timestamp_ms >= 0").groupBy("cluster").agg(F.max("timestamp_ms").alias("t"))
    )
    hours = (F.lit(int(now.timestamp() * 1000)) - F.col("t")) / 3_600_000
    return newest.select("cluster", hours.alias("hours_since_last_record"))


def _nothing(tables: Tables, name: str) -> DataFrame:
    clusters = tables.read(RUNS).where("cluster IS NOT NULL").select("cluster").distinct()
    return clusters.withColumn(name, F.lit(None).cast("long"))
