"""The group coordinator as an executable model: requests, time and topics in; records, responses and timers out.

Nothing here reads a clock, draws a random number or does input or output. State changes by applying the records that an
operation wrote, with the same ``apply`` that replays a log; what no record holds is soft state of ``CoordinatorState``.
The behaviour is that of Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any
from uuid import UUID

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator import classic_protocol, offset_commit, offset_expiry, offset_fetch
from coordinator_core.coordinator.classic import handlers as classic
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.classic.responses import heartbeat_response
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.connect import classic_workers, conversion
from coordinator_core.coordinator.connect import handlers as connect
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState
from coordinator_core.coordinator.consumer import handlers as consumer
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.lookup import group_of
from coordinator_core.coordinator.memory import CoordinatorPhase, CoordinatorState, GroupClass, GroupClasses
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request, RequestOutcome, Task, Timer
from coordinator_core.coordinator.share import handlers as share
from coordinator_core.coordinator.share import offset_requests as share_offsets
from coordinator_core.coordinator.share import partitions as share_partitions
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.streams import handlers as streams
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE
from coordinator_core.groups.connect.state import is_to_be_downgraded
from coordinator_core.groups.consumer.replay import HANDLERS as CONSUMER_RECORDS
from coordinator_core.groups.share.replay import HANDLERS as SHARE_RECORDS
from coordinator_core.groups.streams.replay import HANDLERS as STREAMS_RECORDS
from coordinator_core.records import Fields, RecordType

REQUESTS: dict[str, Callable[[Operation, Request], Fields | None]] = {
    **classic_protocol.REQUESTS,
    **consumer.REQUESTS,
    **share.REQUESTS,
    **streams.REQUESTS,
    **connect.REQUESTS,
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
CONNECT_REQUESTS: dict[str, Callable[[Operation, Request], Fields | None]] = {**REQUESTS, **classic_workers.REQUESTS}
"""The same in a coordinator of Connect groups: it serves workers of the classic protocol in its own way."""

TIMERS: dict[str, Callable[..., None]] = {
    **classic.TIMERS,
    **consumer.TIMERS,
    **share.TIMERS,
    **streams.TIMERS,
    **connect.TIMERS,
}
"""Timer action to the function that runs it with the operation, the group id and the timer's arguments."""

NO_TOPICS = TopicImage.of(())

TASKS: dict[str, Callable[..., None]] = {**consumer.TASKS}
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


def delete_group(memory: CoordinatorState, group_id: str, topics: TopicImage, now: int) -> RequestOutcome:
    """Serve DeleteGroups for one group; only a group without members can be deleted."""
    return _run(Operation(memory, topics, now, iter(())), _delete, group_id)


def _delete(operation: Operation, group_id: str) -> None:
    if isinstance(operation.memory, ConnectCoordinatorState):
        connect.delete(operation, group_id)
        return
    group = operation.memory.live.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not group.is_empty:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    offset_fetch.write_all_tombstones(operation, group_id)
    operation.erase(group)


def prepare_delete(memory: CoordinatorState, group_id: str, topics: TopicImage, now: int) -> RequestOutcome:
    """Do the first step of DeleteGroups for a share group: ask share coordinators to delete the state of its
    share partitions.
    """
    return _run(Operation(memory, topics, now, iter(())), _prepare_delete, group_id)


def _prepare_delete(operation: Operation, group_id: str) -> None:
    group = group_of(operation, group_id, LiveShareGroup, "share")
    if not group.is_empty:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    share_partitions.delete_all(operation, group)


def share_state_initialized(
    memory: CoordinatorState, group_id: str, partitions: Mapping[str, Collection[int]], topics: TopicImage, now: int
) -> RequestOutcome:
    """Note that a share coordinator initialised the state of these partitions, by topic id."""
    return _run(Operation(memory, topics, now, iter(())), share_partitions.initialized, group_id, partitions)


def share_state_not_initialized(
    memory: CoordinatorState, group_id: str, partitions: Mapping[str, Collection[int]], topics: TopicImage, now: int
) -> RequestOutcome:
    """Note that a share coordinator failed to initialise the state of these partitions, by topic id."""
    return _run(Operation(memory, topics, now, iter(())), share_partitions.uninitialized, group_id, partitions)


