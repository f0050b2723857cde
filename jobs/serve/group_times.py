"""What is kept of each group's history in memory, so that moments of all groups are answered without the logs."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.offsets.burrow import LagPoint
from coordinator_core.history.rows import AssignmentRow, GroupEpochRow
from jobs.serve.served_rows import FoundRow, GroupAt, OwnerAt

FOREVER_MS = 1 << 62
OFFSETS = "OFFSETS"
MOST_OWNERS = 32
"""So many members are named of a group in a list of groups; the page of the group has all."""


class TimedEpoch(NamedTuple):
    """When an epoch was opened and ended; the order is that of the log."""

    opened_ms: int
    offset: int
    ended_ms: int
    epoch: int
    group_type: str
    state: str | None


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


class TimedLag(NamedTuple):
    """The lag of a group at a moment, of the partitions of which it is known then."""

    at_ms: int
    lag: int


def lags_by_group(points: Iterable[LagPoint]) -> dict[str, list[TimedLag]]:
    """Return the lag of each group at each moment that is known."""
    sums = Counter[tuple[str, int]]()
    for point in points:
        if point.lag is not None:
            sums[point.group_id, point.timestamp_ms] += point.lag
    lags: dict[str, list[TimedLag]] = {}
    for (group_id, at_ms), lag in sums.items():
        lags.setdefault(group_id, []).append(TimedLag(at_ms, lag))
    return lags


class TimedOwners(NamedTuple):
    """From when until when which member owned something: an entry in each array, and the members by their number."""

    since_ms: array[int]
    until_ms: array[int]
    member: array[int]
    members: tuple[str, ...]

    @classmethod
    def of(cls, assignments: Iterable[AssignmentRow]) -> TimedOwners:
        """Return the owners; targets do not count."""
        # Arrays of numbers take eight bytes for each: intervals of a large cluster would not fit into memory as rows.
        owned = [row for row in assignments if row.kind == "current"]
        numbers = {member_id: number for number, member_id in enumerate(dict.fromkeys(row.member_id for row in owned))}
        return cls(
            array("q", (row.since.timestamp_ms for row in owned)),
            array("q", (FOREVER_MS if row.until is None else row.until.timestamp_ms for row in owned)),
            array("q", (numbers[row.member_id] for row in owned)),
            tuple(numbers),
        )

    def at(self, time_ms: int) -> list[tuple[str, int]]:
        """Return who owned how much at a moment, most first."""
        spans = zip(self.since_ms, self.until_ms, self.member, strict=True)
        counts = Counter(member for since_ms, until_ms, member in spans if since_ms <= time_ms < until_ms)
        return sorted(((self.members[member], units) for member, units in counts.items()), key=most_first)


def most_first(owner: tuple[str, int]) -> tuple[int, str]:
    """Return a key that puts members in the order of what they own."""
    return -owner[1], owner[0]


class GroupTimes(NamedTuple):
    """The times of one group."""

    group_id: str
    epochs: tuple[TimedEpoch, ...]
    rebalances: tuple[TimedRebalance, ...]
    members: tuple[TimedMember, ...]
    topics: frozenset[str]
    owners: TimedOwners

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
            TimedOwners.of(history.assignments),
        )

    def at(self, time_ms: int, findings: int) -> GroupAt:
        """Return the group at a moment."""
        then = [row for row in self.epochs if row.opened_ms <= time_ms < row.ended_ms]
        # Where the end of a conversion is missing, two epochs are open: the one that was opened last counts.
        epoch = then[-1] if then else None
        of_type = epoch or (self.epochs[-1] if self.epochs else None)
        owners = self.owners.at(time_ms)
        clients = {row.member_id: row.client_id for row in self.members if row.client_id is not None}
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
            state=state_at(max(going, default=None), None if epoch is None else epoch.state),
            owners=tuple(OwnerAt(name, clients.get(name), units) for name, units in owners[:MOST_OWNERS]),
            owning=len(owners),
            owned=sum(units for _, units in owners),
            lag=None,
            lag_ms=None,
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
    return TimedEpoch(row.opened.timestamp_ms, row.opened.offset, ended_ms, row.epoch, row.group_type, row.state)


def state_at(rebalancing_to: int | None, state: str | None) -> str | None:
    """Return the state of a group at a moment from that of its epoch, which is the one at the end of the epoch."""
    return state if rebalancing_to is None else "REBALANCING"


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
