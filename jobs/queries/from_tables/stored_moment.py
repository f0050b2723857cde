"""The coordinator at a moment, from the tables: its groups, their topics, and what is known of all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import merge

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import InputError
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.group import Group
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT, ShareStateLog
from coordinator_core.groups.simple_groups import without_forgotten
from coordinator_core.history.knowledge import GivenShareState, Knowledge
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.records import CONNECT_LOG, AnyRecord, Family
from coordinator_core.wire.record_decoder import RecordDecoder
from jobs.queries.from_tables.commits import commits_of
from jobs.queries.from_tables.group_records import RECORD, GroupRecords, record_of
from jobs.queries.from_tables.groups import StoredGroups
from jobs.queries.from_tables.selection import Selection
from jobs.queries.moment_times import LogEnd, MomentTimes
from jobs.relations.given_partitions import stored_given
from jobs.relations.log_extent import (
    Extents,
    before_end,
    below_ends,
    extents_at,
    gaps_by_name,
    names_without_ends,
    reasons_of_ends,
)
from jobs.relations.logs import newest_times, times_of_groups, without_times
from jobs.relations.moment import AsOf
from jobs.relations.share_state import given_share_state
from jobs.relations.topics import stored_topics, topics_given
from jobs.relations.unreadable import places, unreadable_of_groups
from jobs.sources.files import GROUP_TOPICS, SHARE_TOPICS
from jobs.tables.reader import TableReader


class StoredShareLog:
    """The share state log up to a time (ms; None: to its end), as far as it is about the groups of a selection."""

    def __init__(self, selected: Selection, time_ms: int | None) -> None:
        self._selected = replace(selected, topics=SHARE_TOPICS)
        self._time_ms = time_ms

    @cached_property
    def _extents(self) -> Extents:
        return extents_at(self._selected.tables, self._selected.cluster, AsOf(self._time_ms), SHARE_TOPICS)

    @cached_property
    def given(self) -> GivenShareState:
        """What was given of the log, as seen from that time."""
        return given_share_state(self._selected.tables, self._selected.cluster, self._extents)

    def state(self, sure_ms: int | None) -> ShareStateLog | None:
        """Return the state of the share partitions; None where the log was not given.

        ``sure_ms``: the latest time that was surely not later than the moment; None: the moment is a time. Of each
        share partition, what came before its last snapshot is in the snapshot.
        """
        extents, selected = self._extents, self._selected
        if not extents:
            return None
        lost = {partition for (_, partition), extent in extents.items() if extent.gaps.lost >= 0}
        log = ShareStateLog(lost=lost.union(self.given.doubtful), sure_ms=sure_ms)
        upto = f"{selected.condition} AND {before_end(extents)}"
        snapshots = selected.rows(
            f"SELECT key, max(log_offset) AS since FROM $group_records WHERE {upto} "
            f"AND record_type = {SHARE_SNAPSHOT} GROUP BY key"
        )
        # The first two bytes of a key are the record type, the others the share partition.
        since = {row["key"][2:]: row["since"] for row in snapshots}
        rows = selected.rows(f"SELECT {RECORD} FROM $group_records WHERE {upto} ORDER BY log_partition, log_offset")
        holes, decoder = self._holes(), RecordDecoder(Family.SHARE)
        hole = next(holes, None)
        for row in rows:
            while hole is not None and hole <= (row["log_partition"], row["log_offset"]):
                log.lose(hole[0])
                hole = next(holes, None)
            if row["log_offset"] >= since.get(row["key"][2:], 0):
                log.apply(record_of(row, decoder))
        if hole is not None:
            for partition, _ in (hole, *holes):
                log.lose(partition)
        return log

    def _holes(self) -> Iterator[tuple[int, int]]:
        """Yield partition and offset of each record before which offsets are missing, and of each that is unreadable,
        in order.
        """
        tables, cluster = self._selected.tables, self._selected.cluster
        behind_holes = tables.tuples(
            "SELECT log_partition, log_offset FROM (SELECT log_partition, log_offset, "
            "lag(log_offset) OVER (PARTITION BY log_topic, log_partition ORDER BY log_offset) AS before "
            "FROM $log_records WHERE cluster = :cluster AND log_topic IN :topics AND kind IN ('record', 'control') "
            f"AND {before_end(self._extents)}) AS placed WHERE before < log_offset - 1 "
            "ORDER BY log_partition, log_offset",
            cluster=cluster,
            topics=SHARE_TOPICS,
        )
        unread: Iterator[tuple[int, int]] = iter(places(tables, cluster, SHARE_TOPICS, below_ends(self._extents)))
        return merge(behind_holes, unread)


def log_ends(extents: Extents) -> Iterator[LogEnd]:
    """Yield how each log partition ends."""
    for (_, partition), each in extents.items():
        yield LogEnd(partition, each.gaps, each.asked, each.last, each.last_ms, each.left_out, each.left_out_ms)


class StoredMoment:
    """The coordinator at a moment, from the tables: all groups, or one. From log files: ``ReplayedGroups``."""

    def __init__(self, tables: TableReader, cluster: str, moment: AsOf, group_id: str | None = None) -> None:
        """Raises InputError where no log of groups was taken in."""
        self._tables, self._cluster = tables, cluster
        self._selected = Selection(tables, cluster, GROUP_TOPICS, group_id)
        self._extents: Extents = {}
        self._times = MomentTimes.looked_up(moment, self._read)
        if not self._extents:
            raise InputError(f"{tables.location}: no log of a cluster {cluster!r}")
        self._span = times_of_groups(tables, cluster)
        last_ms = self._span[1]
        if moment.time_ms is not None and last_ms is not None and moment.time_ms > last_ms:
            for extent in self._extents.values():
                if extent.asked is None:  # else its end at that time is known
                    extent.gaps, extent.transactions_are_known = extent.gaps.after_end(), False
        for (topic, partition), extent in self._extents.items():
            if topic == CONNECT_LOG and partition in self._times.untimed:
                extent.gaps = extent.gaps.untimed()
        self._shares = StoredShareLog(self._selected, self._times.shares_ms)
        self._groups = StoredGroups(self._selected, self._extents)

    def _read(self, topics: Sequence[str], at: AsOf) -> list[LogEnd]:
        extents = extents_at(self._tables, self._cluster, at, list(topics))
        self._extents |= extents
        ends = [*log_ends(extents)]
        if topics == [CONNECT_LOG] and ends:
            times = newest_times(self._tables, self._cluster, CONNECT_LOG, at.time_ms)
            return [end._replace(last_ms=times.get(end.partition)) for end in ends]
        return ends

    def groups(self) -> Iterator[GroupThen]:
        """Yield every group that there was or may have been, by group id; one is in memory at a time."""
        return without_forgotten(self._groups.all(), lambda: self.surroundings().oldest_broker)

    def named(self) -> set[str]:
        """Return the ids of all groups of which a record up to the moment tells, be it a tombstone."""
        of_records = GroupRecords(self._selected, self._extents).named()
        return {*of_records, *commits_of(self._selected, self._extents).named()}

    def records(self) -> Iterator[tuple[Group, Iterator[AnyRecord]]]:
        """Yield each group as it was before its first record here, and its records in the order of the log."""
        return GroupRecords(self._selected, self._extents).by_log()

    def gaps(self) -> dict[str, LogGaps]:
        """Return what is missing in each partition of the group logs, by the name of the partition."""
        return gaps_by_name(self._extents)

    def span(self) -> tuple[int | None, int | None]:
        """Return the times of the first and the last record in the logs of groups; see ``GroupsThen``."""
        return self._span

    def knowledge(self) -> Knowledge:
        """Return what the logs lack, as seen from the moment."""
        tables, cluster = self._tables, self._cluster
        first_ms, last_ms = self._span
        if last_ms is not None and self._times.topics_ms is not None:
            last_ms = min(last_ms, self._times.topics_ms)
        return Knowledge(
            stored_given(tables, cluster),
            self.gaps(),
            LostRecords({}, *unreadable_of_groups(tables, cluster, below_ends(self._extents))),
            topics_given(tables, cluster),
            first_ms,
            last_ms,
            lambda: self._shares.given,
            names_without_ends(self._extents),
            without_times(tables, cluster),
            missing_ends=reasons_of_ends(self._extents),
        )

    @cached_property
    def _topics(self) -> TopicHistory | None:
        return stored_topics(self._tables, self._cluster)

    def topics(self) -> TopicHistory | None:
        """Return the history of topics; None if it is unknown."""
        return self._topics

    def image(self) -> TopicImage | None:
        """Return the topics at the moment; None if they are unknown, as at an offset whose record has no time."""
        if self._topics is None or not self._times.is_timed:
            return None
        return self._topics.image_at(self._times.topics_ms, self._span[1] or 0, self._times.upto_ms)

    def lives(self, topic: str) -> list[TopicInterval] | None:
        """Return the times over which a topic stayed as it was, also after the moment; None if topics are unknown."""
        return None if self._topics is None else [*self._topics.intervals([topic])]

    def surroundings(self) -> Surroundings:
        """Return the facts outside a group that its description needs."""
        shares = self._shares.state(self._times.sure_ms)
        around = Surroundings(self.image(), shares)
        topics = self._topics if self._times.is_timed else None
        return around.with_brokers(topics, self._times.topics_ms, self._times.upto_ms)
