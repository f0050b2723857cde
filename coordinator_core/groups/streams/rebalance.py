"""The steps that every join and heartbeat of a streams group takes: topology, epoch, target, the member's way there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from coordinator_core.assignors.presented import Process
from coordinator_core.assignors.profiles import KIP_1071
from coordinator_core.assignors.registry import assign
from coordinator_core.assignors.spec import Assignment, StreamsConfigs, Subtopology, Tasks
from coordinator_core.errors import AssignorError
from coordinator_core.groups.consumer.timeouts import rebalance_key
from coordinator_core.groups.lookup import same_units
from coordinator_core.groups.operation import Operation
from coordinator_core.groups.protocol import ApiError, ErrorCode
from coordinator_core.groups.streams import records
from coordinator_core.groups.streams.live import LiveStreamsGroup, process
from coordinator_core.groups.streams.reconcile import OwnedTasks, reconcile
from coordinator_core.groups.streams.stale import retain_only
from coordinator_core.groups.streams.state import MemberState, StreamsMember, TargetTasks, Topology
from coordinator_core.groups.streams.topology import ConfiguredTopology, TopologyProblem, configure, required_topics

ASSIGNOR = "sticky"
NUM_STANDBY_REPLICAS = "num.standby.replicas"
"""The configuration of the assignment that is recorded with the group epoch."""
INITIAL_REBALANCE = "streams initial rebalance"
REVOCATION_EXPIRED = "streams revocation expired"


class Configuration(NamedTuple):
    """The topology on the topics of now, the hash of the topics, and whether it is another than before."""

    topology: ConfiguredTopology
    metadata_hash: int
    changed: bool


def initial_rebalance_key(group_id: str) -> str:
    """The key of the timer that holds back the first assignment until more members have joined."""
    return f"initial-rebalance-timeout-{group_id}"


def assignment_configs(op: Operation, group_id: str) -> dict[str, str]:
    """The group's configurations that an assignment depends on."""
    return {NUM_STANDBY_REPLICAS: str(op.memory.group_config(group_id).streams_num_standby_replicas)}


def look_at_topics(op: Operation, group: LiveStreamsGroup, topology: Topology) -> Configuration:
    """Configure the topology on the topics of now if they, or it, may have changed.

    Raises ApiError for a topology that cannot be configured on any topics.
    """
    is_new = group.log.topology is None or topology.epoch > group.log.topology.epoch
    if not is_new and group.configured is not None and not group.metadata_expired(op.now):
        return Configuration(group.configured, group.metadata_hash, False)
    metadata_hash = op.memory.metadata_hash(set(required_topics(topology)), op.topics)
    changed = metadata_hash != group.metadata_hash
    if is_new or changed or group.configured is None:
        configured = configure(topology, op.topics)
        if configured.problem is TopologyProblem.INVALID_TOPOLOGY:
            raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, configured.detail)
        group.configured = configured
    return Configuration(group.configured, metadata_hash, changed)


def update_epoch(op: Operation, group: LiveStreamsGroup, configuration: Configuration, *, bump: bool) -> int:
    """The group epoch after this request: bumped if asked for, and if topics, topology or configurations changed."""
    topology = configuration.topology
    validated = topology.epoch if topology.problem is None else records.NOT_VALIDATED
    configs = assignment_configs(op, group.group_id)
    if not (
        bump
        or configuration.changed
        or validated != group.validated_topology_epoch
        or configs != group.log.last_assignment_configs
    ):
        return group.group_epoch
    epoch = group.group_epoch + 1
    op.write(*records.group_epoch(group.group_id, epoch, configuration.metadata_hash, validated, configs))
    group.metadata_seen(op.now, epoch)
    return epoch


def delay_first_assignment(op: Operation, group: LiveStreamsGroup) -> None:
    """The first member joins: wait a while for others, unless that has begun already."""
    delay = op.memory.group_config(group.group_id).streams_initial_rebalance_delay_ms
    key = initial_rebalance_key(group.group_id)
    if group.is_empty and delay > 0 and key not in op.memory.timers:
        op.arm(key, delay, INITIAL_REBALANCE, group.group_id)


