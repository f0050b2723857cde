"""What the types of records share: the keys that most have alike, and what is beyond the fields of a schema."""

from typing import TypedDict, final


class TrailingBytes(TypedDict, total=False):
    """A key, a value or an embedded blob: bytes that follow its last known field, only if there are some."""

    _trailingBytes: bytes


class UnknownTaggedFields(TypedDict, total=False):
    """A struct with tagged fields (KIP-482): those that its schema does not name, by tag, only if there are some."""

    _unknownTaggedFields: dict[int, bytes]


@final
class GroupIdKey(TrailingBytes):
    """The key of records about a whole group."""

    groupId: str


@final
class MemberKey(TrailingBytes):
    """The key of records about a member (a worker)."""

    groupId: str
    memberId: str
