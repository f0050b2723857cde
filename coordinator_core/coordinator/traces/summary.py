"""The few figures of a group that a trace has after each step."""

from __future__ import annotations

from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.describe_api import group_state, kafka_name
from coordinator_core.coordinator.epoch_group import LiveEpochGroup
from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.records import Fields


def summary(memory: CoordinatorState, group_id: str) -> Fields | None:
    """Return the group's type, state, epochs and sizes; None if there is no such group."""
    group = memory.live.get(group_id)
    if group is None:
        return None
    figures: Fields = {"type": str(group.type).lower(), "state": kafka_name(group_state(group))}
    if isinstance(group, LiveEpochGroup):
        figures |= {
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            "metadata_hash": group.metadata_hash,
            "members": len(group.log.members),
        }
        if isinstance(group, LiveStreamsGroup):
            figures["validated_topology_epoch"] = group.validated_topology_epoch
            figures["endpoint_information_epoch"] = group.endpoint_epoch
    elif isinstance(group, LiveClassicGroup):
        figures |= {
            "generation": group.generation,
            "protocol_type": group.protocol_type,
            "protocol": group.protocol,
            "leader": group.leader,
            "members": len(group.members),
            "pending_members": len(group.pending_join),
            "awaiting_join": group.awaiting_join,
        }
    return figures
