"""Why an offset was removed, as far as its tombstone, the age of the commit and deleted topics prove it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.given_topics import TopicReach
from coordinator_core.cluster.topic_changes import TOPIC_CLEANUP_MS
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.rows import GroupEpochRow
from coordinator_core.records import LogPosition

SHORTEST_RETENTION_MS: Final = 60_000
"""Least offsets.retention.minutes that a broker accepts: an offset that was removed earlier did not expire."""

GROUP_DELETED: Final = "group deleted"
GROUP_EXPIRED: Final = "group expired"
GROUP_ENDED: Final = "group deleted or expired"
"""How an offset was removed together with its group: a coordinator ends a group whose last offsets expire, too."""
WITH_GROUP: Final = (GROUP_DELETED, GROUP_ENDED)
TOPIC_DELETED: Final = "topic deleted"
EXPIRED: Final = "expired"
DELETED: Final = "deleted"
EXPIRED_OR_DELETED: Final = "expired or deleted"
"""How an offset was removed where its tombstone does not tell."""
OR_WITH_TOPIC: Final = ", or removed with its topic"
"""Added where it is not known whether the topic was deleted."""


class EmptySpans:
    """Since when a classic group was empty: its offsets expire by the time at which it became so, and not by that of
    their commits (KIP-211). A group whose members a record does not tell may have been empty.
    """

    def __init__(self, epochs: Iterable[GroupEpochRow]) -> None:
        self._spans = [
            (row.opened, None if row.ended is None else row.ended.offset)
            for row in epochs
            if row.group_type == GroupType.CLASSIC and not row.members
        ]

    def may_expire_all(self, at: LogPosition) -> bool:
        """Whether each offset of the group may have expired with a tombstone at this position, however young it is."""
        return any(
            opened.partition == at.partition
            and opened.offset < at.offset <= (at.offset if end is None else end)
            and (at.timestamp_ms < 0 or at.timestamp_ms - opened.timestamp_ms >= SHORTEST_RETENTION_MS)
            for opened, end in self._spans
        )

    def how(self, how: str, at: LogPosition) -> str:
        """Return how an offset was removed, where ``how`` rests on its age alone."""
        as_known = {DELETED: EXPIRED_OR_DELETED, GROUP_DELETED: GROUP_ENDED}
        return as_known.get(how, how) if self.may_expire_all(at) else how


def removal_window(deleted_ms: Any) -> tuple[Any, Any]:
    """Return between which times of the coordinator's clock the offsets of a topic are removed that was deleted at this
    time of the controller's clock: numbers, or columns of them.
    """
    return deleted_ms - CLOCK_TOLERANCE_MS, deleted_ms + (TOPIC_CLEANUP_MS + CLOCK_TOLERANCE_MS)


def shows_deletions(reach: TopicReach, removed_ms: int) -> bool:
    """Whether the deletion of a topic with which an offset was removed at this time (-1: unknown) would be known."""
    return removed_ms >= 0 and reach.covers(max(removed_ms - TOPIC_CLEANUP_MS - CLOCK_TOLERANCE_MS, 0), removed_ms)


def how_removed(age_ms: int | None, *, past_expiry: bool) -> str:
    """Return what a tombstone proves that was written for neither a deleted group nor a deleted topic.

    ``age_ms`` is the time since the commit, None if that is not known; ``past_expiry``: the expiry that the commit
    itself names had passed. Of another commit a request must have removed what is too young to expire.
    """
    if past_expiry:
        return EXPIRED
    return DELETED if age_ms is not None and age_ms < SHORTEST_RETENTION_MS else EXPIRED_OR_DELETED


def with_group(how: str) -> str:
    """Return how an offset was removed of which a tombstone of its group follows at the same time.

    ``how`` is what its own tombstone proves, or what another tombstone of the group at that time has made of it.
    """
    if how in WITH_GROUP:
        return how
    return GROUP_DELETED if how == DELETED else GROUP_ENDED


def or_with_topic(how: str, reach: TopicReach, removed_ms: int) -> str:
    """Return how an offset was removed, with ``OR_WITH_TOPIC`` if a topic may have been deleted unseen.

    ``how`` is how it was removed if the topic was not deleted, ``removed_ms`` the time of the tombstone.
    """
    is_open = how in (DELETED, EXPIRED_OR_DELETED) and not shows_deletions(reach, removed_ms)
    return f"{how}{OR_WITH_TOPIC}" if is_open else how