def share_offsets_deleted(
    memory: CoordinatorState, group_id: str, deleted: Mapping[str, str], topics: TopicImage, now: int
) -> RequestOutcome:
    """Note that share coordinators deleted what DeleteShareGroupOffsets asked for: topics, id to name."""
    return _run(Operation(memory, topics, now, iter(())), share_offsets.handle_deleted, group_id, deleted)


def clean_up_share_state(
    memory: CoordinatorState, topic_ids: Collection[str], topics: TopicImage, now: int
) -> RequestOutcome:
    """Drop the state of share partitions of topics that were deleted."""
    return _run(Operation(memory, topics, now, iter(())), share_partitions.topics_deleted, topic_ids)


def set_connect_work(
    memory: ConnectCoordinatorState, group_id: str, units: Iterable[ConnectorOrTask], now: int
) -> RequestOutcome:
    """Replace the connectors and tasks that a Connect group has to run."""
    return _run(Operation(memory, TopicImage.of(()), now, iter(())), connect.set_work, group_id, units)


def configure_connect(
    memory: ConnectCoordinatorState, group_id: str, settings: Mapping[str, str], now: int
) -> RequestOutcome:
    """Replace the configuration of a Connect group."""
    return _run(Operation(memory, TopicImage.of(()), now, iter(())), connect.set_configuration, group_id, settings)


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
    ended = _run(Operation(classic_memory, NO_TOPICS, now, iter(())), conversion.end_classic_group, group_id, offered)
    begun = RequestOutcome()
    if ended.error is None:
        begun = _run(Operation(memory, NO_TOPICS, now, iter(())), conversion.begin_connect_group, group)
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
    group = deepcopy(memory.group(group_id))
    ended = _run(ending, conversion.end_connect_group, group_id)
    begun = _run(beginning, conversion.begin_classic_group, ending, group_id, group)
    return ended, begun


def take_over(memory: CoordinatorState, topics: TopicImage, now: int) -> RequestOutcome:
    """Serve requests from now on, and expect a heartbeat of every member, as a new coordinator does once
    ``CoordinatorState.follow`` has loaded the log.
    """
    memory.phase = CoordinatorPhase.ACTIVE
    return _run(Operation(memory, topics, now, iter(())), _take_over)


def _take_over(operation: Operation) -> None:
    if isinstance(operation.memory, ConnectCoordinatorState):
        connect.take_over(operation)
        return
    for group in list(operation.memory.live.values()):
        if isinstance(group, LiveConsumerGroup):
            consumer.take_over(operation, group)
        elif isinstance(group, LiveShareGroup):
            share.take_over(operation, group)
        elif isinstance(group, LiveStreamsGroup):
            streams.take_over(operation, group)
        elif isinstance(group, LiveClassicGroup):
            classic.take_over(operation, group)


def clean_up(memory: CoordinatorState, topics: TopicImage, now: int) -> RequestOutcome:
    """Remove expired offsets, and groups without members and offsets, as a broker does every ten minutes."""
    return _run(Operation(memory, topics, now, iter(())), offset_expiry.clean_up)


def delete_topics(memory: CoordinatorState, names: Mapping[str, str], topics: TopicImage, now: int) -> RequestOutcome:
    """Remove the offsets of topics (name to id) that were deleted."""
    return _run(Operation(memory, topics, now, iter(())), offset_expiry.topics_deleted, names)


def expire(memory: CoordinatorState, timer: Timer, topics: TopicImage, now: int) -> RequestOutcome:
    """Run a timer whose deadline has passed; a timer that was cancelled or armed again since does nothing."""
    operation = Operation(memory, topics, now, iter(()))
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


def _run(operation: Operation, handler: Callable[..., Fields | None], *args: object) -> RequestOutcome:
    """An operation that fails writes nothing; soft state that it changed before stays changed, as in Kafka."""
    outcome = operation.outcome
    try:
        _check_phase(operation.memory)
        outcome.response = handler(operation, *args)
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
