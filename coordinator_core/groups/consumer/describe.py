"""What is derived from a consumer group's records, and how Kafka's Admin client describes it."""

from collections import Counter

from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.certainty import CERTAIN, Certainty
from coordinator_core.groups.consumer.state import (
    ConsumerGroup,
    ConsumerGroupState,
    ConsumerMember,
    ConsumerMemberState,
)
from coordinator_core.groups.described import DescribedConsumer, DescribedConsumerGroup, DescribedNode
from coordinator_core.groups.partition_names import topic_partitions
from coordinator_core.java.hash_codes import STRING
from coordinator_core.java.order import TimelineHashMap
from coordinator_core.records import RecordType

CURRENT = RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
TARGET = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER

TELLS_PROTOCOL = 22
"""The metadata version of Kafka 4.0, the first with ConsumerGroupDescribe version 1, which has the members' type."""


def group_state(group: ConsumerGroup, certainty: Certainty = CERTAIN) -> ConsumerGroupState | None:
    """Return the group's state, by the rules of KIP-848; None if the log has not shown what they depend on."""
    if not group.members:
        return ConsumerGroupState.EMPTY if certainty.members_are_known else None
    if group.group_epoch is None or group.assignment_epoch is None:
        return None
    if group.group_epoch > group.assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    known = [member for member in group.members.values() if certainty.knows(CURRENT, member.member_id)]
    # One member that is known not to be there yet is enough for RECONCILING; STABLE is said of all of them.
    if not all(is_reconciled(member, group.assignment_epoch) for member in known):
        return ConsumerGroupState.RECONCILING
    is_all = certainty.members_are_known and len(known) == len(group.members)
    return ConsumerGroupState.STABLE if is_all else None


def is_reconciled(member: ConsumerMember, assignment_epoch: int) -> bool:
    """Whether the member has reached this target epoch with nothing left to revoke or to wait for.

    In a group that was converted at generation 0 members begin at the target's epoch, 0, without a record of it.
    """
    if not member.has_current:
        return assignment_epoch == 0
    return member.state == ConsumerMemberState.STABLE and member.member_epoch == assignment_epoch


def preferred_assignor(group: ConsumerGroup) -> str | None:
    """Return the server assignor that most members ask for; None if no member asks for one: then the broker's default
    is used.

    Between equals the order of the coordinator's own map decides, as if members had asked in the order in which they
    joined.
    """
    named = [member.server_assignor for member in group.members.values() if member.server_assignor is not None]
    # Mostly all members ask for one assignor: only votes that differ need the order of the coordinator's map.
    if len(set(named)) < 2:
        return named[0] if named else None
    votes: TimelineHashMap[str, int] = TimelineHashMap(STRING)
    for name in named:
        votes[name] = votes.get(name, 0) + 1
    return max(votes, key=votes.__getitem__)


def tied_assignors(group: ConsumerGroup) -> tuple[str, ...]:
    """Return the server assignors that most members ask for, if that is more than one: as many ask for each."""
    votes = Counter(member.server_assignor for member in group.members.values() if member.server_assignor is not None)
    most = max(votes.values(), default=0)
    tied = sorted(name for name, count in votes.items() if count == most)
    return tuple(tied) if len(tied) > 1 else ()


def knows_votes(group: ConsumerGroup, certainty: Certainty) -> bool:
    """Return whether it is known which assignor each member asks for."""
    return certainty.members_are_known and all(member.has_metadata for member in group.members.values())


def describe_consumer(
    group_id: str,
    group: ConsumerGroup,
    topics: TopicImage | None,
    default_assignor: str | None,
    certainty: Certainty = CERTAIN,
    *,
    coordinator: DescribedNode | None = None,
    tells_protocol: bool = True,
) -> DescribedConsumerGroup:
    """Return the group as ``Admin.describeConsumerGroups`` returns it.

    ``default_assignor`` is the first of the broker's ``group.consumer.assignors``, None if unknown: it counts where no
    member asks for one. What is not certain is null, as is what depends on it: the assignor that most members ask for.
    Brokers before 4.0 do not say which protocol a member speaks (``tells_protocol``).
    """
    state = group_state(group, certainty)
    return {
        "coordinator": coordinator,
        "groupEpoch": group.group_epoch,
        "groupId": group_id,
        "groupState": state,
        "isSimpleConsumerGroup": False,
        "members": [
            _member(group, member, topics, certainty, tells_protocol=tells_protocol)
            for _, member in sorted(group.members.items())  # that of the log is another one once it is compacted
        ],
        "partitionAssignor": preferred_assignor(group) or default_assignor if knows_votes(group, certainty) else None,
        "state": state,
        "targetAssignmentEpoch": group.assignment_epoch,
        "type": "CONSUMER",
    }


def _member(
    group: ConsumerGroup,
    member: ConsumerMember,
    topics: TopicImage | None,
    certainty: Certainty,
    *,
    tells_protocol: bool,
) -> DescribedConsumer:
    """A member; Admin counts partitions that it has yet to give up among those assigned."""
    known = certainty.knows(CURRENT, member.member_id)
    target = group.targets.get(member.member_id, {}) if certainty.knows(TARGET, member.member_id) else None
    held = topic_partitions(member.assigned, topics) + topic_partitions(member.pending_revocation, topics)
    return {
        "assignment": {"topicPartitions": sorted(held)} if known else None,
        "clientId": member.client_id,
        "consumerId": member.member_id,
        "groupInstanceId": member.instance_id,
        "host": member.client_host,
        # As in ``is_reconciled``: a member of which no such record is missing, and none is there, is at epoch 0.
        "memberEpoch": 0 if known and member.member_epoch is None else member.member_epoch,
        "rackId": member.rack_id,
        "targetAssignment": None if target is None else {"topicPartitions": topic_partitions(target, topics)},
        "upgraded": member.classic is None if member.has_metadata and tells_protocol else None,
    }
