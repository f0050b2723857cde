"""JoinGroup to a classic group, or to a group that becomes a classic one."""

from coordinator_core.coordinator.classic import rebalance, responses, validation
from coordinator_core.coordinator.classic.group import LiveClassicGroup, LiveClassicMember, Protocols
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.record_fields.coordinator_requests import JoinGroupRequest
from coordinator_core.records import Fields

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long (ms) the first JoinGroup of a new member may stay parked."""
KNOWN_MEMBER_ID_REQUIRED_VERSION = 4
"""From this version on a dynamic member joins twice: the first time it only gets its id (KIP-394)."""
SKIP_ASSIGNMENT_VERSION = 9
"""From this version on a returning static leader can be asked to keep the assignment (KIP-814)."""


def join(op: Operation, request: Request[JoinGroupRequest], group: LiveClassicGroup | None) -> Fields | None:
    """Serve JoinGroup to this classic group; without one it is created, unless the request already has a member id."""
    data = request.data
    group_id, member_id = data["groupId"], data["memberId"]
    if group is not None:
        return _join_group(op, request, group)
    if member_id:
        return responses.join_group_response(request.version, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    group = LiveClassicGroup(group_id, state_timestamp_ms=op.now)
    op.memory.live[group_id] = group
    response = _join_group(op, request, group)
    # A new group is written at once, as if it were empty.
    rebalance.write_group(op, LiveClassicGroup(group_id, state_timestamp_ms=group.state_timestamp_ms), {})
    return response


def _join_group(op: Operation, request: Request[JoinGroupRequest], group: LiveClassicGroup) -> Fields | None:
    data = request.data
    member_id = data["memberId"]
    protocols = tuple((protocol["name"], protocol["metadata"]) for protocol in data["protocols"])
    if not _has_room(op, group, member_id):
        group.remove(member_id)
        return responses.join_group_response(request.version, "", ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not group.supports(data["protocolType"], protocols):
        return responses.join_group_response(request.version, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if member_id:
        return _join_known(op, request, group, protocols)
    return _join_new(op, request, group, protocols)


def _has_room(op: Operation, group: LiveClassicGroup, member_id: str) -> bool:
    """Members already counted may always join; while a group gathers again, those that joined already count."""
    limit = op.memory.config.group_max_size
    member = group.members.get(member_id)
    if group.state is ClassicGroupState.EMPTY:
        return True
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        return (member is not None and member.awaiting_join is not None) or group.awaiting_join < limit
    return member is not None or len(group.members) < limit


def _join_new(
    op: Operation, request: Request[JoinGroupRequest], group: LiveClassicGroup, protocols: Protocols
) -> Fields | None:
    data = request.data
    instance_id = data["groupInstanceId"]
    new_id = f"{request.client_id if instance_id is None else instance_id}-{op.next_id()}"
    if instance_id is not None:
        old_id = group.static_members.get(instance_id)
        if old_id is not None:
            _replace_static(op, request, group, group.members[old_id], new_id, protocols)
            return None
    elif request.version >= KNOWN_MEMBER_ID_REQUIRED_VERSION:
        group.pending_join.add(new_id)
        rebalance.expect_heartbeat(op, group, new_id, data["sessionTimeoutMs"])
        return responses.join_group_response(request.version, new_id, ErrorCode.MEMBER_ID_REQUIRED)
    _add(op, request, group, new_id, protocols)
    return None


def _join_known(
    op: Operation, request: Request[JoinGroupRequest], group: LiveClassicGroup, protocols: Protocols
) -> Fields | None:
    data = request.data
    member_id, instance_id = data["memberId"], data["groupInstanceId"]
    if member_id in group.pending_join:
        if instance_id is not None:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Received unexpected JoinGroup with groupInstanceId={instance_id} for pending member with "
                f"memberId={member_id}",
            )
        _add(op, request, group, member_id, protocols)
        return None
    try:
        validation.check_member(group, member_id, instance_id)
    except ApiError as error:
        return responses.join_group_response(request.version, member_id, error.code, protocol=None)
    member = group.members[member_id]
    if group.state is ClassicGroupState.EMPTY:
        return responses.join_group_response(request.version, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    # A leader that joins a stable group asks for a rebalance: what it assigns by may have changed.
    asks = group.state is ClassicGroupState.STABLE and group.leader == member_id
    if group.state is not ClassicGroupState.PREPARING_REBALANCE and member.protocols == protocols and not asks:
        return rebalance.joined(group, member, request.version)
    _update(group, member, request, protocols)
    rebalance.rebalance_or_complete(op, group)
    return None


def _add(
    op: Operation, request: Request[JoinGroupRequest], group: LiveClassicGroup, member_id: str, protocols: Protocols
) -> None:
    data = request.data
    member = LiveClassicMember(
        member_id,
        data["groupInstanceId"],
        request.client_id,
        request.client_host,
        data["rebalanceTimeoutMs"],
        data["sessionTimeoutMs"],
        protocols,
        awaiting_join=request,
        is_new=True,
    )
    # In a first rebalance each member that comes prolongs the wait, as others may start with it.
    if group.state is ClassicGroupState.PREPARING_REBALANCE and group.previous_state is ClassicGroupState.EMPTY:
        group.new_member_added = True
    group.add(member, data["protocolType"])
    # A new member does not heartbeat while it is parked, and its disconnection would not be seen.
    rebalance.expect_heartbeat(op, group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance.rebalance_or_complete(op, group)


def _update(
    group: LiveClassicGroup, member: LiveClassicMember, request: Request[JoinGroupRequest], protocols: Protocols
) -> None:
    group.change_protocols(member, protocols)
    member.rebalance_timeout_ms = request.data["rebalanceTimeoutMs"]
    member.session_timeout_ms = request.data["sessionTimeoutMs"]
    member.awaiting_join = request


def _replace_static(
    op: Operation,
    request: Request[JoinGroupRequest],
    group: LiveClassicGroup,
    old: LiveClassicMember,
    new_id: str,
    protocols: Protocols,
) -> None:
    """A static member comes back under a new member id; a stable group goes on if its protocol does not change."""
    leader = group.leader
    rebalance.refuse_join(op, old, old.member_id, ErrorCode.FENCED_INSTANCE_ID, protocol=None)
    rebalance.refuse_sync(op, old, ErrorCode.FENCED_INSTANCE_ID)
    member = group.replace_static(old, new_id)
    rebalance.expect_member(op, group, member)
    _update(group, member, request, protocols)
    if group.state is ClassicGroupState.STABLE:
        if group.protocol == group.select_protocol():
            # The log has to have the new member id: another coordinator would know the old one only.
            rebalance.write_group(op, group, {each.member_id: each.assignment for each in group.members.values()})
            rebalance.answer_join(op, member, _rejoined(group, member, leader, request.version))
        else:
            rebalance.rebalance_or_complete(op, group)
    elif group.state is ClassicGroupState.COMPLETING_REBALANCE:
        # The leader may already have the old member id; what it assigns would not reach the new one.
        rebalance.prepare(op, group)
    else:
        rebalance.maybe_complete_join(op, group)


def _rejoined(group: LiveClassicGroup, member: LiveClassicMember, old_leader: str | None, version: int) -> Fields:
    leads = version >= SKIP_ASSIGNMENT_VERSION and group.leader == member.member_id
    return responses.join_group_response(
        version,
        member.member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        # A client that cannot be told to skip the assignment must not learn that it leads.
        leader=group.leader if version >= SKIP_ASSIGNMENT_VERSION else old_leader,
        skip_assignment=leads,
        members=rebalance.current_members(group, version) if leads else [],
    )
