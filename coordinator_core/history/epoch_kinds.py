"""What the types of groups with epochs express differently, in one form for all of them: history and rules read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups import record_types
from coordinator_core.groups.consumer.state import ConsumerGroup, ConsumerMemberState
from coordinator_core.groups.record_types import RecordTypes
from coordinator_core.groups.share.state import MEMBER_STATE_STABLE, ShareGroup
from coordinator_core.groups.streams.state import CurrentTasks, StreamsGroup, StreamsMember, StreamsMemberState
from coordinator_core.history.held_units import (
    consumer_held,
    consumer_topics,
    partitions_held,
    partitions_owned,
    share_held,
    share_topics,
    streams_held,
    streams_target,
    streams_topics,
)
from coordinator_core.history.work_units import Held


class EpochKind(NamedTuple):
    """One type of group: its records, the states of its members, and how to read what a member has and should have.

    ``unrevoked`` and ``unreleased`` are the states in which a member has to give up work, or waits for that of others;
    None: there are none. ``exclusive``: a partition has at most one owner. ``held`` gives what a member works on,
    ``assigned`` and ``revoking`` its parts, ``wanted`` what a target gives to it. ``subscribed`` gives the topics that
    the metadata hash is over.
    """

    types: RecordTypes
    state: type[Any]
    stable: int
    unrevoked: int | None
    unreleased: int | None
    exclusive: bool
    held: Callable[[Any], Held]
    assigned: Callable[[Any], Held]
    revoking: Callable[[Any], Held]
    wanted: Callable[[Any], Held]
    subscribed: Callable[[Any, TopicHistory | None], set[str]]

    @property
    def name(self) -> str:
        """The type as Kafka's Admin client names it."""
        return self.types.group.value


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


CONSUMER_KIND = EpochKind(
    record_types.CONSUMER_RECORDS,
    ConsumerGroup,
    ConsumerMemberState.STABLE,
    ConsumerMemberState.UNREVOKED_PARTITIONS,
    ConsumerMemberState.UNRELEASED_PARTITIONS,
    True,
    consumer_held,
    lambda member: partitions_owned(member.assigned),
    lambda member: partitions_owned(member.pending_revocation),
    partitions_held,
    consumer_topics,
)
SHARE_KIND = EpochKind(
    record_types.SHARE_RECORDS,
    ShareGroup,
    MEMBER_STATE_STABLE,
    None,
    None,
    False,
    share_held,
    lambda member: partitions_held(member.assigned),
    lambda member: {},
    partitions_held,
    share_topics,
)
STREAMS_KIND = EpochKind(
    record_types.STREAMS_RECORDS,
    StreamsGroup,
    StreamsMemberState.STABLE,
    StreamsMemberState.UNREVOKED_TASKS,
    StreamsMemberState.UNRELEASED_TASKS,
    True,
    streams_held,
    _streams_assigned,
    _streams_revoking,
    streams_target,
    streams_topics,
)
EPOCH_KINDS = (CONSUMER_KIND, SHARE_KIND, STREAMS_KIND)
