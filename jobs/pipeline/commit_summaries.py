"""Fill ``commit_summaries`` from the decoded commits, and read it.

One pass goes over the commits that new runs have decoded, in the order of the log; no other step orders commits. The
rows of a log partition are continued. They are made again from all its commits if a run has brought something before
what was taken in, or has changed the outcome of a commit that was counted. All rows of a cluster change in one commit
of the table, so that a run that was killed is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.records import LOG_TOPICS, Family
from jobs.pipeline import commit_slices
from jobs.pipeline.commit_fold import INPUT, STATE, PassOver, What, summarizer
from jobs.pipeline.decoded_runs import decoded_runs, newest_runs
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Table, Tables, sql_text
from jobs.tables.log import LOG_RECORDS, PLACED
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMIT_TYPES, OFFSET_COMMITS

LOG_TOPIC: Final = LOG_TOPICS[Family.GROUP]
ALL: Final = "hour_ms IS NULL"
"""Rows of all commits of a group and partition."""

AHEAD: Final = -1
"""Sorts states before all rows of their log partition."""

TASKS: Final = 200
"""Number of tasks where the session does not say it."""

MOST_OFFSETS: Final = 1 << 44
"""No log partition has as many offsets: log partition and offset fit in one number, by which Spark sorts fastest."""


def update(tables: Tables) -> None:
    """Take in the runs that were decoded since the last time."""
    if not tables.exists(OFFSET_COMMITS):
        return
    tables.create(COMMIT_SUMMARIES)
    runs = decoded_runs(tables)
    known = newest_runs(tables, COMMIT_SUMMARIES)
    for cluster, names in sorted(runs.items()):
        if names[-1] > known.get(cluster, ""):
            _Update(tables, cluster, names, known.get(cluster, "")).run()


def all_commits(tables: Tables) -> DataFrame:
    """Return the rows of all commits, one for each ``OFFSET_KEY``."""
    return tables.read(COMMIT_SUMMARIES).where(ALL)


def hours(tables: Tables) -> DataFrame:
    """Return the rows of hours, which add up."""
    return tables.read(COMMIT_SUMMARIES).where(~F.expr(ALL))


class _News(NamedTuple):
    """The log partitions that change; those in ``again`` from their beginning.

    ``settles``: a new run has learned something of commits of earlier runs.
    """

    changed: list[int]
    again: list[int]
    settles: bool


class _Update:
    """The pass for one cluster, over the runs after ``done``."""

    def __init__(self, tables: Tables, cluster: str, runs: list[str], done: str) -> None:
        self._tables = tables
        self._cluster = cluster
        self._runs = runs
        self._done = done

    def run(self) -> None:
        place = PassOver(self._cluster, LOG_TOPIC, self._runs)
        if not self._done:
            self._tables.append(COMMIT_SUMMARIES, self._pass(self._rows(), place), self._runs[-1])
            return
        news = self._news()
        if not news.changed:
            return
        is_again = F.col("log_partition").isin(news.again)
        rows = self._rows(is_again if news.again else None)
        on = self._of(COMMIT_SUMMARIES).where(F.expr(ALL) & F.col("log_partition").isin(news.changed) & ~is_again)
        state = F.to_json(F.struct(*STATE)).alias("state")
        names = ("log_partition", "group_id", "topic", "partition")
        states = on.select(_what(What.STATE), *names, state, F.lit(AHEAD).cast("long").alias("log_offset"))
        rows = _together([rows, states, *([self._settled(is_again)] if news.settles else [])])
        changed, again = (", ".join(map(str, each)) for each in (news.changed, news.again))
        of_rows = [f"({ALL} AND log_partition IN ({changed}))", f"run_id > {sql_text(self._done)}"]
        of_rows += [f"log_partition IN ({again})"] if again else []
        condition = f"cluster = {sql_text(self._cluster)} AND ({' OR '.join(of_rows)})"
        self._tables.replace_where(COMMIT_SUMMARIES, self._pass(rows, place, news.again), condition)

    def _of(self, table: Table) -> DataFrame:
        return self._tables.read(table).where(F.col("cluster") == self._cluster)

    def _log(self, table: Table, again: Column | None = None) -> DataFrame:
        """Return the rows of the log after the runs that are done; of the log partitions ``again`` all rows."""
        known = (F.col("run_id") <= self._runs[-1]) & (F.col("log_topic") == LOG_TOPIC) & F.expr(PLACED)
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
            _inputs(self._markers(again).select(*PLACE, "producer_id"), What.MARKER),
        ]
        return _together(parts)

    def _markers(self, again: Column | None = None) -> DataFrame:
        return self._log(LOG_RECORDS, again).where("is_transactional AND control_type IN ('COMMIT', 'ABORT')")

    def _run(self) -> Column:
        """Return the index of the run of a row."""
        if len(self._runs) == 1:
            return F.lit(0)
        return F.array_position(F.array(*map(F.lit, self._runs)), F.col("run_id")).cast("int") - 1

    def _pass(self, rows: DataFrame, place: PassOver, again: Sequence[int] = ()) -> DataFrame:
        """Return the rows of the table: a log partition, or a slice of it, goes to one task, in offset order."""
        spark = self._tables.spark
        tasks = int(spark.conf.get("spark.sql.shuffle.partitions") or TASKS)
        at = F.col("log_partition").cast("long") * MOST_OFFSETS + F.col("log_offset")
        slices = commit_slices.of_log_partitions(
            self._tables, self._cluster, (self._done, self._runs[-1]), again, tasks
        )
        return (
            commit_slices.divided(rows, slices, tasks)
            .withColumn("at", at)
            .repartitionById(tasks, "task")
            .sortWithinPartitions("at")
            .select(*INPUT)
            .mapInArrow(summarizer(place), COMMIT_SUMMARIES.schema)
        )

    # --- later runs --------------------------------------------------------------------------------------------------

    def _news(self) -> _News:
        """Return which log partitions have something new, and which of them begin again."""
        new = [self._log(table).select(*PLACE) for table in (OFFSET_COMMITS, GROUP_RECORDS)]
        firsts = reduce(DataFrame.unionByName, [*new, self._markers().select(*PLACE)])
        first = firsts.groupBy("log_partition").agg(F.min("log_offset").alias("first"))
        known = self._of(COMMIT_SUMMARIES).where(ALL)
        ends = known.groupBy("log_partition").agg(F.max("log_end").alias("end"))
        found = first.join(ends, "log_partition", "left").collect()
        again = {row.log_partition for row in found if row.end is None or row.first <= row.end}
        revised = {row.log_partition for row in self._revised().select("log_partition").distinct().collect()}
        if revised:
            again |= {row.log_partition for row in self._unexpected().select("log_partition").distinct().collect()}
        return _News(sorted({row.log_partition for row in found} | revised), sorted(again), bool(revised))

    def _revised(self) -> DataFrame:
        """Return the places of commits of earlier runs of which a new run has learned something."""
        is_old = (F.col("run_id") <= self._done) & F.col("record_type").isin(*OFFSET_COMMIT_TYPES)
        in_runs = (F.col("revised_by") > self._done) & (F.col("revised_by") <= self._runs[-1])
        log = self._of(LOG_RECORDS).where((F.col("log_topic") == LOG_TOPIC) & F.expr(PLACED))
        return log.where(is_old & in_runs).select(*PLACE)

    def _pending(self) -> DataFrame:
        known = self._of(COMMIT_SUMMARIES).where(ALL).where("size(pending) > 0")
        return known.select("log_partition", F.explode("pending.log_offset").alias("log_offset"))

    def _unexpected(self) -> DataFrame:
        """Return the revised commits that were counted, or left out, for good."""
        return self._revised().join(self._pending(), list(PLACE), "left_anti")

    def _settled(self, again: Column) -> DataFrame:
        """Return the pending commits of earlier runs whose outcome has changed."""
        log = self._of(OFFSET_COMMITS).where((F.col("run_id") <= self._done) & (F.col("log_topic") == LOG_TOPIC))
        expected = self._revised().join(self._pending(), list(PLACE), "left_semi")
        settled = log.where(~again).join(expected, list(PLACE), "left_semi")
        return _inputs(settled, What.SETTLED).withColumn("run", F.lit(len(self._runs) - 1))


PLACE: Final = ("log_partition", "log_offset")


def _together(parts: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def _inputs(rows: DataFrame, what: What) -> DataFrame:
    return rows.select(_what(what), *(name for name in INPUT if name in rows.columns))


def _what(what: What) -> Column:
    return F.lit(int(what)).cast("byte").alias("what")
