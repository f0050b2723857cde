"""What members have or are to have, as sets of units, and what they subscribe to; and what types of groups with epochs
express differently, in one form for all of them (``EpochKind``): history and rules read it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final, NamedTuple

from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError
from coordinator_core.groups import record_types
from coordinator_core.groups.classic.protocols import COOPERATIVE_STICKY, STREAMS_PROTOCOL
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.connect.state import Work
from coordinator_core.groups.consumer.state import ConsumerGroup, ConsumerMember, ConsumerMemberState
from coordinator_core.groups.epochs import PartitionEpochs, Partitions
from coordinator_core.groups.record_types import RecordTypes
from coordinator_core.groups.share.state import MEMBER_STATE_STABLE, ShareGroup
from coordinator_core.groups.streams.sources import topic_names
from coordinator_core.groups.streams.state import CurrentTasks, StreamsGroup, StreamsMemberState, TargetTasks
from coordinator_core.history.holdings import Held, Resource, WorkUnit
from coordinator_core.record_fields.embedded import (
    ConnectProtocolAssignment,
    ConnectProtocolAssignmentConnectorTasks,
    ConnectProtocolMetadata,
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    StreamsAssignmentInfo,
)
from coordinator_core.wire.embedded import CACHED_BLOBS, Blob, blob_of, decode_assignment, decode_subscription

CONNECTOR_ITSELF = -1
"""The number that stands for a connector among the tasks of one."""


def consumer_held(member: ConsumerMember) -> Held:
    """Return assigned partitions, and those pending revocation, which the member still has."""
    held = partitions_owned(member.assigned)
    for topic, partitions in member.pending_revocation.items():
        if partitions:
            held[("partition", topic)] = held.get(("partition", topic), frozenset()) | partitions.keys()
    return held


def partitions_owned(assigned: PartitionEpochs) -> dict[Resource, AbstractSet[int]]:
    """Return partitions by topic id, as in a current assignment of a consumer group."""
    return {("partition", topic): partitions.keys() for topic, partitions in assigned.items() if partitions}


def partitions_held(assigned: Partitions) -> Held:
    """Return partitions by topic id, as in a target of a consumer or share group."""
    return {("partition", topic): set(partitions) for topic, partitions in assigned.items() if partitions}


def tasks_held(*parts: CurrentTasks | TargetTasks) -> Held:
    """Return tasks by role: those of a target, or assigned ones and those pending revocation, which the member has."""
    held: dict[Resource, AbstractSet[int]] = {}
    for tasks in parts:
        for role, of_role in (("active", tasks.active), ("standby", tasks.standby), ("warmup", tasks.warmup)):
            _add(role, of_role.items(), held)
    return held


def _add(role: str, tasks: Iterable[tuple[str, Iterable[int]]], held: dict[Resource, AbstractSet[int]]) -> None:
    for subtopology, partitions in tasks:
        if partitions:
            resource = (role, subtopology)
            held[resource] = held[resource] | set(partitions) if resource in held else set(partitions)


def work_held(work: Work) -> Held:
    """Return the connectors and tasks of a worker (Connect on KIP-848)."""
    held: dict[Resource, set[int]] = {("connector", connector): {CONNECTOR_ITSELF} for connector in work.connectors}
    for task in work.tasks:
        held.setdefault(("task", task.connector_id), set()).add(task.task_id)
    return held


def consumer_topics(state: ConsumerGroup) -> set[str]:
    """Return names of the topics that some member subscribes to, by name or by a resolved regular expression."""
    members = state.members.values()
    names = set().union(*[member.subscribed_topic_names for member in members])
    if state.regexes:
        # A resolution outlives its last subscriber for a while: what nobody asks for any more is not subscribed.
        wanted = {member.subscribed_topic_regex for member in members}
        names.update(*[resolved.topics for regex, resolved in state.regexes.items() if regex in wanted])
    return names


class ClassicSubscription(NamedTuple):
    """What a member of a classic group asked for: topics (consumer), or its config offset (Connect).

    ``owned`` is what it had when it joined, of the assignment of ``generation``; None: it does not say of which.
    ``url`` is that of a Connect worker, and ``assigned_offset`` the config offset of the assignment that it brings.
    """

    topics: frozenset[str]
    config_offset: int | None
    rack_id: str | None
    owned: frozenset[WorkUnit] = frozenset()
    generation: int | None = None
    url: str | None = None
    assigned_offset: int | None = None


class ClassicAssignment(NamedTuple):
    """What a member of a classic group was assigned.

    ``delay_ms`` is Connect's scheduled rebalance delay, ``next_rebalance_ms`` the time at which Kafka Streams wants to
    rebalance again. ``incremental``: ``held`` depends on the member's subscription too. ``revoked`` counts what an
    incremental Connect assignment revokes, or what a cooperative consumer owned and is not assigned (KIP-429).
    ``listed_twice`` is what the assignment lists more than once. ``not_last`` is what only earlier entries of a topic
    list that has several: a client that keeps the last entry does not read it. ``config_offset`` is that for which a
    Connect assignment was made; ``is_mismatch``: the leader could not read the config topic up to there. ``is_whole``:
    all of it can be read.
    """

    held: Held
    revoked: int = 0
    delay_ms: int = 0
    next_rebalance_ms: int | None = None
    incremental: bool = False
    listed_twice: tuple[WorkUnit, ...] = ()
    not_last: frozenset[WorkUnit] = frozenset()
    config_offset: int | None = None
    is_mismatch: bool = False
    is_whole: bool = True


CONFIG_MISMATCH: Final = 1
"""The error of Connect assignments that workers cannot run: the leader lacks what another worker read."""
NO_SUBSCRIPTION = ClassicSubscription(frozenset(), None, None)
NO_ASSIGNMENT = ClassicAssignment({})
UNREAD = ClassicAssignment({}, is_whole=False)
_NEVER = 2**63 - 1


# Kept, as a group repeats in each generation what most of its members ask for.
def asked_for(group: ClassicGroup, member: ClassicMember) -> ClassicSubscription | None:
    """Return what a member of a classic group asks for; None if that cannot be read."""
    return _subscription(group.protocol_type or "", group.protocol, member.subscription)


def given_to(group: ClassicGroup, member: ClassicMember) -> ClassicAssignment:
    """Return what a member of a classic group was assigned, as far as it can be read."""
    return _assignment(group.protocol_type or "", group.protocol, member.assignment, member.subscription)


@lru_cache(maxsize=CACHED_BLOBS)
def _subscription(protocol_type: str, protocol: str | None, data: bytes) -> ClassicSubscription | None:
    """Return a member's subscription in a classic group; None if it cannot be read."""
    try:
        blob = decode_subscription(protocol_type, protocol, data)
    except DecodeError:
        return None
    worker = blob_of(ConnectProtocolMetadata, blob)
    if worker is not None:
        running = blob_of(ConnectProtocolAssignment, worker.nested)
        had = _connect_work(running.fields["assignment"] or ()) if running is not None else set()
        owned = frozenset(map(_of_worker, had))
        offset, url = worker.fields["configOffset"], worker.fields["url"]
        assigned = None if running is None else running.fields["configOffset"]
        return ClassicSubscription(frozenset(), offset, None, owned, url=url, assigned_offset=assigned)
    consumer = blob_of(ConsumerProtocolSubscription, blob)
    if consumer is not None:
        fields = consumer.fields
        owned = frozenset(
            WorkUnit("partition", entry["topic"], number)
            for entry in fields.get("ownedPartitions") or ()
            for number in entry["partitions"]
        )
        generation = fields.get("generationId", -1)
        rack, known = fields.get("rackId"), generation if generation >= 0 else None
        return ClassicSubscription(frozenset(fields["topics"]), None, rack, owned, known)
    return NO_SUBSCRIPTION


