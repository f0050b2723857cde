"""What is derived from a share group's records, and how Kafka's Admin client describes it."""

from __future__ import annotations

from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.certainty import CERTAIN, Certainty
from coordinator_core.groups.described import DescribedShareGroup, DescribedShareMember
from coordinator_core.groups.partition_names import topic_partitions
from coordinator_core.groups.share.state import ShareGroup, ShareGroupState, ShareMember


def group_state(group: ShareGroup, certainty: Certainty = CERTAIN) -> ShareGroupState | None:
    """Return the group's state: a share group is stable as soon as it has members (KIP-932); None if unknown."""
    if group.members:
        return ShareGroupState.STABLE
    return ShareGroupState.EMPTY if certainty.members_are_known else None


def describe_share(
    group_id: str, group: ShareGroup, topics: TopicImage | None, certainty: Certainty = CERTAIN
) -> DescribedShareGroup:
    """Return the group as ``Admin.describeShareGroups`` returns it; the log does not contain the coordinator's node."""
    return {
        "coordinator": None,
        "groupEpoch": group.group_epoch,
        "groupId": group_id,
        "groupState": group_state(group, certainty),
        "members": [_member(member, topics) for member in group.members.values()],
        "targetAssignmentEpoch": group.assignment_epoch,
    }


def _member(member: ShareMember, topics: TopicImage | None) -> DescribedShareMember:
    return {
        "assignment": {"topicPartitions": topic_partitions(member.assigned, topics)} if member.has_current else None,
        "clientId": member.client_id,
        "consumerId": member.member_id,
        "host": member.client_host,
        "memberEpoch": member.member_epoch,
        "rackId": member.rack_id,
    }
