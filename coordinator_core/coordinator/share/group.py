"""A share group as its coordinator keeps it in memory: the log's state, and what is derived from the records."""

from dataclasses import dataclass, field
from typing import ClassVar

from coordinator_core.assignors.coordinator_view import Subscriber, SubscriptionView
from coordinator_core.assignors.inputs import AssignedGroupType as AssignedType
from coordinator_core.coordinator.epoch_group import LiveEpochGroup
from coordinator_core.coordinator.record_templates import Unwritten, tombstones_of_all
from coordinator_core.coordinator.subscriptions import Subscriptions
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.record_types import SHARE_RECORDS
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.state import ShareGroup, ShareMember, StatePartitionMetadata
from coordinator_core.records import CoordinatorRecord, RecordType


@dataclass(slots=True)
class LiveShareGroup(LiveEpochGroup[ShareGroup]):
    """A share group.

    ``view`` holds the assignor's input, in the order of Kafka's collections; ``initializing_since_ms`` is when the
    share partitions that get their state were last written. ``pending`` caches until the next record whether the target
    lacks partitions that have their state.
    """

    type: ClassVar = GroupType.SHARE

    log: ShareGroup = field(default_factory=ShareGroup)
    view: SubscriptionView = field(default_factory=lambda: SubscriptionView(AssignedType.SHARE))
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    initializing_since_ms: int = 0
    pending: bool | None = None

    @property
    def share_partitions(self) -> StatePartitionMetadata:
        """The share partitions that have state, get it or lose it; empty before any were written."""
        return self.log.state_partitions or StatePartitionMetadata()

    def tombstones(self) -> list[Unwritten]:
        """Return the tombstones of all records of the group."""
        key = {"groupId": self.group_id}
        return [
            *tombstones_of_all(SHARE_RECORDS, self.group_id, list(self.view.members)),
            (RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, key, None),
            (RecordType.SHARE_GROUP_METADATA, key, None),
        ]

    def follow(self, record: CoordinatorRecord, log: CoordinatorShard) -> tuple[set[str], set[str]]:
        """Apply a record to the log state and update the indices; return newly subscribed and no longer
        subscribed topics.
        """
        member_id = record.member_id or ""
        old = self.log.members.get(member_id)
        old_names = () if old is None else tuple(old.subscribed_topic_names)
        self._apply(record, log)
        self.pending = None
        if record.type == RecordType.SHARE_GROUP_MEMBER_METADATA:
            return self._follow_member(member_id, old_names)
        if record.type == RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER:
            target = self.log.targets.get(member_id)
            if target is None:
                self.view.remove_target(member_id)
            else:
                self.view.put_target(member_id, target.items())
        elif record.type == RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT and member_id in self.log.members:
            # Kafka puts the member into its map again, which can make the map grow.
            self.view.members[member_id] = self.view.members.get(member_id, Subscriber())
        elif record.type == RecordType.SHARE_GROUP_STATE_PARTITION_METADATA:
            self.initializing_since_ms = record.at.timestamp_ms
        return set(), set()

    def _follow_member(self, member_id: str, old_names: tuple[str, ...]) -> tuple[set[str], set[str]]:
        new = self.log.members.get(member_id)
        if new is None:
            self.view.remove_member(member_id)
        else:
            self.view.put_member(member_id, subscriber(new))
        new_names = () if new is None else new.subscribed_topic_names
        return self.subscriptions.exchange(self.subscriptions.by_name, old_names, new_names)


def subscriber(member: ShareMember) -> Subscriber:
    """Return the member as the assignor sees it."""
    return Subscriber(tuple(member.subscribed_topic_names), rack_id=member.rack_id)