@lru_cache(maxsize=CACHED_BLOBS)
def _assignment(protocol_type: str, protocol: str | None, data: bytes, subscription: bytes) -> ClassicAssignment:
    """Return what a member of a classic group has after a rebalance, as far as it can be read.

    An incremental Connect assignment (version 1 and later, KIP-415) only says what is new and what is revoked: the rest
    is in the member's own ``subscription``.
    """
    try:
        blob = decode_assignment(protocol_type, protocol, data)
    except DecodeError:
        return UNREAD
    work = blob_of(ConnectProtocolAssignment, blob)
    if work is not None:
        try:
            worker = decode_subscription("connect", protocol, subscription) if work.version > 0 else None
        except DecodeError:
            return UNREAD
        return _connect_assignment(work, worker)
    partitions = blob_of(ConsumerProtocolAssignment, blob)
    if partitions is None:
        return NO_ASSIGNMENT
    held: dict[Resource, AbstractSet[int]] = {}
    listed = partitions.fields["assignedPartitions"]
    _add("partition", [(each["topic"], each["partitions"]) for each in listed], held)
    twice = _repeated(WorkUnit("partition", each["topic"], number) for each in listed for number in each["partitions"])
    revoked = _given_up(protocol_type, subscription, held) if protocol == COOPERATIVE_STICKY else 0
    info = blob_of(StreamsAssignmentInfo, partitions.nested)
    next_rebalance = _streams_tasks(info, held) if info else None
    # A thread of Kafka Streams has its tasks in the data of the assignor.
    is_whole = protocol != STREAMS_PROTOCOL or info is not None or not partitions.fields["userData"]
    return ClassicAssignment(
        held,
        revoked,
        next_rebalance_ms=next_rebalance,
        listed_twice=twice,
        not_last=_not_last(listed),
        is_whole=is_whole,
    )


