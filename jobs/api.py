"""The product in a notebook: one object over a SparkSession and a place for the tables.

    audit = CoordinatorAudit(spark, "/lake/coordinator", cluster="prod")
    audit.ingest("/dumps/2026-11-21")
    audit.decode()
    audit.replay()
    audit.keep_offsets()
    audit.audit()
    audit.rebalances.where("duration_min_ms > 60000")
    audit.owners_at("2026-11-21T03:12:00Z", topic="orders")

Every table is a DataFrame; nothing is collected but the counts that a run returns. It runs under Spark Connect.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.explain import Sentence, explain, find_rebalance
from coordinator_core.errors import InputError
from jobs.pipeline import commit_history, decode, ingest, offsets, replay
from jobs.pipeline import findings as audit
from jobs.pipeline.group_history import histories
from jobs.pipeline.lag import MINIMUM, evaluate, evaluate_offsets_only, read_end_offsets
from jobs.settings import Settings, load
from jobs.sources.dump import DEFAULT_TOPIC, DumpFormat, open_dump
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables

Moment = datetime | str | int
"""A time: with or without a zone (then UTC), as ISO 8601 text, or in ms since the epoch."""


class CoordinatorAudit:
    """Coordinator logs of one cluster, their tables at ``store`` (a folder, a URI or a catalog schema), and views."""

    def __init__(
        self, spark: SparkSession, store: str, cluster: str = "default", settings: Settings | None = None
    ) -> None:
        self.tables = Tables(spark, store)
        self.cluster = cluster
        self.settings = settings or load()

    # --- jobs --------------------------------------------------------------------------------------------------------

    def ingest(self, *paths: str, shape: DumpFormat | None = None, topic: str = DEFAULT_TOPIC) -> list[Row]:
        """Take dumps into ``log_records``, each record once; rows of ``runs``. Raises InputError for what is none."""
        dumps = open_dump(self.tables.spark, paths, shape=shape, topic=topic)
        return ingest.run(self.tables, dumps, self.cluster)

    def decode(self) -> list[Row]:
        """Decode what is not decoded yet; rows of ``runs``."""
        return decode.run(self.tables)

    def replay(self, *, rebuild: bool = False) -> list[replay.ReplaySummary]:
        """Replay what is not replayed yet, or with ``rebuild`` everything; what was done, by cluster."""
        return replay.run(self.tables, self.settings.audit, rebuild=rebuild)

    def keep_offsets(self, end_offsets: str | None = None) -> int:
        """Keep the offsets as of the newest run, with lag where end offsets (JSON or Parquet) are given; how many."""
        ends = None if end_offsets is None else read_end_offsets(self.tables.spark, end_offsets, self.cluster)
        return offsets.run(self.tables, ends)

    def audit(self) -> dict[str, int]:
        """Find what an operator should look at in the history of all groups; the number of findings by kind."""
        return audit.run(self.tables, self.settings.findings)

    # --- tables ------------------------------------------------------------------------------------------------------

    def table(self, name: str) -> DataFrame:
        """A table, this cluster's rows; raises InputError if there is none of that name, or it is not filled yet."""
        if name not in CATALOG:
            raise InputError(f"no table {name!r}: there are {', '.join(CATALOG)}")
        rows = self.tables.read(CATALOG[name])
        return rows.where(F.col("cluster") == self.cluster) if "cluster" in rows.columns else rows

    @property
    def group_epochs(self) -> DataFrame:
        """One row an epoch (generation)."""
        return self.table("group_epochs")

    @property
    def rebalances(self) -> DataFrame:
        """One row a rebalance."""
        return self.table("rebalances")

    @property
    def memberships(self) -> DataFrame:
        """One row a member's life."""
        return self.table("memberships")

    @property
    def assignments(self) -> DataFrame:
        """One row an interval of a partition or task with a member."""
        return self.table("assignments")

    @property
    def target_audits(self) -> DataFrame:
        """One row a recorded target, recomputed and judged."""
        return self.table("target_audits")

    @property
    def violations(self) -> DataFrame:
        """One row a broken rule."""
        return self.table("violations")

    @property
    def findings(self) -> DataFrame:
        """One row a thing to look at; ``audit`` makes them."""
        return self.table("findings")

    def explain(self, group: str, epoch: int | None = None) -> list[Sentence]:
        """The story of a group's rebalance to an epoch, or of its last one: sentences, and the records that prove them.

        Raises InputError where there is none.
        """
        history = next(histories(self.tables, self.cluster, group, for_findings=False), None)
        if history is None:
            raise InputError(f"no history of a group {group!r} in the tables at {self.tables.home}")
        return explain(history, find_rebalance(history, epoch))

    # --- as of a time ------------------------------------------------------------------------------------------------

    def owners_at(self, moment: Moment, topic: str | None = None, group: str | None = None) -> DataFrame:
        """Who held which partition or task at that time, by the clock of the log; of one topic or group if given."""
        held = self.assignments.where((F.col("kind") == "current") & _holds(moment, "since", "until"))
        for name, wanted in (("topic", topic), ("group_id", group)):
            held = held if wanted is None else held.where(F.col(name) == wanted)
        return held.select("group_id", "topic", "partition", "role", "resource", "member_id", "epoch", "since", "until")

    def members_at(self, moment: Moment) -> DataFrame:
        """The members of every group at that time."""
        return self.memberships.where(_holds(moment, "joined", "left"))

    def epochs_at(self, moment: Moment) -> DataFrame:
        """The epoch (generation) of every group at that time."""
        return self.group_epochs.where(_holds(moment, "opened", "ended"))

    def topics_at(self, moment: Moment) -> DataFrame:
        """The topics of the cluster at that time."""
        return self.table("topic_history").where(_holds(moment, "since", "until"))

    # --- offsets -----------------------------------------------------------------------------------------------------

    def _commits(self) -> DataFrame:
        return offsets.commits(self.tables).where(F.col("cluster") == self.cluster)

    def offsets(self) -> DataFrame:
        """The newest committed offset of each group and partition, and apart those of open transactions."""
        return offsets.group_offsets(self._commits())

    def commit_rates(self, every: str = "1 hour") -> DataFrame:
        """Commits by group and interval, with the share of the log that they take."""
        return offsets.commit_rates(self._commits(), every)

    def rewinds(self) -> DataFrame:
        """Commits below the one before, with owner and rebalance."""
        return commit_history.rewinds(self.tables, self._commits())

    def removals(self) -> DataFrame:
        """Offsets that expired or were deleted."""
        return commit_history.removals(self.tables, self._commits())

    def lag(self, end_offsets: str, at: Moment, *, minimum: float = MINIMUM) -> DataFrame:
        """Lag and status by Burrow's rules at a time, with end offsets from JSON or Parquet; UNKNOWN without any."""
        ends = read_end_offsets(self.tables.spark, end_offsets, self.cluster)
        return evaluate(self._commits(), ends, milliseconds(at), minimum=minimum)

    def activity(self, at: Moment, *, minimum: float = MINIMUM) -> DataFrame:
        """What commits alone tell of consumers at a time; nothing of lag."""
        return evaluate_offsets_only(self._commits(), milliseconds(at), minimum=minimum)


def milliseconds(moment: Moment) -> int:
    """A time in ms since the epoch; raises InputError for text that is none."""
    if isinstance(moment, int):
        return moment
    try:
        time = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        raise InputError(f"{moment!r} is no time: give ISO 8601, as in 2026-11-21T03:12:00Z") from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _holds(moment: Moment, since: str, until: str) -> Column:
    """An interval between two positions covers the moment; its end is not in it."""
    at = milliseconds(moment)
    ended = F.coalesce(F.col(f"{until}.timestamp_ms") <= at, F.lit(False))
    return (F.col(f"{since}.timestamp_ms") <= at) & ~ended
