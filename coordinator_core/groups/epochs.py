"""What the groups with epochs (consumer, share, streams) have in common: epochs, members and targets."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from coordinator_core.groups.epoch_records import (
    CurrentRecord,
    CurrentValue,
    GroupEpochRecord,
    MemberRecord,
    MemberTargetRecord,
    MemberValue,
    OfMemberRecord,
    PartitionsOfTopic,
    PartitionsWithEpochs,
    TargetEpochRecord,
    TargetPartitionsRecord,
)
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import NO_VIOLATIONS, Violations, tombstone, violation
from coordinator_core.records import AnyRecord, RecordType

Partitions = dict[str, list[int]]
"""Topic id (streams: subtopology id) to partitions, both in the order of the record."""
PartitionEpochs = dict[str, dict[int, int]]
"""The same with, for each partition, the epoch in which it was assigned (KIP-1251), in the order of the record."""

LEAVE_GROUP_MEMBER_EPOCH = -1
"""The member epoch of one that left."""
LEAVE_GROUP_STATIC_MEMBER_EPOCH = -2
"""The member epoch of a static member that left and may return."""


NO_PREVIOUS_EPOCH = -1
"""The previous member epoch of a member that was not assigned anything yet."""
INITIAL_EPOCH = 1
"""Group epoch and assignment epoch of a new group (Kafka 4.3; brokers before had 0)."""


@dataclass(slots=True)
class EpochMember(ABC):
    """The common part of a member. None: the log did not show it, as each of a member's two records may be missing.

    ``client_id``, ``client_host`` and ``rack_id`` are from the member metadata; ``member_epoch``,
    ``previous_member_epoch`` and ``state`` (the number in the record) from the current assignment.
    """

    member_id: str
    client_id: str | None = None
    client_host: str | None = None
    rack_id: str | None = None
    member_epoch: int | None = None
    previous_member_epoch: int | None = None
    state: int | None = None

    @property
    def has_metadata(self) -> bool:
        """Whether the member's metadata record was seen."""
        return self.client_id is not None

    @property
    def has_current(self) -> bool:
        """Whether the member has a current assignment."""
        return self.member_epoch is not None

    @property
    def instance_id(self) -> str | None:
        """The id of a static member; None: it is not static, or its type has none."""
        return None

    @property
    def speaks_classic(self) -> bool:
        """Whether it uses the classic protocol, in a group that was converted."""
        return False

    @property
    def rebalance_timeout_ms(self) -> int | None:
        """How long it may take to give up what it is asked to; None: its type gives nothing up."""
        return None

    @property
    def subscribed_topic_names(self) -> Sequence[str]:
        """The topics that it subscribes to by name; a type without subscriptions has none."""
        return ()

    @property
    def subscribed_topic_regex(self) -> str | None:
        """The regular expression that it subscribes to."""
        return None

    @abstractmethod
    def release(self) -> None:
        """Remove all partitions or tasks from the member."""


MemberT = TypeVar("MemberT", bound=EpochMember)
TargetT = TypeVar("TargetT")


@dataclass(slots=True)
class EpochGroup(Generic[MemberT, TargetT]):
    """The common part of a group: epochs (None: not seen in the log), members and targets by member id.

    ``members`` keeps the order in which members appeared: a member that is written again keeps its place, one that was
    removed and added again is last. A target may exist without its member, as the two are separate records.
    ``assignment_timestamp`` is in milliseconds, 0 if the record has none.
    """

    group_epoch: int | None = None
    metadata_hash: int | None = None
    assignment_epoch: int | None = None
    assignment_timestamp: int | None = None
    members: dict[str, MemberT] = field(default_factory=dict)
    targets: dict[str, TargetT] = field(default_factory=dict)

    def begin(self) -> None:
        """Set what a new group has before its first epoch is recorded, which will be one more (Kafka 4.3)."""
        self.group_epoch = self.assignment_epoch = INITIAL_EPOCH
        self.metadata_hash = self.assignment_timestamp = 0


