"""The pass over commits that are too many for this process, or that are not in a folder here: Spark orders the rows."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from jobs.pipeline.commits.fold import INPUT, OF_PARTITION, STATE, CommitNews, PassOver, What, summarizer
from jobs.pipeline.commits.here import texts
from jobs.pipeline.on_spark import slices as commit_slices
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.spark_reader import spark_types

AHEAD: Final = -1
"""Sorts states before all rows of their log partition."""

SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"

TASKS: Final = 200
"""Number of tasks where the session does not say it: on Databricks it may be ``auto``."""

MOST_OFFSETS: Final = 1 << 44
"""No log partition has as many offsets: log partition and offset fit in one number, by which Spark sorts fastest."""


def summarized(tables: Tables, place: PassOver, done: str, news: CommitNews) -> DataFrame:
    """Return the rows of ``commit_summaries`` that the runs after ``done`` add or change.

    A log partition, or a slice of it, goes to one task, in offset order.
    """
    text, of_states, values = texts(place, done, news)
    reader = tables.spark_reader()
    run = F.array_position(F.array(*map(F.lit, place.runs)), F.col("run_id")).cast("int") - 1
    rows = reader.query(text, **values).withColumns({"run": run, "state": F.lit(None).cast("string")})
    if of_states is not None:
        # JSON, as a struct column would be null in all other rows, and carried with each of them.
        known, state = reader.query(of_states, **values), F.to_json(F.struct(*STATE)).alias("state")
        added = F.lit(What.STATE.value).alias("what"), F.lit(AHEAD).cast("long").alias("log_offset"), state
        rows = rows.unionByName(known.select(*OF_PARTITION, *added), allowMissingColumns=True)
    tasks = _tasks(tables.spark.conf.get(SHUFFLE_PARTITIONS, None))
    runs = done, place.runs[-1]
    slices = commit_slices.of_log_partitions(tables, place.cluster, runs, news.again, tasks)
    return (
        commit_slices.divided(rows, slices, tasks)
        .withColumn("at", F.col("log_partition").cast("long") * MOST_OFFSETS + F.col("log_offset"))
        # By the number itself: repartition hashes it, which sends some tasks two slices and others none.
        .repartitionById(tasks, "task")
        .sortWithinPartitions("at")
        .select(*INPUT)
        .mapInArrow(summarizer(place), spark_types(COMMIT_SUMMARIES.schema))
    )


def _tasks(shuffle_partitions: str | None) -> int:
    """Return the number of tasks of the pass, in a session with this setting."""
    given = shuffle_partitions or ""
    return int(given) if given.isdecimal() and int(given) > 0 else TASKS
