"""The form of a ShareGroupHeartbeat, and what the coordinator refuses (KIP-932)."""

from __future__ import annotations

from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.lookup import greater_epoch_error, group_full_error, smaller_epoch_error
from coordinator_core.coordinator.protocol import Request
from coordinator_core.coordinator.request_fields import checked, not_blank, require
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.groups.epochs import LEAVE_GROUP_MEMBER_EPOCH
from coordinator_core.groups.share.state import ShareMember
from coordinator_core.record_fields.coordinator_requests import ShareGroupHeartbeatRequest


def check_heartbeat(request: Request) -> ShareGroupHeartbeatRequest:
    """Return the data of a ShareGroupHeartbeat; raises ApiError if it is invalid in itself."""
    data = checked(request, ShareGroupHeartbeatRequest)
    not_blank(data["memberId"], "MemberId can't be empty.")
    not_blank(data["groupId"], "GroupId can't be empty.")
    not_blank(data["rackId"], "RackId can't be empty.")
    if data["memberEpoch"] == 0:
        require(bool(data["subscribedTopicNames"]), "SubscribedTopicNames must be set in first request.")
    require(data["memberEpoch"] >= LEAVE_GROUP_MEMBER_EPOCH, "MemberEpoch is invalid.")
    return data


def check_capacity(group: LiveShareGroup, member_id: str, config: BrokerConfig) -> None:
    """Raise ApiError if the group is full and ``member_id`` is not a member."""
    if len(group.log.members) >= config.group_share_max_size and member_id not in group.log.members:
        raise group_full_error("share", config.group_share_max_size)


def check_member_epoch(member: ShareMember, epoch: int) -> None:
    """Raise ApiError unless the epoch is the member's, or the one before (the response may have been lost), or 0."""
    known, previous = member.member_epoch or 0, member.previous_member_epoch
    if epoch > known:
        raise greater_epoch_error("share", epoch, known)
    if epoch not in (0, known, previous):
        why = f", and it does not match the previous member epoch ({previous})"
        raise smaller_epoch_error("share", epoch, known, why)
