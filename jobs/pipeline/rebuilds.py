"""Which groups a replay has to begin again, as their stored state or their rows rest on less than is known now.

Such a group has new records before replayed ones, or others have come late into a log partition that has records of
it: what was missing there was a gap for its rows. Or its state has the format of another release, or the metadata log
or a snapshot has news of a time that the group's replay has passed, or the run that replayed it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.group_audit import STATE_VERSION
from jobs.relations import stored_topics
from jobs.sources.files import REPLAYED_TOPICS, SHARE_TOPICS
from jobs.tables.delta import Tables
from jobs.tables.history import GROUP_STATES, REPLAYED
from jobs.tables.log import LOG_PARTITION, PLACED
from jobs.tables.records import GROUP_RECORDS

IDENTITY: Final = ("log_topic", "group_id")
"""The columns that identify a group within a cluster."""

LATE: Final = """
SELECT log_topic, log_partition, first FROM (
  SELECT log_topic, log_partition, min(CASE WHEN run_id > :done THEN first_offset END) AS first,
    max(CASE WHEN run_id <= :done THEN last_offset END) AS last
  FROM $log_ranges WHERE cluster = :cluster AND run_id <= :upto AND log_topic IN :topics
  GROUP BY log_topic, log_partition
) AS places WHERE first < last
"""
"""Log partitions in which new records lie before known ones, with the first new offset."""

MOVED: Final = """
SELECT count(*) AS groups FROM (
  SELECT log_topic, group_id, log_partition FROM $group_records
  WHERE cluster = :cluster AND run_id > :done AND run_id <= :upto AND log_topic IN :topics
  UNION ALL SELECT log_topic, group_id, log_partition FROM $commit_summaries
  WHERE cluster = :cluster AND run_id > :done AND run_id <= :upto AND hour_ms IS NOT NULL
) AS n JOIN $group_states AS s
ON s.cluster = :cluster AND n.log_topic = s.log_topic AND n.group_id = s.group_id AND n.log_partition < s.log_partition
"""
"""How many new records of groups lie in another log partition than known ones of them, and before it."""


class Span(NamedTuple):
    """The decode runs to replay: after ``done``, up to ``upto``. ``is_first``: no earlier run replayed the cluster.

    ``seen``: ``upto``, or a later run that brought a snapshot of the cluster, which the replay has seen.
    """

    done: str
    upto: str
    seen: str
    is_first: bool


class Late(NamedTuple):
    """The first late offset of a log partition."""

    log_topic: str
    log_partition: int
    first: int


def groups_to_rebuild(tables: Tables, cluster: str, span: Span, new: Callable[[], DataFrame]) -> DataFrame | None:
    """Return ``IDENTITY`` of the groups to begin again; None: there is none.

    ``new`` returns ``IDENTITY``, ``log_partition`` and ``log_offset`` of the new records and commits.
    """
    if span.is_first:
        return None
    given = {"cluster": cluster, "done": span.done, "upto": span.upto}
    found = tables.engine()
    late = [Late(**row) for row in found.rows(LATE, topics=REPLAYED_TOPICS, **given)]
    news_ms = stored_topics.news_ms(found, cluster, span.done, span.upto)
    (states,) = found.rows(
        "SELECT min(version) AS oldest, max(version) AS newest, max(timestamp_ms) AS last_ms FROM $group_states "
        "WHERE cluster = :cluster",
        cluster=cluster,
    )
    (interrupted,) = found.rows("SELECT count(*) AS groups FROM $replayed WHERE cluster = :cluster", cluster=cluster)
    (moved,) = found.rows(MOVED, topics=[each for each in REPLAYED_TOPICS if each not in SHARE_TOPICS], **given)
    is_current = states["oldest"] in (None, STATE_VERSION) and states["newest"] in (None, STATE_VERSION)
    is_passed = news_ms is not None and states["last_ms"] is not None and states["last_ms"] >= news_ms
    # Without runs that are done, all records are replayed again.
    if span.done and is_current and not (late or is_passed or interrupted["groups"] or moved["groups"]):
        return None
    chosen = _Rebuilds(tables, cluster, span).groups(new(), late, news_ms)
    return None if chosen.isEmpty() else chosen


class _Rebuilds:
    """The groups of one cluster to begin again, with Spark, as they may be many."""

    def __init__(self, tables: Tables, cluster: str, span: Span) -> None:
        self._tables = tables
        self._cluster = cluster
        self._span = span
        self._states = tables.read(GROUP_STATES).where(F.col("cluster") == cluster)

    def groups(self, new: DataFrame, late: list[Late], news_ms: int | None) -> DataFrame:
        useless = self._with_useless_state(new, news_ms)
        interrupted = self._tables.read(REPLAYED).where(F.col("cluster") == self._cluster)
        found = useless.union(interrupted.select(*IDENTITY))
        if late:
            found = found.union(self._beside(late))
        # What a share group has in its two logs is replayed apart; both are begun again together.
        groups = found.select("group_id").distinct()
        return self._states.select(*IDENTITY).join(groups, "group_id", "left_semi").unionByName(found).distinct()

    def _with_useless_state(self, new: DataFrame, news_ms: int | None) -> DataFrame:
        """Return the groups whose state has another format, or includes later records than the new ones."""
        place = F.struct("log_partition", "log_offset")
        first = new.groupBy(*IDENTITY).agg(F.min(place).alias("first"))
        is_of_groups = ~F.col("log_topic").isin(SHARE_TOPICS)
        useless = (F.col("version") != STATE_VERSION) | (is_of_groups & (F.col("first") <= place))
        if not self._span.done:  # all records are replayed again
            useless |= F.lit(True)
        if news_ms is not None:
            useless |= F.col("timestamp_ms") >= news_ms
        return self._states.join(first, list(IDENTITY), "left").where(useless).select(*IDENTITY)

    def _beside(self, late: list[Late]) -> DataFrame:
        """Return the groups with known records behind late ones, or right before the first late one."""
        firsts = self._tables.spark.createDataFrame(late, "log_topic string, log_partition int, first long")
        is_known = (F.col("cluster") == self._cluster) & (F.col("run_id") <= self._span.done) & F.expr(PLACED)
        known = self._tables.read(GROUP_RECORDS).where(is_known)
        # Groups without records of their own, of which there are only commits, have a state all the same.
        places = known.select(*IDENTITY, "log_partition", "log_offset").union(
            self._states.select(*IDENTITY, "log_partition", "log_offset")
        )
        beside = places.join(F.broadcast(firsts), list(LOG_PARTITION)).where("first <= log_offset + 1")
        return beside.select(*IDENTITY).distinct()
