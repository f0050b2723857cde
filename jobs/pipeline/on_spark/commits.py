"""The pass over commits that are too many for this process, or that are not in a folder here: Spark orders the rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.records import COMMIT_TYPES, GROUP_LOG
from jobs.pipeline.commits.fold import INPUT, OF_PARTITION, PLACE, STATE, CommitNews, PassOver, What, summarizer
from jobs.pipeline.on_spark import slices as commit_slices
from jobs.relations.commits import MARKER
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.spark_reader import spark_types
from jobs.tables.table import PLACED, Table

ALL: Final = "hour_ms IS NULL"
"""Rows of all commits of a group and partition."""

AHEAD: Final = -1
"""Sorts states before all rows of their log partition."""

SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"

TASKS: Final = 200
"""Number of tasks where the session does not say it: on Databricks it may be ``auto``."""

MOST_OFFSETS: Final = 1 << 44
"""No log partition has as many offsets: log partition and offset fit in one number, by which Spark sorts fastest."""


def summarized(tables: Tables, place: PassOver, done: str, news: CommitNews) -> DataFrame:
    """Return the rows of ``commit_summaries`` that the runs after ``done`` add or change."""
    return _Pass(tables, place, done).run(news)


class _Pass:
    def __init__(self, tables: Tables, place: PassOver, done: str) -> None:
        self._tables = tables
        self._place = place
        self._cluster = place.cluster
        self._runs = place.runs
        self._done = done

    def run(self, news: CommitNews) -> DataFrame:
        if not self._done:
            return self._pass(self._rows())
        if not news.again:
            return self._pass(self._with_states(news.settles))
        is_again = F.col("log_partition").isin(news.again)
        on = self._of(COMMIT_SUMMARIES).where(F.expr(ALL) & F.col("log_partition").isin(news.changed) & ~is_again)
        settled = [self._settled(is_again)] if news.settles else []
        return self._pass(_together([self._rows(is_again), _states(on), *settled]), news.again)

    def _with_states(self, settles: bool) -> DataFrame:
        """Return the new rows, and the states of the groups and partitions that they are about."""
        parts = [self._rows()]
        if settles:
            parts.append(self._settled(F.lit(False)))
        commits = [part.where(F.col("what").isin(int(What.COMMIT), int(What.SETTLED))) for part in parts]
        touched = reduce(DataFrame.unionByName, [part.select(*OF_PARTITION) for part in commits]).distinct()
        known = self._of(COMMIT_SUMMARIES).where(ALL).join(touched, list(OF_PARTITION), "left_semi")
        return _together([*parts, _states(known)])

    def _of(self, table: Table) -> DataFrame:
        return self._tables.read(table).where(F.col("cluster") == self._cluster)

    def _log(self, table: Table, again: Column | None = None) -> DataFrame:
        """Return the rows of the log after the runs that are done; of the log partitions ``again`` all rows."""
        known = (F.col("run_id") <= self._runs[-1]) & (F.col("log_topic") == GROUP_LOG) & F.expr(PLACED)
        new = F.col("run_id") > self._done
        return self._of(table).where(known & (new if again is None else new | again))

    def _rows(self, again: Column | None = None) -> DataFrame:
        """Return the commits, records of groups and ends of transactions as columns of ``INPUT``."""
        commits = self._log(OFFSET_COMMITS, again).withColumns(
            {"run": self._run(), "state": F.lit(None).cast("string")}
        )
        parts = [
            _inputs(commits, What.COMMIT),
            _inputs(self._log(GROUP_RECORDS, again).select(*PLACE, "group_id"), What.RECORD),
            _inputs(self._log(LOG_RECORDS, again).where(MARKER).select(*PLACE, "producer_id"), What.MARKER),
        ]
        return _together(parts)

    def _run(self) -> Column:
        """Return the index of the run of a row."""
        if len(self._runs) == 1:
            return F.lit(0)
        return F.array_position(F.array(*map(F.lit, self._runs)), F.col("run_id")).cast("int") - 1

    def _pass(self, rows: DataFrame, again: Sequence[int] = ()) -> DataFrame:
        """Return the rows of the table: a log partition, or a slice of it, goes to one task, in offset order."""
        spark = self._tables.spark
        tasks = _tasks(spark.conf.get(SHUFFLE_PARTITIONS, None))
        at = F.col("log_partition").cast("long") * MOST_OFFSETS + F.col("log_offset")
        slices = commit_slices.of_log_partitions(
            self._tables, self._cluster, (self._done, self._runs[-1]), again, tasks
        )
        return (
            commit_slices.divided(rows, slices, tasks)
            .withColumn("at", at)
            # By the number itself: repartition hashes it, which sends some tasks two slices and others none.
            .repartitionById(tasks, "task")
            .sortWithinPartitions("at")
            .select(*INPUT)
            .mapInArrow(summarizer(self._place), spark_types(COMMIT_SUMMARIES.schema))
        )

    def _revised(self) -> DataFrame:
        """Return the places of commits of earlier runs of which a new run has learned something."""
        is_old = (F.col("run_id") <= self._done) & F.col("record_type").isin(*COMMIT_TYPES)
        in_runs = (F.col("revised_by") > self._done) & (F.col("revised_by") <= self._runs[-1])
        log = self._of(LOG_RECORDS).where((F.col("log_topic") == GROUP_LOG) & F.expr(PLACED))
        return log.where(is_old & in_runs).select(*PLACE)

    def _pending(self) -> DataFrame:
        known = self._of(COMMIT_SUMMARIES).where(ALL).where("size(pending) > 0")
        return known.select("log_partition", F.explode("pending.log_offset").alias("log_offset"))

    def _settled(self, again: Column) -> DataFrame:
        """Return the pending commits of earlier runs whose outcome has changed."""
        log = self._of(OFFSET_COMMITS).where((F.col("run_id") <= self._done) & (F.col("log_topic") == GROUP_LOG))
        expected = self._revised().join(self._pending(), list(PLACE), "left_semi")
        settled = log.where(~again).join(expected, list(PLACE), "left_semi")
        return _inputs(settled, What.SETTLED).withColumn("run", F.lit(len(self._runs) - 1))


def _tasks(shuffle_partitions: str | None) -> int:
    """Return the number of tasks of the pass, in a session with this setting."""
    given = shuffle_partitions or ""
    return int(given) if given.isdecimal() and int(given) > 0 else TASKS


def _states(known: DataFrame) -> DataFrame:
    """Return rows of all commits as rows of ``INPUT``."""
    state = F.to_json(F.struct(*STATE)).alias("state")
    # JSON, as a struct column would be null in all other rows, and carried with each of them.
    return known.select(_what(What.STATE), *OF_PARTITION, state, F.lit(AHEAD).cast("long").alias("log_offset"))


def _together(parts: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def _inputs(rows: DataFrame, what: What) -> DataFrame:
    return rows.select(_what(what), *(name for name in INPUT if name in rows.columns))


def _what(what: What) -> Column:
    return F.lit(int(what)).cast("byte").alias("what")
