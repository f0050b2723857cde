"""A classic group as in the response to DescribeGroups."""

from __future__ import annotations

from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.records import Fields


def described(group: LiveClassicGroup) -> Fields:
    """Return the group's own fields of a DescribeGroups response; only a stable group shows metadata."""
    stable = group.state is ClassicGroupState.STABLE
    return {
        "protocolType": group.protocol_type or "",
        "protocolData": (group.protocol or "") if stable else "",
        "members": [
            {
                "memberId": member.member_id,
                "groupInstanceId": member.instance_id,
                "clientId": member.client_id,
                "clientHost": member.client_host,
                "memberMetadata": member.metadata(group.protocol) if stable else b"",
                "memberAssignment": member.assignment,
            }
            for member in group.members.values()
        ],
    }
