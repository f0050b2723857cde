"""What is derived from a share group's records, and how Kafka's Admin client describes it."""

from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.certainty import CERTAIN, Certainty
from coordinator_core.groups.described import DescribedNode, DescribedShareGroup, DescribedShareMember
from coordinator_core.groups.epochs import INITIAL_EPOCH
from coordinator_core.groups.partition_names import topic_partitions
from coordinator_core.groups.share.state import ShareGroup, ShareGroupState, ShareMember


def group_state(group: ShareGroup, certainty: Certainty = CERTAIN) -> ShareGroupState | None:
    """Return the group's state: a share group is stable as soon as it has members (KIP-932); None if unknown."""
    if group.members:
        return ShareGroupState.STABLE
    return ShareGroupState.EMPTY if certainty.members_are_known else None


BEGINS_AT_ONE = 30
"""The lowest ``metadata.version`` of brokers of 4.3: their groups begin with epoch 1. Those of earlier brokers begin
with 0, which no record says. Brokers of 4.2 support this version only with unstable ones.
"""


def describe_share(
    group_id: str,
    group: ShareGroup,
    topics: TopicImage | None,
    certainty: Certainty = CERTAIN,
    *,
    coordinator: DescribedNode | None = None,
    begins_at_zero: bool = False,
) -> DescribedShareGroup:
    """Return the group as ``Admin.describeShareGroups`` returns it.

    ``begins_at_zero``: a group that never had a member, as its offsets were set before, has the epoch 0.
    """
    epochs = group.group_epoch, group.assignment_epoch
    if begins_at_zero and not group.members and epochs == (INITIAL_EPOCH, INITIAL_EPOCH):
        epochs = 0, 0
    return {
        "coordinator": coordinator,
        "groupEpoch": epochs[0],
        "groupId": group_id,
        "groupState": group_state(group, certainty),
        "members": [_member(member, topics) for _, member in sorted(group.members.items())],
        "targetAssignmentEpoch": epochs[1],
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
