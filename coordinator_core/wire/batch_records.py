"""The records within one batch, one at a time: the reference that the columnar reader is tested against.

Record batch v2 (KIP-98): after the header, records that are prefixed with their length and use zigzag varints;
the whole run of records is compressed. Message formats v0 and v1 (KIP-31, KIP-32): see ``legacy_messages``.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator_core.errors import LogFormatError
from coordinator_core.wire.batch_format import CODEC_MASK, HEADER_SIZE, LOG_APPEND_TIME_BIT, BatchHeader
from coordinator_core.wire.compression import decompress
from coordinator_core.wire.control import ControlRecord, parse_control

Headers = tuple[tuple[str, bytes | None], ...]

MIN_RECORD_BYTES = 7
"""Length, attributes, two deltas, key length, value length, header count: a byte each at least."""

INT32_MAX = 2**31 - 1


class LogRecord(NamedTuple):
    """One record of a log.

    ``timestamp`` is in milliseconds, -1 for none. ``sequence`` is -1 without a producer. ``control`` says what a
    control record means; it is None for data.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    sequence: int
    control: ControlRecord | None
    batch: BatchHeader


def batch_records(data: bytes | memoryview, header: BatchHeader) -> list[LogRecord]:
    """The records of a v2 batch whose bytes are ``data``. Raises LogFormatError naming the record that is damaged."""
    body = bytes(decompress(header.attributes & CODEC_MASK, memoryview(data)[HEADER_SIZE:]))
    if not 0 <= header.record_count <= len(body) // MIN_RECORD_BYTES:
        raise LogFormatError(f"{header.record_count} records in {len(body)} bytes")
    records, at = [], 0
    for number in range(header.record_count):
        length, at = _varint(body, at)
        end = at + length
        if length < 0 or end > len(body):
            raise LogFormatError(f"record {number} has length {length}, {len(body) - at} bytes are left")
        records.append(_record(body, at, end, header, number))
        at = end
    if at != len(body):
        raise LogFormatError(f"{len(body) - at} bytes after the last record")
    return records


def sequence_of(base_sequence: int, offset_delta: int) -> int:
    """A record's sequence number; sequence numbers wrap from 2^31 - 1 to 0."""
    return (base_sequence + offset_delta) % (INT32_MAX + 1) if base_sequence >= 0 else -1


def wrapped(value: int) -> int:
    """``value`` as a 64-bit integer holds it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _record(body: bytes, at: int, end: int, header: BatchHeader, number: int) -> LogRecord:
    timestamp_delta, at = _varint(body, at + 1, 10)
    offset_delta, at = _varint(body, at)
    key, at = _field(body, at, end)
    value, at = _field(body, at, end)
    headers, at = _headers(body, at, end)
    if at != end:
        raise LogFormatError(f"record {number} is {end - at} bytes longer than its fields")
    stamped = header.attributes & LOG_APPEND_TIME_BIT
    return LogRecord(
        header.base_offset + offset_delta,
        header.max_timestamp if stamped else wrapped(header.base_timestamp + timestamp_delta),
        key,
        value,
        headers,
        sequence_of(header.base_sequence, offset_delta),
        parse_control(key, value) if header.is_control else None,
        header,
    )


def _headers(body: bytes, at: int, end: int) -> tuple[Headers, int]:
    count, at = _varint(body, at)
    if not 0 <= count <= (end - at) // 2:
        raise LogFormatError(f"{count} headers in {end - at} bytes")
    headers = []
    for _ in range(count):
        name, at = _field(body, at, end)
        value, at = _field(body, at, end)
        if name is None:
            raise LogFormatError("a header without a key")
        headers.append((name.decode("utf-8", "replace"), value))
    return tuple(headers), at


def _field(body: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = _varint(body, at)
    if length < 0:
        return None, at
    if length > end - at:
        raise LogFormatError(f"a field of {length} bytes where {end - at} are left in the record")
    return body[at : at + length], at + length


def _varint(body: bytes, at: int, most: int = 5) -> tuple[int, int]:
    """A zigzag varint of at most ``most`` bytes (5: 32 bits, 10: 64 bits) and the position after it."""
    value = shift = 0
    for taken in range(most):
        if at >= len(body):
            raise LogFormatError("the records end within a varint")
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if taken == most - 1 and value >> (32 if most == 5 else 64):
                raise LogFormatError("a varint with more bits than its type")
            return (value >> 1) ^ -(value & 1), at
    raise LogFormatError(f"a varint of more than {most} bytes")
