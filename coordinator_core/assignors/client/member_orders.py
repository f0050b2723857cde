"""The orders in which leaders of other clients than Kafka's go through the members of a group.

Source: facts of each client's own code, proven by recorded groups; a client without an entry orders as Kafka's does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence

from coordinator_core.assignors.client.leader_view import LeaderView
from coordinator_core.java.hash_codes import utf16

MemberOrder = Callable[[LeaderView, Sequence[int]], list[int]]
"""Some members, listed as the JoinGroup response has them, in the order in which they are given partitions."""


def static_first(view: LeaderView, joined: Sequence[int]) -> list[int]:
    """Static members by instance id, then dynamic ones by member id (Kafka's ``MemberInfo``, KIP-345)."""

    def key(m: int) -> tuple[bool, bytes]:
        instance_id = view.specs[m].instance_id
        return instance_id is None, utf16(view.members[m] if instance_id is None else instance_id)

    return sorted(joined, key=key)


def by_id(view: LeaderView, joined: Sequence[int]) -> list[int]:
    """All by member id."""
    return sorted(joined)


def as_joined(view: LeaderView, joined: Sequence[int]) -> list[int]:
    """In the order of the JoinGroup response."""
    return list(joined)


def two_static_by_instance(view: LeaderView, joined: Sequence[int]) -> list[int]:
    """Two static members by instance id, any other two by member id (librdkafka).

    That is no order of all where the member ids of two static members are in the other order, and a dynamic one is
    between: the result is then that of the C library's merge sort.
    """

    def compare(one: int, other: int) -> int:
        a, b = view.specs[one].instance_id, view.specs[other].instance_id
        if a is None or b is None or a == b:
            return one - other
        return -1 if utf16(a) < utf16(b) else 1

    if not joined[1:]:
        return list(joined)
    middle = len(joined) // 2
    halves = deque(two_static_by_instance(view, joined[:middle])), deque(two_static_by_instance(view, joined[middle:]))
    merged = []
    while all(halves):
        merged.append(halves[compare(halves[0][0], halves[1][0]) > 0].popleft())
    return [*merged, *halves[0], *halves[1]]


def last_runs(view: LeaderView, ranked: Sequence[int], joined: Collection[int]) -> list[int]:
    """Of ``ranked``, the members that kafka-python does not lose: of the static members, and of the dynamic ones, those
    of the last run of neighbours among ``joined`` in the JoinGroup response.
    """
    runs: dict[bool, list[int]] = {}
    before: bool | None = None
    for m in view.order:
        if m not in joined:
            continue
        is_static = view.specs[m].instance_id is not None
        if is_static is not before:
            runs[is_static] = []
        runs[is_static].append(m)
        before = is_static
    left = {m for run in runs.values() for m in run}
    return [m for m in ranked if m in left]
