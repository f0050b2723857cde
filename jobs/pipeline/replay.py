"""``group_records`` to the history of every group: epochs, rebalances, memberships, assignments, violations.

One fold for a first run and for every later one: a group's new records, preceded by its state as a row of its own, go
through it in log order, so a group of any size streams. What comes out is staged in ``replayed``, merged into the
tables of history by key (a row that was open is replaced, one that was final stays), and last the states are merged,
all in one commit. Until then nothing says that the records were replayed, and what is staged says which groups were
under way: the run after one that was killed, anywhere, folds those anew, with the same result.

A dump that brings records older than what was replayed of a group makes that group begin anew: its rows are deleted,
and all its records are folded. So does a state that an earlier release stored in another form, and a group that was
replayed beyond the time of what a metadata log, which came late, tells of topics.

A share group has two lives here: its records of the coordinator log, and those of the share state log, in which each of
its share partitions lies in some partition of the log. Both begin anew together.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.group_audit import STATE_VERSION
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.groups.violations import Violation
from jobs.pipeline import topics as topic_log
from jobs.pipeline.log_start import is_start
from jobs.pipeline.replay_arrow import INPUT, folder
from jobs.sources.files import REPLAYED_TOPICS, SHARE_TOPICS
from jobs.tables.delta import Table, Tables
from jobs.tables.history import FOLDED, GROUP_STATES, HISTORY, REPLAYED
from jobs.tables.log import LOG_PARTITION, LOG_RECORDS, PLACED, RUNS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS

IDENTITY: Final = ("log_topic", "group_id")
"""A group of one cluster."""


class ReplaySummary(NamedTuple):
    """What a run did for one cluster: groups with new records, those of them that began anew, rows by table.

    ``unplaced`` new records have no offset: nobody knows where in the log they belong, so they are not replayed.
    """

    cluster: str
    groups: int
    rebuilt: int
    unplaced: int
    rows: dict[str, int]


def run(tables: Tables, audit: AuditSettings | None = None, *, rebuild: bool = False) -> list[ReplaySummary]:
    """Replay what was decoded and is not replayed yet, or with ``rebuild`` everything; raises InputError.

    ``audit`` says what the recomputation of targets has to be told; None: its defaults.
    """
    for table in (*HISTORY.values(), GROUP_STATES, REPLAYED):
        tables.create(table)
    decoded = tables.read(RUNS).where("job = 'decode' AND records > 0").groupBy("cluster")
    of_this_form = F.bool_and(F.col("version") == STATE_VERSION).alias("of_this_form")
    states = tables.read(GROUP_STATES).groupBy("cluster").agg(F.max("run_id").alias("run_id"), of_this_form)
    stored = {row.cluster: row for row in states.collect()}
    under_way = tables.read(REPLAYED).select("cluster").first()
    died = None if under_way is None else under_way.cluster
    runs = []
    # The cluster with which a run died goes first, before another one takes its place in ``replayed``.
    newest = decoded.agg(F.max("run_id").alias("run_id")).collect()
    for row in sorted(newest, key=lambda row: (row.cluster != died, row.cluster)):
        known = stored.get(row.cluster)
        done = "" if rebuild or known is None else known.run_id
        if known is not None and known.of_this_form and done >= row.run_id:
            runs.append(ReplaySummary(row.cluster, 0, 0, 0, dict.fromkeys(FOLDED.values(), 0)))
        else:
            span = _Span(done, row.run_id, is_first=known is None and row.cluster != died)
            runs.append(_Run(tables, row.cluster, audit or AuditSettings(), span).run())
    return runs


class _Span(NamedTuple):
    """The runs of decode to replay: after ``done``, up to ``upto``; and whether there was no replay before."""

    done: str
    upto: str
    is_first: bool


class _Run:
    """One run for one cluster."""

    def __init__(self, tables: Tables, cluster: str, audit: AuditSettings, span: _Span) -> None:
        self._tables = tables
        self._audit = audit
        self._cluster = cluster
        self._span = span
        self._states = self._of(GROUP_STATES)

    def _of(self, table: Table) -> DataFrame:
        return self._tables.read(table).where(F.col("cluster") == self._cluster)

    def run(self) -> ReplaySummary:
        topics = topic_log.read(self._tables, self._cluster)
        if topics is not None:
            topic_log.write(self._tables, self._cluster, topics)
        new = self._rows(self._span.done)
        anew = self._begin_anew()
        rebuilt = 0 if self._span.is_first else anew.count()
        rows = new if not rebuilt else self._with_all_of(anew, new)
        if rebuilt:
            gone = anew.select(F.lit(self._cluster).alias("cluster"), "group_id").distinct()
            for name in FOLDED.values():
                self._tables.delete(HISTORY[name], gone)
        fold = folder(self._cluster, topics, self._audit)
        self._tables.replace(REPLAYED, self._input(rows, anew).mapInArrow(fold, REPLAYED.schema))
        done = self._merge(rebuilt)
        self._tables.clear(REPLAYED)
        return done

    # --- input -------------------------------------------------------------------------------------------------------

    def _rows(self, after: str) -> DataFrame:
        """Records of groups from the runs after ``after``, without those that have no place in the log."""
        rows = self._records(after).select(*_given(GROUP_RECORDS))
        return rows.unionByName(self._telling_commits(after), allowMissingColumns=True).join(
            self._coverage(), [*LOG_PARTITION, "log_offset"], "left"
        )

    def _telling_commits(self, after: str) -> DataFrame:
        """The first and the last commit of each partition between two records of its group: all that the fold needs.

        So the volume of the log, which is commits, stays in Spark.
        """
        place = (*IDENTITY, "log_partition", "log_offset")
        of = {"topic": "committed_topic", "partition": "committed_partition", "topic_id": "committed_topic_id"}
        commits = self._commits(after).select(*place, "timestamp_ms", *(F.col(of_it).alias(of[of_it]) for of_it in of))
        records = self._records(after).select(*place, F.col("log_offset").alias("record"))
        in_order = Window.partitionBy(*IDENTITY, "log_partition").orderBy("log_offset")
        since = F.last("record", ignorenulls=True).over(in_order).alias("since")
        stretches = commits.unionByName(records, allowMissingColumns=True).select("*", since).where("record IS NULL")
        ends = [function(F.struct("log_offset", "timestamp_ms")) for function in (F.min, F.max)]
        return (
            stretches.groupBy(*IDENTITY, "log_partition", "since", *of.values())
            .agg(F.array_distinct(F.array(*ends)).alias("ends"))
            .select(*IDENTITY, "log_partition", *of.values(), F.inline("ends"))
        )

    def _records(self, after: str) -> DataFrame:
        return self._of(GROUP_RECORDS).where(self._since(after) & F.expr(PLACED))

    def _commits(self, after: str) -> DataFrame:
        return self._of(OFFSET_COMMITS).where(self._since(after) & F.expr(PLACED) & ~F.col("is_tombstone"))

    def _since(self, after: str) -> Column:
        in_runs = (F.col("run_id") > after) & (F.col("run_id") <= self._span.upto)
        return in_runs & F.col("log_topic").isin(REPLAYED_TOPICS)

    def _log(self) -> DataFrame:
        log = self._of(LOG_RECORDS).where(F.col("log_topic").isin(REPLAYED_TOPICS) & F.expr(PLACED))
        return log.where(F.col("kind").isin("record", "control"))

    def _starts(self) -> DataFrame:
        """Whether the log partitions were read from their start, compacted or not."""
        return self._log().groupBy(*LOG_PARTITION).agg(F.bool_or(is_start()).alias("from_start"))

    def _coverage(self) -> DataFrame:
        """For each record the first of the offsets up to it of which none is missing, and whether the next one is."""
        ordered = Window.partitionBy(*LOG_PARTITION).orderBy("log_offset")
        follows = F.lag("log_offset").over(ordered) == F.col("log_offset") - 1
        begins = F.when(F.coalesce(follows, F.lit(False)), None).otherwise(F.col("log_offset"))
        gap = F.coalesce(F.lead("log_offset").over(ordered) > F.col("log_offset") + 1, F.lit(False))
        runs = self._log().select(
            *LOG_PARTITION, "log_offset", "leader_epoch", begins.alias("begins"), gap.alias("gap_follows")
        )
        since = F.last("begins", ignorenulls=True).over(ordered).alias("unbroken_since")
        return runs.select(*LOG_PARTITION, "log_offset", "leader_epoch", "gap_follows", since).join(
            self._starts(), [*LOG_PARTITION]
        )

    def _begin_anew(self) -> DataFrame:
        """The groups whose state is of no use: of another form, or beyond a record or topic that is new.

        So are those that a run had under way when it died: what it wrote of them may rest on less than is known now.
        """
        done = self._span.done
        first = self._new_places().groupBy(*IDENTITY).agg(F.min(F.struct("log_partition", "log_offset")).alias("first"))
        last = F.struct("log_partition", "log_offset")
        of_share_state = F.col("log_topic").isin(SHARE_TOPICS)
        useless = (F.col("version") != STATE_VERSION) | (~of_share_state & (F.col("first") <= last))
        news_ms = topic_log.news_ms(self._tables, self._cluster, done, self._span.upto)
        if news_ms is not None:
            useless |= F.col("timestamp_ms") >= news_ms
        found = self._states.join(first, list(IDENTITY), "left").where(useless).select(*IDENTITY)
        under_way = self._of(REPLAYED).where("state IS NOT NULL").select(*IDENTITY)
        anew = found.union(under_way).union(self._late_share_state())
        groups = anew.select("group_id").distinct()
        return self._states.select(*IDENTITY).join(groups, "group_id", "left_semi").union(anew).distinct()

    def _late_share_state(self) -> DataFrame:
        """Groups with new records of the share state log that lie before known ones, in the same partition of it."""
        place = (*IDENTITY, "log_partition")
        of_share_state = F.col("log_topic").isin(SHARE_TOPICS)
        first = self._records(self._span.done).where(of_share_state).groupBy(*place)
        known = self._of(GROUP_RECORDS).where((F.col("run_id") <= self._span.done) & of_share_state & F.expr(PLACED))
        last = known.groupBy(*place).agg(F.max("log_offset").alias("last"))
        late = first.agg(F.min("log_offset").alias("first")).join(last, list(place)).where("first <= last")
        return late.select(*IDENTITY)

    def _new_places(self) -> DataFrame:
        """Whose records and commits are new, and where they are."""
        place = (*IDENTITY, "log_partition", "log_offset")
        records, commits = self._records(self._span.done), self._commits(self._span.done)
        return records.select(*place).unionByName(commits.select(*place))

    def _with_all_of(self, anew: DataFrame, new: DataFrame) -> DataFrame:
        keys = list(IDENTITY)
        return new.join(anew, keys, "left_anti").unionByName(self._rows("").join(anew, keys, "left_semi"))

    def _input(self, rows: DataFrame, anew: DataFrame) -> DataFrame:
        """The columns ``INPUT``: a group's rows in one partition, its state first, then in the order of the log."""
        keys = list(IDENTITY)
        touched = self._new_places().select(*keys).distinct().join(anew, keys, "left_anti")
        states = self._states.join(touched, keys, "left_semi").select(
            *keys, "log_partition", "log_offset", "timestamp_ms", "state", F.lit(False).alias("is_record")
        )
        return (
            rows.withColumns({"is_record": F.lit(True), "timestamp_ms": F.coalesce("timestamp_ms", F.lit(-1))})
            .unionByName(states, allowMissingColumns=True)
            .repartition(*keys)
            .sortWithinPartitions(*keys, "is_record", "log_partition", "log_offset")
            .select(*INPUT)
        )

    # --- output ------------------------------------------------------------------------------------------------------

    def _merge(self, rebuilt: int) -> ReplaySummary:
        staged = self._tables.read(REPLAYED)
        names = [*FOLDED.values()]
        counts = staged.agg(F.count("state").alias("groups"), *(F.count(name).alias(name) for name in names)).collect()[
            0
        ]
        if counts.groups:
            # What an operation lacked at the end of the run before, the records of this one may have brought.
            touched = staged.where("state IS NOT NULL").select("cluster", "group_id", F.lit(True).alias("is_open"))
            self._tables.delete(HISTORY[FOLDED[Violation]], touched.distinct())
        for name in names:
            if counts[name]:
                rows = staged.where(F.col(name).isNotNull()).select("cluster", f"{name}.*")
                self._upsert(HISTORY[name], rows)
        if counts.groups:
            place = ("log_partition", "log_offset", "timestamp_ms", "state")
            states = staged.where("state IS NOT NULL").select(*GROUP_STATES.key, *place)
            marks = {"version": F.lit(STATE_VERSION), "run_id": F.lit(self._span.upto)}
            self._tables.merge(GROUP_STATES, states.withColumns(marks), _all_columns(GROUP_STATES), insert=True)
        return ReplaySummary(
            self._cluster, counts.groups, rebuilt, self._unplaced(), {name: counts[name] for name in names}
        )

    def _unplaced(self) -> int:
        return self._of(GROUP_RECORDS).where(self._since(self._span.done) & ~F.expr(PLACED)).count()

    def _upsert(self, table: Table, rows: DataFrame) -> None:
        """Add new rows, replace those that were open; verdicts are final at once. One record may break a rule twice."""
        when = "t.is_open" if "is_open" in table.schema.names else "false"
        once = rows.distinct() if table is HISTORY[FOLDED[Violation]] else rows
        self._tables.merge(table, once, _all_columns(table), when=when, insert=True)


def _all_columns(table: Table) -> dict[str, str]:
    return {name: f"s.{name}" for name in table.schema.names}


def _given(table: Table) -> list[str]:
    """Columns of the fold's input that a table has."""
    return [name for name in INPUT if name in table.schema.names]
