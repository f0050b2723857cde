"""The form of a ConsumerGroupHeartbeat, and what the coordinator refuses (KIP-848)."""

from collections.abc import Callable

from coordinator_core.coordinator import lookup
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.consumer.reconcile import Owned
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.request_fields import checked, not_blank, require
from coordinator_core.groups.consumer.state import ConsumerMember
from coordinator_core.groups.epochs import LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH, PartitionEpochs
from coordinator_core.record_fields.coordinator_requests import ConsumerGroupHeartbeatRequest

CONSUMER_GENERATED_MEMBER_ID_REQUIRED_VERSION = 1
"""From this version on the consumer makes up its member id (KIP-1082)."""


def check_heartbeat(request: Request, config: BrokerConfig) -> ConsumerGroupHeartbeatRequest:
    """Return the data of a ConsumerGroupHeartbeat; raises ApiError if it is invalid in itself."""
    data = checked(request, ConsumerGroupHeartbeatRequest)
    epoch = data["memberEpoch"]
    if (
        request.version >= CONSUMER_GENERATED_MEMBER_ID_REQUIRED_VERSION
        or epoch > 0
        or epoch == LEAVE_GROUP_MEMBER_EPOCH
    ):
        not_blank(data, "memberId")
    not_blank(data, "groupId", "instanceId", "rackId")
    if epoch == 0:
        _joining(data)
    elif epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        require(data["instanceId"] is not None, "InstanceId can't be null.")
    require(epoch >= LEAVE_GROUP_STATIC_MEMBER_EPOCH, "MemberEpoch is invalid.")
    assignor = data["serverAssignor"]
    if assignor is not None and assignor not in config.group_consumer_assignors:
        supported = ", ".join(sorted(config.group_consumer_assignors))
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: {supported}.",
        )
    return data


def _joining(data: ConsumerGroupHeartbeatRequest) -> None:
    require(data["rebalanceTimeoutMs"] != -1, "RebalanceTimeoutMs must be provided in first request.")
    require(data["topicPartitions"] == [], "TopicPartitions must be empty when (re-)joining.")
    require(
        data["subscribedTopicNames"] is not None or data["subscribedTopicRegex"] is not None,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    )


def check_member_epoch(member: ConsumerMember, epoch: int, owned: Owned) -> None:
    """Raise ApiError unless the epoch is one that the member may have, with what it then owns."""
    lookup.check_member_epoch("consumer", member, epoch, lambda: _owns_only(owned, member.assigned))


def _owns_only(owned: Owned, assigned: PartitionEpochs) -> bool:
    if owned is None:
        return False
    for topic in owned:
        partitions = assigned.get(topic["topicId"])
        if partitions is None or any(partition not in partitions for partition in topic["partitions"]):
            return False
    return True


def check_offset_commit(
    group: LiveConsumerGroup, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
) -> Callable[[str, str, int], None] | None:
    """Raise ApiError unless the commit is of a member at one of its epochs, or without a member in an empty group.

    An older epoch is valid for partitions that were assigned no later than it (KIP-1251): the returned function checks
    each partition by topic name, topic id and number. None: all are valid.
    """
    members = group.log.members
    member = lookup.committing(group, members, member_id, instance_id, epoch, version, transactional=transactional)
    if member is None:
        return None
    code, word = lookup.stale(member)

    def check(topic: str, topic_id: str, partition: int) -> None:
        assigned = member.assigned.get(topic_id, {}).get(partition)
        if assigned is None:
            assigned = member.pending_revocation.get(topic_id, {}).get(partition)
        lookup.check_assignment_epoch(code, f"partition {topic}-{partition}", word, epoch, assigned)

    return check