def apply_group_epoch(state: EpochGroup[MemberT, TargetT], record: GroupEpochRecord) -> Violations:
    """Apply group metadata: the new epoch and metadata hash. A tombstone ends the group, and ``Group`` drops its state.

    A classic group that becomes one with epochs passes its generation on, which may be 0, below that of a new group.
    """
    value = record.value
    if value is None:
        if state.members:
            return violation(Rule.GROUP_REMOVED_WITH_MEMBERS, record, f"{len(state.members)} members were left")
        return tombstone(record, "no such group", existed=state.group_epoch is not None)
    before, epoch = state.group_epoch, value["epoch"]
    state.group_epoch = epoch
    # A consumer group's record leaves out the hash 0; without a hash are those of KIP-1071, and of share groups in 4.0.
    none = 0 if record.type == RecordType.CONSUMER_GROUP_METADATA else None
    state.metadata_hash = value.get("metadataHash", none)
    if before is not None and epoch < before > INITIAL_EPOCH:
        return violation(Rule.EPOCH_WENT_BACK, record, f"group epoch {epoch} after {before}")
    return NO_VIOLATIONS


def apply_target_epoch(state: EpochGroup[MemberT, TargetT], record: TargetEpochRecord) -> Violations:
    """Apply target assignment metadata: the epoch for which the targets were computed, and when."""
    value = record.value
    before = state.assignment_epoch
    if value is None:
        state.assignment_epoch = state.assignment_timestamp = None
        return tombstone(record, "no target assignment", existed=before is not None)
    epoch = value["assignmentEpoch"]
    state.assignment_epoch = epoch
    state.assignment_timestamp = value.get("assignmentTimestamp", 0)
    # As for the group epoch: a group that was converted at generation 0 begins below the epoch of a new one.
    if before is not None and epoch < before > INITIAL_EPOCH:
        return violation(Rule.ASSIGNMENT_EPOCH_WENT_BACK, record, f"assignment epoch {epoch} after {before}")
    if state.group_epoch is not None and epoch > state.group_epoch:
        return violation(Rule.ASSIGNMENT_EPOCH_AHEAD, record, f"assignment epoch {epoch}, group {state.group_epoch}")
    return NO_VIOLATIONS


def member_of(state: EpochGroup[MemberT, TargetT], record: OfMemberRecord, new: Callable[[str], MemberT]) -> MemberT:
    """Return the member that a record is about; it is made if it does not exist."""
    member_id = record.key["memberId"]
    member = state.members.get(member_id)
    if member is None:
        member = state.members[member_id] = new(member_id)
    return member


def put_metadata(
    state: EpochGroup[MemberT, TargetT], record: MemberRecord, value: MemberValue, new: Callable[[str], MemberT]
) -> MemberT:
    """Set the part of a member's metadata record that all types have; return the member."""
    member = member_of(state, record, new)
    member.client_id = value["clientId"]
    member.client_host = value["clientHost"]
    member.rack_id = value["rackId"]
    return member


def partitions_of(values: Iterable[PartitionsOfTopic]) -> Partitions:
    """Return topic partitions by topic id, as records have them."""
    return {topic["topicId"]: topic["partitions"] for topic in values}


def apply_target_partitions(state: EpochGroup[MemberT, Partitions], record: TargetPartitionsRecord) -> Violations:
    """Apply a member's target assignment of partitions, or its tombstone."""
    value = record.value
    if value is None:
        return remove_target(state, record)
    return put_target(state, record, partitions_of(value["topicPartitions"]))


def put_target(state: EpochGroup[MemberT, TargetT], record: MemberTargetRecord, target: TargetT) -> Violations:
    """Set a member's target assignment. In every operation the member's metadata is written first."""
    member_id = record.key["memberId"]
    state.targets[member_id] = target
    member = state.members.get(member_id)
    # A member may be known by its current assignment alone: then its metadata is missing all the same.
    if member is None or member.client_id is None:
        return violation(Rule.TARGET_WITHOUT_MEMBER, record, "target assignment of a member without metadata")
    return NO_VIOLATIONS


