"""What requests to groups with epochs look up, and what they are refused for in every type of group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from coordinator_core.groups.live import LiveEpochGroup
from coordinator_core.groups.operation import Operation
from coordinator_core.groups.protocol import ApiError, ErrorCode

MemberT = TypeVar("MemberT")
LiveT = TypeVar("LiveT", bound=LiveEpochGroup[Any])


def group_of(op: Operation, group_id: str, wanted: type[LiveT], name: str) -> LiveT:
    """The group of that id and type; raises ApiError if there is none. ``name`` is that of the type in messages."""
    group = op.memory.live.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, wanted):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {name} group.")
    return group


def member_of(members: Mapping[str, MemberT], member_id: str, group_id: str) -> MemberT:
    """The member; raises ApiError if there is none."""
    member = members.get(member_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")
    return member


def greater_epoch(kind: str, epoch: int, known: int) -> ApiError:
    """The refusal of a member epoch that the coordinator has not given out."""
    return ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a greater member epoch ({epoch}) than the one known by the group coordinator "
        f"({known}). The member must abandon all its partitions and rejoin.",
    )


def smaller_epoch(kind: str, epoch: int, known: int, why: str = "") -> ApiError:
    """The refusal of a member epoch that is over."""
    return ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a smaller member epoch ({epoch}) than the one known by the group coordinator "
        f"({known}){why}. The member must abandon all its partitions and rejoin.",
    )


def full(kind: str, limit: int) -> ApiError:
    """The refusal of a member that has no room in the group."""
    message = f"The {kind} group has reached its maximum capacity of {limit} members."
    return ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def same_units(before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]]) -> bool:
    """Whether two targets hold the same partitions or tasks, in whatever order."""
    return before.keys() == after.keys() and all(set(numbers) == set(after[key]) for key, numbers in before.items())
