"""Which partitions of the coordinator logs the dumps had, empty ones included, and how many are absent."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from jobs.sources.files import FAMILIES, METADATA_TOPIC
from jobs.tables.delta import Tables
from jobs.tables.history import TOPIC_HISTORY
from jobs.tables.log import RUNS
from jobs.tables.nightly import DUMPED_FILES

IN_FOLDER = r"(?:^|/)([a-zA-Z0-9._-]+)-(\d+)/[^/]+$"
"""Matches a file in the folder of a log partition, as brokers name it."""


def given(tables: Tables) -> DataFrame:
    """Return ``cluster``, ``log_topic`` and ``log_partition`` of each partition that a dump had, empty ones included.

    A partition counts as given if a run names it, or if its folder had a segment file, even an empty one.
    """
    places = tables.read(RUNS).where("job = 'ingest'").select("cluster", "log_topic", "log_partition")
    if tables.exists(DUMPED_FILES):
        topic, partition = (F.regexp_extract("path", IN_FOLDER, number) for number in (1, 2))
        files = tables.read(DUMPED_FILES).where(topic != "")
        named = files.select("cluster", topic.alias("log_topic"), partition.cast("int").alias("log_partition"))
        places = places.unionByName(named)
    known = [name for name in FAMILIES if name != METADATA_TOPIC]
    return places.where(F.col("log_topic").isin(known) & F.col("log_partition").isNotNull()).distinct()


def absent(tables: Tables, offsets_topic: str, offsets_partitions: int | None) -> DataFrame:
    """Return ``cluster`` and ``absent_partitions``: how many partitions of its given log topics were not given.

    ``offsets_partitions`` is the partition count of ``offsets_topic``; None: as the metadata log says. Partitions below
    the highest one given exist, even if no count is known. The number is null if none is known to be absent, and the
    count of a topic is not known.
    """
    highest = (F.max("log_partition") + 1).alias("least")
    there = given(tables).groupBy("cluster", "log_topic").agg(F.count("*").alias("given"), highest)
    counts = F.lit(None).cast("int")
    if tables.exists(TOPIC_HISTORY):
        topics = tables.read(TOPIC_HISTORY).where("until IS NULL")
        there = there.join(
            topics.selectExpr("cluster", "topic AS log_topic", "partitions"), ["cluster", "log_topic"], "left"
        )
        counts = F.col("partitions")
    if offsets_partitions is not None:
        counts = F.when(F.col("log_topic") == offsets_topic, F.lit(offsets_partitions)).otherwise(counts)
    missing = F.greatest(F.lit(0), F.greatest(counts, F.col("least")) - F.col("given"))
    found = there.select("cluster", missing.alias("missing"), counts.isNotNull().alias("is_known"))
    total = F.sum("missing")
    number = F.when((total > 0) | F.bool_and("is_known"), total).alias("absent_partitions")
    return found.groupBy("cluster").agg(number)
