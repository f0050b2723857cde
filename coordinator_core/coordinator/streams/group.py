"""A streams group as its coordinator keeps it in memory: the log's state, and what is kept besides."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from coordinator_core.assignors.coordinator_view import Process, StreamsView
from coordinator_core.assignors.inputs import Tasks
from coordinator_core.coordinator.epoch_group import LiveEpochGroup
from coordinator_core.coordinator.record_templates import Unwritten, tombstones_of_all
from coordinator_core.coordinator.streams.records import NOT_VALIDATED
from coordinator_core.coordinator.streams.task_offsets import TaskOffsets
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.record_types import STREAMS_RECORDS
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.streams.state import CurrentTasks, StreamsGroup, StreamsMember
from coordinator_core.groups.streams.topology import ConfiguredTopology, required_topics
from coordinator_core.records import CoordinatorRecord, Fields, RecordType


@dataclass(frozen=True, slots=True)
class ClassicThread:
    """What a member that speaks the classic protocol sent in its last JoinGroup; no record of the streams group has it.

    A new coordinator asks such a member to join again, to get it again.
    """

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


NO_TASKS = Tasks()
Holders = dict[tuple[str, int], set[str]]
"""Task to the processes that hold it. As in Kafka one counts once, however many of its members hold the task."""


def initial_rebalance_key(group_id: str) -> str:
    """Return the key of the timer that holds back the first assignment until more members have joined."""
    return f"initial-rebalance-timeout-{group_id}"


@dataclass(slots=True)
class LiveStreamsGroup(LiveEpochGroup[StreamsGroup]):
    """A streams group.

    ``view`` holds the assignor's input; ``active``, ``standby`` and ``warmup`` say which processes have a task, also
    while they still have to revoke it. Soft state: ``configured`` is the topology on the topics at the last check
    (``topics_version``: with its image), ``endpoint_epoch`` the version of what members know about each other's
    endpoints, ``known_endpoints`` what was last sent about each member's endpoint until its record or its tasks change,
    ``shutdown_member`` the member that asked to shut down the application, ``task_offsets`` what members reported,
    ``classic`` the members that still speak the classic protocol (KIP-1071, online migration), ``acknowledged`` those
    that have reported the tasks that they were given (KIP-1071: these are sent until they do).
    """

    type: ClassVar = GroupType.STREAMS

    log: StreamsGroup = field(default_factory=StreamsGroup)
    view: StreamsView = field(default_factory=StreamsView)
    active: Holders = field(default_factory=dict)
    standby: Holders = field(default_factory=dict)
    warmup: Holders = field(default_factory=dict)
    configured: ConfiguredTopology | None = None
    topics_version: int = -1
    task_offsets: TaskOffsets = field(default_factory=TaskOffsets)
    classic: dict[str, ClassicThread] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    endpoint_epoch: int = 0
    known_endpoints: dict[str, Fields] = field(default_factory=dict)
    shutdown_member: str | None = None

    @property
    def validated_topology_epoch(self) -> int:
        """The epoch of the topology for which all topics were found; -1: there is none."""
        epoch = self.log.validated_topology_epoch
        return NOT_VALIDATED if epoch is None else epoch

    @property
    def timer_keys(self) -> Collection[str]:
        """The key of the delay of the first assignment, which ends with the group."""
        return (initial_rebalance_key(self.group_id),)

    def tombstones(self) -> list[Unwritten]:
        """Return the tombstones of all records of the group; that of its topology is last."""
        key = {"groupId": self.group_id}
        return [
            *tombstones_of_all(STREAMS_RECORDS, self.group_id, list(self.view.members)),
            (RecordType.STREAMS_GROUP_METADATA, key, None),
            (RecordType.STREAMS_GROUP_TOPOLOGY, key, None),
        ]

    def static_member(self, instance_id: str | None) -> StreamsMember | None:
        """Return the member that holds that instance id."""
        member_id = None if instance_id is None else self.view.static.get(instance_id)
        return None if member_id is None else self.log.members.get(member_id)

    def target(self, member_id: str) -> Tasks:
        """Return the member's part of the present target."""
        return self.view.targets.get(member_id) or NO_TASKS

    def follow(self, record: CoordinatorRecord, log: CoordinatorShard) -> tuple[set[str], set[str]]:
        """Apply a record to the log state and update the indices; return topics that the topology needs now, and
        no longer needs.
        """
        member_id = record.member_id or ""
        before = set(required_topics(self.log.topology))
        moves = record.type in (
            RecordType.STREAMS_GROUP_MEMBER_METADATA,
            RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        )
        old = self.log.members.get(member_id)
        # Before the record is applied: afterwards it is not known any more which tasks the member had.
        if moves and old is not None:
            self._note(old, holds=False)
        self._apply(record, log)
        new = self.log.members.get(member_id)
        if moves and new is not None:
            self._note(new, holds=True)
        if moves:
            self.known_endpoints.pop(member_id, None)
        if record.type == RecordType.STREAMS_GROUP_MEMBER_METADATA and new is None:
            self.view.remove_member(member_id)
            self.task_offsets.forget(member_id)
            self.classic.pop(member_id, None)
            self.acknowledged.discard(member_id)
        elif moves and new is not None:
            # Kafka puts the member into its map again for each of the two records, which can make the map grow.
            self.view.put_member(member_id, process(new))
        elif record.type == RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER:
            target = self.log.targets.get(member_id)
            if target is None:
                self.view.remove_target(member_id)
            else:
                self.view.put_target(member_id, Tasks(target.active, target.standby, target.warmup))
        if not self.log.members:
            self.shutdown_member = None
        if record.type != RecordType.STREAMS_GROUP_TOPOLOGY:
            return set(), set()
        after = set(required_topics(self.log.topology))
        return after - before, before - after

    def _note(self, member: StreamsMember, *, holds: bool) -> None:
        name = member.process_id or ""
        for tasks in (member.assigned, member.pending_revocation):
            for held, holders in _roles(tasks, self):
                for subtopology_id, partitions in held.items():
                    for partition in partitions:
                        _hold(holders, (subtopology_id, partition), name, holds=holds)


def _roles(
    tasks: CurrentTasks, group: LiveStreamsGroup
) -> tuple[tuple[Mapping[str, list[int] | dict[int, int]], Holders], ...]:
    return (tasks.active, group.active), (tasks.standby, group.standby), (tasks.warmup, group.warmup)


def _hold(holders: Holders, task: tuple[str, int], name: str, *, holds: bool) -> None:
    if holds:
        holders.setdefault(task, set()).add(name)
        return
    processes = holders.get(task)
    if processes is not None:
        processes.discard(name)
        if not processes:
            del holders[task]


def process(member: StreamsMember) -> Process:
    """Return the member as the assignor sees it."""
    return Process(member.process_id or "", member.instance_id, member.rack_id, member.client_tags)
