"""The owners of the partitions of a topic, and of connectors and their tasks, in groups of every type."""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from coordinator_core.assignors.connect.work import ConnectorOrTask, ConnectorsAndTasks
from coordinator_core.clients.known_clients import KEEPS_LAST_ENTRY
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.groups.classic.describe import is_consumer_group
from coordinator_core.groups.classic.protocols import assigned_partitions, lists_again
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.classic.workers import classic_worker, is_connect_group
from coordinator_core.groups.connect.state import ConnectGroup, ConnectMember, Work, units
from coordinator_core.groups.consumer.state import ConsumerGroup, ConsumerMember
from coordinator_core.groups.group import Group, GroupState
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.member_clients import clients_of
from coordinator_core.groups.proven_state import KEYS, GroupThen
from coordinator_core.groups.share.state import ShareGroup, ShareMember
from coordinator_core.groups.streams.sources import only_readers, readers
from coordinator_core.groups.streams.state import StreamsGroup, StreamsMember
from coordinator_core.records import RecordType

UNKNOWN = "unknown"
"""The role of a member that may have held any partition."""


class Owner(NamedTuple):
    """A member that has a partition, and in which role.

    ``role``: assigned or revoking; in a streams group active, standby or warmup, also with ``revoking`` before it.

    Of a connector ``topic`` is the name and ``partition`` the number of a task, None for the connector itself; the role
    is connector or task, also with ``revoking`` before it where the worker is to stop what it runs.

    With the role ``UNKNOWN`` it is not known what the member held, or whether it was there, and so the partition is
    None. Without a member nothing is known of the members of the group.
    """

    group_id: str
    type: GroupType | None
    topic: str
    partition: int | None
    member_id: str | None
    instance_id: str | None
    client_id: str | None
    host: str | None
    role: str


Member = ClassicMember | ConsumerMember | ShareMember | StreamsMember | ConnectMember


class _Holding(NamedTuple):
    """A member and the partitions of the topic that it holds in a role."""

    member: Member
    partitions: Iterable[int | None]
    role: str


def owners(groups: Iterable[Group], topics: TopicImage | None, topic: str, partition: int | None = None) -> list[Owner]:
    """Return the owners of a topic's partitions, by partition and group; several are normal, one in each group and
    role.

    Groups with epochs record topic ids: without ``topics`` they are matched only if ``topic`` is an id itself. A
    classic group's owners are those of its last completed rebalance. A streams group records tasks: the topic has to
    exist, and to have a partition for the task; without ``topics`` that is known where the subtopology reads only it.
    """
    owning = []
    for group in groups:
        for holding in _holdings(group, topic, topics):
            member = holding.member
            owning += [
                Owner(
                    group.group_id,
                    group.type,
                    topic,
                    number,
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    holding.role,
                )
                for number in holding.partitions
                if partition is None or number == partition
            ]
    return sorted(owning, key=_order)


def _order(owner: Owner) -> tuple[int, str, str, str]:
    """A connector comes before its tasks."""
    partition = -1 if owner.partition is None else owner.partition
    return partition, owner.group_id, owner.role, owner.member_id or ""


def connector_tasks(groups: Iterable[Group]) -> dict[str, set[int]]:
    """Return the numbers of the tasks of every connector that the groups have to run, or run, by connector.

    What a Connect group on the classic protocol has to run is not in its log: there it is what its workers run.
    """
    by_connector: dict[str, set[int]] = {}
    for group in groups:
        for work in _connect_work(group.state):
            for connector in work.connectors:
                by_connector.setdefault(connector, set())
            for connector, number in work.tasks:
                by_connector.setdefault(connector, set()).add(number)
    return by_connector


def _connect_work(state: GroupState | None) -> Iterator[Work | ConnectorsAndTasks]:
    if isinstance(state, ConnectGroup):
        yield state.work
        yield from (member.current.work for member in state.members.values() if member.current is not None)
    elif isinstance(state, ClassicGroup) and is_connect_group(state):
        running = (classic_worker(state, member).runs for member in state.members.values())
        yield from (work for work in running if work is not None)


def possible_owners(groups: Iterable[GroupThen], topics: TopicImage | None, topic: str) -> Iterator[Owner]:
    """Yield the members of which the log does not prove what they held: they may have held any partition.

    Without ``topics`` these are also the members of streams groups whose tasks may read the topic.
    """
    for group, _, certainty in groups:
        state = group.state
        if state is None:
            if certainty.unknown:
                yield _possible_owner(group, topic, None)
        elif isinstance(state, ClassicGroup):
            unread = (member for member in state.members.values() if not _can_be_read(state, member))
            yield from (_possible_owner(group, topic, member) for member in unread)
        else:
            for member in state.members.values():
                knows = certainty.knows(KEYS[type(state)].current, member.member_id)
                # Which topics the tasks of a streams group read is in its topology.
                if isinstance(state, StreamsGroup):
                    knows = knows and certainty.knows(RecordType.STREAMS_GROUP_TOPOLOGY)
                if not knows or (topics is None and _may_read(state, member, topic)):
                    yield _possible_owner(group, topic, member)
            for member_id in certainty.unknown_members:
                yield _possible_owner(group, topic, None)._replace(member_id=member_id)


