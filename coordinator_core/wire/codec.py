"""Readers and writers of one value, derived from a layout: the plain interpreter that is the reference for all others.

A reader takes ``(data, position)`` and returns ``(value, next position)``; a writer appends to a bytearray. Both are
closures, made once for each layout.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from coordinator_core.errors import DecodeError, EncodeError, HostileLengthError, InvalidTextError, UnexpectedNullError
from coordinator_core.records import Fields
from coordinator_core.wire.message_layout import Array, Node, Scalar, Sized, Slot, Struct
from coordinator_core.wire.primitives import (
    MAX_ARRAY,
    MAX_TAGGED_FIELDS,
    Read,
    Write,
    need,
    read_unsigned_varint,
    scalar_reader,
    scalar_writer,
    write_unsigned_varint,
)
from coordinator_core.wire.schema import REQUIRED

UNKNOWN_TAGGED_FIELDS: Final = "_unknownTaggedFields"
"""Key of the tagged fields that no schema names (tag to bytes); absent if there are none."""


@lru_cache(maxsize=4096)
def reader(node: Node) -> Read:
    """Return the reader of a node of a layout."""
    match node:
        case Scalar(name):
            return scalar_reader(name)
        case Sized():
            return _sized_reader(node)
        case Array():
            return _array_reader(node)
        case Struct():
            return _struct_reader(node)


@lru_cache(maxsize=4096)
def writer(node: Node) -> Write:
    """Return the writer of a node of a layout. It raises EncodeError for a value that the node cannot hold."""
    match node:
        case Scalar(name):
            return scalar_writer(name)
        case Sized():
            return _sized_writer(node)
        case Array():
            return _array_writer(node)
        case Struct():
            return _struct_writer(node)


def _length_reader(node: Sized | Array) -> Read:
    """Reads a length, -1 for null."""
    if node.compact:

        def read_compact(data: bytes, position: int) -> tuple[int, int]:
            length, position = read_unsigned_varint(data, position)
            # Compact lengths count from 1, as 0 is null (KIP-482).
            return length - 1, position

        return read_compact
    plain = scalar_reader("int16" if isinstance(node, Sized) and node.kind == "string" else "int32")
    if isinstance(node, Array) or node.kind != "utf16_string":
        return plain

    def read_units(data: bytes, position: int) -> tuple[int, int]:
        units, position = plain(data, position)
        # Java writes the number of UTF-16 units, and 0 units for null.
        return units * 2 or -1, position

    return read_units


def _sized_reader(node: Sized) -> Read:
    read_length = _length_reader(node)
    encoding = {"string": "utf-8", "utf16_string": "utf-16-be", "bytes": None}[node.kind]

    def read(data: bytes, position: int) -> tuple[object, int]:
        length, start = read_length(data, position)
        if length < 0:
            _check_null(node, length, position)
            return None, start
        end = need(data, start, length)
        raw = data[start:end]
        if encoding is None:
            return raw, end
        try:
            return raw.decode(encoding), end
        except UnicodeDecodeError as error:
            raise InvalidTextError(f"no {encoding}: {error.reason}", position=start + error.start) from None

    return read


def _check_null(node: Sized | Array, length: int, position: int) -> None:
    if length < -1:
        raise HostileLengthError(f"a length of {length}", position=position)
    if not node.nullable:
        raise UnexpectedNullError("null", position=position)


def _array_reader(node: Array) -> Read:
    read_length, read_element = _length_reader(node), reader(node.element)

    def read(data: bytes, position: int) -> tuple[list[object] | None, int]:
        count, at = read_length(data, position)
        if count < 0:
            _check_null(node, count, position)
            return None, at
        # An element takes a byte at least: a larger count is damage, and must not make a list of its size.
        if count > min(MAX_ARRAY, len(data) - at):
            raise HostileLengthError(f"an array of {count} elements in {len(data) - at} bytes", position=position)
        values = []
        for index in range(count):
            try:
                value, at = read_element(data, at)
            except DecodeError as error:
                raise error.within(f"[{index}]") from None
            values.append(value)
        return values, at

    return read


def _struct_reader(node: Struct) -> Read:
    steps = [(slot.name, reader(slot.node)) for slot in node.slots]
    read_tagged = tagged_reader(node.tagged) if node.flexible else None

    def read(data: bytes, position: int) -> tuple[Fields, int]:
        fields: Fields = {}
        for name, read_field in steps:
            try:
                fields[name], position = read_field(data, position)
            except DecodeError as error:
                raise error.within(name) from None
        if read_tagged is not None:
            position = read_tagged(data, position, fields)
        return fields, position

    return _nullable_reader(read, scalar_reader("int8"), -1) if node.nullable else read


def _nullable_reader(read_present: Read, read_presence: Read, absent: int) -> Read:
    def read(data: bytes, position: int) -> tuple[Fields | None, int]:
        presence, after = read_presence(data, position)
        if presence == absent:
            return None, after
        if presence != 1:
            raise DecodeError(f"presence is {absent} or 1, not {presence}", position=position)
        return read_present(data, after)

    return read


def _tagged_value_reader(node: Node) -> Read:
    """A nullable struct has another presence inside a tagged field; all else reads as elsewhere."""
    if isinstance(node, Struct) and node.nullable:
        return _nullable_reader(reader(node.present()), read_unsigned_varint, 0)
    return reader(node)


def tagged_reader(slots: tuple[tuple[int, Slot], ...]) -> Callable[[bytes, int, Fields], int]:
    """Return the reader of a struct's tagged fields: it puts them into the fields, and returns the next position."""
    known = {tag: (slot.name, _tagged_value_reader(slot.node)) for tag, slot in slots}

    def read(data: bytes, position: int, fields: Fields) -> int:
        count, at = read_unsigned_varint(data, position)
        # A field takes a byte for its tag, and one for its size, at least.
        if count > MAX_TAGGED_FIELDS or count * 2 > len(data) - at:
            raise HostileLengthError(f"{count} tagged fields in {len(data) - at} bytes", position=position)
        unknown: dict[int, bytes] = {}
        for _ in range(count):
            start = at
            tag, at = read_unsigned_varint(data, at)
            size, at = read_unsigned_varint(data, at)
            end = need(data, at, size)
            name, read_value = known.get(tag, ("", None))
            # A tag that comes twice would lose one of its values, and could not be written back.
            if tag in unknown or name in fields:
                raise DecodeError(f"tag {tag} occurs twice", position=start)
            if read_value is None:
                unknown[tag] = data[at:end]
            else:
                try:
                    fields[name], stop = read_value(data, at)
                except DecodeError as error:
                    raise error.within(name) from None
                if stop != end:
                    raise DecodeError(f"{stop - at} bytes in a tagged field of {size}", path=name, position=at)
            at = end
        if unknown:
            fields[UNKNOWN_TAGGED_FIELDS] = unknown
        return at

    return read


