"""The rebalance of a classic group: when it begins, which members it waits for, and how its join phase ends."""

from collections.abc import Mapping

from coordinator_core.coordinator.classic import responses
from coordinator_core.coordinator.classic.group import LiveClassicGroup, LiveClassicMember
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.record_fields.classic_group import GroupMetadataKey, GroupMetadataValue
from coordinator_core.records import Fields, RecordType

HEARTBEAT_EXPIRED = "classic heartbeat expired"
JOIN_EXPIRED = "classic join expired"
INITIAL_DELAY_EXPIRED = "classic initial delay expired"
SYNC_EXPIRED = "classic sync expired"

GROUP_METADATA_VERSION = 3

_CAN_REBALANCE = (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.EMPTY)


def heartbeat_key(group_id: str, member_id: str) -> str:
    """Return the key of a member's session timer."""
    return f"heartbeat-{group_id}-{member_id}"


def join_key(group_id: str) -> str:
    """Return the key of the timer that ends the join phase."""
    return f"join-{group_id}"


def sync_key(group_id: str) -> str:
    """Return the key of the timer for members that do not send SyncGroup."""
    return f"sync-{group_id}"


def expect_heartbeat(op: Operation, group: LiveClassicGroup, member_id: str, timeout_ms: int) -> None:
    """Expect a heartbeat of the member within the timeout."""
    op.arm(heartbeat_key(group.group_id, member_id), timeout_ms, HEARTBEAT_EXPIRED, group.group_id, member_id)


def expect_member(op: Operation, group: LiveClassicGroup, member: LiveClassicMember) -> None:
    """Expect a heartbeat of the member within its session timeout."""
    expect_heartbeat(op, group, member.member_id, member.session_timeout_ms)


def take_over(op: Operation, group: LiveClassicGroup) -> None:
    """Give every member a session, as a new coordinator does; a group over its maximum size has to rebalance to
    shrink.
    """
    for member in group.members.values():
        expect_member(op, group, member)
    if len(group.members) > op.memory.config.group_max_size:
        prepare(op, group)


def begin_converted(op: Operation, group: LiveClassicGroup) -> None:
    """Write a group that was another type before, with what its members are assigned, and serve it from now on."""
    write_group(op, group, {member.member_id: member.assignment for member in group.members.values()})
    # Kafka changes its memory here and now; the records are only appended.
    op.memory.live[group.group_id] = group
    for member in group.members.values():
        expect_member(op, group, member)


def write_group(op: Operation, group: LiveClassicGroup, assignments: Mapping[str, bytes]) -> None:
    """Write the whole group, as at the end of a rebalance."""
    value: GroupMetadataValue = {
        "protocolType": group.protocol_type or "",
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "currentStateTimestamp": group.state_timestamp_ms,
        "members": [
            {
                "memberId": member.member_id,
                "groupInstanceId": member.instance_id,
                "clientId": member.client_id,
                "clientHost": member.client_host,
                "rebalanceTimeout": member.rebalance_timeout_ms,
                "sessionTimeout": member.session_timeout_ms,
                "subscription": member.metadata(group.protocol),
                "assignment": assignments.get(member.member_id, b""),
            }
            for member in group.members.values()
        ],
    }
    key: GroupMetadataKey = {"group": group.group_id}
    op.write(RecordType.GROUP_METADATA, key, value, GROUP_METADATA_VERSION)
    # The group in memory is ahead of its record, with requests that are parked: it is not made again from it.
    op.replays = False


def answer_join(op: Operation, member: LiveClassicMember, response: Fields) -> None:
    """Answer the member's parked JoinGroup, if there is one."""
    if member.awaiting_join is not None:
        op.complete(member.awaiting_join, response)
        member.awaiting_join = None


def refuse_join(
    op: Operation, member: LiveClassicMember, member_id: str, error: ErrorCode, protocol: str | None = ""
) -> None:
    """Answer the member's parked JoinGroup, if there is one, with an error."""
    if member.awaiting_join is not None:
        version = member.awaiting_join.version
        answer_join(op, member, responses.join_group_response(version, member_id, error, protocol=protocol))


def refuse_sync(op: Operation, member: LiveClassicMember, error: ErrorCode) -> bool:
    """Answer the member's parked SyncGroup with an error; return False if there is none."""
    if member.awaiting_sync is None:
        return False
    op.complete(member.awaiting_sync, responses.sync_group_response(member.awaiting_sync.version, error))
    member.awaiting_sync = None
    return True


