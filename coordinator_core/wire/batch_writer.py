"""Records to record batch v2, for tests, benchmarks and simulated logs. Brokers and Kafka's tools can read the
result.
"""

from collections.abc import Sequence
from typing import NamedTuple

import crc32c

from coordinator_core.errors import EncodeError
from coordinator_core.wire.batch_format import (
    CODECS,
    CONTROL_BIT,
    CRC_FROM_V2,
    HEADER_SIZE,
    HEADER_STRUCT,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
)
from coordinator_core.wire.batch_records import Headers
from coordinator_core.wire.compression import compress
from coordinator_core.wire.primitives import write_unsigned_varint


class NewRecord(NamedTuple):
    """A record to write: absolute offset, timestamp in milliseconds, key, value, headers."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Producer(NamedTuple):
    """The producer that writes a batch; the defaults mean that there is none."""

    id: int = -1
    epoch: int = -1
    base_sequence: int = -1


def encode_batch(
    records: Sequence[NewRecord],
    *,
    compression: str = "none",
    leader_epoch: int = 0,
    producer: Producer = Producer(),  # noqa: B008 (a NamedTuple is immutable)
    transactional: bool = False,
    control: bool = False,
    log_append_time: int | None = None,
) -> bytes:
    """Return the bytes of one batch; records are in ascending offset order, and the last one's is the batch's last
    offset.

    With ``log_append_time`` the batch is stamped LogAppendTime: readers see that time for every record.
    """
    if not records:
        raise EncodeError("a batch needs a record")
    first = records[0]
    body = b"".join(
        record_bytes(record, record.offset - first.offset, record.timestamp - first.timestamp) for record in records
    )
    attributes = _attributes(compression, transactional, control, log_append_time is not None)
    latest = max(record.timestamp for record in records) if log_append_time is None else log_append_time
    return frame(
        compress(attributes & 0x07, body),
        base_offset=first.offset,
        last_offset=records[-1].offset,
        count=len(records),
        base_timestamp=first.timestamp,
        max_timestamp=latest,
        attributes=attributes,
        leader_epoch=leader_epoch,
        producer=producer,
    )


def frame(
    body: bytes | memoryview,
    *,
    base_offset: int,
    last_offset: int,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int = 0,
    leader_epoch: int = 0,
    producer: Producer = Producer(),  # noqa: B008
) -> bytes:
    """Return the header with its CRC, then ``body``: the records as they go to the file, compressed if they are
    to be.
    """
    batch = bytearray(HEADER_SIZE)
    length = HEADER_SIZE - LOG_OVERHEAD + len(body)
    delta = last_offset - base_offset
    times = (base_timestamp, max_timestamp)
    HEADER_STRUCT.pack_into(
        batch, 0, base_offset, length, leader_epoch, 2, 0, attributes, delta, *times, *producer, count
    )
    # The leader epoch lies before what is summed up: a broker that appends the batch sets it, and leaves the CRC.
    crc = crc32c.crc32c(body, crc32c.crc32c(memoryview(batch)[CRC_FROM_V2:]))
    batch[CRC_FROM_V2 - 4 : CRC_FROM_V2] = crc.to_bytes(4, "big")
    return bytes(batch) + body


def varint(value: int) -> bytes:
    """Return a zigzag varint, as record batches use for lengths and deltas."""
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    if zigzag < 0x80:
        return _ONE_BYTE[zigzag]
    out = bytearray()
    write_unsigned_varint(out, zigzag)
    return bytes(out)


_ONE_BYTE = [bytes((value,)) for value in range(0x80)]
"""Most lengths and deltas are that small."""


def _attributes(compression: str, transactional: bool, control: bool, stamped: bool) -> int:
    bits = CODECS.index(compression)
    for wanted, bit in ((transactional, TRANSACTIONAL_BIT), (control, CONTROL_BIT), (stamped, LOG_APPEND_TIME_BIT)):
        bits |= bit if wanted else 0
    return bits


def record_bytes(record: NewRecord, offset_delta: int, timestamp_delta: int) -> bytes:
    """Return the bytes of one record of a batch, given how its offset and time differ from those of the first
    record.
    """
    headers = b"".join(_field(key.encode()) + _field(value) for key, value in record.headers)
    body = b"".join(
        (
            b"\x00",
            varint(timestamp_delta),
            varint(offset_delta),
            _field(record.key),
            _field(record.value),
            varint(len(record.headers)),
            headers,
        )
    )
    return varint(len(body)) + body


def _field(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value
