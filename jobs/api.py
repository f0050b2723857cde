"""The entry point for notebooks: one object with a SparkSession and the location of the tables.

    audit = CoordinatorAudit(spark, "/lake/coordinator", cluster="prod")
    audit.ingest("/dumps/2026-11-21")
    audit.decode()
    audit.replay()
    audit.keep_offsets()
    audit.audit()
    audit.rebalances.where("duration_min_ms > 60000")
    audit.owners_at("2026-11-21T03:12:00Z", topic="orders")

Every table is a DataFrame. Only the counts that a run returns are collected. It works with Spark Connect. A method that
writes raises BusyError while another run writes the tables, and DamagedTableError if a table is damaged. One that
answers warns with IncompleteLogWarning of what the logs lack, and raises InputError where there is no log of groups.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from coordinator_core.audit.explain import explain_rebalance
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.offsets.burrow import ActivityPoint, LagPoint
from coordinator_core.audit.sentences import Sentence
from coordinator_core.errors import IncompleteLogWarning, InputError
from coordinator_core.groups.group_type import GroupType
from coordinator_core.records import GROUP_LOG
from jobs import formatting
from jobs.api_columns import GROUP_ROWS, NAMES, OFFSETS_SCHEMA, OWNED, RATES_SCHEMA, REMOVALS_SCHEMA, REWINDS_SCHEMA
from jobs.pipeline import beside_logs, broker_logs, decode, ingest, offsets, replay
from jobs.pipeline import findings as audit
from jobs.pipeline.runs import RunRow, new_run_id
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.from_tables.stored_moment import StoredMoment
from jobs.queries.group_rows import group_rows
from jobs.queries.interface import no_history, told_what_is_missing
from jobs.queries.ownership import owned_by, partitions_at
from jobs.relations.brokers import lines_about_removals
from jobs.relations.commit_sums import END_TYPES, REMOVALS, REWINDS, removal_rows, topic_ends
from jobs.relations.knowledge import missing_of_shares
from jobs.relations.lag import COMMITS_AT, KEY, LAG_AT, activity_rows, lag_rows
from jobs.relations.logs import log_reaches
from jobs.relations.moment import AsOf
from jobs.relations.offsets import OFFSETS
from jobs.relations.topics import topics_given
from jobs.settings import Settings, load, over
from jobs.sources.dump import DEFAULT_TOPIC, DumpFormat, open_dump
from jobs.sources.files import with_copy
from jobs.sources.log_settings import files_beside, layers_beside
from jobs.sources.spark_end_offsets import ends_in_spark
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from jobs.tables.history import CLUSTER
from jobs.tables.log import LOG_RECORDS
from jobs.tables.one_writer import check_damage, writing
from jobs.tables.reader import Value, missing_table, sql_name, sql_text
from jobs.tables.results import FINDINGS
from jobs.tables.row_types import row_type
from jobs.tables.snapshots import END_OFFSETS
from jobs.tables.spark_errors import own_errors
from jobs.tables.spark_reader import SparkReader, sent
from jobs.tables.table import plain
from jobs.tables.views import PREFIX, SPARK, view_query

Moment = datetime | str | int
"""A time: a datetime, ISO 8601 text, or ms since the epoch; UTC unless it has a zone."""

COMMIT_RATES: Final = """
SELECT cluster, group_id, interval.start AS since, interval.end AS until, commits, tombstones, partitions,
  (commits + tombstones) / sum(commits + tombstones) OVER (PARTITION BY cluster, interval) AS share
FROM (
  SELECT cluster, group_id, window(timestamp_millis(timestamp_ms), :every) AS interval,
    count_if(NOT is_tombstone) AS commits, count_if(is_tombstone) AS tombstones,
    count(DISTINCT topic, partition) AS partitions
  FROM $offset_commits
  WHERE cluster = :cluster AND timestamp_ms >= 0 AND log_offset IS NOT NULL AND log_partition IS NOT NULL
  GROUP BY cluster, group_id, window(timestamp_millis(timestamp_ms), :every)
) AS counted
"""
"""In Spark's own words, as no other answer has intervals of any length."""

STREAMS_GROUPS: Final = "SELECT DISTINCT group_id FROM $group_epochs WHERE cluster = :cluster AND group_type = :type"


