"""What the group types with epochs have in common, as the rules see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.consumer.state import MemberState as ConsumerMemberState
from coordinator_core.groups.group import GroupType
from coordinator_core.groups.share.state import MEMBER_STATE_STABLE, ShareGroup
from coordinator_core.groups.streams.state import CurrentTasks, StreamsGroup, StreamsMember
from coordinator_core.groups.streams.state import MemberState as StreamsMemberState
from coordinator_core.history.holdings import Held
from coordinator_core.history.units import partitions_held, streams_target
from coordinator_core.records import RecordType


class EpochKind(NamedTuple):
    """One group type: its states, and how to read what members have, give up and are to have."""

    group_type: GroupType
    state: type[Any]
    stable: int
    unrevoked: int | None
    metadata: RecordType
    member: RecordType
    target: RecordType
    target_epoch: RecordType
    current: RecordType
    assigned: Callable[[Any], Held]
    revoking: Callable[[Any], Held]
    wanted: Callable[[Any], Held]

    @property
    def exclusive(self) -> bool:
        """Whether a partition has one owner at most."""
        return self.unrevoked is not None


def _tasks(tasks: CurrentTasks) -> Held:
    roles = (("active", tasks.active), ("standby", tasks.standby), ("warmup", tasks.warmup))
    return {
        (role, subtopology): set(partitions)
        for role, by_subtopology in roles
        for subtopology, partitions in by_subtopology.items()
        if partitions
    }


def _streams_assigned(member: StreamsMember) -> Held:
    return _tasks(member.assigned)


def _streams_revoking(member: StreamsMember) -> Held:
    return _tasks(member.pending_revocation)


CONSUMER = EpochKind(
    GroupType.CONSUMER,
    ConsumerGroup,
    ConsumerMemberState.STABLE,
    ConsumerMemberState.UNREVOKED_PARTITIONS,
    RecordType.CONSUMER_GROUP_METADATA,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    lambda member: partitions_held(member.assigned),
    lambda member: partitions_held(member.pending_revocation),
    partitions_held,
)
SHARE = EpochKind(
    GroupType.SHARE,
    ShareGroup,
    MEMBER_STATE_STABLE,
    None,
    RecordType.SHARE_GROUP_METADATA,
    RecordType.SHARE_GROUP_MEMBER_METADATA,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    lambda member: partitions_held(member.assigned),
    lambda member: {},
    partitions_held,
)
STREAMS = EpochKind(
    GroupType.STREAMS,
    StreamsGroup,
    StreamsMemberState.STABLE,
    StreamsMemberState.UNREVOKED_TASKS,
    RecordType.STREAMS_GROUP_METADATA,
    RecordType.STREAMS_GROUP_MEMBER_METADATA,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    _streams_assigned,
    _streams_revoking,
    streams_target,
)
KINDS = (CONSUMER, SHARE, STREAMS)