def without_units(held: Held, units: AbstractSet[WorkUnit]) -> Held:
    """Return what is left of partitions of topics without some of them."""
    left = dict(held)
    for unit in units:
        left[unit.role, unit.name] = left[unit.role, unit.name] - {unit.number}
    return {resource: numbers for resource, numbers in left.items() if numbers}


def _not_last(listed: Sequence[ConsumerProtocolAssignmentTopicPartition]) -> frozenset[WorkUnit]:
    last = {entry["topic"]: entry["partitions"] for entry in listed}
    if len(last) == len(listed):
        return frozenset()
    units = (WorkUnit("partition", entry["topic"], number) for entry in listed for number in entry["partitions"])
    return frozenset(unit for unit in units if unit.number not in last[unit.name])


def _repeated(units: Iterable[WorkUnit]) -> tuple[WorkUnit, ...]:
    """Return the units that occur more than once."""
    return tuple(unit for unit, count in Counter(units).items() if count > 1)


def _given_up(protocol_type: str, subscription: bytes, held: Held) -> int:
    """How many partitions the member owned when it joined, and gives up now to join again; 0 if it cannot be read."""
    asked = _subscription(protocol_type, COOPERATIVE_STICKY, subscription) or NO_SUBSCRIPTION
    return sum(unit.number not in held.get(("partition", unit.name), ()) for unit in asked.owned)


def _streams_tasks(info: Blob[StreamsAssignmentInfo], held: dict[Resource, AbstractSet[int]]) -> int | None:
    """Adds the tasks of a Kafka Streams assignment by role; returns when it wants to rebalance again, if it does."""
    for role, tasks in (("active", info.fields["activeTasks"]), ("standby", info.fields["standbyTasks"])):
        by_subtopology: dict[str, set[int]] = {}
        for task in tasks:
            by_subtopology.setdefault(str(task["topicGroupId"]), set()).add(task["partition"])
        _add(role, by_subtopology.items(), held)
    at = info.fields.get("nextRebalanceMs", _NEVER)
    return None if at == _NEVER else at


