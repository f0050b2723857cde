"""Fill ``commit_summaries`` from the decoded commits, and read it.

One pass goes over the commits that new runs have decoded, in the order of the log; no other step orders commits. Rows
of groups and partitions with new commits are continued, and no others are read or written. All rows of a log partition
are made again from all its commits if a run has brought something before what was taken in, or has changed the outcome
of a commit that was counted. All rows of a cluster change in one commit of the table, so that a run that was killed is
repeated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import reduce
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.records import COMMIT_TYPES, GROUP_LOG
from jobs.pipeline.commits import from_files
from jobs.pipeline.commits import slices as commit_slices
from jobs.pipeline.commits.fold import (
    INPUT,
    NEW,
    OF_LOG,
    OF_PARTITION,
    PLACE,
    STATE,
    PassOver,
    What,
    summarizer,
)
from jobs.pipeline.decoded_runs import decoded_runs, newest_runs
from jobs.relations.commits import MARKER
from jobs.tables import written_files
from jobs.tables.columns import OFFSET_KEY, PLACED
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Table, Tables
from jobs.tables.engine import master
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.spark_reader import sql_text

LOG_TOPIC: Final = GROUP_LOG
ALL: Final = "hour_ms IS NULL"
"""Rows of all commits of a group and partition."""

AHEAD: Final = -1
"""Sorts states before all rows of their log partition."""

SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"

TASKS: Final = 200
"""Number of tasks where the session does not say it: on Databricks it may be ``auto``."""

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


class _News(NamedTuple):
    """The log partitions that change; those in ``again`` from their beginning.

    ``settles``: a new run has learned something of commits of earlier runs.
    """

    changed: list[int]
    again: list[int]
    settles: bool


FIRSTS: Final = f"""
SELECT log_partition, min(log_offset) AS first FROM (
  SELECT log_partition, log_offset FROM $offset_commits WHERE {NEW}
  UNION ALL SELECT log_partition, log_offset FROM $group_records WHERE {NEW}
  UNION ALL SELECT log_partition, log_offset FROM $log_records WHERE {NEW} AND {MARKER}
) AS rows_of_runs GROUP BY log_partition
"""
"""The first offset that new runs have brought, by log partition."""

ENDS: Final = (
    "SELECT log_partition, max(last_offset) AS end FROM $log_ranges "
    "WHERE cluster = :cluster AND log_topic = :topic AND run_id <= :done GROUP BY log_partition"
)
"""The last offset that was taken in, by log partition."""

REVISED: Final = (
    f"SELECT DISTINCT log_partition FROM $log_records WHERE {OF_LOG} AND run_id <= :done "
    f"AND record_type IN ({', '.join(map(str, COMMIT_TYPES))}) AND revised_by > :done AND revised_by <= :upto"
)
"""The log partitions in which new runs have learned something of commits of earlier runs."""

NEW_RECORDS: Final = (
    "SELECT sum(records) AS records FROM $runs "
    "WHERE cluster = :cluster AND job = 'decode' AND run_id > :done AND run_id <= :upto"
)

NEW_COMMITS: Final = (
    f"SELECT log_partition, count(*) AS commits FROM $offset_commits WHERE {NEW} GROUP BY log_partition"
)
"""The number of commits and tombstones that new runs have brought, by log partition."""

OF_ALL: Final = "t.hour_ms IS NULL AND s.hour_ms IS NULL"
"""Rows of all commits, of which there is one for each ``OFFSET_KEY``; rows of hours are added."""


class _Update:
    """The pass for one cluster, over the runs after ``done``."""

    def __init__(self, tables: Tables, cluster: str, runs: list[str], done: str) -> None:
        self._tables = tables
        self._cluster = cluster
        self._runs = runs
        self._done = done
        self._found = tables.engine()
        self._given = {"cluster": cluster, "topic": LOG_TOPIC, "done": done, "upto": runs[-1]}

    def run(self) -> None:
        place = PassOver(self._cluster, LOG_TOPIC, self._runs)
        news = self._news() if self._done else None
        if news is not None and not news.changed:
            return
        if news is not None and news.again:
            self._make_again(news, place)
            return
        here = None if news is not None and news.settles else self._here(place)
        if self._done:
            rows = self._pass(self._with_states(news is not None and news.settles), place) if here is None else here
            changes = {name: f"s.{name}" for name in COMMIT_SUMMARIES.schema.names}
            self._tables.merge(COMMIT_SUMMARIES, rows, changes, insert=True, key=OFFSET_KEY, among=OF_ALL)
        elif here is not None or not self._from_files(place):
            first = self._pass(self._rows(), place) if here is None else here
            self._tables.append(COMMIT_SUMMARIES, first, self._runs[-1])

    def _here(self, place: PassOver) -> pa.Table | None:
        """Return the rows that this process has made; None: Spark makes them."""
        # Not at the top: Python workers of Spark have no use for it.
        from jobs.pipeline.commits.here import summarized_here

        few = self._found.up_to(self._found.limits.rows, NEW_RECORDS, **self._given)
        return few.here(lambda reader: summarized_here(reader, place, self._done))

    def _from_files(self, place: PassOver) -> bool:
        """Let tasks read and write the files of the tables themselves; False, with nothing done: only Spark can."""
        counts = {row["log_partition"]: row["commits"] for row in self._found.rows(NEW_COMMITS, **self._given)}
        cores = _cores(master(self._tables.spark))
        slices = from_files.slices_of(self._tables, counts, cores)
        if slices is None:
            return False
        files = from_files.write_files(self._tables, slices, place)
        written_files.commit(self._tables, COMMIT_SUMMARIES, files, self._runs[-1])
        return True

    def _with_states(self, settles: bool) -> DataFrame:
        """Return the new rows, and the states of the groups and partitions that they are about."""
        parts = [self._rows()]
        if settles:
            parts.append(self._settled(F.lit(False)))
        commits = [part.where(F.col("what").isin(int(What.COMMIT), int(What.SETTLED))) for part in parts]
        touched = reduce(DataFrame.unionByName, [part.select(*OF_PARTITION) for part in commits]).distinct()
        known = self._of(COMMIT_SUMMARIES).where(ALL).join(touched, list(OF_PARTITION), "left_semi")
        return _together([*parts, _states(known)])

    def _make_again(self, news: _News, place: PassOver) -> None:
        """Replace all rows of the log partitions that begin again, and the rows of all commits of the other ones."""
        is_again = F.col("log_partition").isin(news.again)
        on = self._of(COMMIT_SUMMARIES).where(F.expr(ALL) & F.col("log_partition").isin(news.changed) & ~is_again)
        rows = _together([self._rows(is_again), _states(on), *([self._settled(is_again)] if news.settles else [])])
        changed, again = (", ".join(map(str, names)) for names in (news.changed, news.again))
        of_rows = [f"({ALL} AND log_partition IN ({changed}))", f"run_id > {sql_text(self._done)}"]
        of_rows += [f"log_partition IN ({again})"]
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
        return self._log(LOG_RECORDS, again).where(MARKER)

    def _run(self) -> Column:
        """Return the index of the run of a row."""
        if len(self._runs) == 1:
            return F.lit(0)
        return F.array_position(F.array(*map(F.lit, self._runs)), F.col("run_id")).cast("int") - 1

    def _pass(self, rows: DataFrame, place: PassOver, again: Sequence[int] = ()) -> DataFrame:
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
            .repartitionById(tasks, "task")
            .sortWithinPartitions("at")
            .select(*INPUT)
            .mapInArrow(summarizer(place), COMMIT_SUMMARIES.schema)
        )

    # --- later runs --------------------------------------------------------------------------------------------------

    def _news(self) -> _News:
        """Return which log partitions have something new, and which of them begin again."""
        firsts = {row["log_partition"]: row["first"] for row in self._found.rows(FIRSTS, **self._given)}
        ends = {row["log_partition"]: row["end"] for row in self._found.rows(ENDS, **self._given)}
        again = {partition for partition, first in firsts.items() if first <= ends.get(partition, -1)}
        revised = {row["log_partition"] for row in self._found.rows(REVISED, **self._given)}
        if revised:
            again |= {row.log_partition for row in self._unexpected().select("log_partition").distinct().collect()}
        return _News(sorted(firsts.keys() | revised), sorted(again), bool(revised))

    def _revised(self) -> DataFrame:
        """Return the places of commits of earlier runs of which a new run has learned something."""
        is_old = (F.col("run_id") <= self._done) & F.col("record_type").isin(*COMMIT_TYPES)
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


def _tasks(shuffle_partitions: str | None) -> int:
    """Return the number of tasks of the pass, in a session with this setting."""
    given = shuffle_partitions or ""
    return int(given) if given.isdecimal() and int(given) > 0 else TASKS


def _cores(master: str | None) -> int:
    """Return the number of cores that a session of this machine uses."""
    given = re.search(r"\[(\d+|\*)", master or "")
    if given is None:
        return 1
    return (os.cpu_count() or 1) if given[1] == "*" else int(given[1])


def _states(known: DataFrame) -> DataFrame:
    """Return rows of all commits as rows of ``INPUT``."""
    state = F.to_json(F.struct(*STATE)).alias("state")
    return known.select(_what(What.STATE), *OF_PARTITION, state, F.lit(AHEAD).cast("long").alias("log_offset"))


def _together(parts: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def _inputs(rows: DataFrame, what: What) -> DataFrame:
    return rows.select(_what(what), *(name for name in INPUT if name in rows.columns))


def _what(what: What) -> Column:
    return F.lit(int(what)).cast("byte").alias("what")
