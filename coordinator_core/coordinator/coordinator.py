"""The group coordinator as an executable model: requests, time and topics in; records, responses and timers out.

Nothing here reads a clock, draws a random number or does input or output. State changes by applying the records that an
operation wrote, with the same ``apply`` that replays a log; what no record holds is soft state of ``CoordinatorState``.
The behaviour is that of Kafka 4.3.1.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator import classic_protocol, offset_commit, offset_fetch
from coordinator_core.coordinator.classic import leave as leaving
from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.classic.responses import heartbeat_response
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.connect import administration, classic_workers, conversion
from coordinator_core.coordinator.connect import assignment as connect_assignment
from coordinator_core.coordinator.connect import heartbeat as connect_heartbeat
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState
from coordinator_core.coordinator.consumer import fence as consumer_fence
from coordinator_core.coordinator.consumer import heartbeat as consumer_heartbeat
from coordinator_core.coordinator.consumer import regexes
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.member_timers import expect_heartbeat, expect_revocation, fencing
from coordinator_core.coordinator.memory import CoordinatorPhase, CoordinatorState, GroupClass, GroupClasses
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request, RequestOutcome, Task, Timer
from coordinator_core.coordinator.share import heartbeat as share_heartbeat
from coordinator_core.coordinator.share import offset_requests as share_offsets
from coordinator_core.coordinator.share import partitions as share_partitions
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.streams import fence as streams_fence
from coordinator_core.coordinator.streams import heartbeat as streams_heartbeat
from coordinator_core.coordinator.streams import rebalance as streams_rebalance
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE
from coordinator_core.groups.connect.state import is_to_be_downgraded
from coordinator_core.groups.consumer.replay import HANDLERS as CONSUMER_RECORDS
from coordinator_core.groups.share.replay import HANDLERS as SHARE_RECORDS
from coordinator_core.groups.streams.replay import HANDLERS as STREAMS_RECORDS
from coordinator_core.records import Fields, RecordType

REQUESTS: dict[str, Callable[[Operation, Request], Fields | None]] = {
    "JoinGroup": classic_protocol.handle_join_group,
    "SyncGroup": classic_protocol.handle_sync_group,
    "Heartbeat": classic_protocol.handle_heartbeat,
    "LeaveGroup": classic_protocol.handle_leave_group,
    "ConsumerGroupHeartbeat": consumer_heartbeat.handle_heartbeat,
    "ShareGroupHeartbeat": share_heartbeat.handle_heartbeat,
    "AlterShareGroupOffsets": share_offsets.handle_alter,
    "DeleteShareGroupOffsets": share_offsets.handle_delete,
    "StreamsGroupHeartbeat": streams_heartbeat.handle_heartbeat,
    "ConnectGroupHeartbeat": connect_heartbeat.handle_heartbeat,
    "ConnectGroupPrepareAssignment": connect_assignment.prepare,
    "ConnectGroupInstallAssignment": connect_assignment.install,
    "OffsetCommit": offset_commit.commit,
    "TxnOffsetCommit": offset_commit.commit_in_transaction,
    "OffsetFetch": offset_fetch.fetch,
    "OffsetDelete": offset_fetch.delete,
}
"""API name to the function that serves it; it returns None for a request that stays pending."""

PROTOCOL_OF = {
    "ConsumerGroupHeartbeat": "consumer",
    "ShareGroupHeartbeat": "share",
    "StreamsGroupHeartbeat": "streams",
    "ConnectGroupHeartbeat": "connect",
}
"""The heartbeats that need a protocol to be enabled, which ``group.coordinator.rebalance.protocols`` lists."""
CONNECT_REQUESTS: dict[str, Callable[[Operation, Request], Fields | None]] = {
    **REQUESTS,
    "JoinGroup": classic_workers.join_group,
    "SyncGroup": classic_workers.sync_group,
    "Heartbeat": classic_workers.handle_heartbeat,
    "LeaveGroup": classic_workers.leave_group,
}
"""The same in a coordinator of Connect groups: it serves workers of the classic protocol in its own way."""

TIMERS: dict[str, Callable[..., None]] = {
    rebalance.HEARTBEAT_EXPIRED: leaving.heartbeat_expired,
    rebalance.JOIN_EXPIRED: leaving.join_expired,
    rebalance.INITIAL_DELAY_EXPIRED: leaving.initial_delay_expired,
    rebalance.SYNC_EXPIRED: leaving.sync_expired,
    streams_rebalance.INITIAL_REBALANCE: streams_rebalance.first_assignment,
    connect_heartbeat.FENCE: connect_heartbeat.member_expired,
    connect_heartbeat.DELAY_OVER: connect_heartbeat.delay_over,
    connect_heartbeat.COMPUTATION_EXPIRED: connect_heartbeat.computation_expired,
    **fencing(LiveConsumerGroup, consumer_fence.fence),
    **fencing(LiveShareGroup, share_heartbeat.fence),
    **fencing(LiveStreamsGroup, streams_fence.fence),
}
"""Timer action to the function that runs it with the operation, the group id and the timer's arguments."""