def _connect_assignment(
    blob: Blob[ConnectProtocolAssignment], subscription: Blob[ConnectProtocolMetadata] | None
) -> ClassicAssignment:
    fields = blob.fields
    work = _connect_work(fields["assignment"] or ())
    revoked = _connect_work(fields.get("revoked") or ())
    running = blob_of(ConnectProtocolAssignment, subscription.nested) if subscription is not None else None
    if running is not None:
        # Version 1 and later send only changes: what the worker said that it runs is the rest (KIP-415).
        work = (_connect_work(running.fields["assignment"] or ()) - revoked) | work
    held: dict[Resource, set[int]] = {}
    for connector, task in sorted(work):
        role = "connector" if task == CONNECTOR_ITSELF else "task"
        held.setdefault((role, connector), set()).add(task)
    started = ((entry["connector"], task) for entry in fields["assignment"] or () for task in entry["tasks"])
    twice = _repeated(map(_of_worker, started))
    return ClassicAssignment(
        held,
        len(revoked),
        fields.get("delay") or 0,
        None,
        blob.version > 0,
        twice,
        config_offset=fields["configOffset"],
        is_mismatch=fields["error"] == CONFIG_MISMATCH,
    )


def _of_worker(work: tuple[str, int]) -> WorkUnit:
    """A connector, or a task of one, as a unit."""
    connector, task = work
    return WorkUnit("connector" if task == CONNECTOR_ITSELF else "task", connector, task)


def _connect_work(entries: Iterable[ConnectProtocolAssignmentConnectorTasks]) -> set[tuple[str, int]]:
    return {(entry["connector"], task) for entry in entries for task in entry["tasks"]}


class EpochKind(NamedTuple):
    """One type of group: its records, the states of its members, and how to read what a member has and should have.

    ``unrevoked`` and ``unreleased`` are the states in which a member has to give up work, or waits for that of others;
    None: there are none. ``exclusive``: a partition has at most one owner. ``held`` gives what a member works on,
    ``assigned`` and ``revoking`` its parts, ``wanted`` what a target gives to it. ``subscribed`` gives the topics that
    the metadata hash is over.
    """

    types: RecordTypes
    state: type[Any]
    stable: int
    unrevoked: int | None
    unreleased: int | None
    exclusive: bool
    held: Callable[[Any], Held]
    assigned: Callable[[Any], Held]
    revoking: Callable[[Any], Held]
    wanted: Callable[[Any], Held]
    subscribed: Callable[[Any, TopicHistory | None], set[str]]

    @property
    def name(self) -> str:
        """The type as Kafka's Admin client names it."""
        return self.types.group.value


CONSUMER_KIND = EpochKind(
    record_types.CONSUMER_RECORDS,
    ConsumerGroup,
    ConsumerMemberState.STABLE,
    ConsumerMemberState.UNREVOKED_PARTITIONS,
    ConsumerMemberState.UNRELEASED_PARTITIONS,
    True,
    consumer_held,
    lambda member: partitions_owned(member.assigned),
    lambda member: partitions_owned(member.pending_revocation),
    partitions_held,
    lambda state, topics: consumer_topics(state),
)
SHARE_KIND = EpochKind(
    record_types.SHARE_RECORDS,
    ShareGroup,
    MEMBER_STATE_STABLE,
    None,
    None,
    False,
    lambda member: partitions_held(member.assigned),
    lambda member: partitions_held(member.assigned),
    lambda member: {},
    partitions_held,
    lambda state, topics: {name for each in state.members.values() for name in each.subscribed_topic_names},
)
STREAMS_KIND = EpochKind(
    record_types.STREAMS_RECORDS,
    StreamsGroup,
    StreamsMemberState.STABLE,
    StreamsMemberState.UNREVOKED_TASKS,
    StreamsMemberState.UNRELEASED_TASKS,
    True,
    lambda member: tasks_held(member.assigned, member.pending_revocation),
    lambda member: tasks_held(member.assigned),
    lambda member: tasks_held(member.pending_revocation),
    tasks_held,
    # Regular expressions stand for every topic of the history that they match, whenever it existed.
    lambda state, topics: topic_names(state.topology, topics),
)
EPOCH_KINDS = (CONSUMER_KIND, SHARE_KIND, STREAMS_KIND)