def _length_writer(node: Sized | Array) -> Write:
    """Writes a length, -1 for null."""
    if node.compact:
        return lambda out, length: write_unsigned_varint(out, length + 1)
    if isinstance(node, Sized) and node.kind == "string":
        return scalar_writer("int16")
    plain = scalar_writer("int32")
    if isinstance(node, Array) or node.kind != "utf16_string":
        return plain
    return lambda out, length: plain(out, max(length, 0) // 2)


def _sized_writer(node: Sized) -> Write:
    write_length = _length_writer(node)
    encoding = {"string": "utf-8", "utf16_string": "utf-16-be", "bytes": None}[node.kind]

    def write(out: bytearray, value: str | bytes | None) -> None:
        if value is None and node.nullable:
            write_length(out, -1)
            return
        raw = _encoded(value, encoding)
        write_length(out, len(raw))
        out += raw

    return write


def _encoded(value: object, encoding: str | None) -> bytes:
    if encoding is None:
        if isinstance(value, bytes):
            return value
        raise EncodeError(f"{value!r} is not bytes")
    if not isinstance(value, str):
        raise EncodeError(f"{value!r} is not a string")
    try:
        return value.encode(encoding)
    except UnicodeEncodeError as error:
        raise EncodeError(f"{value!r} has no {encoding}") from error


def _array_writer(node: Array) -> Write:
    write_length, write_element = _length_writer(node), writer(node.element)

    def write(out: bytearray, values: list[object] | None) -> None:
        if values is None and node.nullable:
            write_length(out, -1)
            return
        if not isinstance(values, list):
            raise EncodeError(f"{values!r} is not a list")
        write_length(out, len(values))
        for index, value in enumerate(values):
            try:
                write_element(out, value)
            except EncodeError as error:
                raise error.within(f"[{index}]") from None

    return write


def _struct_writer(node: Struct) -> Write:
    steps = [(slot, writer(slot.node)) for slot in node.slots]
    write_tagged = _tagged_writer(node.tagged) if node.flexible else None
    names = {slot.name for slot in node.declared} | {UNKNOWN_TAGGED_FIELDS}

    def write(out: bytearray, fields: Fields) -> None:
        if not isinstance(fields, dict):
            raise EncodeError(f"{fields!r} is not a struct")
        # A field that this version lacks would be left out without a word: what is read back would differ.
        if stray := fields.keys() - names:
            raise EncodeError("no such field in this version", path=min(stray))
        for slot, write_field in steps:
            value = fields.get(slot.name, slot.default)
            if value is REQUIRED:
                raise EncodeError("missing", path=slot.name)
            try:
                write_field(out, value)
            except EncodeError as error:
                raise error.within(slot.name) from None
        if write_tagged is not None:
            write_tagged(out, fields)

    if not node.nullable:
        return write

    def write_nullable(out: bytearray, fields: Fields | None) -> None:
        out += b"\xff" if fields is None else b"\x01"
        if fields is not None:
            write(out, fields)

    return write_nullable


def _tagged_value_writer(node: Node) -> Write:
    if not (isinstance(node, Struct) and node.nullable):
        return writer(node)
    write_present = writer(node.present())

    def write(out: bytearray, fields: Fields | None) -> None:
        out.append(fields is not None)
        if fields is not None:
            write_present(out, fields)

    return write


def _tagged_writer(slots: tuple[tuple[int, Slot], ...]) -> Callable[[bytearray, Fields], None]:
    known = [(tag, slot.name, _tagged_value_writer(slot.node)) for tag, slot in slots]

    def write(out: bytearray, fields: Fields) -> None:
        entries: dict[int, bytes] = dict(fields.get(UNKNOWN_TAGGED_FIELDS, {}))
        for tag, name, write_value in known:
            if name in fields:
                content = bytearray()
                try:
                    write_value(content, fields[name])
                except EncodeError as error:
                    raise error.within(name) from None
                entries[tag] = bytes(content)
        write_unsigned_varint(out, len(entries))
        # Readers want ascending tags (KIP-482), those that no schema knows among the others.
        for tag in sorted(entries):
            write_unsigned_varint(out, tag)
            write_unsigned_varint(out, len(entries[tag]))
            out += entries[tag]

    return write
