"""Replay ``group_records`` into the history of every group: epochs, rebalances, memberships, assignments, violations.

The first run and every later run use the same fold. Its input is a group's stored state, as the first row, and then
the group's new records in log order, so a group of any size is streamed. The output is staged in the table
``replayed``. Then it is merged into the history tables by key: an open row is replaced, a final row stays. Last, the
states of all groups are merged in one commit. Before that commit the records do not count as replayed. If a run was
killed, the staged rows show which groups it was replaying; the next run replays these groups from their first record,
with the same result, whether there are new records or not.

A group is rebuilt, that is, its rows are deleted and all its records are replayed, if what it rests on has changed;
``rebuilds`` says when. Its new rows are staged before the old ones are deleted: at each moment one of both is there.
Snapshots of the cluster have the groups rebuilt that they concern, without new records too.

A share group is replayed twice: its records of the coordinator log, and its records of the share state log, where each
of its share partitions is in one partition of the log. Both are rebuilt together.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.group_audit import STATE_VERSION
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.violations import Violation
from coordinator_core.history.holes import Holes, UnknownOffsets
from coordinator_core.records import RecordType
from jobs.pipeline import log_ranges, runs
from jobs.pipeline import topics as topic_log
from jobs.pipeline.commits import summaries as commit_summaries
from jobs.pipeline.decoded_runs import decoded_runs, newest_runs
from jobs.pipeline.rebuilds import IDENTITY, Span, groups_to_rebuild
from jobs.pipeline.replay_arrow import INPUT, fold, folder
from jobs.pipeline.replay_here import input_rows
from jobs.pipeline.replayed import GROUPS, replayed
from jobs.relations import stored_topics, stored_unreadable
from jobs.relations.stored_logs import lost_records
from jobs.sources.files import GROUP_TOPICS, REPLAYED_TOPICS
from jobs.tables.delta import Table, Tables
from jobs.tables.engine import Rows
from jobs.tables.history import FOLDED, GROUP_STATES, HISTORY, REPLAYED
from jobs.tables.log import LOG_PARTITION, LOG_RANGES, PLACED, QUARANTINE
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.snapshots import END_OFFSETS, SNAPSHOT_SETTINGS

IS_MARK: Final = " AND ".join(f"{name} IS NULL" for name in ("state", *FOLDED.values()))
"""A row of ``REPLAYED`` that only names a group: its history is deleted before its new rows are merged."""


class ReplaySummary(NamedTuple):
    """What a run did for one cluster.

    ``groups``: groups that were replayed. ``rebuilt``: groups that were replayed from their first record. ``unplaced``:
    new records without an offset; their place in the log is unknown, so they are not replayed. ``rows``: rows by table.
    """

    cluster: str
    groups: int
    rebuilt: int
    unplaced: int
    rows: dict[str, int]


def run(tables: Tables, audit: AuditSettings | None = None, *, rebuild: bool = False) -> list[ReplaySummary]:
    """Replay the decoded records that are not replayed yet, or with ``rebuild`` all records.

    ``audit``: settings for the recomputation of target assignments; None: the defaults.

    Raises:
        InputError: the tables do not exist, or do not match this release.
    """
    for table in (*HISTORY.values(), GROUP_STATES, REPLAYED):
        tables.create(table)
    log_ranges.update(tables)
    commit_summaries.update(tables)
    found = tables.engine()
    states = "SELECT cluster, max(run_id) AS run_id, min(version) AS oldest, max(version) AS newest FROM $group_states"
    stored = {row["cluster"]: row for row in found.rows(f"{states} GROUP BY cluster")}
    shown = _snapshot_runs(tables)
    interrupted = next((row["cluster"] for row in found.rows("SELECT cluster FROM $replayed LIMIT 1")), None)
    summaries = []
    # The cluster of an interrupted run comes first, before another cluster replaces its rows in ``replayed``.
    decoded = decoded_runs(tables)
    for cluster in sorted(decoded, key=lambda name: (name != interrupted, name)):
        known, newest = stored.get(cluster), decoded[cluster][-1]
        done = "" if rebuild or known is None else known["run_id"]
        is_current = known is not None and known["oldest"] == known["newest"] == STATE_VERSION
        seen = max(newest, shown.get(cluster, ""))
        if is_current and done >= seen and cluster != interrupted:
            summaries.append(_nothing(cluster))
        else:
            span = Span(done, newest, seen, is_first=known is None and cluster != interrupted)
            summaries.append(_Run(tables, cluster, audit or AuditSettings(), span).run())
    return summaries


def _snapshot_runs(tables: Tables) -> dict[str, str]:
    """Return for each cluster the newest run that took in a snapshot.

    Nothing while records wait for the step decode: after a state that has seen a later run, they would not be replayed.
    """
    of_tables = [newest_runs(tables, each) for each in (END_OFFSETS, SNAPSHOT_SETTINGS) if tables.exists(each)]
    if not any(of_tables) or runs.unaccounted(tables) or any(each.records for each in runs.undecoded(tables)):
        return {}
    clusters = {cluster for found in of_tables for cluster in found}
    return {cluster: max(found.get(cluster, "") for found in of_tables) for cluster in clusters}


def _nothing(cluster: str) -> ReplaySummary:
    return ReplaySummary(cluster=cluster, groups=0, rebuilt=0, unplaced=0, rows=dict.fromkeys(FOLDED.values(), 0))


class _Run:
    """The replay of one cluster."""

    def __init__(self, tables: Tables, cluster: str, audit: AuditSettings, span: Span) -> None:
        self._tables = tables
        self._audit = audit
        self._cluster = cluster
        self._span = span

    def _of(self, table: Table) -> DataFrame:
        return self._tables.read(table).where(F.col("cluster") == self._cluster)

    def run(self) -> ReplaySummary:
        to_rebuild = groups_to_rebuild(self._tables, self._cluster, self._span, self._new_places)
        if to_rebuild is None and self._span.done >= self._span.upto:
            return _nothing(self._cluster)  # the new snapshots concern no group
        topics = stored_topics.read(self._tables.engine(), self._cluster)
        stored_topics.require_one_cluster(self._tables.engine(), self._cluster, topics)
        if topics is not None:
            topic_log.write(self._tables, self._cluster, topics)
        if self._span.is_first:
            self._delete_rows_without_states()
        staged = self._staged_here(topics) if to_rebuild is None else None
        self._tables.replace(REPLAYED, self._staged(to_rebuild, topics) if staged is None else staged)
        summary = self._merge(0 if to_rebuild is None else self._delete_old_rows())
        self._tables.clear(REPLAYED)
        return summary

    def _staged_here(self, topics: TopicHistory | None) -> pa.Table | None:
        """Return the rows of ``REPLAYED``, made by this process; None: Spark makes them."""
        if not self._tables.is_here():
            return None
        rows = input_rows(self._tables.engine(), self._tables.limits, self._cluster, self._span)
        if rows is None:
            return None
        staged: list[pa.RecordBatch] = []
        for batch in fold(rows, self._cluster, topics, self._audit, self._holes()):
            staged.append(batch)
            if sum(each.nbytes for each in staged) > self._tables.limits.staged_bytes:
                return None
        return pa.Table.from_batches(staged)

    def _staged(self, to_rebuild: DataFrame | None, topics: TopicHistory | None) -> DataFrame:
        """Return the rows of ``REPLAYED``, made by Spark."""
        new = self._rows(self._span.done)
        rows = new if to_rebuild is None else self._with_all_rows_of(to_rebuild, new)
        replay = folder(self._cluster, topics, self._audit, self._holes())
        staged = self._input(rows, to_rebuild).mapInArrow(replay, REPLAYED.schema)
        if to_rebuild is None:
            return staged
        marks = to_rebuild.select(F.lit(self._cluster).alias("cluster"), *IDENTITY)
        return staged.unionByName(marks, allowMissingColumns=True)

    def _delete_old_rows(self) -> int:
        """Delete the history of the groups that are marked in ``REPLAYED`` as begun again. Return their number."""
        marked = self._of(REPLAYED).where(IS_MARK)
        groups = marked.select("cluster", "group_id").distinct()
        for name in FOLDED.values():
            self._tables.delete(HISTORY[name], groups)
        return marked.count()

    def _delete_rows_without_states(self) -> None:
        """Delete all rows of a cluster without a state: those of tables whose states were set aside alone."""
        each = (f"SELECT DISTINCT '{name}' AS name FROM ${name} WHERE cluster = :cluster" for name in FOLDED.values())
        for row in list(self._tables.engine().rows(" UNION ALL ".join(each), cluster=self._cluster)):
            self._tables.delete(HISTORY[row["name"]], pa.table({"cluster": [self._cluster]}))

    def _holes(self) -> Holes:
        """Return what may have said something of any group: unreadable keys, and offsets that are lost."""
        found = self._tables.engine()
        unreadable = stored_unreadable.unplaced(found, self._cluster, self._span.upto)
        spans = (
            (place, span) for place, ranges in lost_records(found, self._cluster).ranges.items() for span in ranges
        )
        # What is missing before the first record is known from the start of the log.
        lost = [(place, UnknownOffsets(*span, is_lost=True)) for place, span in spans if span[0] > 0]
        return Holes([*unreadable, *lost])

    # --- input -------------------------------------------------------------------------------------------------------

    def _rows(self, after: str) -> DataFrame:
        """Return the records of groups from the runs after ``after``, without records that have no place in the log."""
        rows = self._records(after).select(*_input_columns(GROUP_RECORDS))
        rows = rows.unionByName(self._needed_commits(after), allowMissingColumns=True)
        rows = rows.unionByName(self._unreadable(after), allowMissingColumns=True)
        known = log_ranges.coverage(self._of(LOG_RANGES), rows)
        return rows.join(known, [*LOG_PARTITION, "log_offset"], "left")

    def _needed_commits(self, after: str) -> DataFrame:
        """Return of each partition the first and the last commit between two records of its group.

        The fold needs no others. Most of the log are commits, and so they stay in Spark.
        """
        in_runs = (F.col("run_id") > after) & (F.col("run_id") <= self._span.upto)
        hours = commit_summaries.hours(self._tables).where((F.col("cluster") == self._cluster) & in_runs)
        return hours.select(
            *(*IDENTITY, "log_partition"),
            F.col("topic").alias("committed_topic"),
            F.col("partition").alias("committed_partition"),
            F.inline("beside"),
        ).withColumnRenamed("topic_id", "committed_topic_id")

    def _records(self, after: str) -> DataFrame:
        return self._of(GROUP_RECORDS).where(self._since(after) & F.expr(PLACED))

    def _unreadable(self, after: str) -> DataFrame:
        """Return the records of groups that cannot be decoded, though their keys tell the group."""
        of_state = (F.col("record_type") > F.lit(RecordType.OFFSET_COMMIT.value)) & F.col("group_id").isNotNull()
        of_groups = F.col("log_topic").isin(GROUP_TOPICS) & F.col("part").isin("key", "value")
        found = self._of(QUARANTINE).where(self._since(after) & of_state & of_groups & F.expr(PLACED))
        place = (*IDENTITY, "log_partition", "log_offset", "timestamp_ms")
        return found.where("stray IS NULL").select(*place, F.lit(True).alias("is_unreadable"))

    def _since(self, after: str) -> Column:
        in_runs = (F.col("run_id") > after) & (F.col("run_id") <= self._span.upto)
        return in_runs & F.col("log_topic").isin(REPLAYED_TOPICS)

    def _new_places(self) -> DataFrame:
        """Return group and position of the new records and commits."""
        place = (*IDENTITY, "log_partition", "log_offset")
        done = self._span.done
        records, commits, unreadable = self._records(done), self._needed_commits(done), self._unreadable(done)
        return records.select(*place).unionByName(commits.select(*place)).unionByName(unreadable.select(*place))

    def _with_all_rows_of(self, groups: DataFrame, new: DataFrame) -> DataFrame:
        keys = list(IDENTITY)
        return new.join(groups, keys, "left_anti").unionByName(self._rows("").join(groups, keys, "left_semi"))

    def _input(self, rows: DataFrame, to_rebuild: DataFrame | None) -> DataFrame:
        """Return the columns ``INPUT``: a group's rows in one Spark partition, its state first, then in log order."""
        keys = list(IDENTITY)
        rows = rows.withColumns({"is_record": F.lit(True), "timestamp_ms": F.coalesce("timestamp_ms", F.lit(-1))})
        if self._span.is_first:
            rows = rows.withColumn("state", F.lit(None).cast("string"))
        else:
            rows = rows.unionByName(self._states_to_continue(to_rebuild), allowMissingColumns=True)
        return (
            rows.repartition(*keys)
            .sortWithinPartitions(*keys, "is_record", "log_partition", "log_offset")
            .select(*INPUT)
        )

    def _states_to_continue(self, to_rebuild: DataFrame | None) -> DataFrame:
        keys = list(IDENTITY)
        touched = self._new_places().select(*keys).distinct()
        if to_rebuild is not None:
            touched = touched.join(to_rebuild, keys, "left_anti")
        return (
            self._of(GROUP_STATES)
            .join(touched, keys, "left_semi")
            .select(*keys, "log_partition", "log_offset", "timestamp_ms", "state", F.lit(False).alias("is_record"))
        )

    # --- output ------------------------------------------------------------------------------------------------------

    def _merge(self, rebuilt: int) -> ReplaySummary:
        staged = replayed(self._tables)
        counts = staged.counts()
        if counts[GROUPS]:
            # Open violations of the previous run: the records of this run may complete the operation.
            self._tables.delete(HISTORY[FOLDED[Violation]], staged.open_violations())
        names = [*FOLDED.values()]
        for name in names:
            if counts[name]:
                self._upsert(HISTORY[name], staged.rows(HISTORY[name]))
        if counts[GROUPS]:
            states = staged.states(self._span.seen)
            self._tables.merge(GROUP_STATES, states, _all_columns(GROUP_STATES), insert=True)
        return ReplaySummary(
            cluster=self._cluster,
            groups=counts[GROUPS],
            rebuilt=rebuilt,
            unplaced=self._unplaced(),
            rows={name: counts[name] for name in names},
        )

    def _unplaced(self) -> int:
        (found,) = self._tables.engine().rows(
            "SELECT count(*) AS records FROM $group_records WHERE cluster = :cluster AND run_id > :done "
            f"AND run_id <= :upto AND log_topic IN :topics AND NOT ({PLACED})",
            cluster=self._cluster,
            done=self._span.done,
            upto=self._span.upto,
            topics=REPLAYED_TOPICS,
        )
        return int(found["records"])

    def _upsert(self, table: Table, rows: Rows) -> None:
        """Insert new rows and replace open ones. Verdicts are never open."""
        when = "t.is_open" if "is_open" in table.schema.names else "false"
        self._tables.merge(table, rows, _all_columns(table), when=when, insert=True)


def _all_columns(table: Table) -> dict[str, str]:
    return {name: f"s.{name}" for name in table.schema.names}


def _input_columns(table: Table) -> list[str]:
    """Return the columns of ``INPUT`` that a table has."""
    return [name for name in INPUT if name in table.schema.names]
