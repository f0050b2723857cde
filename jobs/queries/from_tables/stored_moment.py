"""The coordinator at a moment, from the tables: its groups, their topics, and what is known of all of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import InputError
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.group import Group
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.history.knowledge import Knowledge
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.records import AnyRecord
from jobs.queries.from_tables.group_records import GroupRecords
from jobs.queries.from_tables.groups import StoredGroups
from jobs.queries.from_tables.selection import Selection
from jobs.queries.from_tables.share_log import StoredShareLog
from jobs.queries.interface import ANY_LATER_MS, latest_ms, sure_ms
from jobs.relations.given_partitions import stored_given
from jobs.relations.log_extent import Extents, below_ends, extents_at, gaps_by_name, names_without_ends
from jobs.relations.logs import times_of_groups, without_times
from jobs.relations.moment import AsOf
from jobs.relations.topics import stored_topics, topics_given
from jobs.relations.unreadable import unreadable_of_groups
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.reader import TableReader

BEFORE_ALL_MS: Final = -2
"""A time before that of each record, also of one without a time (-1)."""


class MomentTimes(NamedTuple):
    """The times (ms) that a moment of the logs of groups means in other logs; None: their end.

    ``topics_ms``: topics are those of the last record that counts. ``shares_ms``: share state is that before the first
    record that does not count. ``sure_ms``: see ``interface.sure_ms``; None: the moment is a time, or the end, and each
    log reaches it. ``upto_ms``: the latest time that the last record that counts may have had; None: ``topics_ms``.
    ``is_timed``: no offset of the moment is that of a record without a time.
    """

    topics_ms: int | None
    shares_ms: int | None
    sure_ms: int | None = None
    is_timed: bool = True
    upto_ms: int | None = None

    @classmethod
    def of(cls, moment: AsOf, extents: Extents) -> MomentTimes:
        """Return those of a moment at which the log partitions end."""
        cuts = [extent for extent in extents.values() if extent.left_out_ms is not None]
        short = [extent for extent in extents.values() if extent.gaps.is_short_of(extent.asked)]
        asked = short if moment.time_ms is not None else [*cuts, *short]
        sure = min((sure_ms(each.asked, each.left_out, each.left_out_ms, each.last_ms) for each in asked), default=None)
        if not cuts or moment.time_ms is not None:
            is_timed = moment.time_ms is not None or all(extent.left_out is None for extent in extents.values())
            return cls(moment.time_ms, moment.time_ms, sure if is_timed else BEFORE_ALL_MS, is_timed)
        shares_ms = min(cut.left_out_ms or 0 for cut in cuts) - 1
        reached = {place[1] for place, extent in extents.items() if not extent.gaps.is_short_of(extent.asked)}
        is_known = moment.offsets.keys() <= reached  # in the logs of groups, or in those of Connect groups
        return cls(
            max((cut.last_ms for cut in cuts if cut.last_ms is not None), default=shares_ms),
            shares_ms,
            sure,
            upto_ms=max(latest_ms(cut.asked, cut.last, cut.last_ms, cut.left_out_ms or 0) for cut in cuts)
            if is_known
            else ANY_LATER_MS,
        )


class StoredMoment:
    """The coordinator at a moment, from the tables: all groups, or one. From log files: ``ReplayedGroups``."""

    def __init__(self, tables: TableReader, cluster: str, moment: AsOf, group_id: str | None = None) -> None:
        """Raises InputError where no log of groups was taken in."""
        self._tables, self._cluster = tables, cluster
        self._selected = Selection(tables, cluster, GROUP_TOPICS, group_id)
        self._extents = extents_at(tables, cluster, moment, GROUP_TOPICS)
        if not self._extents:
            raise InputError(f"{tables.location}: no log of a cluster {cluster!r}")
        self._span = times_of_groups(tables, cluster)
        last_ms = self._span[1]
        if moment.time_ms is not None and last_ms is not None and moment.time_ms > last_ms:
            for extent in self._extents.values():
                if extent.asked is None:  # else its end at that time is known
                    extent.gaps, extent.transactions_are_known = extent.gaps.after_end(), False
        self._times = MomentTimes.of(moment, self._extents)
        self._shares = StoredShareLog(self._selected, self._times.shares_ms)
        self._groups = StoredGroups(self._selected, self._extents)

    def groups(self) -> Iterator[GroupThen]:
        """Yield every group that there was or may have been, by group id; one is in memory at a time."""
        return self._groups.all()

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
        return around.with_brokers(self._topics, self._times.topics_ms, self._times.upto_ms)
