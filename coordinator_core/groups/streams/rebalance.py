"""The steps that every join and heartbeat of a streams group takes: topology, epoch, target, the member's way there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from coordinator_core.assignors.presented import Process
from coordinator_core.assignors.registry import assign
from coordinator_core.assignors.spec import Assignment, StreamsConfigs, StreamsMemberSpec, Subtopology, Tasks
from coordinator_core.errors import AssignorError
from coordinator_core.groups.consumer.timeouts import rebalance_key
from coordinator_core.groups.lookup import same_units
from coordinator_core.groups.operation import Operation
from coordinator_core.groups.protocol import ApiError, ErrorCode
from coordinator_core.groups.streams import records
from coordinator_core.groups.streams.live import LiveStreamsGroup, process
from coordinator_core.groups.streams.reconcile import OwnedTasks, reconcile
from coordinator_core.groups.streams.sources import has_regexes, resolved
from coordinator_core.groups.streams.stale import retain_only
from coordinator_core.groups.streams.state import MemberState, StreamsMember, TargetTasks, Topology
from coordinator_core.groups.streams.topology import ConfiguredTopology, TopologyProblem, configure, required_topics

NUM_STANDBY_REPLICAS = "num.standby.replicas"
"""The configuration of the assignment that a release records with the group epoch."""
NUM_WARMUP_REPLICAS = "num.warmup.replicas"
ACCEPTABLE_RECOVERY_LAG = "acceptable.recovery.lag"
ASSIGNOR_NAME = "assignor.name"
"""More configurations of the assignment (KIP-1071), recorded in the same way."""
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
    config = op.memory.group_config(group_id)
    configs = {NUM_STANDBY_REPLICAS: str(config.streams_num_standby_replicas)}
    if op.memory.profile.is_kip_1071:
        configs[NUM_WARMUP_REPLICAS] = str(config.streams_num_warmup_replicas)
        configs[ACCEPTABLE_RECOVERY_LAG] = str(config.streams_acceptable_recovery_lag)
        if config.streams_assignor_name is not None:
            configs[ASSIGNOR_NAME] = config.streams_assignor_name
    return configs


def assignor_name(topology: ConfiguredTopology, configs: Mapping[str, str], *, kip_1071: bool) -> str:
    """``sticky`` in the release; in KIP-1071 the configured one, else the one for topologies with or without state."""
    if not kip_1071:
        return "sticky"
    stateful = any(each.state_changelog_topics for each in topology.subtopologies.values())
    return configs.get(ASSIGNOR_NAME) or ("highly_available" if stateful else "sticky")


def look_at_topics(op: Operation, group: LiveStreamsGroup, topology: Topology) -> Configuration:
    """Configure the topology on the topics of now if they, or it, may have changed.

    Raises ApiError for a topology that cannot be configured on any topics.
    """
    is_new = group.log.topology is None or topology.epoch > group.log.topology.epoch
    news = group.topics_version != op.topics.version and has_regexes(topology)
    if not is_new and not news and group.configured is not None and not group.metadata_expired(op.now):
        return Configuration(group.configured, group.metadata_hash, False)
    group.topics_version = op.topics.version
    metadata_hash = op.memory.metadata_hash(set(required_topics(resolved(topology, op.topics))), op.topics)
    changed = metadata_hash != group.metadata_hash
    if is_new or changed or group.configured is None:
        configured = configure(topology, op.topics)
        if configured.problem is TopologyProblem.INVALID_TOPOLOGY:
            raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, configured.detail)
        group.configured = configured
        group.known_endpoints.clear()
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
    kip_1071 = op.memory.profile.is_kip_1071
    updates = {} if updated is None else _updates(group, updated)
    subtopologies = [
        Subtopology(subtopology_id, each.tasks, bool(each.state_changelog_topics))
        for subtopology_id, each in topology.subtopologies.items()
    ]
    spec = group.view.spec(subtopologies, _streams_configs(configs), updates)
    if kip_1071:
        spec = replace(spec, members=_with_offsets(group, spec.members))
    assignment: Assignment[Tasks] = Assignment({})
    if topology.problem is None:
        try:
            name = assignor_name(topology, configs, kip_1071=kip_1071)
            assignment = assign(name, spec, op.topics, op.memory.profile)
        except AssignorError as error:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Failed to compute a new target assignment for epoch {epoch}: {error.message}",
            ) from error
    targets = assignment.members
    if kip_1071 and (stale := _stale_members(group, topology.epoch, updated)):
        before = {member_id: each.previous for member_id, each in spec.members.items()}
        targets = {member_id: targets.get(member_id, Tasks()) for member_id in spec.members}
        processes = {member_id: each.process_id for member_id, each in spec.members.items()}
        targets = retain_only(targets, stale, before, processes)
    for member_id in spec.members:
        target = targets.get(member_id, Tasks())
        known = group.log.targets.get(member_id)
        if known is None or not _same(known, target):
            op.write(*records.target_assignment(group.group_id, member_id, target))
    op.write(*records.target_epoch(group.group_id, epoch, op.now))
    return targets


def _updates(group: LiveStreamsGroup, updated: StreamsMember) -> dict[str, Process | None]:
    """What changes in the group by this member; a static one takes the place of its former self."""
    updates: dict[str, Process | None] = {updated.member_id: process(updated)}
    former = group.static_member(updated.instance_id)
    if former is not None and former.member_id != updated.member_id:
        updates[former.member_id] = None
    return updates


def _streams_configs(configs: Mapping[str, str]) -> StreamsConfigs:
    default = StreamsConfigs()
    return StreamsConfigs(
        int(configs.get(NUM_STANDBY_REPLICAS, default.num_standby_replicas)),
        int(configs.get(NUM_WARMUP_REPLICAS, default.num_warmup_replicas)),
        int(configs.get(ACCEPTABLE_RECOVERY_LAG, default.acceptable_recovery_lag)),
    )


def _with_offsets(group: LiveStreamsGroup, members: Mapping[str, StreamsMemberSpec]) -> dict[str, StreamsMemberSpec]:
    """The members with what is known of the state that their processes hold."""
    of_process = {each.process_id: group.task_offsets.of_process(each.process_id) for each in members.values()}
    return {
        member_id: replace(
            each,
            task_offsets=of_process[each.process_id],
            task_end_offsets=group.task_offsets.of_member(member_id)[1],
        )
        for member_id, each in members.items()
    }


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
