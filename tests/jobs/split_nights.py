"""One decoded log in several stores, its records coming in other runs than they did."""

import random
from pathlib import Path

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from jobs.sources.files import REPLAYED_TOPICS
from jobs.tables.delta import Tables
from jobs.tables.history import GROUP_STATES, HISTORY
from jobs.tables.log import LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.spark_reader import spark_types


def rows_of(tables: Tables) -> dict[str, list[str]]:
    """All rows of history and all states as text, in one order."""
    found = {}
    for table in (*HISTORY.values(), GROUP_STATES):
        columns = [name for name in table.schema.names if name != "run_id"]
        rows = tables.read(table).select(F.to_json(F.struct(*columns)).alias("row")).collect()
        found[table.name] = sorted(row.row for row in rows)
    return found


def in_nights(whole: Tables, home: Path, night: Column) -> Tables:
    """The decoded log of ``whole`` as if each record had come in the run that ``night`` names; none is replayed."""
    tables = Tables(whole.spark, str(home))
    for table in (LOG_RECORDS, GROUP_RECORDS, OFFSET_COMMITS, CLUSTER_RECORDS, QUARANTINE):
        tables.create(table)
        tables.append(table, whole.read(table).withColumn("run_id", night), "copy")
    tables.create(RUNS)
    # An empty segment has no record: only the run that read it tells that its log partition was given.
    empty = whole.read(RUNS).where("job = 'ingest' AND records = 0").withColumn("run_id", F.lit("night 0"))
    tables.append(RUNS, empty, "copy")
    return tables


def decoded(tables: Tables, night: str) -> None:
    """The records of this night, and of those before, are there, and its runs name the log partitions that it read."""
    of_log = tables.read(LOG_RECORDS).where(F.col("run_id") == night).groupBy("cluster", "log_topic", "log_partition")
    ingested = of_log.agg(F.count("*").alias("records")).withColumn("job", F.lit("ingest"))
    done = (
        tables.read(LOG_RECORDS).select("cluster").distinct().withColumns({"job": F.lit("decode"), "records": F.lit(1)})
    )
    runs = ingested.unionByName(done, allowMissingColumns=True).withColumn("run_id", F.lit(night))
    missing = {of.name: F.lit(None).cast(of.dataType) for of in spark_types(RUNS.schema) if of.name not in runs.columns}
    tables.append(RUNS, runs.withColumns(missing), night)


def by_offset(whole: Tables, nights: list[str], chance: random.Random) -> Column:
    """Splits every log partition of groups into nights, at random offsets of its own; the rest comes in the first."""
    of_groups = F.col("log_topic").isin(*REPLAYED_TOPICS)
    ends = whole.read(LOG_RECORDS).where(of_groups).groupBy("log_topic", "log_partition")
    night = F.lit(nights[0])
    for topic, partition, end in sorted(ends.agg(F.max("log_offset")).collect()):
        splits = sorted(chance.choices(range(end + 2), k=len(nights) - 1))
        of_offset = F.lit(nights[-1])
        for name, split in reversed([*zip(nights, splits, strict=False)]):
            of_offset = F.when(F.col("log_offset") < split, name).otherwise(of_offset)
        mine = (F.col("log_topic") == topic) & (F.col("log_partition") == partition)
        night = F.when(mine, of_offset).otherwise(night)
    return night
