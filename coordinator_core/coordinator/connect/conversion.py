"""Classic Connect groups that become groups on KIP-848 while workers are present, and back (Connect on KIP-848).

The two kinds of group lie in two logs, so a conversion is two operations: one ends the group in one log, the other
begins it in the other log.
"""

from coordinator_core.assignors.connect.selection import select_assignor
from coordinator_core.assignors.connect.work import ConnectorOrTask, ConnectorsAndTasks
from coordinator_core.coordinator.classic import rebalance as classic_rebalance
from coordinator_core.coordinator.classic.group import LiveClassicGroup, LiveClassicMember
from coordinator_core.coordinator.connect import classic_workers, heartbeat, records
from coordinator_core.coordinator.member_timers import rebalance_key, session_key
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.errors import AssignorError
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE
from coordinator_core.groups.classic.state import ClassicGroup as LoggedClassicGroup
from coordinator_core.groups.classic.state import ClassicGroupState, ClassicMember
from coordinator_core.groups.classic.workers import classic_worker
from coordinator_core.groups.connect.state import ConnectGroup, Work, units

DEFAULT_SESSION_TIMEOUT_MS = 10_000
"""Of a worker that has not said its own to this coordinator (``session.timeout.ms`` of Connect)."""


def end_classic_group(op: Operation, group_id: str, offered: list[str]) -> None:
    """End the classic group of workers, and tell those that wait for a rebalance to join again.

    Raises:
        ApiError: the group does not exist, its members are not workers, or one has none of the ``offered`` assignors.
    """
    group = op.memory.live.get(group_id)
    if not isinstance(group, LiveClassicGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if group.members and group.protocol_type != CONNECT_PROTOCOL_TYPE:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Group {group_id} is not a group of Connect workers.")
    names = {member.member_id: [name for name, _ in member.protocols] for member in group.members.values()}
    try:
        select_assignor({**names, "": offered})
    except AssignorError as error:
        raise ApiError(ErrorCode.UNSUPPORTED_ASSIGNOR, error.message) from error
    for member in group.members.values():
        classic_rebalance.refuse_join(op, member, member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
        classic_rebalance.refuse_sync(op, member, ErrorCode.REBALANCE_IN_PROGRESS)
        op.cancel(classic_rebalance.heartbeat_key(group_id, member.member_id))
    for key in (classic_rebalance.join_key(group_id), classic_rebalance.sync_key(group_id)):
        op.cancel(key)
    op.erase(group)


def begin_connect_group(op: Operation, classic: LiveClassicGroup) -> None:
    """Begin the group on KIP-848: its epochs are the generation, and its target is what the workers run.

    What there is to run is what they run, unless the group was told before. A classic group without workers leaves its
    generation.
    """
    memory, group_id = heartbeat.memory_of(op), classic.group_id
    known = memory.group(group_id)
    # A group on KIP-848 that has lost all its workers may be there, beyond the generation.
    former = 0 if known is None or not known.group_epoch else known.group_epoch + 1
    epoch = max(classic.generation, former)
    running = {member.member_id: _runs(classic, member) for member in classic.members.values()}
    if known is None or known.work_epoch is None:
        op.write(*records.work(group_id, epoch, dict.fromkeys(unit for units in running.values() for unit in units)))
    for member in classic.members.values():
        assignors = classic_workers.assignors_of(member.protocols)
        value = records.metadata(epoch, member.instance_id, member.client_id, member.client_host, assignors)
        op.write(*records.worker(group_id, member.member_id, value))
        memory.session_timeouts[group_id, member.member_id] = member.session_timeout_ms
        memory.rebalance_timeouts[group_id, member.member_id] = member.rebalance_timeout_ms
        timeout = member.session_timeout_ms
        op.arm(session_key(group_id, member.member_id), timeout, heartbeat.FENCE, group_id, member.member_id)
    op.write(*records.group_epoch(group_id, epoch))
    if not running:
        return
    targets = [records.target_of_worker(member_id, work) for member_id, work in running.items()]
    op.write(*records.target(group_id, epoch, targets))
    for member_id, work in running.items():
        op.write(*records.current(group_id, member_id, epoch, work))


def end_connect_group(op: Operation, group_id: str) -> None:
    """End the group on KIP-848 with all that it has in its log."""
    group = heartbeat.memory_of(op).group(group_id)
    assert group is not None
    for member_id in group.members:
        op.write_all(records.worker_tombstones(group_id, member_id))
        op.cancel(session_key(group_id, member_id))
        op.cancel(rebalance_key(group_id, member_id))
    heartbeat.end_group(op, group_id, group)


def begin_classic_group(op: Operation, connect: Operation, group_id: str, group: ConnectGroup) -> None:
    """Begin the classic group: its generation is the epoch of the last target, its assignments are what the workers
    run.

    The workers know that epoch, so that they are told to rebalance and not that their generation is over. ``connect``
    is the operation that ended the group on KIP-848.
    """
    memory = heartbeat.memory_of(connect)
    classic = LiveClassicGroup(
        group_id, ClassicGroupState.STABLE, state_timestamp_ms=op.now, generation=group.assignment_epoch or 0
    )
    for member in group.members.values():
        session_ms = memory.session_timeouts.get((group_id, member.member_id), DEFAULT_SESSION_TIMEOUT_MS)
        classic.add(
            LiveClassicMember(
                member.member_id,
                member.instance_id,
                member.client_id or "",
                member.client_host or "",
                memory.rebalance_timeout_ms(group_id, member.member_id),
                session_ms,
                tuple(classic_workers.protocols_of(member)),
            ),
            CONNECT_PROTOCOL_TYPE,
        )
        memory.forget_worker(group_id, member.member_id)
    classic.protocol = classic.select_protocol()
    for member in group.members.values():
        work = set(units(member.current.work if member.current else Work()))
        classic.members[member.member_id].assignment = classic_workers.written_assignment(
            classic.members[member.member_id].metadata(classic.protocol), classic.protocol, classic.leader or "", work
        )
    classic_rebalance.begin_converted(op, classic)
    classic_rebalance.prepare(op, classic)


def _runs(group: LiveClassicGroup, member: LiveClassicMember) -> list[ConnectorOrTask]:
    logged = LoggedClassicGroup(protocol_type=CONNECT_PROTOCOL_TYPE, protocol=group.protocol)
    metadata = next((data for name, data in member.protocols if name == group.protocol), b"")
    as_logged = ClassicMember(
        member.member_id,
        member.client_id,
        member.client_host,
        member.session_timeout_ms,
        subscription=metadata,
        assignment=member.assignment,
    )
    return (classic_worker(logged, as_logged).runs or ConnectorsAndTasks.of()).units()