def _can_be_read(group: ClassicGroup, member: ClassicMember) -> bool:
    """Whether the log tells what a worker runs, or a consumer was assigned; members of other groups have no topics."""
    if is_connect_group(group):
        return classic_worker(group, member).runs is not None
    return not is_consumer_group(group) or assigned_partitions(member.assignment) is not None


def _may_read(state: GroupState, member: Any, topic: str) -> bool:
    """Return whether a member of a streams group has tasks that may read the topic, of which nothing is known."""
    if not isinstance(state, StreamsGroup):
        return False
    # The topic's own partitions bound the tasks only of a subtopology that reads nothing else.
    doubtful = readers(state.topology, topic) - only_readers(state.topology, topic)
    return any(doubtful & held.keys() for _, _, held in _tasks_of(member))


def _possible_owner(group: Group, topic: str, member: Member | None) -> Owner:
    if member is None:
        return Owner(group.group_id, group.type, topic, None, None, None, None, None, UNKNOWN)
    of = member.member_id, member.instance_id, member.client_id, member.client_host
    return Owner(group.group_id, group.type, topic, None, *of, UNKNOWN)


def _holdings(group: Group, topic: str, topics: TopicImage | None) -> Iterator[_Holding]:
    """What the group's members hold of the topic, whose id may be ``topic`` itself."""
    state = group.state
    known = None if topics is None else topics.by_name.get(topic)
    topic_id = topic if known is None else known.id
    if isinstance(state, ClassicGroup):
        return _run_in_classic(state, topic) if is_connect_group(state) else _held_in_classic(state, topic)
    if isinstance(state, ConnectGroup):
        return _run_in_connect(state, topic)
    if isinstance(state, ConsumerGroup | ShareGroup):
        return _held_by_id(state, topic_id)
    if isinstance(state, StreamsGroup):
        return _held_in_streams(state, topic, known, topics_are_known=topics is not None)
    return iter(())


def _held_in_classic(group: ClassicGroup, topic: str) -> Iterator[_Holding]:
    for member in group.members.values():
        held = assigned_partitions(member.assignment, keeps_last=_keeps_last(group, member)) or []
        yield _Holding(member, [task.partition for task in held if task.topic == topic], "assigned")


def _keeps_last(group: ClassicGroup, member: ClassicMember) -> bool:
    """Whether a member was assigned a topic in several entries, and its client reads only the last one."""
    if not lists_again(member.assignment):
        return False
    clients = clients_of(group)[member.member_id].clients
    return bool(clients) and KEEPS_LAST_ENTRY.issuperset(clients)


def _run_in_classic(group: ClassicGroup, connector: str) -> Iterator[_Holding]:
    for member in group.members.values():
        work = classic_worker(group, member).runs
        if work is not None:
            yield from _run(member, set(work.units()), connector, "")


def _run_in_connect(group: ConnectGroup, connector: str) -> Iterator[_Holding]:
    for member in group.members.values():
        if member.current is not None:
            target = group.targets.get(member.member_id)
            runs = set(units(member.current.work))
            # Without a target in the log nothing says that a worker is to stop what it runs.
            wanted = runs if group.assignment_epoch is None else set(units(target.work if target else Work()))
            yield from _run(member, runs & wanted, connector, "")
            yield from _run(member, runs - wanted, connector, "revoking ")


def _run(member: Member, runs: set[ConnectorOrTask], connector: str, prefix: str) -> Iterator[_Holding]:
    if connector in runs:
        yield _Holding(member, [None], f"{prefix}connector")
    numbers = [unit[1] for unit in runs if not isinstance(unit, str) and unit[0] == connector]
    yield _Holding(member, numbers, f"{prefix}task")


def _held_by_id(group: ConsumerGroup | ShareGroup, topic_id: str) -> Iterator[_Holding]:
    for member in group.members.values():
        yield _Holding(member, member.assigned.get(topic_id, ()), "assigned")
        if isinstance(member, ConsumerMember):
            yield _Holding(member, member.pending_revocation.get(topic_id, ()), "revoking")


def _held_in_streams(
    group: StreamsGroup, topic: str, known: Topic | None, *, topics_are_known: bool
) -> Iterator[_Holding]:
    """The tasks of the subtopologies that read the topic, as far as it has partitions for them."""
    if known is not None:
        reading, partitions = readers(group.topology, topic), known.partitions
    else:
        reading, partitions = set() if topics_are_known else only_readers(group.topology, topic), sys.maxsize
    for member in group.members.values():
        for prefix, role, held in _tasks_of(member):
            for subtopology_id in reading & held.keys():
                numbers = [partition for partition in held[subtopology_id] if partition < partitions]
                yield _Holding(member, numbers, prefix + role)


def _tasks_of(member: StreamsMember) -> Iterator[tuple[str, str, Mapping[str, Collection[int]]]]:
    """What comes before the role, the role, and the tasks by subtopology."""
    for prefix, tasks in (("", member.assigned), ("revoking ", member.pending_revocation)):
        for role, held in (("active", tasks.active), ("standby", tasks.standby), ("warmup", tasks.warmup)):
            yield prefix, role, held
