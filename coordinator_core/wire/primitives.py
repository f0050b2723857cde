"""Kafka's primitive types on bytes: fixed-width numbers, varints, uuids, and the limits on what lengths may say.

All readers take ``(data, position)`` and return ``(value, next position)``; errors name the byte position.
"""

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Any, Final

from coordinator_core.errors import DecodeError, EncodeError, HostileLengthError, UnderflowError

MAX_ARRAY: Final = 1_000_000
"""The most elements that an array may claim."""

MAX_TAGGED_FIELDS: Final = 10_000
"""The most tagged fields that a struct may claim."""

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")

_NUMBERS: Final = {
    "int8": struct.Struct(">b"),
    "int16": INT16,
    "uint16": struct.Struct(">H"),
    "int32": INT32,
    "int64": struct.Struct(">q"),
}

Read = Callable[[bytes, int], tuple[Any, int]]
Write = Callable[[bytearray, Any], None]


def need(data: bytes, position: int, size: int) -> int:
    """Return the position ``size`` bytes later; raises UnderflowError if the data ends before it."""
    end = position + size
    if end > len(data):
        raise UnderflowError(f"{size} bytes wanted, {len(data) - position} left", position=position)
    return end


def read_unsigned_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned varint of 32 bits (at most 5 bytes)."""
    return _read_varint(data, position, 32)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag varint of 32 bits (at most 5 bytes)."""
    raw, position = _read_varint(data, position, 32)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag varint of 64 bits (at most 10 bytes)."""
    raw, position = _read_varint(data, position, 64)
    return (raw >> 1) ^ -(raw & 1), position


def _read_varint(data: bytes, position: int, bits: int) -> tuple[int, int]:
    value = 0
    at = position
    for shift in range(0, bits, 7):
        if at >= len(data):
            raise UnderflowError("a varint is cut off", position=position)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return value, at
    raise HostileLengthError(f"a varint exceeds {bits} bits", position=position)


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Append an unsigned varint in its shortest form."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def scalar_reader(name: str) -> Read:
    """Return the reader of a fixed-width type."""
    if name == "boolean":
        return _read_boolean
    if name == "uuid":
        return _read_uuid
    packing = _NUMBERS[name]
    unpack, size = packing.unpack_from, packing.size

    def read(data: bytes, position: int) -> tuple[int, int]:
        end = need(data, position, size)
        return unpack(data, position)[0], end

    return read


def scalar_writer(name: str) -> Write:
    """Return the writer of a fixed-width type; it raises EncodeError for a value out of range."""
    if name == "boolean":
        return _write_boolean
    if name == "uuid":
        return _write_uuid
    pack = _NUMBERS[name].pack

    def write(out: bytearray, value: int) -> None:
        try:
            out += pack(value)
        except struct.error as error:
            raise EncodeError(f"{value!r} is no {name}") from error

    return write


def _read_boolean(data: bytes, position: int) -> tuple[bool, int]:
    end = need(data, position, 1)
    value = data[position]
    if value > 1:
        raise DecodeError(f"a boolean is 0 or 1, not {value}", position=position)
    return value == 1, end


def _write_boolean(out: bytearray, value: bool) -> None:
    if not isinstance(value, bool):
        raise EncodeError(f"{value!r} is not a boolean")
    out.append(value)


def _read_uuid(data: bytes, position: int) -> tuple[str, int]:
    end = need(data, position, 16)
    return uuid_text(data[position:end]), end


def _write_uuid(out: bytearray, value: str) -> None:
    out += uuid_bytes(value)


def uuid_text(data: bytes) -> str:
    """Return 16 bytes as Kafka writes a uuid: base64url without padding (22 characters)."""
    return urlsafe_b64encode(data)[:22].decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of Kafka's text of a uuid; raises EncodeError."""
    try:
        data = urlsafe_b64decode(f"{text}==")
    except (Base64Error, ValueError) as error:
        raise EncodeError(f"{text!r} is not a uuid") from error
    # base64 passes over foreign characters and the unused bits of the last one: other texts give the same bytes.
    if len(data) != 16 or uuid_text(data) != text:
        raise EncodeError(f"{text!r} is not a uuid")
    return data
