"""Fill ``commit_summaries`` from the decoded commits, and read it.

One pass goes over the commits that new runs have decoded, in the order of the log; no other step orders commits. Rows
of groups and partitions with new commits are continued, and no others are read or written. All rows of a log partition
are made again from all its commits if a run has brought something before what was taken in, or has changed the outcome
of a commit that was counted. All rows of a cluster change in one commit of the table, so that a run that was killed is
repeated.
"""

import os
import re
from typing import Final

from coordinator_core.records import GROUP_LOG
from jobs.pipeline.commits import from_files
from jobs.pipeline.commits.fold import NEW, CommitNews, PassOver
from jobs.pipeline.commits.here import IS_REVISED, PENDING_PLACES, REVISED_PLACES, summarized_here
from jobs.pipeline.runs import decoded_runs, newest_runs
from jobs.relations.commits import MARKER
from jobs.tables import written_files
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.engine import Rows, master, runs_steps
from jobs.tables.reader import Value
from jobs.tables.records import OFFSET_COMMITS
from jobs.tables.table import OFFSET_KEY

LOG_TOPIC: Final = GROUP_LOG


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

REVISED: Final = f"SELECT DISTINCT log_partition FROM $log_records WHERE {IS_REVISED}"
"""The log partitions in which new runs have learned something of commits of earlier runs."""

UNEXPECTED: Final = f"""
SELECT DISTINCT r.log_partition AS log_partition FROM ({REVISED_PLACES}) AS r
LEFT ANTI JOIN ({PENDING_PLACES}) AS p ON r.log_partition = p.log_partition AND r.log_offset = p.log_offset
"""
"""The log partitions with revised commits that were counted, or left out, for good."""

NEW_RECORDS: Final = (
    "SELECT sum(records) AS records FROM $runs WHERE cluster = :cluster AND job = 'decode' AND run_id <= :upto "
    "AND (run_id > :done OR (log_topic = :topic AND log_partition IN :again))"
)

MADE_AGAIN: Final = (
    "cluster = :cluster AND "
    "((hour_ms IS NULL AND log_partition IN :changed) OR run_id > :done OR log_partition IN :again)"
)
"""The rows that are replaced where log partitions begin again: theirs, and the rows of all commits of the others."""

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
        news = self._news() if self._done else CommitNews()
        if self._done and not news.changed:
            return
        ((records,),) = self._found.tuples(NEW_RECORDS, again=news.again, **self._given)
        is_large = (records or 0) > self._found.limits.rows
        if is_large and not self._done and self._from_files(place):
            return
        engine = self._found.in_spark() if is_large else self._found
        rows: Rows | None = engine.here(lambda reader: summarized_here(reader, place, self._done, news))
        if rows is None:
            from jobs.pipeline.on_spark import commits  # not at the top: most runs need no Spark

            rows = commits.summarized(self._tables, place, self._done, news)
        if not self._done:
            self._tables.append(COMMIT_SUMMARIES, rows, self._runs[-1])
        elif news.again:
            values: dict[str, Value] = {"changed": news.changed, "again": news.again, "done": self._done}
            self._tables.replace_where(COMMIT_SUMMARIES, rows, MADE_AGAIN, cluster=self._cluster, **values)
        else:
            changes = {name: f"s.{name}" for name in COMMIT_SUMMARIES.schema.names}
            self._tables.merge(COMMIT_SUMMARIES, rows, changes, insert=True, key=OFFSET_KEY, among=OF_ALL)

    def _from_files(self, place: PassOver) -> bool:
        """Let tasks read and write the files of the tables themselves; False, with nothing done: only Spark can."""
        counts = {row["log_partition"]: row["commits"] for row in self._found.rows(NEW_COMMITS, **self._given)}
        session = self._tables.session
        cores = _cores(master(session)) if runs_steps(session) else os.cpu_count() or 1
        slices = from_files.slices_of(self._tables, counts, cores)
        if slices is None:
            return False
        files = from_files.write_files(self._tables, slices, place)
        written_files.commit(self._tables, COMMIT_SUMMARIES, files, self._runs[-1])
        return True

    def _news(self) -> CommitNews:
        """Return which log partitions have something new, and which of them begin again."""
        firsts = {row["log_partition"]: row["first"] for row in self._found.rows(FIRSTS, **self._given)}
        ends = {row["log_partition"]: row["end"] for row in self._found.rows(ENDS, **self._given)}
        again = {partition for partition, first in firsts.items() if first <= ends.get(partition, -1)}
        revised = {row["log_partition"] for row in self._found.rows(REVISED, **self._given)}
        if revised:
            # An outcome that was counted as known, and is another now, is in the sums already: only a new pass takes
            # it out.
            again |= {row["log_partition"] for row in self._found.rows(UNEXPECTED, **self._given)}
        return CommitNews(sorted(firsts.keys() | revised), sorted(again), bool(revised))


def _cores(master: str | None) -> int:
    """Return the number of cores that a session of this machine uses."""
    given = re.search(r"\[(\d+|\*)", master or "")
    if given is None:
        return 1
    return (os.cpu_count() or 1) if given[1] == "*" else int(given[1])
