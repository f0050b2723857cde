"""The steps of every join and heartbeat of a streams group: topology, epoch, then the member's own way to its
target.
"""

from typing import NamedTuple

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.coordinator.member_timers import expect_revocation
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.coordinator.streams import records
from coordinator_core.coordinator.streams.group import LiveStreamsGroup, initial_rebalance_key
from coordinator_core.coordinator.streams.reconcile import OwnedTasks, reconcile
from coordinator_core.coordinator.streams.targets import assignment_configs, compute_target
from coordinator_core.groups.streams.sources import has_regexes, resolved
from coordinator_core.groups.streams.state import StreamsMember, Topology
from coordinator_core.groups.streams.topology import ConfiguredTopology, TopologyProblem, configure, required_topics

INITIAL_REBALANCE = "streams initial rebalance"


class TopologyOnTopics(NamedTuple):
    """The topology on the present topics, the hash of the topics, and whether it differs from before."""

    topology: ConfiguredTopology
    metadata_hash: int
    changed: bool


def look_at_topics(op: Operation, group: LiveStreamsGroup, topology: Topology) -> TopologyOnTopics:
    """Configure the topology on the present topics if the topics or the topology may have changed.

    Raises ApiError for a topology that cannot be configured on any topics.
    """
    is_new = group.log.topology is None or topology.epoch > group.log.topology.epoch
    # A regex may match a new topic while all topics that are known so far, and so their hash, are as before.
    news = group.topics_version != op.topics.version and has_regexes(topology)
    if not is_new and not news and group.configured is not None and not group.metadata_expired(op.now):
        return TopologyOnTopics(group.configured, group.metadata_hash, False)
    group.topics_version = op.topics.version
    metadata_hash = op.memory.metadata_hash(set(required_topics(resolved(topology, op.topics))), op.topics)
    changed = metadata_hash != group.metadata_hash
    if is_new or changed or group.configured is None:
        configured = configure(topology, op.topics)
        if configured.problem is TopologyProblem.INVALID_TOPOLOGY:
            raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, configured.detail)
        group.configured = configured
        group.known_endpoints.clear()
    return TopologyOnTopics(group.configured, metadata_hash, changed)


def update_epoch(op: Operation, group: LiveStreamsGroup, configuration: TopologyOnTopics, *, bump: bool) -> int:
    """Return the group epoch after this request. It is bumped if requested, or if topics, topology or
    configurations changed.
    """
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
    """Begin the wait for more members when the first member joins, unless it has begun already."""
    delay = op.memory.group_config(group.group_id).streams_initial_rebalance_delay_ms
    key = initial_rebalance_key(group.group_id)
    # The records of this request are not applied yet: the group is still empty if its first member joins.
    if group.is_empty and delay > 0 and key not in op.memory.timers:
        op.arm(key, delay, INITIAL_REBALANCE, group.group_id)


def first_assignment(op: Operation, group_id: str) -> None:
    """Compute a target for all members after the initial delay, unless the last target is too recent."""
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


def move(
    op: Operation, group: LiveStreamsGroup, member: StreamsMember, epoch: int, target: Tasks, owned: OwnedTasks
) -> StreamsMember:
    """Return the member after its step towards the target; the record is written if something changes."""
    moved = reconcile(group, member, epoch, target, owned)
    if moved is member or moved == member:
        return moved
    op.write(*records.current_assignment(group.group_id, moved))
    expect_revocation(op, group, moved)
    return moved
