"""A consumer group as its coordinator keeps it in memory: the log's state, and what is kept besides.

Everything here but the metadata refresh deadline is derived from the records in their order, and only makes lookups
cheap; the deadline is soft state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from coordinator_core.assignors.coordinator_view import AssignorVotes, Subscriber, SubscriptionView
from coordinator_core.coordinator.consumer.records import partition_metadata_tombstone, resolved_regex
from coordinator_core.coordinator.epoch_group import LiveEpochGroup
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.coordinator.record_templates import Unwritten, tombstones_of_all
from coordinator_core.coordinator.subscriptions import Subscriptions, count
from coordinator_core.groups.consumer.state import ConsumerGroup, ConsumerMember, ConsumerMemberState
from coordinator_core.groups.epochs import PartitionEpochs
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.record_types import CONSUMER_RECORDS
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.record_fields.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentRecord,
    ConsumerGroupMemberMetadataRecord,
    ConsumerGroupRegularExpressionRecord,
)
from coordinator_core.records import AnyRecord, RecordType

_NO_TOPICS: tuple[set[str], set[str]] = (set(), set())


@dataclass(slots=True)
class LiveConsumerGroup(LiveEpochGroup[ConsumerGroup]):
    """A consumer group; a new one, which no record has made yet, is empty.

    ``view`` holds the assignor's input, in the order of Kafka's collections; ``owned`` the member epoch at which each
    partition is owned; ``assignors`` and ``classic_protocols`` count members.
    """

    type: ClassVar = GroupType.CONSUMER

    log: ConsumerGroup = field(default_factory=ConsumerGroup)
    view: SubscriptionView = field(default_factory=SubscriptionView)
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    assignors: AssignorVotes = field(default_factory=AssignorVotes)
    classic_members: int = 0
    classic_protocols: dict[str, int] = field(default_factory=dict)
    owned: PartitionEpochs = field(default_factory=dict)
    _homogeneous: bool | None = True

    @property
    def homogeneous(self) -> bool:
        """Whether all members have the same subscription, as of the last change of a member (a regex alone is not
        one).
        """
        if self._homogeneous is None:
            self._homogeneous = self.subscriptions.are_homogeneous(len(self.log.members))
        return self._homogeneous

    def tombstones(self, renamed: Mapping[str, str] | None = None) -> list[Unwritten]:
        """Return the tombstones of all records of the group; ``renamed`` members already have records under a new
        id.
        """
        names = renamed or {}
        members = [names.get(member_id, member_id) for member_id in self.view.members]
        return [
            *tombstones_of_all(CONSUMER_RECORDS, self.group_id, members),
            *(resolved_regex(self.group_id, regex, None) for regex in self.log.regexes),
            partition_metadata_tombstone(self.group_id),
            (RecordType.CONSUMER_GROUP_METADATA, {"groupId": self.group_id}, None),
        ]

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member that holds that instance id.

        Raises ApiError, as Kafka does, for an id whose holder had another instance id before it left: no member can
        join with it any more.
        """
        member_id = None if instance_id is None else self.view.static.get(instance_id)
        if member_id is None:
            return None
        if member_id not in self.log.members:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return self.log.members[member_id]

    def is_free(self, topic_id: str, partition: int) -> bool:
        """Whether no member owns the partition or still has to revoke it."""
        return partition not in self.owned.get(topic_id, ())

    def preferred_assignor(self, old: ConsumerMember, new: ConsumerMember) -> str | None:
        """Return the server assignor that most members ask for once ``new`` replaces ``old``; None if no member
        asks for one.
        """
        return self.assignors.preferred(old.server_assignor, new.server_assignor)

    def follow(self, record: AnyRecord, log: CoordinatorShard) -> tuple[set[str], set[str]]:
        """Apply a record to the log state and update the indices; return newly subscribed and no longer
        subscribed topics.
        """
        topics = _NO_TOPICS
        if record.type == RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
            self._follow_assignment(record, log)
        elif record.type == RecordType.CONSUMER_GROUP_MEMBER_METADATA:
            topics = self._follow_member(record, log)
        elif record.type == RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION:
            topics = self._follow_regex(record, log)
        else:
            self._apply(record, log)
            if record.type == RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
                self._follow_target(record.key["memberId"])
        return topics

    def _follow_assignment(self, record: ConsumerGroupCurrentMemberAssignmentRecord, log: CoordinatorShard) -> None:
        member_id = record.key["memberId"]
        old = self.log.members.get(member_id)
        if old is not None:
            self._release(old)
        self._apply(record, log)
        new = self.log.members.get(member_id)
        if new is not None:
            self._own(new)
            # Kafka puts the member into its map again, which can make the map grow.
            self.view.members[member_id] = self.view.members.get(member_id, Subscriber())
        self._homogeneous = None

    def _follow_member(
        self, record: ConsumerGroupMemberMetadataRecord, log: CoordinatorShard
    ) -> tuple[set[str], set[str]]:
        member_id = record.key["memberId"]
        present = self.log.members.get(member_id)
        old = None if present is None else replace(present)
        self._apply(record, log)
        new = self.log.members.get(member_id)
        names = [*(old.subscribed_topic_names if old else ()), *(new.subscribed_topic_names if new else ())]
        before = self.subscriptions.among(names)
        if old is not None:
            self._count_member(old, -1)
        self.assignors.change(old.server_assignor if old else None, new.server_assignor if new else None)
        if new is not None:
            self._count_member(new, 1)
            self.view.put_member(member_id, subscriber(new))
        elif old is not None:
            self._release(old)
            self.view.remove_member(member_id)
        self._homogeneous = None
        after = self.subscriptions.among(names)
        return after - before, before - after

    def _count_member(self, member: ConsumerMember, by: int) -> None:
        self.subscriptions.count_member(member, by)
        if member.classic is not None:
            self.classic_members += by
            count(self.classic_protocols, (protocol.name for protocol in member.classic.supported_protocols), by)

    def _follow_regex(
        self, record: ConsumerGroupRegularExpressionRecord, log: CoordinatorShard
    ) -> tuple[set[str], set[str]]:
        regex = record.key["regularExpression"]
        old = self.log.regexes.get(regex)
        # A regex does not make the coordinator judge again whether the group is homogeneous: fix it before.
        _ = self.homogeneous
        self._apply(record, log)
        new = self.log.regexes.get(regex)
        self.view.resolve(regex, None if new is None else new.topics)
        counts = self.subscriptions.by_regex
        return self.subscriptions.exchange(counts, old.topics if old else (), new.topics if new else ())

    def _follow_target(self, member_id: str) -> None:
        target = self.log.targets.get(member_id)
        if target is None:
            self.view.remove_target(member_id)
        else:
            self.view.put_target(member_id, target.items())

    def _own(self, member: ConsumerMember) -> None:
        epoch = member.member_epoch or 0
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                self.owned.setdefault(topic_id, {}).update(dict.fromkeys(epochs, epoch))

    def _release(self, member: ConsumerMember) -> None:
        epoch = member.member_epoch or 0
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                owned = self.owned.get(topic_id, {})
                for partition in epochs:
                    # With another epoch the partition is no longer this member's: one that came later has taken it.
                    if owned.get(partition) == epoch:
                        del owned[partition]


def is_reconciled_to(member: ConsumerMember, epoch: int) -> bool:
    """Whether the member has nothing left to do to reach the target of this epoch."""
    return (member.member_epoch or 0) == epoch and member.state in (None, ConsumerMemberState.STABLE)


def subscriber(member: ConsumerMember) -> Subscriber:
    """Return the member as the assignor sees it."""
    return Subscriber(
        tuple(member.subscribed_topic_names), member.subscribed_topic_regex, member.instance_id, member.rack_id
    )