def first_assignment(op: Operation, group_id: str) -> None:
    """The initial delay is over: a target for whoever has joined, unless the last one is too young."""
    group = op.memory.live.get(group_id)
    interval = op.memory.group_config(group_id).streams_assignment_interval_ms
    if (
        not isinstance(group, LiveStreamsGroup)
        or group.is_empty
        or group.configured is None
        or group.group_epoch <= group.assignment_epoch
        or not group.may_compute_target(op.now, interval)
    ):
        return
    compute_target(op, group, group.group_epoch, group.configured, group.log.last_assignment_configs)


def compute_target(
    op: Operation,
    group: LiveStreamsGroup,
    epoch: int,
    topology: ConfiguredTopology,
    configs: Mapping[str, str],
    updated: StreamsMember | None = None,
) -> Mapping[str, Tasks]:
    """The target for this epoch, written; nobody gets anything from a topology that is not ready."""
    updates: dict[str, Process | None] = {} if updated is None else {updated.member_id: process(updated)}
    subtopologies = [
        Subtopology(subtopology_id, each.tasks, bool(each.state_changelog_topics))
        for subtopology_id, each in topology.subtopologies.items()
    ]
    standbys = int(configs.get(NUM_STANDBY_REPLICAS, 0))
    spec = group.view.spec(subtopologies, StreamsConfigs(num_standby_replicas=standbys), updates)
    assignment: Assignment[Tasks] = Assignment({})
    if topology.problem is None:
        try:
            assignment = assign(ASSIGNOR, spec, op.topics, op.memory.profile)
        except AssignorError as error:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Failed to compute a new target assignment for epoch {epoch}: {error.message}",
            ) from error
    targets = assignment.members
    if op.memory.profile.name == KIP_1071:
        stale = _stale_members(group, topology.epoch, updated)
        targets = retain_only({each: targets.get(each, Tasks()) for each in spec.members}, stale, group.view.targets)
    for member_id in spec.members:
        target = targets.get(member_id, Tasks())
        before = group.log.targets.get(member_id)
        if before is None or not _same(before, target):
            op.write(*records.target_assignment(group.group_id, member_id, target))
    op.write(*records.target_epoch(group.group_id, epoch, op.now))
    return targets


def _stale_members(group: LiveStreamsGroup, topology_epoch: int, updated: StreamsMember | None) -> set[str]:
    """The members whose topology is older than the group's."""
    members = dict(group.log.members)
    if updated is not None:
        members[updated.member_id] = updated
    return {member_id for member_id, each in members.items() if (each.topology_epoch or 0) < topology_epoch}


def _same(before: TargetTasks, after: Tasks) -> bool:
    return (
        same_units(before.active, after.active)
        and same_units(before.standby, after.standby)
        and same_units(before.warmup, after.warmup)
    )


def move(
    op: Operation, group: LiveStreamsGroup, member: StreamsMember, epoch: int, target: Tasks, owned: OwnedTasks
) -> StreamsMember:
    """The member's step towards the target; written if it changes anything."""
    moved = reconcile(group, member, epoch, target, owned)
    if moved is member or moved == member:
        return moved
    op.write(*records.current_assignment(group.group_id, moved))
    if moved.state == MemberState.UNREVOKED_TASKS:
        expect_revocation(op, group.group_id, moved)
    else:
        op.cancel(rebalance_key(group.group_id, moved.member_id))
    return moved


def expect_revocation(op: Operation, group_id: str, member: StreamsMember) -> None:
    """Expect the member to leave its epoch, by giving up tasks, within its rebalance timeout."""
    key, timeout = rebalance_key(group_id, member.member_id), member.rebalance_timeout_ms
    op.arm(key, timeout, REVOCATION_EXPIRED, group_id, member.member_id, member.member_epoch)
