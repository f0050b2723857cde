"""The records within one batch, one at a time: the reference that the columnar reader is tested against.

Record batch v2 (KIP-98): after the header, records that are prefixed with their length and use zigzag varints;
the whole run of records is compressed. Message formats v0 and v1 (KIP-31, KIP-32): see ``legacy_messages``.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from coordinator_core.errors import DecodeError, LogFormatError
from coordinator_core.wire.batch_format import CODEC_MASK, HEADER_SIZE, LOG_APPEND_TIME_BIT, BatchHeader
from coordinator_core.wire.compression import decompress
from coordinator_core.wire.control import ControlRecord, parse_control
from coordinator_core.wire.primitives import read_varint, read_varlong

Headers = tuple[tuple[str, bytes | None], ...]

MIN_RECORD_BYTES = 7
"""Length, attributes, two deltas, key length, value length, header count: a byte each at least."""

INT32_MAX = 2**31 - 1

MOST_AT_ONCE = 1 << 17
"""The most records of one batch that are held together; a batch of a few kilobytes may hold millions."""


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


def batch_records(data: bytes | memoryview, header: BatchHeader) -> Iterable[LogRecord]:
    """Return the records of a v2 batch whose bytes are ``data``; very many are made one by one.

    Raises:
        LogFormatError: a record is damaged; the message names it. It is raised before the first record is returned.
    """
    body = bytes(decompress(header.attributes & CODEC_MASK, memoryview(data)[HEADER_SIZE:]))
    if not 0 <= header.record_count <= len(body) // MIN_RECORD_BYTES:
        raise LogFormatError(f"{header.record_count} records in {len(body)} bytes")
    if header.record_count <= MOST_AT_ONCE:
        return list(_records(body, header))
    # The first pass only looks: a record that was returned could not be taken back when a later one is damaged.
    for _ in _records(body, header):
        pass
    return _records(body, header)


def _records(body: bytes, header: BatchHeader) -> Iterator[LogRecord]:
    at = number = 0
    try:
        for number in range(header.record_count):
            length, at = read_varint(body, at)
            if not 0 <= length <= len(body) - at:
                raise LogFormatError(f"record {number} has length {length}, {len(body) - at} bytes are left")
            yield _record(body, at, at + length, header)
            at += length
    except DecodeError as error:
        raise LogFormatError(f"record {number}: {error.cause}") from None
    if at != len(body):
        raise LogFormatError(f"{len(body) - at} bytes after the last record")


def sequence_of(base_sequence: int, offset_delta: int) -> int:
    """Return a record's sequence number; sequence numbers wrap from 2^31 - 1 to 0."""
    return (base_sequence + offset_delta) % (INT32_MAX + 1) if base_sequence >= 0 else -1


def wrapped(value: int) -> int:
    """``value`` as a 64-bit integer holds it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _record(body: bytes, at: int, end: int, header: BatchHeader) -> LogRecord:
    timestamp_delta, at = read_varlong(body, at + 1)
    offset_delta, at = read_varint(body, at)
    key, at = _field(body, at, end)
    value, at = _field(body, at, end)
    headers, at = _headers(body, at, end)
    if at != end:
        raise DecodeError(f"{end - at} bytes after its fields")
    # A broker that stamps a batch writes its header anew, not its records: their deltas are still the producer's.
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
    count, at = read_varint(body, at)
    # A header takes a byte for each of its two lengths at least: a larger count is damage.
    if not 0 <= count <= (end - at) // 2:
        raise DecodeError(f"{count} headers in {end - at} bytes")
    headers = []
    for _ in range(count):
        name, at = _field(body, at, end)
        value, at = _field(body, at, end)
        if name is None:
            raise DecodeError("a header without a key")
        headers.append((name.decode("utf-8", "replace"), value))
    return tuple(headers), at


def _field(body: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = read_varint(body, at)
    if length < 0:
        return None, at
    if length > end - at:
        raise DecodeError(f"a field of {length} bytes where {end - at} are left")
    return body[at : at + length], at + length
