"""A Connect group as its coordinator describes it; the document does not define an API for that."""

from __future__ import annotations

from coordinator_core.coordinator.connect.group import as_fields
from coordinator_core.groups.connect.state import ConnectGroup, ConnectMember, Work, left_over, units
from coordinator_core.records import Fields


def described(group: ConnectGroup) -> Fields:
    """Return the group's own fields; ``unassigned`` is the work that is in no worker's target."""
    return {
        "groupEpoch": group.group_epoch or 0,
        "assignmentEpoch": group.assignment_epoch or 0,
        "connectorsAndTasks": as_fields(units(group.work)),
        "unassigned": as_fields(left_over(group)),
        "configuration": dict(group.configuration),
        "members": [_member(group, member) for member in group.members.values()],
    }


def _member(group: ConnectGroup, member: ConnectMember) -> Fields:
    target = group.targets.get(member.member_id)
    return {
        "memberId": member.member_id,
        "memberEpoch": member.member_epoch or 0,
        "instanceId": member.instance_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "assignors": [
            {
                "name": assignor.name,
                "minimumVersion": assignor.minimum_version,
                "maximumVersion": assignor.maximum_version,
            }
            for assignor in member.assignors
        ],
        "assignment": as_fields(units(member.current.work if member.current else Work())),
        "targetAssignment": as_fields(units(target.work if target else Work())),
    }
