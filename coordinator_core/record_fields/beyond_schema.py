"""What a decoded record holds besides the fields of its schema."""

from typing import TypedDict


class TrailingBytes(TypedDict, total=False):
    """A key, a value or an embedded blob: bytes that follow its last known field, only if there are some."""

    _trailingBytes: bytes


class UnknownTaggedFields(TypedDict, total=False):
    """A struct with tagged fields (KIP-482): those that its schema does not name, by tag, only if there are some."""

    _unknownTaggedFields: dict[int, bytes]
