"""The pass over commits that are too many for this process, or that are not in a folder here: Spark orders the rows.

Large log partitions go in slices, so that the pass over them is more than one task. All commits of one group and
partition are in one slice. Records of a group are in all slices that have commits of the group, ends of a transaction
in all that have commits of its producer. So rows are as many as before, nearly.
"""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.records import GROUP_LOG
from jobs.pipeline.commits.fold import INPUT, OF_PARTITION, STATE, CommitNews, PassOver, What, summarizer
from jobs.pipeline.commits.here import texts
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.spark_reader import spark_types

SLICE_ROWS: Final = 1 << 20
"""Number of rows of the log above which a log partition gets another slice."""


def of_log_partitions(
    tables: Tables, cluster: str, runs: tuple[str, str], again: Sequence[int], tasks: int
) -> dict[int, int]:
    """Return the number of slices of each log partition, at most ``tasks``; the ledger says how many rows it has.

    ``runs``: the pass goes over runs after the first and up to the second. ``again``: log partitions of which it goes
    over all runs.
    """
    rows = tables.engine().rows(
        "SELECT log_partition, sum(CASE WHEN run_id > :done THEN records ELSE 0 END) AS new_records, "
        "sum(records) AS all_records FROM $runs WHERE job = 'ingest' AND cluster = :cluster AND log_topic = :topic "
        "AND log_partition IS NOT NULL AND run_id <= :upto GROUP BY log_partition ORDER BY log_partition",
        cluster=cluster,
        topic=GROUP_LOG,
        done=runs[0],
        upto=runs[1],
    )
    counts = {
        row["log_partition"]: row["all_records" if row["log_partition"] in again else "new_records"] for row in rows
    }
    return {partition: min(tasks, max(1, math.ceil(count / SLICE_ROWS))) for partition, count in counts.items()}


def divided(rows: DataFrame, slices: Mapping[int, int], tasks: int) -> DataFrame:
    """Return the rows with the column ``task``, the number of the task that takes a slice.

    ``rows`` have the columns ``what``, log partition, group, topic, partition and producer of the pass.
    """
    first = dict(zip(slices, accumulate(slices.values(), initial=0), strict=False))
    task = F.coalesce(_by_partition(first), F.col("log_partition")) + F.col("slice")
    sliced = _sliced(rows, {partition: count for partition, count in slices.items() if count > 1})
    return sliced.withColumn("task", F.pmod(task, F.lit(tasks)).cast("int"))


def _sliced(rows: DataFrame, slices: Mapping[int, int]) -> DataFrame:
    """Return the rows with the column ``slice``: below the number of slices of their log partition, 0 in others."""
    if not slices:
        return rows.withColumn("slice", F.lit(0))
    count = F.coalesce(_by_partition(slices), F.lit(1))
    rows = rows.withColumn("slice", F.pmod(F.xxhash64("group_id", "topic", "partition"), count).cast("int"))
    is_record, is_marker = (F.col("what") == int(what) for what in (What.RECORD, What.MARKER))
    is_sliced = F.col("log_partition").isin(*slices)
    of_slices = rows.where(is_sliced & ~is_record & ~is_marker)
    commits = of_slices.where(F.col("what") != int(What.STATE))
    parts = [rows.where(~is_sliced).withColumn("slice", F.lit(0)), of_slices]
    for wanted, name in ((is_record, "group_id"), (is_marker, "producer_id")):
        # Records and markers follow the commits: a slice without a commit of the group, or producer, has no use for
        # them.
        places = commits.where(F.col(name).isNotNull()).select("log_partition", name, "slice").distinct()
        parts.append(rows.where(is_sliced & wanted).drop("slice").join(places, ["log_partition", name]))
    return reduce(DataFrame.unionByName, parts)


def _by_partition(numbers: Mapping[int, int]) -> Column:
    """Return the number of the log partition of a row, null if it has none."""
    pairs = [F.lit(number) for pair in numbers.items() for number in pair]
    return F.create_map(*pairs)[F.col("log_partition")] if pairs else F.lit(None).cast("int")


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
    slices = of_log_partitions(tables, place.cluster, runs, news.again, tasks)
    return (
        divided(rows, slices, tasks)
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
