"""Lookups for requests to groups with epochs, and the refusals that all types of groups share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from coordinator_core.coordinator.classic import responses
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.epoch_group import LiveEpochGroup
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.groups.connect.state import ConnectMember
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH, EpochGroup, EpochMember
from coordinator_core.record_fields.coordinator_requests import LeaveGroupRequest
from coordinator_core.records import Fields

MemberT = TypeVar("MemberT")
EpochMemberT = TypeVar("EpochMemberT", bound=EpochMember)
LiveT = TypeVar("LiveT", bound=LiveEpochGroup[Any])


def check_group_id(group_id: str) -> None:
    """Raise ApiError for the empty group id. Only OffsetCommit and OffsetFetch take it, as old clients use it."""
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)


def group_of(op: Operation, group_id: str, wanted: type[LiveT]) -> LiveT:
    """Return the group of that id and type; raises ApiError if there is none."""
    group = op.memory.live.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, wanted):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {wanted.type.lower()} group.")
    return group


def no_upgrade(classic: LiveClassicGroup, wanted: type[LiveEpochGroup[Any]], reason: str) -> ApiError:
    """Return the refusal of a member with which a classic group would become one of another type."""
    message = f"Cannot upgrade classic group {classic.group_id} to {wanted.type.lower()} group because {reason}."
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)


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


def leave(
    op: Operation,
    request: Request[LeaveGroupRequest],
    group: _HasStaticMembers[EpochMemberT],
    fence: Callable[[Operation, Any, Sequence[EpochMemberT]], None],
) -> Fields:
    """Serve LeaveGroup; members may be of both protocols, and each gets its own result. ``fence`` removes them.

    An instance id stands for itself: its holder leaves, also if no member id is given.
    """
    # By member id: a request may name a member twice, also by its instance id.
    leaving: dict[str, EpochMemberT] = {}
    answers: list[Fields] = []
    for named in request.data["members"]:
        try:
            member_id, instance_id = named["memberId"], named["groupInstanceId"]
            member = _holder_or_member(group, member_id, instance_id)
            if instance_id is not None and member_id:
                check_not_fenced(member, member_id, instance_id)
            leaving[member.member_id] = member
            answers.append(responses.leave_group_member(named))
        except ApiError as error:
            answers.append(responses.leave_group_member(named, error.code))
    fence(op, group, list(leaving.values()))
    return responses.leave_group_response(request.version, answers)


def check_released(holder: EpochMember | ConnectMember, member_id: str, instance_id: str) -> None:
    """Raise ApiError unless the holder of the instance id has left temporarily."""
    if holder.member_epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {holder.member_id} member.",
        )


def wrong_epoch(kind: str, epoch: int, known: int, why: str = "") -> ApiError:
    """Return the refusal of a member epoch that the coordinator has not assigned yet, or that is no longer valid."""
    differs = "greater" if epoch > known else "smaller"
    return ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a {differs} member epoch ({epoch}) than the one known by the group coordinator "
        f"({known}){why}. The member must abandon all its partitions and rejoin.",
    )


def check_member_epoch(
    kind: str, member: EpochMember, epoch: int, keeps_within: Callable[[], bool], why: str = ""
) -> None:
    """Raise ApiError unless the epoch is the member's, or the one before (the response may have been lost).

    With the epoch before, the member must not own more than it was assigned (``keeps_within``). Epoch 0 rejoins.
    """
    known = member.member_epoch or 0
    is_before = epoch == member.previous_member_epoch
    if epoch > known or (epoch not in (0, known) and not (is_before and keeps_within())):
        raise wrong_epoch(kind, epoch, known, why if epoch < known else "")


def check_capacity(group: LiveEpochGroup[Any], limit: int, member_id: str | None = None) -> None:
    """Raise ApiError if the group is full and ``member_id`` is not a member (None: also for one that returns)."""
    if len(group.log.members) >= limit and member_id not in group.log.members:
        message = f"The {group.type.lower()} group has reached its maximum capacity of {limit} members."
        raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


OFFSET_COMMIT_VERSION = 9
"""Members that do not speak the classic protocol have to commit by at least this version."""


def committing(
    group: LiveEpochGroup[Any],
    members: Mapping[str, EpochMemberT],
    member_id: str,
    instance_id: str | None,
    epoch: int,
    version: int,
    *,
    transactional: bool,
) -> EpochMemberT | None:
    """Return the member of a commit at an older epoch; None: it is at its own, or names none where none is needed, in
    an empty group, or a transaction.

    Raises ApiError for one that is not of the group, a newer epoch, or an OffsetCommit before
    ``OFFSET_COMMIT_VERSION``.
    """
    names_none = transactional and epoch == -1 and not member_id and instance_id is None
    if epoch < 0 and (group.is_empty or names_none):
        return None
    member = member_of(members, member_id, group.group_id)
    if not transactional and not member.speaks_classic and version < OFFSET_COMMIT_VERSION:
        needed = f"OffsetCommit version {OFFSET_COMMIT_VERSION} or above"
        message = f"{needed} must be used by members using the {group.type.lower()} group protocol"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, message)
    known = member.member_epoch or 0
    if epoch > known:
        code, word = stale(member)
        raise ApiError(code, f"Received {word} {epoch} is newer than current member epoch {known}.")
    return None if epoch == known else member


def stale(member: EpochMember) -> tuple[ErrorCode, str]:
    """Return the error of a member at another epoch than its own, and what such a member calls its epoch."""
    if member.speaks_classic:
        return ErrorCode.ILLEGAL_GENERATION, "generation id"
    return ErrorCode.STALE_MEMBER_EPOCH, "member epoch"


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


def check_offset_fetch(group: LiveEpochGroup[Any], member_id: str | None, epoch: int) -> None:
    """Raise ApiError unless the fetch is of a member at its epoch, or names no member."""
    if member_id is None and epoch < 0:
        return
    member: EpochMember = member_of(group.log.members, member_id or "", group.group_id)
    known = member.member_epoch or 0
    if epoch != known:
        code, word = stale(member)
        raise ApiError(code, f"The received {word} {epoch} does not match the expected member epoch {known}.")