def joined(group: LiveClassicGroup, member: LiveClassicMember, version: int) -> Fields:
    """Return the response to a member that joined this generation; the leader gets all members."""
    return responses.join_group_response(
        version,
        member.member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader,
        members=current_members(group, version) if group.leader == member.member_id else [],
    )


def current_members(group: LiveClassicGroup, version: int) -> list[Fields]:
    """Return the members as the leader's response lists them."""
    return [
        responses.join_group_member(version, member.member_id, member.instance_id, member.metadata(group.protocol))
        for member in group.members.values()
    ]


def rebalance_or_complete(op: Operation, group: LiveClassicGroup) -> None:
    """Begin a rebalance if none is in progress; otherwise check whether its join phase is over."""
    if group.state in _CAN_REBALANCE:
        prepare(op, group)
    else:
        maybe_complete_join(op, group)


def prepare(op: Operation, group: LiveClassicGroup) -> None:
    """Begin a rebalance. An empty group waits for more members to join; any other group waits only for its members."""
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            member.assignment = b""
            if refuse_sync(op, member, ErrorCode.REBALANCE_IN_PROGRESS):
                expect_member(op, group, member)
    group.pending_sync.clear()
    op.cancel(sync_key(group.group_id))
    # Only for an empty group: members that start together would else cause a rebalance each.
    initial = group.state is ClassicGroupState.EMPTY
    if initial:
        delay = op.memory.config.group_initial_rebalance_delay_ms
        _await_initial(op, group, delay, max(group.rebalance_timeout_ms - delay, 0))
    group.transition(ClassicGroupState.PREPARING_REBALANCE, op.now)
    if initial:
        return
    if group.all_joined:
        complete_join(op, group)
    else:
        _await_joins(op, group)


def maybe_complete_join(op: Operation, group: LiveClassicGroup) -> None:
    """End the join phase if all members joined; a first rebalance ends only by its timer."""
    if (
        group.state is ClassicGroupState.PREPARING_REBALANCE
        and group.previous_state is not ClassicGroupState.EMPTY
        and group.all_joined
    ):
        complete_join(op, group)


def complete_join(op: Operation, group: LiveClassicGroup) -> None:
    """End the join phase: remove dynamic members that did not join, begin the next generation and answer all
    members.
    """
    op.cancel(join_key(group.group_id))
    absent = [member for member in group.members.values() if member.awaiting_join is None]
    for member in absent:
        # A static member keeps its place until its session ends (KIP-345).
        if member.instance_id is None:
            group.remove(member.member_id)
            op.cancel(heartbeat_key(group.group_id, member.member_id))
    if not group.elect_joined_leader() and group.members:
        # Only static members are left and none of them came: wait until one does or their sessions end.
        _await_joins(op, group)
        return
    group.generation += 1
    group.pending_sync.clear()
    group.protocol = group.select_protocol() if group.members else None
    group.subscribed_topics = group.current_topics()
    if not group.members:
        # Kafka's step fails, where a group of commits alone has taken the place of the one that armed the timer.
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            group.transition(ClassicGroupState.EMPTY, op.now)
            write_group(op, group, {})
        return
    group.transition(ClassicGroupState.COMPLETING_REBALANCE, op.now)
    for member in list(group.members.values()):
        if member.awaiting_join is not None:
            answer_join(op, member, joined(group, member, member.awaiting_join.version))
        expect_member(op, group, member)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    op.arm(sync_key(group.group_id), group.rebalance_timeout_ms, SYNC_EXPIRED, group.group_id, group.generation)


def _await_joins(op: Operation, group: LiveClassicGroup) -> None:
    op.arm(join_key(group.group_id), group.rebalance_timeout_ms, JOIN_EXPIRED, group.group_id)


def _await_initial(op: Operation, group: LiveClassicGroup, delay_ms: int, remaining_ms: int) -> None:
    op.arm(join_key(group.group_id), delay_ms, INITIAL_DELAY_EXPIRED, group.group_id, delay_ms, remaining_ms)


def extend_initial(op: Operation, group: LiveClassicGroup, delay_ms: int, remaining_ms: int) -> bool:
    """Wait longer for members in a first rebalance, if one has just joined and time is left."""
    if not (group.new_member_added and remaining_ms):
        return False
    group.new_member_added = False
    _await_initial(
        op, group, min(op.memory.config.group_initial_rebalance_delay_ms, remaining_ms), max(remaining_ms - delay_ms, 0)
    )
    return True
