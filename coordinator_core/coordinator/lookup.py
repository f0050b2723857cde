"""Lookups for requests to groups with epochs, and the refusals that all types of groups share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from coordinator_core.coordinator.classic import responses
from coordinator_core.coordinator.epoch_group import LiveEpochGroup
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH, EpochGroup, EpochMember
from coordinator_core.record_fields.coordinator_requests import LeaveGroupMember
from coordinator_core.records import Fields

MemberT = TypeVar("MemberT")
EpochMemberT = TypeVar("EpochMemberT", bound=EpochMember)
LiveT = TypeVar("LiveT", bound=LiveEpochGroup[Any])


def check_group_id(group_id: str) -> None:
    """Raise ApiError for the empty group id. Only OffsetCommit and OffsetFetch take it, as old clients use it."""
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)


def group_of(op: Operation, group_id: str, wanted: type[LiveT], name: str) -> LiveT:
    """Return the group of that id and type; raises ApiError if there is none. ``name`` is the type's name in
    messages.
    """
    group = op.memory.live.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, wanted):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {name} group.")
    return group


def group_with(op: Operation, group_id: str, member_id: str, wanted: type[LiveT]) -> LiveT | None:
    """Return the group of that id and type if the member is in it; None otherwise, as a timer may outlive both."""
    group = op.memory.live.get(group_id)
    return group if isinstance(group, wanted) and member_id in group.log.members else None


def member_of(members: Mapping[str, MemberT], member_id: str, group_id: str) -> MemberT:
    """Return the member; raises ApiError if there is none."""
    member = members.get(member_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")
    return member


def check_not_fenced(holder: EpochMember, member_id: str, instance_id: str) -> None:
    """Raise ApiError if the instance id belongs to another member."""
    if holder.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}.",
        )


class _HasStaticMembers(Protocol[EpochMemberT]):
    """A group with epochs, as far as LeaveGroup looks its members up."""

    @property
    def group_id(self) -> str:
        """The group's id."""

    @property
    def log(self) -> EpochGroup[EpochMemberT, Any]:
        """The group as its records define it."""

    def static_member(self, instance_id: str | None) -> EpochMemberT | None:
        """Return the member that holds that instance id."""


def named_member(group: _HasStaticMembers[EpochMemberT], member_id: str, instance_id: str | None) -> EpochMemberT:
    """Return the member, with an instance id its holder; raises ApiError if there is none, or it is another member."""
    member = _holder_or_member(group, member_id, instance_id)
    if instance_id is not None:
        check_not_fenced(member, member_id, instance_id)
    return member


def _holder_or_member(group: _HasStaticMembers[EpochMemberT], member_id: str, instance_id: str | None) -> EpochMemberT:
    if instance_id is None:
        return member_of(group.log.members, member_id, group.group_id)
    holder = group.static_member(instance_id)
    if holder is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    return holder


def leaving_members(
    group: _HasStaticMembers[EpochMemberT], asked: Sequence[LeaveGroupMember]
) -> tuple[dict[str, EpochMemberT], list[Fields]]:
    """Return the members that a LeaveGroup names, by id, and an answer for each that it names, in order.

    An instance id stands for itself: its holder leaves, also if no member id is given.
    """
    leaving: dict[str, EpochMemberT] = {}
    answers: list[Fields] = []
    for named in asked:
        try:
            member_id, instance_id = named["memberId"], named["groupInstanceId"]
            member = _holder_or_member(group, member_id, instance_id)
            if instance_id is not None and member_id:
                check_not_fenced(member, member_id, instance_id)
            leaving[member.member_id] = member
            answers.append(responses.leave_group_member(named))
        except ApiError as error:
            answers.append(responses.leave_group_member(named, error.code))
    return leaving, answers


def check_released(holder: EpochMember, member_id: str, instance_id: str) -> None:
    """Raise ApiError unless the holder of the instance id has left temporarily."""
    if holder.member_epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {holder.member_id} member.",
        )


def greater_epoch_error(kind: str, epoch: int, known: int) -> ApiError:
    """Return the refusal of a member epoch that the coordinator has not assigned yet."""
    return ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a greater member epoch ({epoch}) than the one known by the group coordinator "
        f"({known}). The member must abandon all its partitions and rejoin.",
    )


def smaller_epoch_error(kind: str, epoch: int, known: int, why: str = "") -> ApiError:
    """Return the refusal of a member epoch that is no longer valid."""
    return ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a smaller member epoch ({epoch}) than the one known by the group coordinator "
        f"({known}){why}. The member must abandon all its partitions and rejoin.",
    )


def group_full_error(kind: str, limit: int) -> ApiError:
    """Return the refusal of a member for which the group has no room."""
    message = f"The {kind} group has reached its maximum capacity of {limit} members."
    return ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


OFFSET_COMMIT_VERSION = 9
"""Members that do not speak the classic protocol have to commit by at least this version."""


def is_commit_without_member(
    group: LiveEpochGroup[Any], member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
) -> bool:
    """Whether a commit names no member where none is needed: in an empty group, or a transaction without one."""
    return epoch < 0 and (group.is_empty or (transactional and epoch == -1 and not member_id and instance_id is None))


def check_commit_version(kind: str, version: int) -> None:
    """Raise ApiError for an OffsetCommit before ``OFFSET_COMMIT_VERSION``."""
    if version >= OFFSET_COMMIT_VERSION:
        return
    needed = f"OffsetCommit version {OFFSET_COMMIT_VERSION} or above"
    message = f"{needed} must be used by members using the {kind} group protocol"
    raise ApiError(ErrorCode.UNSUPPORTED_VERSION, message)


def same_units(before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]]) -> bool:
    """Whether two targets have the same partitions or tasks, in any order."""
    return before.keys() == after.keys() and all(set(numbers) == set(after[key]) for key, numbers in before.items())


def check_assignment_epoch(code: ErrorCode, unit: str, word: str, epoch: int, assigned: int | None) -> None:
    """Raise ApiError unless a member that commits at an older epoch had the unit by then (KIP-1251).

    ``unit`` is the partition or task, ``word`` the member's name for its epoch, and ``assigned`` the epoch in which the
    unit was assigned to it, None if the member does not have it.
    """
    if assigned is None:
        message = f"{unit[0].upper()}{unit[1:]} is not assigned or pending revocation for member."
        raise ApiError(code, message)
    if epoch < assigned:
        raise ApiError(code, f"Received {word} {epoch} is older than assignment epoch {assigned} for {unit}.")


def check_fetch_epoch(code: ErrorCode, word: str, epoch: int, known: int) -> None:
    """Raise ApiError unless a member that fetches offsets is at the epoch that the coordinator knows."""
    if epoch != known:
        raise ApiError(code, f"The received {word} {epoch} does not match the expected member epoch {known}.")
