"""Classic groups of Streams that become streams groups while members are present, and back (KIP-1071)."""

from collections.abc import Collection

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.coordinator.classic import rebalance as classic_rebalance
from coordinator_core.coordinator.classic.group import LiveClassicGroup, LiveClassicMember
from coordinator_core.coordinator.lookup import no_upgrade
from coordinator_core.coordinator.member_timers import cancel_all, expect_heartbeat
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.coordinator.record_templates import Unwritten, target_epoch
from coordinator_core.coordinator.streams import classic_blobs, records
from coordinator_core.coordinator.streams.group import ClassicThread, LiveStreamsGroup
from coordinator_core.coordinator.streams.members import new_member
from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.groups.consumer_protocol import assigned_tasks
from coordinator_core.groups.record_types import STREAMS_RECORDS
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.streams.state import CurrentTasks, StreamsMember
from coordinator_core.groups.streams.topology import configure
from coordinator_core.record_fields.coordinator_requests import StreamsGroupHeartbeatTopology


def upgrade(op: Operation, classic: LiveClassicGroup, topology: StreamsGroupHeartbeatTopology) -> LiveStreamsGroup:
    """Return the streams group that the classic one becomes, as its records will make it; raises ApiError if it cannot.

    Its epochs are the generation, its target and current assignments the last ones of the classic group. Its members
    run the topology that the joining one sends. Members that wait for a rebalance are asked to join again.
    """
    if not all(
        classic_blobs.is_known_by_number(subtopology["subtopologyId"]) for subtopology in topology["subtopologies"]
    ):
        raise no_upgrade(classic, LiveStreamsGroup, "its members know subtopologies by number")
    converted = [_as_streams(classic, member, topology["epoch"]) for member in classic.members.values()]
    # Its tombstone comes first: behind the new group's records it would remove the new group from memory when it is
    # loaded.
    op.erase(classic)
    # A group aside follows the records while they are written, because the rest of the request already works on it.
    group, log = LiveStreamsGroup(classic.group_id), CoordinatorShard()

    def write(record: Unwritten) -> None:
        group.follow(op.unwritten(*record), log)
        op.write(*record)

    group_id, epoch = classic.group_id, classic.generation
    for thread in converted:
        write(records.member_metadata(group_id, thread))
    # No topology was validated: the heartbeat that converts the group finds a difference, and opens an epoch.
    write(records.group_epoch(group_id, epoch, 0, records.NOT_VALIDATED, {}))
    for thread in converted:
        had = thread.assigned
        active = {key: list(tasks) for key, tasks in had.active.items()}
        write(records.target_assignment(group_id, thread.member_id, Tasks(active, had.standby)))
    write(target_epoch(STREAMS_RECORDS, group_id, epoch, 0))
    for thread in converted:
        write(records.current_assignment(group_id, thread))
    for member in classic.members.values():
        info = classic_blobs.thread_info(member.metadata(classic.protocol))
        group.task_offsets.report(member.member_id, info.process_id, info.offsets, None)
        group.classic[member.member_id] = ClassicThread(member.session_timeout_ms, member.protocols)
    op.afterwards.append(lambda: _take_members_over(op, classic, group))
    return group


def _take_members_over(op: Operation, classic: LiveClassicGroup, group: LiveStreamsGroup) -> None:
    """The group that the records made goes on with what no record holds; members that wait are told to join again."""
    made = op.memory.live[group.group_id]
    if isinstance(made, LiveStreamsGroup):
        made.classic, made.task_offsets, made.configured = group.classic, group.task_offsets, group.configured
    for member in classic.members.values():
        classic_rebalance.refuse_join(op, member, member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
        classic_rebalance.refuse_sync(op, member, ErrorCode.REBALANCE_IN_PROGRESS)
        op.cancel(classic_rebalance.heartbeat_key(classic.group_id, member.member_id))
        expect_heartbeat(op, group, member.member_id, member.session_timeout_ms)


def _as_streams(classic: LiveClassicGroup, member: LiveClassicMember, topology_epoch: int) -> StreamsMember:
    """The member with what it had in the classic group."""
    if classic.protocol_type != CONSUMER_PROTOCOL_TYPE or classic.protocol != STREAMS_PROTOCOL:
        raise no_upgrade(classic, LiveStreamsGroup, "it is not a group of Streams with an agreed protocol")
    try:
        info = classic_blobs.thread_info(member.metadata(classic.protocol))
        tasks = assigned_tasks(member.assignment)
    except DecodeError:
        raise no_upgrade(classic, LiveStreamsGroup, "the embedded data of Streams is malformed") from None
    epoch = classic.generation
    converted = new_member(member.member_id)
    converted.member_epoch = converted.previous_member_epoch = epoch
    converted.instance_id, converted.rebalance_timeout_ms = member.instance_id, member.rebalance_timeout_ms
    converted.client_id, converted.client_host = member.client_id, member.client_host
    converted.topology_epoch, converted.process_id = topology_epoch, info.process_id
    converted.user_endpoint, converted.client_tags = info.endpoint, info.client_tags
    active = {key: dict.fromkeys(numbers, epoch) for key, numbers in tasks.active.items()}
    converted.assigned = CurrentTasks(active, {key: list(numbers) for key, numbers in tasks.standby.items()})
    return converted


def downgrade_after_leave(op: Operation, group: LiveStreamsGroup, leaving: Collection[str]) -> bool:
    """Make the group a classic one if only threads on the classic protocol remain; they have to rebalance then."""
    staying = [member for member_id, member in group.log.members.items() if member_id not in leaving]
    if not staying or any(member.member_id not in group.classic for member in staying):
        return False
    classic = LiveClassicGroup(
        group.group_id, ClassicGroupState.STABLE, state_timestamp_ms=op.now, generation=group.group_epoch
    )
    for member in staying:
        thread = group.classic[member.member_id]
        converted = LiveClassicMember.of(member, thread.session_timeout_ms, thread.protocols)
        classic.add(converted, CONSUMER_PROTOCOL_TYPE)
    classic.protocol = STREAMS_PROTOCOL
    classic.subscribed_topics = classic.current_topics()
    op.write_all(group.tombstones())
    configured = group.configured
    if configured is None and group.log.topology is not None:
        # A coordinator that has just loaded the group configures the topology at the first heartbeat only.
        configured = configure(group.log.topology, op.topics)
    for joined in classic.members.values():
        target, metadata = group.target(joined.member_id), joined.metadata(classic.protocol)
        joined.assignment = classic_blobs.assignment(target, configured, op.topics, metadata, op.now)
    for member_id in group.log.members:
        cancel_all(op, group.group_id, member_id)
    classic_rebalance.begin_converted(op, classic)
    classic_rebalance.prepare(op, classic)
    return True
