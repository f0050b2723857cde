"""What is derived from a classic group's records, and how Kafka's Admin client describes it."""

from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, assigned_partitions
from coordinator_core.groups.classic.state import ClassicGroup, ClassicGroupState, ClassicMember
from coordinator_core.groups.described import (
    AssignedPartitions,
    DescribedClassicGroup,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedJoinTraffic,
    DescribedNode,
    RefusedDescription,
)


def group_state(group: ClassicGroup) -> ClassicGroupState:
    """Return the state that the last record proves: STABLE with members, else EMPTY.

    A rebalance that has begun since then is not in the log, and neither are the members that joined for it.
    """
    return ClassicGroupState.STABLE if group.members else ClassicGroupState.EMPTY


def is_consumer_group(group: ClassicGroup) -> bool:
    """Whether Admin treats the group as one of consumers: by its protocol type, or because it does not have one yet."""
    return (group.protocol_type or "") in ("", CONSUMER_PROTOCOL_TYPE)


def describe_classic(
    group_id: str, group: ClassicGroup, coordinator: DescribedNode | None = None
) -> DescribedClassicGroup:
    """Return the group as ``Admin.describeClassicGroups`` returns it."""
    return {
        "coordinator": coordinator,
        "groupId": group_id,
        "isSimpleConsumerGroup": not group.protocol_type,
        "members": [_member(member, decode=is_consumer_group(group)) for member in group.members.values()],
        "protocol": group.protocol_type or "",
        "protocolData": group.protocol or "",
        "state": str(group_state(group)),
    }


def describe_consumer(
    group_id: str, group: ClassicGroup, coordinator: DescribedNode | None = None
) -> DescribedConsumerGroup | RefusedDescription:
    """Return a classic group of consumers as ``Admin.describeConsumerGroups`` returns it: without epochs and targets.

    That call refuses the empty group id, which simple groups may have.
    """
    if not group_id:
        return {"error": "org.apache.kafka.common.errors.InvalidGroupIdException: The group id is invalid."}
    return {
        "coordinator": coordinator,
        "groupEpoch": None,
        "groupId": group_id,
        "groupState": str(group_state(group)),
        "isSimpleConsumerGroup": not group.protocol_type,
        "members": [_member(member, decode=True) for member in group.members.values()],
        "partitionAssignor": group.protocol or "",
        "state": str(group_state(group)),
        "targetAssignmentEpoch": None,
        "type": "CLASSIC",
    }


def join_traffic(group: ClassicGroup) -> DescribedJoinTraffic:
    """Return what one rebalance of the group sends; only the leader gets the metadata of all members."""
    metadata = sum(len(member.subscription) for member in group.members.values())
    assignments = sum(len(member.assignment) for member in group.members.values())
    return {
        "members": len(group.members),
        "metadataBytes": metadata,
        "assignmentBytes": assignments,
        "rebalanceBytes": 2 * (metadata + assignments),
        "ifAllGotAll": (1 + len(group.members)) * metadata,
    }


def _member(member: ClassicMember, *, decode: bool) -> DescribedConsumer:
    """A member; only the assignments of consumers are lists of partitions."""
    return {
        "assignment": _assignment(member) if decode else {"topicPartitions": []},
        "clientId": member.client_id,
        "consumerId": member.member_id,
        "groupInstanceId": member.instance_id,
        "host": member.client_host,
        "memberEpoch": None,
        "rackId": None,
        "targetAssignment": None,
        "upgraded": None,
    }


def _assignment(member: ClassicMember) -> AssignedPartitions | None:
    partitions = assigned_partitions(member.assignment)
    if partitions is None:
        return None
    return {"topicPartitions": sorted(str(partition) for partition in partitions)}