def remove_target(state: EpochGroup[MemberT, TargetT], record: MemberTargetRecord) -> Violations:
    """Apply the tombstone of a target assignment; it is also written if the member leaves before it got one."""
    member_id = record.key["memberId"]
    existed = state.targets.pop(member_id, None) is not None or member_id in state.members
    return tombstone(record, "no such target assignment", existed=existed)


def remove_member(state: EpochGroup[MemberT, TargetT], record: MemberRecord) -> Violations:
    """Apply the tombstone of a member's metadata, which removes the member; its other two tombstones come first."""
    member_id = record.key["memberId"]
    member = state.members.pop(member_id, None)
    if member is None:
        return tombstone(record, "no such member", existed=False)
    if member.member_epoch is not None or member_id in state.targets:
        return violation(Rule.MEMBER_REMOVED_WITH_ASSIGNMENT, record, "its assignment still stood")
    return NO_VIOLATIONS


def put_current(
    state: EpochGroup[MemberT, TargetT],
    record: CurrentRecord,
    member: MemberT,
    value: CurrentValue,
    states: Container[int],
) -> Violations:
    """Set epochs and state (one of ``states``) of a current assignment.

    A member may go back to epoch 0 (it rejoins), -1 or -2 (it leaves).
    """
    before = member.member_epoch
    epoch = member.member_epoch = value["memberEpoch"]
    member.previous_member_epoch = value["previousMemberEpoch"]
    member.state = value["state"]
    if member.state not in states:
        return violation(Rule.UNKNOWN_MEMBER_STATE, record, f"state {member.state}")
    if member.client_id is None:
        return violation(Rule.ASSIGNMENT_WITHOUT_MEMBER, record, "current assignment of a member without metadata")
    return NO_VIOLATIONS if epoch <= 0 else check_member_epoch(record, before, epoch, state.group_epoch)


def check_member_epoch(record: AnyRecord, before: int | None, epoch: int, group_epoch: int | None) -> Violations:
    """Return the violation of a member epoch that went back, or is ahead of the group's; None for what is unknown."""
    if before is not None and 0 < epoch < before:
        return violation(Rule.MEMBER_EPOCH_WENT_BACK, record, f"member epoch {epoch} after {before}")
    if group_epoch is not None and epoch > group_epoch:
        return violation(Rule.MEMBER_EPOCH_AHEAD, record, f"member epoch {epoch}, group epoch {group_epoch}")
    return NO_VIOLATIONS


def assignment_epochs(assigned: PartitionsWithEpochs, member_epoch: int) -> dict[int, int]:
    """Return each partition with the epoch of its assignment; brokers before 4.3 wrote none, then it is the
    member's own.
    """
    partitions, epochs = assigned["partitions"], assigned.get("assignmentEpochs")
    # Epochs go by the place of the partition: in a list of another length none can be told to be that of a partition.
    if epochs and len(epochs) == len(partitions):
        return dict(zip(partitions, epochs, strict=True))
    return dict.fromkeys(partitions, member_epoch)


def remove_current(state: EpochGroup[MemberT, TargetT], record: CurrentRecord) -> Violations:
    """Apply the tombstone of a current assignment: the member no longer has anything.

    A member that joined a group converted at generation 0 may have had none; its tombstone is written nevertheless.
    """
    member = state.members.get(record.key["memberId"])
    if member is not None and member.has_metadata and not member.has_current:
        return NO_VIOLATIONS
    if member is None or member.member_epoch is None:
        return tombstone(record, "no such current assignment", existed=False)
    member.member_epoch = member.previous_member_epoch = member.state = None
    member.release()
    if member.client_id is None:
        # It was known by this record alone.
        del state.members[member.member_id]
    return NO_VIOLATIONS
