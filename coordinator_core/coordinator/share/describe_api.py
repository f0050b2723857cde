"""A share group as in the response to ShareGroupDescribe."""

from __future__ import annotations

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.share.heartbeat import ASSIGNOR
from coordinator_core.groups.share.state import ShareMember
from coordinator_core.records import Fields


def described(group: LiveShareGroup, topics: TopicImage) -> Fields:
    """Return the group's own fields of a ShareGroupDescribe response (version 1)."""
    return {
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "assignorName": ASSIGNOR,
        "members": [_member(group.log.members[member_id], topics) for member_id in group.view.members],
    }


def _member(member: ShareMember, topics: TopicImage) -> Fields:
    return {
        "memberId": member.member_id,
        "rackId": member.rack_id,
        "memberEpoch": member.member_epoch or 0,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "subscribedTopicNames": list(member.subscribed_topic_names),
        "assignment": {
            "topicPartitions": [
                {"topicId": topic_id, "topicName": topics.by_id[topic_id].name, "partitions": list(numbers)}
                for topic_id, numbers in member.assigned.items()
                if topic_id in topics.by_id
            ]
        },
    }
