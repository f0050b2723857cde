"""Rules of what share and streams groups assign from: initialised share partitions, and the topology."""

from __future__ import annotations

from coordinator_core.audit.rules.epochs import on_target
from coordinator_core.audit.rules.group_types import SHARE_KIND, STREAMS_KIND
from coordinator_core.audit.rules.judged_group import JudgedGroup
from coordinator_core.audit.rules.known_facts import SHARE_STATE, TOPOLOGY
from coordinator_core.groups.epochs import Partitions
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.groups.violations import Rule
from coordinator_core.record_fields.share_group import ShareGroupTargetAssignmentMemberRecord
from coordinator_core.record_fields.streams_group import (
    StreamsGroupTargetAssignmentMemberRecord,
    StreamsGroupTopologyRecord,
)
from coordinator_core.records import CoordinatorRecord


def share_target_before(scene: JudgedGroup, record: ShareGroupTargetAssignmentMemberRecord) -> Partitions | None:
    """Return the member's target before the record; None if the log may not have shown it."""
    state, member_id = scene.group.state, record.key["memberId"]
    if not scene.watch.knows_member("target", member_id):
        return None
    return state.targets.get(member_id, {}) if isinstance(state, ShareGroup) else {}


def on_share_target(
    scene: JudgedGroup, record: ShareGroupTargetAssignmentMemberRecord, before: Partitions | None
) -> None:
    """Judge a target of a share group: it contains only partitions whose share state was initialised (KIP-932)."""
    on_target(SHARE_KIND, scene, record)
    state, member_id = scene.group.state, record.key["memberId"]
    if record.value is None or before is None or not isinstance(state, ShareGroup):
        return
    if not scene.watch.knows(SHARE_STATE):
        return
    ready = state.state_partitions.initialized if state.state_partitions is not None else {}
    for topic_id, partitions in state.targets[member_id].items():
        known = ready.get(topic_id)
        new = set(partitions) - set(before.get(topic_id, ()))  # the target of a deleted topic may stay
        missing = sorted(new - set(known.partitions if known is not None else ()))
        if missing:
            detail = f"{topic_id}-{missing[0]} has no share state"
            scene.broken(Rule.SHARE_STATE_MISSING, record.at, member_id, detail)


def on_share_state(scene: JudgedGroup, record: CoordinatorRecord, before: None) -> None:
    """Take in which share partitions have a state, for the targets that follow."""
    scene.watch.note(SHARE_STATE, record.at)


def topology_epoch_before(scene: JudgedGroup, record: CoordinatorRecord) -> int | None:
    """Return the epoch of the topology before the record."""
    state = scene.group.state
    return state.topology.epoch if isinstance(state, StreamsGroup) and state.topology is not None else None


def on_topology(scene: JudgedGroup, record: StreamsGroupTopologyRecord, before: int | None) -> None:
    """Judge the topology of a streams group: its epoch never decreases (KIP-1071)."""
    watch = scene.watch
    known = watch.knows(TOPOLOGY)
    watch.note(TOPOLOGY, record.at)
    if record.value is not None and known and before is not None and record.value["epoch"] < before:
        detail = f"topology epoch {record.value['epoch']} follows {before}"
        scene.broken(Rule.TOPOLOGY_EPOCH_WRONG, record.at, None, detail)


def on_streams_target(scene: JudgedGroup, record: StreamsGroupTargetAssignmentMemberRecord, before: None) -> None:
    """Judge a target of a streams group: its tasks belong to subtopologies that exist."""
    on_target(STREAMS_KIND, scene, record)
    state, member_id = scene.group.state, record.key["memberId"]
    if record.value is None or not isinstance(state, StreamsGroup) or not scene.watch.knows(TOPOLOGY):
        return
    known = {each.subtopology_id for each in state.topology.subtopologies} if state.topology is not None else set()
    strange = sorted({what for _, what in STREAMS_KIND.wanted(state.targets[member_id])} - known)
    if strange:
        scene.broken(Rule.TASK_OUTSIDE_TOPOLOGY, record.at, member_id, f"the topology has no subtopology {strange[0]}")
