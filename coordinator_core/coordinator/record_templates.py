"""Records that a coordinator is about to write, as far as the groups with epochs (consumer, share, streams) agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import TypeVar

from coordinator_core.errors import InputError
from coordinator_core.groups.record_types import RecordTypes
from coordinator_core.record_fields.consumer_group import ConsumerGroupMemberMetadataKey
from coordinator_core.records import RecordType

KeyT = TypeVar("KeyT", default=Mapping[str, object])
ValueT = TypeVar("ValueT", default=Mapping[str, object])

Unwritten = tuple[RecordType, KeyT, ValueT | None]
"""Record type, key and value (None: a tombstone)."""

MemberKey = ConsumerGroupMemberMetadataKey
"""The key of a record about a member: the same fields in all types of such records."""


T = TypeVar("T")


def known(value: T | None) -> T:
    """Return a part of a member that a record needs; raises InputError if the log did not show it."""
    if value is None:
        raise InputError("the log does not show the whole member: replay the group from its first record")
    return value


def member_key(group_id: str, member_id: str) -> MemberKey:
    """Return the key of each record about a member."""
    return {"groupId": group_id, "memberId": member_id}


def member_tombstones(types: RecordTypes, group_id: str, member_id: str) -> list[Unwritten]:
    """Return the tombstones of a member: of its current assignment, its target assignment and its metadata, in
    this order.
    """
    key = member_key(group_id, member_id)
    return [(types.current, key, None), (types.target, key, None), (types.member, key, None)]


def tombstones_of_all(types: RecordTypes, group_id: str, members: Sequence[str]) -> list[Unwritten]:
    """Return the tombstones of all members of a group that is removed: current assignments, targets, target
    metadata, members.
    """
    keys = [member_key(group_id, member_id) for member_id in members]
    return [
        *((types.current, key, None) for key in keys),
        *((types.target, key, None) for key in keys),
        (types.target_epoch, {"groupId": group_id}, None),
        *((types.member, key, None) for key in keys),
    ]