NO_TOPICS = TopicImage.of(())

TASKS: dict[str, Callable[..., None]] = {regexes.RESOLVE: regexes.resolve}
"""Action of background work to the function that completes it, with arguments as for timers."""

_RECORDS: tuple[tuple[GroupClass, Iterable[int]], ...] = (
    (LiveClassicGroup, (RecordType.GROUP_METADATA,)),
    (LiveConsumerGroup, CONSUMER_RECORDS),
    (LiveShareGroup, SHARE_RECORDS),
    (LiveStreamsGroup, STREAMS_RECORDS),
)
GROUP_CLASSES: GroupClasses = {type_: group_class for group_class, types in _RECORDS for type_ in types}
"""Record type to the class of group in memory that a record of it makes."""


def new_state(config: BrokerConfig | None = None, **fields: Any) -> CoordinatorState:
    """Return the empty memory of a coordinator of one partition of ``__consumer_offsets``.

    ``fields`` are further fields of CoordinatorState.
    """
    return CoordinatorState(GROUP_CLASSES, config or BrokerConfig(), **fields)


def handle(
    memory: CoordinatorState, request: Request, topics: TopicImage, now: int, ids: Iterator[UUID]
) -> RequestOutcome:
    """Serve one request at ``now`` (ms) and return its outcome.

    A refusal becomes ``RequestOutcome.error``, never an exception: COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR
    while the memory is not in the phase ACTIVE. ``ids`` gives the random UUIDs that the broker would
    draw, at most one per request.
    """
    operation = Operation(memory, topics, now, ids)
    if memory.phase is CoordinatorPhase.LOADING and request.api == "Heartbeat":
        # Kafka takes a member of a classic group for alive while it does not know the group yet.
        operation.outcome.response = heartbeat_response(request.version)
        return operation.outcome
    requests = CONNECT_REQUESTS if isinstance(memory, ConnectCoordinatorState) else REQUESTS
    handler = requests.get(request.api)
    if handler is None:
        operation.outcome.error = ApiError(ErrorCode.INVALID_REQUEST, f"no such API: {request.api}")
        return operation.outcome
    protocol = PROTOCOL_OF.get(request.api)
    if protocol is not None and protocol not in memory.config.group_coordinator_rebalance_protocols:
        message = f"The {protocol} group protocol is not enabled by group.coordinator.rebalance.protocols."
        operation.outcome.error = ApiError(ErrorCode.UNSUPPORTED_VERSION, message)
        return operation.outcome
    outcome = _run(operation, handler, request)
    _own_answer(outcome, request)
    return outcome


P = ParamSpec("P")


def _operation(
    step: Callable[Concatenate[Operation, P], Fields | None],
) -> Callable[Concatenate[CoordinatorState, TopicImage, int, P], RequestOutcome]:
    """Return a step as an operation of its own: on this memory, with these topics, at this time (ms)."""

    def run(
        memory: CoordinatorState, topics: TopicImage, now: int, /, *args: P.args, **named: P.kwargs
    ) -> RequestOutcome:
        return _run(Operation(memory, topics, now, iter(())), step, *args, **named)

    return run


def _delete(operation: Operation, group_id: str) -> None:
    if isinstance(operation.memory, ConnectCoordinatorState):
        administration.delete(operation, group_id)
        return
    group = operation.memory.live.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not group.is_empty:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    offset_fetch.write_all_tombstones(operation, group_id)
    operation.erase(group)


delete_group = _operation(_delete)
"""Serve DeleteGroups for one group; only a group without members can be deleted."""
prepare_delete = _operation(share_partitions.delete_all)
"""Do the first step of DeleteGroups for a share group: ask share coordinators to delete the state of its partitions."""
share_state_initialized = _operation(share_partitions.initialized)
share_state_not_initialized = _operation(share_partitions.uninitialized)
share_offsets_deleted = _operation(share_offsets.handle_deleted)
clean_up_share_state = _operation(share_partitions.topics_deleted)
set_connect_work = _operation(administration.set_work)
configure_connect = _operation(administration.set_configuration)
clean_up = _operation(offset_fetch.clean_up)
delete_topics = _operation(offset_fetch.topics_deleted)


def serves_classic_workers(memory: ConnectCoordinatorState, group_id: str) -> bool:
    """Whether requests of workers that speak the classic protocol go to the coordinator of Connect groups."""
    group = memory.group(group_id)
    return group is not None and bool(group.members)


