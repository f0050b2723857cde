"""The timers of members that all types of groups with epochs have: their keys, and what is expected within them."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeVar

from coordinator_core.coordinator.config import GroupConfig
from coordinator_core.coordinator.epoch_group import LiveEpochGroup
from coordinator_core.coordinator.operation import Operation
from coordinator_core.groups.consumer.state import ConsumerMember, ConsumerMemberState
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.streams.state import StreamsMember, StreamsMemberState

LiveT = TypeVar("LiveT", bound=LiveEpochGroup[Any])

_SESSION_MS: Mapping[GroupType, Callable[[GroupConfig], int]] = {
    GroupType.CONSUMER: attrgetter("consumer_session_timeout_ms"),
    GroupType.SHARE: attrgetter("share_session_timeout_ms"),
    GroupType.STREAMS: attrgetter("streams_session_timeout_ms"),
}
_REVOKING: Mapping[GroupType, int] = {
    GroupType.CONSUMER: ConsumerMemberState.UNREVOKED_PARTITIONS,
    GroupType.STREAMS: StreamsMemberState.UNREVOKED_TASKS,
}
_FENCE = {group_type: f"{group_type.lower()} member fenced" for group_type in _SESSION_MS}


def session_key(group_id: str, member_id: str) -> str:
    """Return the key of a member's session timer."""
    return f"session-timeout-{group_id}-{member_id}"


def rebalance_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer for what a member has to revoke."""
    return f"rebalance-timeout-{group_id}-{member_id}"


def join_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer for a classic member that was asked to join."""
    return f"join-{group_id}-{member_id}"


def sync_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer for a classic member that joined and has to sync."""
    return f"sync-{group_id}-{member_id}"


def _expect(op: Operation, key: str, timeout_ms: int, group: LiveEpochGroup[Any], *which: object) -> None:
    op.arm(key, timeout_ms, _FENCE[group.type], group.group_id, *which)


def expect_heartbeat(op: Operation, group: LiveEpochGroup[Any], member_id: str, timeout_ms: int | None = None) -> None:
    """Expect a heartbeat within the session timeout: the group's, or the one that a classic member sent."""
    if timeout_ms is None:
        timeout_ms = _SESSION_MS[group.type](op.memory.group_config(group.group_id))
    _expect(op, session_key(group.group_id, member_id), timeout_ms, group, member_id)


def expect_revocation(op: Operation, group: LiveEpochGroup[Any], member: ConsumerMember | StreamsMember) -> None:
    """Expect a member that has something to revoke to leave its epoch, by doing so, within its rebalance timeout."""
    key = rebalance_key(group.group_id, member.member_id)
    if member.state == _REVOKING[group.type]:
        _expect(op, key, member.rebalance_timeout_ms, group, member.member_id, member.member_epoch)
    else:
        op.cancel(key)


def expect_join(op: Operation, group: LiveEpochGroup[Any], member_id: str, timeout_ms: int) -> None:
    """Expect a classic member to join again within its rebalance timeout, unless that is already expected."""
    key = join_key(group.group_id, member_id)
    # Its time began when it was first asked: each heartbeat that asks again would prolong it.
    if key not in op.memory.timers:
        _expect(op, key, timeout_ms, group, member_id)


def expect_sync(op: Operation, group: LiveEpochGroup[Any], member_id: str, timeout_ms: int) -> None:
    """Expect a classic member to sync within its rebalance timeout."""
    _expect(op, sync_key(group.group_id, member_id), timeout_ms, group, member_id)


def cancel_all(op: Operation, group_id: str, member_id: str) -> None:
    """Cancel all timers of a member that left."""
    for key in (session_key, rebalance_key, join_key, sync_key):
        op.cancel(key(group_id, member_id))


def fencing(
    wanted: type[LiveT], fence: Callable[[Operation, LiveT, list[Any]], None]
) -> dict[str, Callable[..., None]]:
    """Return the action of these timers in groups of a type, and what it does: ``fence`` removes the member.

    Nothing happens if group or member is gone, as a timer may outlive both, or if the member has left the ``epoch`` in
    which it was to revoke something.
    """

    def expired(op: Operation, group_id: str, member_id: str, epoch: int | None = None) -> None:
        group = op.memory.live.get(group_id)
        member = group.log.members.get(member_id) if isinstance(group, wanted) else None
        if isinstance(group, wanted) and member is not None and epoch in (None, member.member_epoch):
            fence(op, group, [member])

    return {_FENCE[wanted.type]: expired}
