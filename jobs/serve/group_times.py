"""What is kept of each group's history in memory, so that moments of all groups are answered without the logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.history.rows import GroupEpochRow
from jobs.serve.served_rows import FoundRow, GroupAt

FOREVER_MS = 1 << 62
OFFSETS = "OFFSETS"


class TimedEpoch(NamedTuple):
    """When an epoch was opened and ended; the order is that of the log."""

    opened_ms: int
    offset: int
    ended_ms: int
    epoch: int
    group_type: str


class TimedRebalance(NamedTuple):
    """When a rebalance was logged, and when it was in progress."""

    at_ms: int
    began_ms: int
    ended_ms: int
    to_epoch: int


class TimedMember(NamedTuple):
    """When a member was in the group, and the names by which it is looked for."""

    joined_ms: int
    left_ms: int
    member_id: str
    client_id: str | None
    host: str | None


class GroupTimes(NamedTuple):
    """The times of one group."""

    group_id: str
    epochs: tuple[TimedEpoch, ...]
    rebalances: tuple[TimedRebalance, ...]
    members: tuple[TimedMember, ...]
    topics: frozenset[str]

    @classmethod
    def of(cls, history: GroupHistory) -> GroupTimes:
        """Return the times of a group."""
        return cls(
            history.group_id,
            tuple(sorted(map(_epoch, history.epochs))),
            tuple(
                TimedRebalance(
                    row.at.timestamp_ms,
                    row.began_before_ms,
                    _ended(
                        None if row.finished is None else row.finished.timestamp_ms, row.at.timestamp_ms, row.outcome
                    ),
                    row.to_epoch,
                )
                for row in history.rebalances
            ),
            tuple(
                TimedMember(
                    row.joined.timestamp_ms,
                    FOREVER_MS if row.left is None else row.left.timestamp_ms,
                    row.member_id,
                    row.client_id,
                    row.client_host,
                )
                for row in history.memberships
            ),
            frozenset({row.topic for row in history.assignments if row.topic} | {row.topic for row in history.commits}),
        )

    def at(self, time_ms: int, findings: int) -> GroupAt:
        """Return the group at a moment."""
        then = [row for row in self.epochs if row.opened_ms <= time_ms < row.ended_ms]
        epoch = then[-1] if then else None
        of_type = epoch or (self.epochs[-1] if self.epochs else None)
        going = [row.to_epoch for row in self.rebalances if row.began_ms <= time_ms < row.ended_ms]
        return GroupAt(
            group_id=self.group_id,
            group_type=OFFSETS if of_type is None else of_type.group_type,
            epoch=None if epoch is None else epoch.epoch,
            since_ms=None if epoch is None else epoch.opened_ms,
            members=sum(1 for row in self.members if row.joined_ms <= time_ms < row.left_ms),
            rebalances=sum(1 for row in self.rebalances if row.at_ms <= time_ms),
            rebalancing_to=max(going, default=None),
            findings=findings,
        )

    def changes(self, first_ms: int, last_ms: int) -> bool:
        """Return whether an epoch was opened, or a member came or went, after the first moment up to the last one."""
        times = [row.opened_ms for row in self.epochs]
        times += [time for row in self.members for time in (row.joined_ms, row.left_ms)]
        return any(first_ms < time <= last_ms for time in times)

    def found(self, text: str) -> Iterator[FoundRow]:
        """Yield where a text in lower case occurs in names of this group."""
        if text in self.group_id.lower():
            yield FoundRow("group", self.group_id, self.group_id, None)
        for row in self.members:
            if text in row.member_id.lower() or text in (row.client_id or "").lower():
                yield FoundRow("member", row.member_id, self.group_id, row.joined_ms)
            if text in (row.host or "").lower():
                yield FoundRow("host", row.host or "", self.group_id, row.joined_ms)
        for topic in sorted(self.topics):
            if text in topic.lower():
                yield FoundRow("topic", topic, self.group_id, None)


def _epoch(row: GroupEpochRow) -> TimedEpoch:
    ended_ms = FOREVER_MS if row.ended is None else row.ended.timestamp_ms
    return TimedEpoch(row.opened.timestamp_ms, row.opened.offset, ended_ms, row.epoch, row.group_type)


def _ended(finished_ms: int | None, at_ms: int, outcome: str) -> int:
    """Return until when a rebalance was in progress: one without an end lasts only if it is open."""
    return finished_ms if finished_ms is not None else FOREVER_MS if outcome == "open" else at_ms


def newest(found: Iterable[FoundRow], most: int) -> list[FoundRow]:
    """Return the first rows of each kind, of one name in one group the newest."""
    latest: dict[tuple[str, str, str | None], FoundRow] = {}
    for row in found:
        key = row.kind, row.name, row.group_id
        if key not in latest or (row.at_ms or -1) > (latest[key].at_ms or -1):
            latest[key] = row
    by_kind: dict[str, list[FoundRow]] = {}
    for row in sorted(latest.values(), key=lambda row: (row.kind, -(row.at_ms or 0), row.name, row.group_id or "")):
        by_kind.setdefault(row.kind, []).append(row)
    return [row for rows in by_kind.values() for row in rows[:most]]
