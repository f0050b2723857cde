"""A consumer group as in the response to ConsumerGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup, is_reconciled_to
from coordinator_core.groups.consumer.state import ConsumerGroupState, ConsumerMember
from coordinator_core.records import Fields


def group_state(group: LiveConsumerGroup) -> ConsumerGroupState:
    """Return the state of the group."""
    if group.is_empty:
        return ConsumerGroupState.EMPTY
    if group.group_epoch > group.assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    if all(is_reconciled_to(member, group.assignment_epoch) for member in group.log.members.values()):
        return ConsumerGroupState.STABLE
    return ConsumerGroupState.RECONCILING


def described(group: LiveConsumerGroup, topics: TopicImage, default_assignor: str) -> Fields:
    """Return the group's own fields of a ConsumerGroupDescribe response (version 1)."""
    return {
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "assignorName": max(group.assignors.counts, key=group.assignors.counts.__getitem__, default=default_assignor),
        "members": [
            _member(group.log.members[member_id], group.view.targets.get(member_id, {}), topics)
            for member_id in group.view.members
        ],
    }


def _member(member: ConsumerMember, target: Mapping[str, Iterable[int]], topics: TopicImage) -> Fields:
    held: dict[str, list[int]] = {}
    # Until it has given them up the member is responsible for partitions that it is to lose.
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            held.setdefault(topic_id, []).extend(epochs)
    return {
        "memberId": member.member_id,
        "instanceId": member.instance_id,
        "rackId": member.rack_id,
        "memberEpoch": member.member_epoch or 0,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "subscribedTopicNames": list(member.subscribed_topic_names),
        "subscribedTopicRegex": member.subscribed_topic_regex,
        "assignment": _partitions(held, topics),
        "targetAssignment": _partitions(target, topics),
        "memberType": 1 if member.classic is None else 0,
    }


def _partitions(partitions: Mapping[str, Iterable[int]], topics: TopicImage) -> Fields:
    return {
        "topicPartitions": [
            {"topicId": topic_id, "topicName": topics.by_id[topic_id].name, "partitions": list(numbers)}
            for topic_id, numbers in partitions.items()
            if topic_id in topics.by_id
        ]
    }
