"""The rounds of a group: each assignment in its log, with the input of its assignor."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.assignors.client.clients import JAVA
from coordinator_core.assignors.client.leader_view import recorded
from coordinator_core.assignors.connect.work import CONNECTOR, NO_ERROR, ConnectorsAndTasks, LeaderAssignment, target
from coordinator_core.assignors.inputs import AssignedGroupType as AssignedType
from coordinator_core.assignors.inputs import StreamsConfigs, SubtopologyTasks
from coordinator_core.assignors.profiles import DEFAULT, Profile
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.classic_connect import EAGER, NO_TOPICS, ConnectAudit, ConnectTargetState
from coordinator_core.audit.targets.connect_inputs import as_work
from coordinator_core.audit.targets.inputs import (
    EpochState,
    assignor_of,
    chosen_assignor,
    stale_members,
    tasks_of,
    topics_of_member,
    topics_used,
)
from coordinator_core.audit.targets.leader_views import leader_clients, with_assignor
from coordinator_core.audit.targets.operation import KIND_OF_TARGET_EPOCH
from coordinator_core.audit.targets.releases import releases, streams_profile
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError, InputError
from coordinator_core.groups.classic.protocols import (
    CONNECT_PROTOCOL_TYPE,
    CONSUMER_PROTOCOL_TYPE,
    COOPERATIVE_STICKY,
    STREAMS_PROTOCOL,
)
from coordinator_core.groups.connect.describe import common_assignor, computing_worker
from coordinator_core.groups.connect.rebalance_delay import ConfiguredWork
from coordinator_core.groups.connect.state import ConnectGroup, max_delay_ms
from coordinator_core.groups.epochs import EpochGroup
from coordinator_core.groups.group import Group
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams.configs import streams_configs
from coordinator_core.groups.streams.state import StreamsGroup, StreamsMember, TargetTasks, Topology
from coordinator_core.history.holdings import WorkUnit
from coordinator_core.record_fields.classic_group import GroupMetadataRecord, GroupMetadataValue
from coordinator_core.record_fields.connect_group import ConnectWorkerGroupTargetAssignmentRecord
from coordinator_core.records import AnyRecord, ConnectRecordType, CoordinatorRecord, Family, LogPosition, RecordType
from coordinator_core.wire.embedded import decode_assignment, decode_subscription


class RoundMember(NamedTuple):
    """One member in one round. ``client`` identifies a client across restarts."""

    client: tuple[str, str]
    topics: tuple[str, ...] = ()
    instance_id: str | None = None
    rack_id: str | None = None
    process_id: str = ""
    client_tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """One assignment. ``recorded`` has each member's partitions by topic name, tasks by subtopology or by connector.

    ``topology`` is the topology of a streams group, ``subtopologies`` its tasks with these topics, ``configs`` what its
    assignor is configured with, ``stale`` are the members with an older topology. ``connectors`` has
    the task counts of a Connect group as far as its assignments show them, ``max_delay_ms`` how long it waits for a
    worker to return, and ``asks_again`` whether another rebalance follows on its own; a connector itself is its task
    -1. ``is_declared``: the assignment is what workers are to run in the end (Connect on KIP-848), and not one of the
    rebalances that lead there. ``client`` is that of the leader of a classic group of consumers.
    """

    at: LogPosition
    type: AssignedType
    assignor: str
    members: Mapping[str, RoundMember]
    image: TopicImage
    recorded: Mapping[str, frozenset[WorkUnit]]
    eager: bool = False
    topology: Topology | None = None
    subtopologies: tuple[SubtopologyTasks, ...] = ()
    configs: StreamsConfigs = field(default_factory=StreamsConfigs)
    stale: frozenset[str] = frozenset()
    profile: Profile = DEFAULT
    leader: str = ""
    connectors: Mapping[str, int] = field(default_factory=dict)
    max_delay_ms: int = 0
    asks_again: bool = False
    is_declared: bool = False
    client: str = JAVA


def in_order(happened: Iterable[Round]) -> list[Round]:
    """Return rounds of several log partitions in order of time."""
    return sorted(
        happened, key=lambda each: (each.at.timestamp_ms, each.at.partition, each.at.offset, each.is_declared)
    )


def rounds(
    records: Iterable[AnyRecord], group: Group, topics: TopicHistory | None, settings: AuditSettings
) -> Iterator[Round]:
    """Yield the rounds of one group.

    Assignments are left out if their topics are unknown, or if none of Kafka's assignors made them.
    """
    if group.family is Family.CONNECT:
        yield from declared_rounds(records, group)
        return
    workers = ConnectTargetState()
    for record in records:
        if record.type <= RecordType.OFFSET_COMMIT:
            continue
        group.apply(record)
        if record.value is None:
            continue
        made = None
        if record.type == RecordType.GROUP_METADATA and record.value["protocolType"] == CONNECT_PROTOCOL_TYPE:
            made = _connect(record, record.value, workers, settings)
        elif record.type == RecordType.GROUP_METADATA:
            made = _generation(record, record.value, topics)
        elif record.type in KIND_OF_TARGET_EPOCH and isinstance(group.state, EpochGroup):
            made = _epoch(record, group.state, topics, settings)
        if made is not None:
            yield made


def _generation(record: GroupMetadataRecord, value: GroupMetadataValue, topics: TopicHistory | None) -> Round | None:
    protocol = value["protocol"]
    version = topics.at(record.at.timestamp_ms) if topics is not None else None
    if value["protocolType"] != CONSUMER_PROTOCOL_TYPE or protocol in (None, STREAMS_PROTOCOL) or version is None:
        return None
    members, work = {}, {}
    for member in value["members"]:
        try:
            subscription = decode_subscription("consumer", protocol, member["subscription"])
            assignment = decode_assignment("consumer", protocol, member["assignment"])
        except DecodeError:
            return None
        if subscription is None:
            return None
        members[member["memberId"]] = RoundMember(
            (member["clientId"], member["clientHost"]),
            tuple(subscription.fields["topics"]),
            member.get("groupInstanceId"),
            subscription.fields.get("rackId") or None,
        )
        named = recorded(assignment.fields) if assignment else {}
        work[member["memberId"]] = frozenset(WorkUnit("", name, number) for name in named for number in named[name])
    eager = protocol != COOPERATIVE_STICKY
    led_by = with_assignor(leader_clients(value), protocol)
    return Round(
        record.at,
        AssignedType.CLASSIC,
        protocol,
        members,
        version.image,
        work,
        eager,
        leader=value["leader"] or "",
        client=led_by[0] if led_by else JAVA,
    )


def _connect(
    record: GroupMetadataRecord, value: GroupMetadataValue, memory: ConnectTargetState, settings: AuditSettings
) -> Round | None:
    """A round of Connect workers; None where some got nothing to read, or an error, and so all join again."""
    if not value["members"] or value["leader"] is None:
        return None
    audit = ConnectAudit(memory, record, settings)
    # For its memory alone: the counts of tasks are found by fitting one round after the other.
    audit.row()
    if audit.assignments.keys() != audit.workers.keys() or any(
        assignment.error != NO_ERROR for assignment in audit.assignments.values()
    ):
        return None
    return Round(
        record.at,
        AssignedType.CONNECT,
        value["protocol"] or "",
        {member["memberId"]: RoundMember((member["clientId"], member["clientHost"])) for member in value["members"]},
        NO_TOPICS,
        {worker: connect_units(work) for worker, work in target(audit.workers, audit.assignments).items()},
        eager=value["protocol"] == EAGER,
        leader=value["leader"],
        connectors=dict(memory.connectors),
        max_delay_ms=memory.longest_delay_ms or settings.connect_max_delay_ms,
        asks_again=asks_again(audit.assignments.values()),
    )


def declared_rounds(records: Iterable[AnyRecord], group: Group) -> Iterator[Round]:
    """Yield the targets of a Connect group on KIP-848, without those of an assignor that failed.

    Which worker computed is not in the log: it is taken for the one that the coordinator chooses first.
    """
    work, leader = ConfiguredWork(), ""
    for record in records:
        group.apply(record)
        state = group.state if isinstance(group.state, ConnectGroup) else None
        work.follow(state, record)
        if state is None or record.type != ConnectRecordType.TARGET_ASSIGNMENT or record.value is None:
            continue
        configured = work.at(record.value["assignmentEpoch"])
        failed = any(target.error for target in state.targets.values())
        if configured is not None and state.targets and not failed:
            chosen = computing_worker(state, leader)
            leader = chosen if chosen in state.targets else next(iter(state.targets))
            yield _declared(record, state, as_work(configured), leader)


def _declared(
    record: ConnectWorkerGroupTargetAssignmentRecord, state: ConnectGroup, configured: ConnectorsAndTasks, leader: str
) -> Round:
    recorded = {member_id: as_work(target.work) for member_id, target in state.targets.items()}
    clients = {
        member_id: (known.client_id or "", known.client_host or "") if known is not None else ("", "")
        for member_id, known in ((member_id, state.members.get(member_id)) for member_id in recorded)
    }
    return Round(
        record.at,
        AssignedType.CONNECT,
        common_assignor(state) or "",
        {member_id: RoundMember(client) for member_id, client in clients.items()},
        NO_TOPICS,
        {member_id: connect_units(work) for member_id, work in recorded.items()},
        leader=leader,
        connectors={name: sum(1 for task in configured.tasks if task[0] == name) for name in configured.connectors},
        max_delay_ms=max_delay_ms(state),
        # What is in no target waits for a worker that left, and is given out when that time is over.
        asks_again=bool(configured.minus(*recorded.values())),
        is_declared=True,
    )


def asks_again(assignments: Iterable[LeaderAssignment]) -> bool:
    """Whether the workers have to join again on their own: after they stopped something, or after a delay."""
    return any(each.revoked_connectors or each.revoked_tasks or each.delay_ms for each in assignments)


def connect_units(work: ConnectorsAndTasks) -> frozenset[WorkUnit]:
    """Return what a worker runs, as units: a connector is its task -1."""
    return frozenset(WorkUnit("", connector, CONNECTOR) for connector in work.connectors) | frozenset(
        WorkUnit("", connector, number) for connector, number in work.tasks
    )


def _epoch(
    record: CoordinatorRecord, state: EpochState, topics: TopicHistory | None, settings: AuditSettings
) -> Round | None:
    used = topics_used(state, record.at, topics, settings)
    if isinstance(used, str):
        return None
    image = used.image
    brokers = streams_profile(state, releases(topics, record.at.timestamp_ms), settings)
    time_ms = record.at.timestamp_ms
    chosen = chosen_assignor(topics, record.group_id, time_ms)
    default = settings.default_at(topics, time_ms)
    assignor = assignor_of(state, default, chosen=chosen, kip_1071=brokers.is_kip_1071)
    if isinstance(state, StreamsGroup):
        return _streams(record, state, image, assignor, brokers)
    work = {
        member: frozenset(
            WorkUnit("", image.by_id[topic_id].name, number)
            for topic_id, numbers in state.targets.get(member, {}).items()
            if topic_id in image.by_id
            for number in numbers
        )
        for member in state.members
    }
    members = {}
    for member_id, member in state.members.items():
        names = dict.fromkeys(topics_of_member(state, member_id))
        instance_id = None if isinstance(state, ShareGroup) else state.members[member_id].instance_id
        client = (member.client_id or "", member.client_host or "")
        members[member_id] = RoundMember(client, tuple(names), instance_id, member.rack_id)
    kind = AssignedType.SHARE if isinstance(state, ShareGroup) else AssignedType.CONSUMER
    return Round(record.at, kind, assignor, members, image, work)


def _streams(
    record: CoordinatorRecord, state: StreamsGroup, image: TopicImage, assignor: str, brokers: Profile
) -> Round | None:
    subtopologies = None if state.topology is None else tasks_of(state.topology, image)
    if subtopologies is None:
        return None
    try:
        configs = streams_configs(state.last_assignment_configs)
    except InputError:
        return None
    return Round(
        record.at,
        AssignedType.STREAMS,
        assignor,
        {member_id: _thread(member) for member_id, member in state.members.items()},
        image,
        {member_id: _tasks(state.targets.get(member_id)) for member_id in state.members},
        topology=state.topology,
        subtopologies=subtopologies,
        configs=configs,
        stale=stale_members(state) if brokers.is_kip_1071 else frozenset(),
        profile=brokers,
    )


def _thread(member: StreamsMember) -> RoundMember:
    return RoundMember(
        (member.client_id or "", member.client_host or ""),
        (),
        member.instance_id,
        member.rack_id,
        member.process_id or "",
        tuple(member.client_tags.items()),
    )


def _tasks(target: TargetTasks | None) -> frozenset[WorkUnit]:
    if target is None:
        return frozenset()
    roles = (("active", target.active), ("standby", target.standby), ("warm-up", target.warmup))
    return frozenset(WorkUnit(role, name, number) for role, tasks in roles for name in tasks for number in tasks[name])
