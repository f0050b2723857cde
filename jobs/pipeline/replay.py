"""Replay ``group_records`` into the history of every group: epochs, rebalances, memberships, assignments, violations.

The first run and every later run use the same fold. Its input is a group's stored state, as the first row, and then
the group's new records in log order, so a group of any size is streamed. The output is staged in the table
``replayed``. Then it is merged into the history tables by key: an open row is replaced, a final row stays. Last, the
states of all groups are merged in one commit. Before that commit the records do not count as replayed. If a run was
killed, the staged rows show which groups it was replaying; the next run replays these groups from their first record,
with the same result, whether there are new records or not. What is too much for this process at once, it replays in
parts, each of some groups: what they need together is merged only when all are staged.

A group is rebuilt, that is, its rows are deleted and all its records are replayed, if what it rests on has changed;
``rebuilds`` says when. Its new rows are staged before the old ones are deleted: at each moment one of both is there.
Snapshots of the cluster have the groups rebuilt that they concern, without new records too.

A share group is replayed twice: its records of the coordinator log, and its records of the share state log, where each
of its share partitions is in one partition of the log. Both are rebuilt together.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa

from coordinator_core.audit.audited_rows import STATE_VERSION
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.violations import Violation
from coordinator_core.history.lost_records import Holes, Place, UnknownOffsets
from jobs.pipeline import commit_summaries, log_ranges, runs
from jobs.pipeline.runs import decoded_runs, newest_runs
from jobs.relations.given_partitions import numbered
from jobs.relations.logs import lost_before_records
from jobs.relations.moment import NEVER_MS
from jobs.relations.replay import (
    BEHIND_TOPICS,
    BLOCK,
    BYTES,
    BYTES_AGAIN,
    IDENTITY,
    LATE,
    MOVED,
    NEW_GROUPS,
    RANGES,
    ROWS,
    ROWS_AGAIN,
    SOME_GROUPS,
    replayed_rows,
)
from jobs.relations.topics import require_one_cluster, shown_ms, stored_topics, topic_news_ms
from jobs.relations.unreadable import unplaced_records
from jobs.settings import EngineLimits
from jobs.sources.files import GROUP_TOPICS, REPLAYED_TOPICS, SHARE_TOPICS
from jobs.tables import tasks
from jobs.tables.delta import Tables
from jobs.tables.engine import Engine, Rows, runs_steps
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import CLUSTER, FOLDED, GROUP, GROUP_STATES, HISTORY, OF_ONE_LOG, REPLAYED, TOPIC_HISTORY
from jobs.tables.reader import Value
from jobs.tables.row_reader import reader
from jobs.tables.snapshots import END_OFFSETS, SNAPSHOT_SETTINGS
from jobs.tables.table import BOOLEAN, PLACED, Table, few, plain

GROUPS: Final = "groups"
MARKS: Final = "marks"

IS_MARK: Final = " AND ".join(f"{name} IS NULL" for name in ("state", *FOLDED.values()))
"""A row that only names a group: its history is deleted before its new rows are merged."""

OF_GROUP: Final = plain([CLUSTER, GROUP[-1]])
ARE_OPEN: Final = plain([*OF_GROUP, pa.field("is_open", BOOLEAN)])


class Replayed:
    """The staged rows of one run. Few rows are read by this process, many by Spark."""

    def __init__(self, tables: Tables) -> None:
        """Open the table as it is now."""
        local = tables.local(REPLAYED)
        is_small = local.size() <= tables.limits.staged_file_bytes if local else tables.are_copied([REPLAYED])
        self._engine = tables.engine() if is_small else tables.engine().in_spark()

    def counts(self) -> dict[str, int]:
        """Return the number of rows for each history table, of states as ``groups``, and of groups begun again."""
        names = ", ".join(f"count({name}) AS {name}" for name in FOLDED.values())
        marks = f"count(CASE WHEN {IS_MARK} THEN 1 END)"
        (counts,) = self._engine.rows(f"SELECT {names}, count(state) AS {GROUPS}, {marks} AS {MARKS} FROM $replayed")
        return dict(counts)

    def rows(self, table: Table) -> Rows:
        """Return the rows for a history table. A violation that one record has twice is returned once."""
        # A merge wants each key once, and only violations can come twice, of one record.
        distinct = "DISTINCT" if table is HISTORY[FOLDED[Violation]] else ""
        fields = (f"r.{table.name}.{name} AS {name}" for name in table.schema.names if name != CLUSTER.name)
        text = f"SELECT {distinct} cluster, {', '.join(fields)} FROM $replayed AS r WHERE {table.name} IS NOT NULL"
        return self._engine.made(text, table.schema)

    def states(self, run_id: str) -> Rows:
        """Return the rows for ``group_states``; ``run_id`` is the newest run that is included."""
        given = {"version": ":version", "run_id": ":run"}
        fields = ", ".join(f"{given.get(name, name)} AS {name}" for name in GROUP_STATES.schema.names)
        text = f"SELECT {fields} FROM $replayed WHERE state IS NOT NULL"
        return self._engine.made(text, GROUP_STATES.schema, version=STATE_VERSION, run=run_id)

    def open_violations(self) -> Rows:
        """Return ``cluster``, ``group_id`` and ``is_open`` (true) of each group."""
        text = "SELECT DISTINCT cluster, group_id, TRUE AS is_open FROM $replayed WHERE state IS NOT NULL"
        return self._engine.made(text, ARE_OPEN)

    def groups_begun_again(self) -> Rows:
        """Return ``cluster`` and ``group_id`` of each group whose history is deleted before its new rows are merged."""
        return self._engine.made(f"SELECT DISTINCT cluster, group_id FROM $replayed WHERE {IS_MARK}", OF_GROUP)


IN_LOG_ORDER: Final = ("is_record", "log_partition", "log_offset")
"""The order of the rows of a group: its state, then its records."""


class Span(NamedTuple):
    """The decode runs to replay: after ``done``, up to ``upto``. ``is_first``: no earlier run replayed the cluster.

    ``seen``: ``upto``, or a later run that brought a snapshot of the cluster, which the replay has seen.
    """

    done: str
    upto: str
    seen: str
    is_first: bool


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
    # Both come before the replay: it asks what the log lacks from the ranges, and reads commits from the summaries.
    for table in (*HISTORY.values(), GROUP_STATES, REPLAYED):
        tables.create(table)
    log_ranges.update(tables)
    commit_summaries.update(tables)
    stored, shown = _stored_states(tables), _snapshot_runs(tables)
    interrupted = next((row["cluster"] for row in tables.engine().rows("SELECT cluster FROM $replayed LIMIT 1")), None)
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


def _stored_states(tables: Tables) -> dict[str, dict[str, Any]]:
    """Return for each cluster with states the newest ``run_id``, and the ``oldest`` and ``newest`` version of them."""
    states = "SELECT cluster, max(run_id) AS run_id, min(version) AS oldest, max(version) AS newest FROM $group_states"
    return {row["cluster"]: dict(row) for row in tables.engine().rows(f"{states} GROUP BY cluster")}


def _snapshot_runs(tables: Tables) -> dict[str, str]:
    """Return for each cluster the newest run that took in a snapshot.

    Nothing while records wait for the step decode: after a state that has seen a later run, they would not be replayed.
    """
    of_tables = [newest_runs(tables, table) for table in (END_OFFSETS, SNAPSHOT_SETTINGS) if tables.exists(table)]
    if not any(of_tables) or runs.unaccounted(tables) or any(run.records for run in runs.undecoded(tables)):
        return {}
    clusters = {cluster for of_table in of_tables for cluster in of_table}
    return {cluster: max(of_table.get(cluster, "") for of_table in of_tables) for cluster in clusters}


def _nothing(cluster: str) -> ReplaySummary:
    return ReplaySummary(cluster=cluster, groups=0, rebuilt=0, unplaced=0, rows=dict.fromkeys(FOLDED.values(), 0))


class ReplayPart(NamedTuple):
    """The input of a replay of some groups: a query, and its values."""

    sql: str
    values: dict[str, Value]


class Folding(NamedTuple):
    """What a replay of a cluster needs beside the rows of its groups; it goes to other processes (pickle)."""

    cluster: str
    topics: TopicHistory | None
    audit: AuditSettings
    holes: Holes
    numbered: frozenset[Place]

    def by(self, engine: Engine, part: ReplayPart) -> Rows:
        """Return the staged rows of a part, as the engine makes them."""
        from jobs.pipeline.replay_arrow import folder  # not at the top: in most nights nothing is replayed

        return engine.fold(part.sql, IDENTITY, IN_LOG_ORDER, folder(*self), REPLAYED.schema, **part.values)

    def here(self, location: str, limits: EngineLimits, part: ReplayPart) -> pa.Table | None:
        """Return the staged rows of a part of the tables in a folder; None: they are too many, or for Spark."""
        from jobs.pipeline.replay_arrow import folder

        engine = Engine(FolderReader(location), None, limits)
        return engine.folded_here(part.sql, (*IDENTITY, *IN_LOG_ORDER), folder(*self), REPLAYED.schema, part.values)


class _Run:
    """The replay of one cluster."""

    def __init__(self, tables: Tables, cluster: str, audit: AuditSettings, span: Span) -> None:
        self._tables = tables
        self._audit = audit
        self._cluster = cluster
        self._span = span
        self._given: dict[str, Value] = {
            **{"cluster": cluster, "done": span.done, "upto": span.upto, "version": STATE_VERSION, "block": BLOCK},
            **{"topics": REPLAYED_TOPICS, "groups": GROUP_TOPICS, "shares": SHARE_TOPICS},
        }

    def run(self) -> ReplaySummary:
        engine = self._tables.engine()
        span = self._cluster, self._span.done, self._span.upto
        times = {"news_ms": topic_news_ms(engine, *span), "shown_ms": shown_ms(engine, *span)}
        self._given |= {name: NEVER_MS if time_ms is None else time_ms for name, time_ms in times.items()}
        rebuilds = not self._span.is_first and self._may_rebuild(engine)
        if not rebuilds and self._span.done >= self._span.upto:
            return _nothing(self._cluster)  # the new snapshots concern no group
        topics = stored_topics(engine, self._cluster)
        require_one_cluster(engine, self._cluster, topics)
        if topics is not None:
            _write_topics(self._tables, self._cluster, topics)
        # Before the first replay there is nothing to begin again, so that rows without a state would stay beside the
        # new ones.
        if self._span.is_first:
            self._delete_rows_without_states()
        folding = Folding(
            self._cluster, topics, self._audit, self._holes(engine), frozenset(numbered(engine, self._cluster))
        )
        engine, count = self._by_size(engine, rebuilds=rebuilds)
        parts = [
            ReplayPart(
                replayed_rows(is_first=self._span.is_first, rebuilds=rebuilds, among=among), {**self._given, **groups}
            )
            for among, groups in self._divided(engine, count)
        ]
        for number, rows in enumerate(self._folded(engine, folding, parts)):
            if number:
                self._tables.append(REPLAYED, rows, runs.new_run_id())
            else:
                self._tables.replace(REPLAYED, rows)
        summary = self._merge()
        # Rows that stayed here would tell the next run that this one was killed.
        self._tables.clear(REPLAYED)
        return summary

    def _folded(self, engine: Engine, folding: Folding, parts: Sequence[ReplayPart]) -> Iterator[Rows]:
        """Yield what the replay makes of each part. Groups do not depend on one another: without Spark, processes of
        this machine take several parts side by side.
        """
        workers = min(os.cpu_count() or 1, len(parts))
        if workers == 1 or runs_steps(self._tables.session):
            yield from (folding.by(engine, part) for part in parts)
            return
        with tasks.processes(workers) as pool:
            made = pool.map(partial(folding.here, self._tables.location, engine.limits), parts)
            for part, rows in zip(parts, made, strict=True):
                yield folding.by(engine, part) if rows is None else rows

    def _may_rebuild(self, engine: Engine) -> bool:
        """Return whether a group may have to begin again: small questions that nearly always say that none has to."""
        if not self._span.done:
            return True  # all records are replayed again
        cluster = {"cluster": self._cluster}
        (states,) = engine.rows(
            "SELECT min(version) AS oldest, max(version) AS newest, max(timestamp_ms) AS last_ms FROM $group_states "
            "WHERE cluster = :cluster",
            **cluster,
        )
        if {states["oldest"], states["newest"]} - {None, STATE_VERSION}:
            return True
        if states["last_ms"] is not None and states["last_ms"] >= self._given["news_ms"]:
            return True
        (moved,) = engine.rows(MOVED, **{**self._given, "topics": GROUP_TOPICS})
        interrupted = engine.rows("SELECT cluster FROM $replayed WHERE cluster = :cluster LIMIT 1", **cluster)
        behind = engine.rows(f"SELECT group_id FROM $group_records WHERE {BEHIND_TOPICS} LIMIT 1", **self._given)
        return bool(moved["groups"]) or any(interrupted) or any(behind) or any(engine.rows(LATE, **self._given))

    def _by_size(self, engine: Engine, *, rebuilds: bool) -> tuple[Engine, int]:
        """Return the engine that makes the rows of this size, and in how many parts, one after the other."""
        if rebuilds and not self._span.done:
            return engine.in_spark(), 1  # all groups begin again: to count their rows is to read all of the log
        limits = engine.limits
        engine = engine.up_to(limits.replayed_ranges, RANGES, **self._given)
        rows, size = (ROWS_AGAIN, BYTES_AGAIN) if rebuilds else (ROWS, BYTES)
        # The rows that an interrupted run has staged name groups that begin again, and the first part replaces them.
        most_parts = 1 if rebuilds else limits.replayed_parts
        parts = 1
        for count, most in ((rows, limits.replayed_rows), (size, limits.replayed_bytes)):
            needed = engine.parts(most, count, **self._given)
            if needed is None or needed > most_parts:
                return engine.in_spark(), 1
            parts = max(parts, needed)
        return engine, parts

    def _divided(self, engine: Engine, parts: int) -> Iterator[tuple[str, dict[str, Value]]]:
        """Yield the condition for the groups of each part, and the values that it names."""
        if parts == 1:
            yield "TRUE", {}
            return
        groups = [group_id for (group_id,) in engine.tuples(NEW_GROUPS, **self._given)]
        size = -(-len(groups) // parts)
        for begin in range(0, len(groups), size):
            some = groups[begin : begin + size]
            yield SOME_GROUPS, {"first_group": some[0], "last_group": some[-1]}

    def _delete_rows_without_states(self) -> None:
        """Delete all rows of a cluster without a state: those of tables whose states were set aside alone."""
        texts = (f"SELECT DISTINCT '{name}' AS name FROM ${name} WHERE cluster = :cluster" for name in FOLDED.values())
        for row in list(self._tables.engine().rows(" UNION ALL ".join(texts), cluster=self._cluster)):
            self._tables.delete(HISTORY[row["name"]], pa.table({"cluster": [self._cluster]}))

    def _holes(self, engine: Engine) -> Holes:
        """Return what may have said something of any group: unreadable keys, and offsets that are lost."""
        unreadable = unplaced_records(engine, self._cluster, self._span.upto)
        spans = (
            (place, span)
            for place, ranges in lost_before_records(engine, self._cluster).ranges.items()
            for span in ranges
        )
        # What is missing before the first record is known from the start of the log.
        lost = [(place, UnknownOffsets(*span, is_lost=True)) for place, span in spans if span[0] > 0]
        return Holes([*unreadable, *lost])

    # --- output ------------------------------------------------------------------------------------------------------

    def _merge(self) -> ReplaySummary:
        staged = Replayed(self._tables)
        counts = staged.counts()
        if counts[MARKS]:
            for name in FOLDED.values():
                # The new rows are staged already: a run that is killed between the two finds the group among them, and
                # repeats both.
                self._tables.delete(HISTORY[name], staged.groups_begun_again())
        if counts[GROUPS]:
            # Open violations of the previous run: the records of this run may complete the operation.
            self._tables.delete(HISTORY[FOLDED[Violation]], staged.open_violations())
        names = [*FOLDED.values()]
        for name in names:
            if counts[name]:
                put_rows(self._tables, HISTORY[name], staged.rows(HISTORY[name]))
        if counts[GROUPS]:
            # States come last: until they name the run, its records count as new, and a killed run is simply repeated.
            states = staged.states(self._span.seen)
            self._tables.merge(GROUP_STATES, states, _all_columns(GROUP_STATES), insert=True)
        return ReplaySummary(
            cluster=self._cluster,
            groups=counts[GROUPS],
            rebuilt=counts[MARKS],
            unplaced=self._unplaced(),
            rows={name: counts[name] for name in names},
        )

    def _unplaced(self) -> int:
        (row,) = self._tables.engine().rows(
            "SELECT count(*) AS records FROM $group_records WHERE cluster = :cluster AND run_id > :done "
            f"AND run_id <= :upto AND log_topic IN :topics AND NOT ({PLACED})",
            **self._given,
        )
        return int(row["records"])


def put_rows(tables: Tables, table: Table, rows: Rows) -> None:
    """Insert new rows of history, and replace those that an earlier run wrote while what they tell was under way."""
    among = OF_ONE_LOG if "group_type" in table.schema.names else "true"
    tables.merge(table, rows, _all_columns(table), insert=True, among=among)


def _all_columns(table: Table) -> dict[str, str]:
    return {name: f"s.{name}" for name in table.schema.names}


def _write_topics(tables: Tables, cluster: str, history: TopicHistory) -> None:
    """Make the intervals of the history the rows of ``topic_history``; what a late part of the log denies goes."""
    intervals = list(history.intervals())
    # A table that is written anew is a new version, after which others would make again what they made from it.
    if set(intervals) == set(_stored_topics(tables, cluster)):
        return
    rows = few(TOPIC_HISTORY, (_topic_row(cluster, interval) for interval in intervals))
    tables.replace_where(TOPIC_HISTORY, rows, "cluster = :cluster", cluster=cluster)


def _topic_row(cluster: str, interval: TopicInterval) -> dict[str, object]:
    return {"cluster": cluster} | {field.name: getattr(interval, field.name) for field in fields(interval)}


def _stored_topics(tables: Tables, cluster: str) -> Iterator[TopicInterval]:
    rows = tables.engine().rows("SELECT * FROM $topic_history WHERE cluster = :cluster", cluster=cluster)
    return map(reader(TopicInterval), rows)
