"""The targets of a streams group: when one is computed, by which assignor and from which input."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from coordinator_core.assignors.coordinator_view import Process
from coordinator_core.assignors.inputs import StreamsMemberSpec, Tasks
from coordinator_core.coordinator import target_assignment
from coordinator_core.coordinator.lookup import same_units
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.record_templates import target_epoch
from coordinator_core.coordinator.streams import records
from coordinator_core.coordinator.streams.group import LiveStreamsGroup, initial_rebalance_key, process
from coordinator_core.groups.record_types import STREAMS_RECORDS
from coordinator_core.groups.streams.configs import (
    ACCEPTABLE_RECOVERY_LAG,
    ASSIGNOR_NAME,
    NUM_STANDBY_REPLICAS,
    NUM_WARMUP_REPLICAS,
    assignor_name,
    streams_configs,
)
from coordinator_core.groups.streams.state import StreamsMember, TargetTasks
from coordinator_core.groups.streams.topology import ConfiguredTopology


class TaskTarget(NamedTuple):
    """The newest target: its epoch and the member's part of it; what the next one waits for, if it is delayed."""

    epoch: int
    tasks: Tasks
    delayed_by: str = ""


def assignment_configs(op: Operation, group_id: str) -> Mapping[str, str]:
    """Return the group's configurations that an assignment depends on."""
    config = op.memory.group_config(group_id)
    if not op.memory.profile.is_kip_1071:
        return _configs(config.streams_num_standby_replicas)
    return _configs(
        config.streams_num_standby_replicas,
        config.streams_num_warmup_replicas,
        config.streams_acceptable_recovery_lag,
        config.streams_assignor_name,
    )


# Asked for in each heartbeat, and few groups have settings of their own.
@lru_cache
def _configs(
    standbys: int, warmups: int | None = None, lag: int | None = None, assignor: str | None = None
) -> Mapping[str, str]:
    """The configurations as records have them; those that are None are not in it."""
    values = {
        NUM_STANDBY_REPLICAS: standbys,
        NUM_WARMUP_REPLICAS: warmups,
        ACCEPTABLE_RECOVERY_LAG: lag,
        ASSIGNOR_NAME: assignor,
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def update_target(
    op: Operation, group: LiveStreamsGroup, epoch: int, topology: ConfiguredTopology, member: StreamsMember
) -> TaskTarget:
    """Compute the target of a newer epoch, unless the first one waits for members or the last one is too recent."""
    if group.assignment_epoch >= epoch:
        return TaskTarget(group.assignment_epoch, _present_target(group, member))
    interval = op.memory.group_config(group.group_id).streams_assignment_interval_ms
    if initial_rebalance_key(group.group_id) in op.memory.timers:
        return TaskTarget(group.assignment_epoch, Tasks(), "initial rebalance delay")
    if not group.may_compute_target(op.now, interval):
        return TaskTarget(group.assignment_epoch, _present_target(group, member), "assignment interval")
    targets = compute_target(op, group, epoch, topology, assignment_configs(op, group.group_id), member)
    return TaskTarget(epoch, targets.get(member.member_id, Tasks()))


def _present_target(group: LiveStreamsGroup, member: StreamsMember) -> Tasks:
    """The member's part of the target that there is; a static member takes on that of its former self."""
    if member.instance_id is None:
        return group.target(member.member_id)
    former = group.static_member(member.instance_id)
    return group.target(member.member_id if former is None else former.member_id)


def has_warmed_up(op: Operation, group: LiveStreamsGroup, member: StreamsMember) -> bool:
    """Whether a warm-up task of the member's target has caught up, by what members report (KIP-1071).

    False while another target is to be computed anyway.
    """
    if group.group_epoch > group.assignment_epoch:
        return False
    acceptable = op.memory.group_config(group.group_id).streams_acceptable_recovery_lag
    held = member.assigned.warmup
    for subtopology_id, partitions in group.target(member.member_id).warmup.items():
        for partition in partitions:
            lag = group.task_offsets.lag(member.process_id or "", (subtopology_id, partition))
            if partition in held.get(subtopology_id, ()) and lag is not None and lag <= acceptable:
                return True
    return False


def compute_target(
    op: Operation,
    group: LiveStreamsGroup,
    epoch: int,
    topology: ConfiguredTopology,
    configs: Mapping[str, str],
    updated: StreamsMember | None = None,
) -> Mapping[str, Tasks]:
    """Compute and write the target of this epoch, and return it; it is empty for a topology that is not ready."""
    kip_1071 = op.memory.profile.is_kip_1071
    updates = {} if updated is None else _updates(group, updated)
    subtopologies = topology.tasks
    spec = group.view.spec(subtopologies, streams_configs(configs), updates)
    if kip_1071:
        stale = _stale_members(group, topology.epoch, updated)
        spec = replace(spec, members=_with_offsets(group, spec.members), stale=stale)
    targets: Mapping[str, Tasks] = {}
    if topology.problem is None:
        stateful = any(subtopology.stateful for subtopology in subtopologies)
        name = assignor_name(configs, stateful=stateful, kip_1071=kip_1071)
        targets = target_assignment.compute_target(name, spec, op.topics, epoch, op.memory.profile)
    written = group.log.targets
    for member_id, target in target_assignment.changed_targets(spec.members, written, targets, Tasks(), _same):
        op.write(*records.target_assignment(group.group_id, member_id, target))
    op.write(*target_epoch(STREAMS_RECORDS, group.group_id, epoch, op.now))
    return targets


def _updates(group: LiveStreamsGroup, updated: StreamsMember) -> dict[str, Process | None]:
    """What changes in the group by this member; a static one takes the place of its former self."""
    updates: dict[str, Process | None] = {updated.member_id: process(updated)}
    former = group.static_member(updated.instance_id)
    if former is not None and former.member_id != updated.member_id:
        updates[former.member_id] = None
    return updates


def _with_offsets(group: LiveStreamsGroup, members: Mapping[str, StreamsMemberSpec]) -> dict[str, StreamsMemberSpec]:
    """The members with what is known of the state that their processes hold."""
    of_process = {member.process_id: group.task_offsets.of_process(member.process_id) for member in members.values()}
    return {
        member_id: replace(
            member,
            task_offsets=of_process[member.process_id],
            task_end_offsets=group.task_offsets.ends_of_member(member_id),
        )
        for member_id, member in members.items()
    }


def _stale_members(group: LiveStreamsGroup, topology_epoch: int, updated: StreamsMember | None) -> set[str]:
    """The members whose topology is older than the group's."""
    members = dict(group.log.members)
    if updated is not None:
        members[updated.member_id] = updated
    return {member_id for member_id, member in members.items() if (member.topology_epoch or 0) < topology_epoch}


def _same(before: TargetTasks, after: Tasks) -> bool:
    return (
        same_units(before.active, after.active)
        and same_units(before.standby, after.standby)
        and same_units(before.warmup, after.warmup)
    )