def upgrade_connect_group(
    memory: ConnectCoordinatorState, classic_memory: CoordinatorState, request: Request, now: int
) -> tuple[RequestOutcome, RequestOutcome] | None:
    """Make a classic group of workers one on KIP-848 if this request is from the first worker of the new protocol.

    Return the outcome in ``__consumer_offsets`` and the one in ``__worker_offsets``; None: there is nothing to convert.
    The request itself is then served by ``handle``. An error of the first outcome is the answer to the request.
    """
    data = request.data
    group_id = str(data.get("groupId"))
    group = classic_memory.live.get(group_id)
    joins = request.api == "ConnectGroupHeartbeat" and data.get("memberEpoch") == 0
    if not joins or not isinstance(group, LiveClassicGroup) or group.protocol_type not in (None, CONNECT_PROTOCOL_TYPE):
        return None
    offered = [str(assignor.get("name")) for assignor in data.get("clientAssignors") or ()]
    ended = _operation(conversion.end_classic_group)(classic_memory, NO_TOPICS, now, group_id, offered)
    begun = RequestOutcome()
    if ended.error is None:
        begun = _operation(conversion.begin_connect_group)(memory, NO_TOPICS, now, group)
    return ended, begun


def downgrade_connect_group(
    memory: ConnectCoordinatorState, classic_memory: CoordinatorState, group_id: str, now: int
) -> tuple[RequestOutcome, RequestOutcome] | None:
    """Make a group on KIP-848 a classic one if its last worker of the new protocol is gone and others are left.

    Return the outcome in ``__worker_offsets`` and the one in ``__consumer_offsets``; None: there is nothing to convert.
    """
    if not is_to_be_downgraded(memory.group(group_id)):
        return None
    ending, beginning = (Operation(state, NO_TOPICS, now, iter(())) for state in (memory, classic_memory))
    # Its tombstones end the group in the one log before the other one is written from it.
    group = deepcopy(memory.group(group_id))
    ended = _run(ending, conversion.end_connect_group, group_id)
    begun = _run(beginning, conversion.begin_classic_group, ending, group_id, group)
    return ended, begun


def take_over(memory: CoordinatorState, topics: TopicImage, now: int) -> RequestOutcome:
    """Serve requests from now on, and expect a heartbeat of every member, as a new coordinator does once
    ``CoordinatorState.follow`` has loaded the log.
    """
    memory.phase = CoordinatorPhase.ACTIVE
    return _operation(_take_over)(memory, topics, now)


def _take_over(operation: Operation) -> None:
    """Give every member a session, and time to revoke what it still has to; wait for missing share state from now."""
    if isinstance(operation.memory, ConnectCoordinatorState):
        administration.take_over(operation)
        return
    for group in list(operation.memory.live.values()):
        if isinstance(group, LiveClassicGroup):
            rebalance.take_over(operation, group)
        elif isinstance(group, LiveShareGroup):
            group.initializing_since_ms = operation.now
            for member_id in group.view.members:
                expect_heartbeat(operation, group, member_id)
        elif isinstance(group, (LiveConsumerGroup, LiveStreamsGroup)):
            for member_id in group.view.members if isinstance(group, LiveConsumerGroup) else group.log.members:
                expect_heartbeat(operation, group, member_id)
                member = group.log.members.get(member_id)
                if member is not None:
                    expect_revocation(operation, group, member)


def expire(memory: CoordinatorState, timer: Timer, topics: TopicImage, now: int) -> RequestOutcome:
    """Run a timer whose deadline has passed; a timer that was cancelled or armed again since does nothing."""
    operation = Operation(memory, topics, now, iter(()))
    # The very object, and no equal one: a timer that was armed again with the same delay is another one.
    if memory.timers.get(timer.key) is not timer:
        return operation.outcome
    del memory.timers[timer.key]
    return _run(operation, TIMERS[timer.action], timer.group_id, *timer.args)


def complete(memory: CoordinatorState, task: Task, topics: TopicImage, now: int) -> RequestOutcome:
    """Complete background work, with the topics and the time of its completion."""
    operation = Operation(memory, topics, now, iter(()))
    if memory.tasks.get(task.key) is not task:
        return operation.outcome
    del memory.tasks[task.key]
    return _run(operation, TASKS[task.action], task.group_id, *task.args)


def _run(operation: Operation, handler: Callable[..., Fields | None], *args: object, **named: object) -> RequestOutcome:
    """An operation that fails writes nothing; soft state that it changed before stays changed, as in Kafka."""
    outcome = operation.outcome
    try:
        _check_phase(operation.memory)
        outcome.response = handler(operation, *args, **named)
    except ApiError as error:
        outcome.error = error
        outcome.records.clear()
        return outcome
    operation.commit()
    return outcome


def _check_phase(memory: CoordinatorState) -> None:
    if memory.phase is CoordinatorPhase.LOADING:
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    if memory.phase is CoordinatorPhase.RESIGNED:
        raise ApiError(ErrorCode.NOT_COORDINATOR)


def _own_answer(outcome: RequestOutcome, request: Request) -> None:
    """A request that was parked and answered in one go is answered after all; one still parked is pending."""
    if outcome.response is None and outcome.error is None:
        own = next((answer for answer in outcome.completed if answer.request.correlation == request.correlation), None)
        if own is None:
            outcome.pending = True
        else:
            outcome.completed.remove(own)
            outcome.response = own.response