class CoordinatorAudit:
    """The coordinator logs of one cluster, in the tables at ``location`` (a folder, a URI or a catalog schema)."""

    def __init__(
        self, spark: SparkSession, location: str, cluster: str = "default", settings: Settings | None = None
    ) -> None:
        self.settings = settings or load()
        self.tables = Tables(spark, location, self.settings.engine.limits)
        self.cluster = cluster

    # --- jobs --------------------------------------------------------------------------------------------------------

    def ingest(self, *paths: str, dump_format: DumpFormat | None = None, topic: str = DEFAULT_TOPIC) -> list[RunRow]:
        """Ingest dumps into the tables, each record once, decoded. Return the rows added to ``runs``.

        A file ``coordinator-audit.yaml`` beside a log counts as for the commands: for the cluster and the settings that
        have their defaults, and for what is taken in with the log.

        Raises:
            InputError: a path does not exist, or is not a dump, or the records are of two logs or clusters.
            UsageError: the file beside a log has what is not a setting of a log.
        """
        if beside := [*layers_beside(files_beside(paths))]:
            # The name that this object was given is a setting here: unless it is the default, it goes before that of
            # the file.
            self.settings = over(beside, self.settings.model_copy(update={"cluster": self.cluster}))
            self.cluster = self.settings.cluster
        chosen = self.settings.input.model_copy(update={"paths": list(paths)})
        with self._writing(begin=True):
            more = beside_logs.take(self.tables, chosen, self.cluster, _warn, dump_format)
            topics = with_copy(chosen.copied_topic)

            def take() -> list[RunRow]:
                dumps = open_dump(self.tables.session, more.dumps, dump_format=dump_format, topic=topic, topics=topics)
                return ingest.run(self.tables, dumps, self.cluster)

            return ingest.listed_again(take)

    def decode(self) -> list[RunRow]:
        """Complete the ingested records: later facts, counts, sums. Return the rows added to ``runs``."""
        with self._writing():
            return decode.run(self.tables)

    def replay(self, *, rebuild: bool = False) -> list[replay.ReplaySummary]:
        """Replay the records that are not replayed yet, or with ``rebuild`` all. Return a summary for each cluster."""
        with self._writing():
            summaries = replay.run(self.tables, self.settings.audit, rebuild=rebuild)
            broker_logs.settle(self.tables, self.cluster)
            return summaries

    def keep_offsets(self, end_offsets: str | None = None) -> int:
        """Store the committed offsets as of the newest run. Return their number.

        ``end_offsets``: file with end offsets (JSON lines or Parquet), from which the lag is computed.
        """
        with self._writing():
            ends = None if end_offsets is None else ends_in_spark(self.tables.spark, end_offsets, self.cluster)
            return offsets.run(self.tables, ends)

    def audit(self) -> dict[str, int]:
        """Compute the findings about all groups. Return the number of findings by kind."""
        with self._writing():
            counts = audit.run(self.tables, self.settings.findings, new_run_id())
        self._warned()
        return counts

    @contextmanager
    def _writing(self, *, begin: bool = False) -> Iterator[None]:
        """Hold the lease on the tables, as each command that writes them does.

        Raises:
            MissingTableError: nothing was ingested into these tables, and ``begin`` is not set.
            InputError: the records contradict each other, such as those of two clusters.
        """
        check_damage(self.tables)
        if not (begin or self.tables.exists(LOG_RECORDS)):
            raise missing_table(self.tables.location, LOG_RECORDS.name)
        lease = timedelta(minutes=self.settings.nightly.lease_minutes)
        with own_errors(), writing(self.tables, lease):
            yield

    # --- tables ------------------------------------------------------------------------------------------------------

    def table(self, name: str) -> DataFrame:
        """A table, this cluster's rows, without a warning of what the logs lack (see ``missing``).

        Raises InputError if there is none of that name, or it is not filled yet.
        """
        if name not in CATALOG:
            raise InputError(f"unknown table {name!r}: use one of {', '.join(CATALOG)}")
        rows = self.tables.read(CATALOG[name])
        return rows.where(f"cluster = {sql_text(self.cluster)}") if "cluster" in rows.columns else rows

    def _of_history(self, name: str) -> DataFrame:
        self._warned(level=4)
        return self.table(name)

    def missing(self, group: str | None = None, at: Moment | None = None) -> list[str]:
        """Return in words what the logs lack for answers about a group (None: all); the list is empty if nothing.

        ``at``: for answers about that moment; None: about all of the past. All answers warn of it, for all groups or
        for theirs.

        Raises:
            InputError: no log of groups was taken in.
        """
        return self._missing(self._answers(), group, at)

    def _missing(self, answers: StoredAnswers, group: str | None, at: Moment | None) -> list[str]:
        answers.warn_once()
        if at is None:
            return [*answers.missing(group), *answers.knowledge().about_offsets()]
        then = milliseconds(at)
        known = answers.at(AsOf(then), group).knowledge()
        return [
            *answers.missing(group, of_history=False),
            *known.about_window(None, then),
            *known.reasons_with_topics(group),
            *missing_of_shares(known, answers.tables, self.cluster, group),
            *known.about_offsets(),
        ]

    def _warned(self, group: str | None = None, at: Moment | None = None, level: int = 3) -> StoredAnswers:
        """Return what answers, after a warning of what is missing: what an answer rests on is read once.

        ``level`` is the number of calls up to the line that asks, this one included.
        """
        answers = self._answers()
        for reason in self._missing(answers, group, at):
            warnings.warn(reason, IncompleteLogWarning, stacklevel=level)
        return answers

    @property
    def group_epochs(self) -> DataFrame:
        """One row for each epoch (generation) of a group."""
        return self._of_history("group_epochs")

    @property
    def rebalances(self) -> DataFrame:
        """One row for each rebalance."""
        return self._of_history("rebalances")

    @property
    def memberships(self) -> DataFrame:
        """One row for each membership, from join to leave."""
        return self._of_history("memberships")

    @property
    def assignments(self) -> DataFrame:
        """One row for each interval over which a member had a partition or task."""
        return self._of_history("assignments")

    @property
    def target_audits(self) -> DataFrame:
        """One row for each recorded target assignment, with the verdict on it."""
        return self._of_history("target_audits")

    @property
    def violations(self) -> DataFrame:
        """One row for each violation of a rule."""
        return self._of_history("violations")

    @property
    def findings(self) -> DataFrame:
        """One row for each finding; ``audit`` computes them."""
        return self._of_history("findings")

    def explain(self, group: str, epoch: int | None = None) -> list[Sentence]:
        """Return the explanation of the rebalance to ``epoch``, or of the group's last one, in sentences with evidence.

        Raises:
            InputError: the tables have no history of the group, or no such rebalance.
        """
        return _explained(self._warned(group), group, epoch)

    def _answers(self) -> StoredAnswers:
        """Return what answers the questions of the command line."""
        return StoredAnswers(self.tables.asked(), self.cluster, self.settings.audit)

    def explanation(self, group: str, epoch: int | None = None) -> DataFrame:
        """Return what ``explain`` returns as rows: ``number`` from 1, ``text``, and ``evidence`` as PARTITION:OFFSET.

        Raises:
            InputError: the tables have no history of the group, or no such rebalance.
        """
        rows = [
            (number, sentence.text, [f"{at.partition}:{at.offset}" for at in sentence.evidence])
            for number, sentence in enumerate(_explained(self._warned(group), group, epoch), 1)
        ]
        return self.tables.spark.createDataFrame(rows, "number int, text string, evidence array<string>")

    def history(self, group: str) -> dict[str, DataFrame]:
        """Return all rows of one group, by table, as the command ``history`` has them, with its verdicts and findings.

        ``commit_steps``: how committed offsets began, went back, were set or removed. ``offset_resets``: those that
        were set back while the group had no members. ``broker_events``: what brokers' application logs say and no
        record does. The rows of the group are read into this process.

        Raises:
            InputError: the tables have no history of the group.
        """
        answers = self._warned(group)
        known = _known(answers, group)
        found: dict[str, list[dict[str, object]]] = {name: [] for name in GROUP_ROWS}
        findings = answers.findings(group) if self.tables.exists(FINDINGS) else ()
        rows: Iterable[Any] = (*group_rows(answers, known), *known.targets, *findings)
        for row in rows:
            found[NAMES[type(row)]].append({"cluster": self.cluster, "group_id": group, **row._asdict()})
        of_tables = {name: pa.Table.from_pylist(of_table, plain(GROUP_ROWS[name])) for name, of_table in found.items()}
        return {name: sent(self.tables.spark, of_table) for name, of_table in of_tables.items()}

    def owners(self, topic: str | None = None, group: str | None = None) -> DataFrame:
        """Return which member owns which partition or task at the end of the log, optionally of one topic or group.

        ``topic``: the name or id of a topic, or the name of a connector. A task of a streams group names no topic: it
        is found by the topology that the group has then, and its row has a ``subtopology``. Where ``history_complete``
        is false, the log does not show since when the member has had it.
        """
        answers = self._warned(group)
        owned = self.table("assignments").where("until IS NULL")
        return self._owned(answers, owned, AsOf(), topic, group)

    def create_views(self) -> list[str]:
        """Create the views for questions in SQL (``docs/sql.md``), with timestamps. Return their names.

        In a schema of a catalog they are views of that schema, for all who may read it; of tables in a folder they are
        temporary views of this session. A run may write meanwhile: no row changes, so that no lease is needed.
        """
        made = []
        for table in CATALOG.values():
            if not self.tables.exists(table):
                continue
            fields = self.tables.read(table).schema
            columns = {
                field.name: field.dataType.names if isinstance(field.dataType, StructType) else [] for field in fields
            }
            name = f"{PREFIX}{table.name}"
            schema = self.tables.schema
            kind = "TEMPORARY VIEW" if schema is None else "VIEW"
            place = name if schema is None else sql_name(schema, name)
            query = view_query(sql_name(schema or self.tables.location, table.name), columns, SPARK)
            self.tables.spark.sql(f"CREATE OR REPLACE {kind} {place} AS {query}")
            made.append(name)
        return made

    # --- as of a time ------------------------------------------------------------------------------------------------

    def owners_at(self, moment: Moment, topic: str | None = None, group: str | None = None) -> DataFrame:
        """Return what ``owners`` returns, as it was at that time."""
        answers = self._warned(group, moment)
        owned = self.table("assignments").where(_holds(moment, "since", "until"))
        return self._owned(answers, owned, AsOf(milliseconds(moment)), topic, group)

    def _owned(
        self, answers: StoredAnswers, assignments: DataFrame, moment: AsOf, topic: str | None, group: str | None
    ) -> DataFrame:
        owned = assignments.where("kind = 'current'")
        if group is not None:
            owned = owned.where(f"group_id = {sql_text(group)}")
        if topic is not None:
            tasks = self._reading_tasks(answers, topic, moment, group)
            owned = owned.where(" OR ".join([f"{sql_text(topic)} IN (topic, topic_id, connector)", *tasks]))
        return owned.select(*OWNED)

    def _reading_tasks(self, answers: StoredAnswers, topic: str, moment: AsOf, group: str | None) -> Iterator[str]:
        """Yield for each streams group the condition (SQL) for its tasks that read a topic at a moment."""
        engine = answers.tables
        streams = engine.rows(STREAMS_GROUPS, cluster=self.cluster, type=GroupType.STREAMS.value)
        for group_id in sorted(row["group_id"] for row in streams if group in (None, row["group_id"])):
            then = StoredMoment(engine, self.cluster, moment, group_id)
            lives = then.lives(topic)
            groups = [one.group for one in then.groups()]
            reading = owned_by(topic, groups, has_partition_of_task=lives is not None).subtopologies.get(group_id)
            if reading:
                named = ", ".join(map(sql_text, sorted(reading)))
                # A task has the partition of its number, of each topic that has one.
                there = "" if lives is None else f" AND partition < {partitions_at(lives, moment)}"
                yield f"(group_id = {sql_text(group_id)} AND subtopology IN ({named}){there})"

    def members_at(self, moment: Moment) -> DataFrame:
        """Return the members of every group at that time."""
        self._warned(at=moment)
        return self.table("memberships").where(_holds(moment, "joined", "left"))

    def epochs_at(self, moment: Moment) -> DataFrame:
        """Return the epoch (generation) of every group at that time."""
        self._warned(at=moment)
        return self.table("group_epochs").where(_holds(moment, "opened", "ended"))

    def topics_at(self, moment: Moment) -> DataFrame:
        """Return the topics of the cluster at that time."""
        self._warned(at=moment)
        return self.table("topic_history").where(_holds(moment, "since", "until"))

    # --- offsets -----------------------------------------------------------------------------------------------------

    def offsets(self) -> DataFrame:
        """Return the newest committed offset of each group and partition; open transactions have rows of their own."""
        self._warned()
        return self._reader().frame(OFFSETS, OFFSETS_SCHEMA, cluster=self.cluster)

    def commit_rates(self, every: str = "1 hour") -> DataFrame:
        """Return the number of commits by group and interval, and their share of all records of the interval.

        A group with most of the share floods the log: each of its commits is replicated, kept until compaction, and
        read again whenever a broker loads the partition.
        """
        self._warned()
        return self._reader().frame(COMMIT_RATES, RATES_SCHEMA, cluster=self.cluster, every=every)

    def rewinds(self) -> DataFrame:
        """Return the commits with a lower offset than the commit before, with the owner and the last rebalance.

        ``owner``: the member that owned the partition at that time; null if none is known, or if several had it: the
        log does not say which of them committed. ``rebalance_at`` and ``rebalance_to``: the last rebalance before the
        commit. ``in_rebalance``: that rebalance had not finished.
        """
        self._warned()
        return self._reader().frame(REWINDS, REWINDS_SCHEMA, cluster=self.cluster)

    def removals(self) -> DataFrame:
        """Return the tombstones of committed offsets: the removed offset, its age, and the cause if the log shows it.

        ``cause``: ``topic deleted`` if the metadata log has the deletion just before; ``group deleted`` if a tombstone
        of the group itself was written at the same time and the commit was too young to expire, otherwise ``group
        deleted or expired``, because a group whose last offsets expire is removed with them; ``expired`` if the expiry
        that the commit itself names (value version 1) had passed; ``deleted`` if the commit was too young to expire;
        otherwise ``expired or deleted``, because Kafka writes the same tombstone for an expired offset and for a
        request to delete offsets. Lines of brokers' application logs that were taken in decide between the two; of a
        group, between ``group deleted`` and ``group expired``. ``deleted`` and ``expired or deleted`` end with ``, or
        removed with its topic`` where the metadata log does not show that time. ``age_ms``: time since the last commit.
        """
        tables, cluster = self._warned().tables, self.cluster
        reach = topics_given(tables, cluster).reach
        lines = lines_about_removals(tables, cluster)
        fold = removal_rows(topic_ends(tables, cluster), reach, lines, plain(REMOVALS_SCHEMA))
        values: dict[str, Value] = {"cluster": self.cluster, "types": END_TYPES}
        return self._reader().folded(REMOVALS, ("log_partition",), (), fold, REMOVALS_SCHEMA, **values)

    def lag(self, end_offsets: str | None, at: Moment) -> DataFrame:
        """Return the lag of each group and partition at the newest end offset up to a time, as ``lag_history`` has it.

        ``end_offsets``: file with end offsets (JSON lines or Parquet); None: the snapshots in the tables. A partition
        that has none by then is UNKNOWN at the time itself.

        Raises:
            MissingTableError: no file is given, and the tables have no snapshots.
        """
        answers = self._warned()
        given = None
        if end_offsets is not None:
            given = {END_OFFSETS.name: ends_in_spark(self.tables.spark, end_offsets, self.cluster)}
        schema = plain([CLUSTER, *row_type(LagPoint)])
        judged = lag_rows(log_reaches(answers.tables, self.cluster), schema, cluster=self.cluster)
        return self._folded(LAG_AT, judged, schema, at, given)

    def activity(self, at: Moment) -> DataFrame:
        """Return what the commits alone show about consumers at a time; lag is not computed."""
        reaches = log_reaches(self._warned().tables, self.cluster)
        schema = plain([CLUSTER, *row_type(ActivityPoint)])
        judged = activity_rows(reaches, schema, cluster=self.cluster)
        return self._folded(COMMITS_AT, judged, schema, at)

    def _folded(
        self,
        text: str,
        judged: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        at: Moment,
        given: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """Return the rows of a text of ``relations.lag`` as Spark computes them."""
        values: dict[str, Value] = {"cluster": self.cluster, "log": GROUP_LOG, "at": milliseconds(at)}
        return self._reader(given).folded(text, KEY, ("time_ms",), judged, schema, **values)

    def _reader(self, given: Mapping[str, str] | None = None) -> SparkReader:
        return SparkReader(self.tables.spark, self.tables.location, given)


def _warn(reason: str) -> None:
    warnings.warn(reason, IncompleteLogWarning, stacklevel=2)


def _known(answers: StoredAnswers, group: str) -> GroupHistory:
    history = answers.history(group)
    if history is None:
        raise no_history(answers, group)
    return history


def _explained(answers: StoredAnswers, group: str, epoch: int | None) -> list[Sentence]:
    history = _known(answers, group)
    with told_what_is_missing(answers, history):
        return explain_rebalance(history, epoch)


def milliseconds(moment: Moment) -> int:
    """Return a time in ms since the epoch. Raise UsageError for text that is not a time."""
    if isinstance(moment, int):
        return moment
    return formatting.parse_time(moment) if isinstance(moment, str) else formatting.milliseconds(moment)


def _holds(moment: Moment, since: str, until: str) -> str:
    """Return the SQL condition that an interval between two positions contains the moment; its end is excluded."""
    at = milliseconds(moment)
    return f"`{since}`.timestamp_ms <= {at} AND NOT coalesce(`{until}`.timestamp_ms <= {at}, FALSE)"
