"""Removal of offsets that are no longer needed: expired ones, and those of deleted topics."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.memory import LiveGroup
from coordinator_core.coordinator.offset_fetch import is_subscribed, write_tombstones
from coordinator_core.coordinator.operation import Operation
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.offsets import Commit, TopicPartition


def clean_up(op: Operation) -> None:
    """Remove expired offsets, and each group without members that has no offsets left, as a broker does every ten
    minutes.
    """
    for group_id, group in list(op.memory.live.items()):
        if group.type is GroupType.SHARE:
            continue
        offsets = op.memory.log.offsets_of(group_id)
        if offsets.committed:
            expired = _expired(op, group)
            write_tombstones(op, group_id, expired)
            if len(expired) < len(offsets.committed):
                continue
        if not any(offsets.pending.values()) and group.is_empty:
            op.erase(group)


def _expired(op: Operation, group: LiveGroup) -> list[TopicPartition]:
    """The offsets of the group that are older than the retention time, as the group's type counts it."""
    offsets = op.memory.log.offsets_of(group.group_id)
    in_transaction = {partition for commits in offsets.pending.values() for partition in commits}
    retention = op.memory.config.offsets_retention_minutes * 60_000
    expired = []
    for partition, commit in offsets.committed.items():
        since = _unused_since(group, commit)
        # An open transaction would bring the offset back when it ends, and a subscribed topic is still read.
        if since is None or partition in in_transaction or is_subscribed(group, partition.topic):
            continue
        # A few old clients bring an expiry time of their own.
        expires = since + retention if commit.expire_timestamp is None else commit.expire_timestamp
        if op.now >= expires:
            expired.append(partition)
    return expired


def _unused_since(group: LiveGroup, commit: Commit) -> int | None:
    """Since when the offset counts as unused, in milliseconds; None: it does not."""
    if not isinstance(group, LiveClassicGroup) or group.protocol_type is None:
        return commit.commit_timestamp
    if group.state is ClassicGroupState.EMPTY:
        return commit.commit_timestamp if group.state_timestamp_ms == -1 else group.state_timestamp_ms
    knows_topics = group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.subscribed_topics is not None
    return commit.commit_timestamp if knows_topics and group.state is ClassicGroupState.STABLE else None


def topics_deleted(op: Operation, topics: Mapping[str, str]) -> None:
    """Remove the offsets of deleted topics (name to id)."""
    for group_id, offsets in op.memory.log.offsets.groups.items():
        # Offsets of open transactions, too: they would come back with the end of the transaction.
        for commits in (offsets.committed, *offsets.pending.values()):
            write_tombstones(
                op,
                group_id,
                [
                    partition
                    for partition, commit in commits.items()
                    if partition.topic in topics and commit.topic_id in (None, topics[partition.topic])
                ],
            )
