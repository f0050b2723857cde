"""The record types that the groups with epochs have in common, for each type of group."""

from typing import NamedTuple

from coordinator_core.groups.group_type import GroupType
from coordinator_core.records import RecordType


class RecordTypes(NamedTuple):
    """The record types of one type of group: members, epochs, targets and current assignments."""

    group: GroupType
    member: RecordType
    epoch: RecordType
    target_epoch: RecordType
    target: RecordType
    current: RecordType

    @property
    def all(self) -> tuple[RecordType, ...]:
        """The record types."""
        return self.member, self.epoch, self.target_epoch, self.target, self.current


CONSUMER_RECORDS = RecordTypes(
    GroupType.CONSUMER,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA,
    RecordType.CONSUMER_GROUP_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
)
SHARE_RECORDS = RecordTypes(
    GroupType.SHARE,
    RecordType.SHARE_GROUP_MEMBER_METADATA,
    RecordType.SHARE_GROUP_METADATA,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
)
STREAMS_RECORDS = RecordTypes(
    GroupType.STREAMS,
    RecordType.STREAMS_GROUP_MEMBER_METADATA,
    RecordType.STREAMS_GROUP_METADATA,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
)
EPOCH_GROUP_RECORDS = (CONSUMER_RECORDS, SHARE_RECORDS, STREAMS_RECORDS)
