"""Message formats v0 and v1: what brokers before 0.11 wrote, and later ones for ``log.message.format.version``.

A message is offset (8), size (4), CRC-32 (4), magic (1), attributes (1), in v1 a timestamp (8), then key and value with
four-byte lengths. Compressed messages are the value of a wrapper, whose offset is that of the last message inside: in
v0 the inner messages carry their offsets, in v1 offsets relative to the first (KIP-31). A v1 wrapper stamped with
LogAppendTime gives its timestamp to all messages inside (KIP-32).
"""

import struct
from typing import NamedTuple

from coordinator_core.errors import LogFormatError
from coordinator_core.wire.batch_format import (
    CODEC_MASK,
    CODECS,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MIN_LENGTH,
    UP_TO_MAGIC,
    BatchHeader,
)
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.compression import decompress

HEAD = struct.Struct(">qiIbb")
TIMESTAMP = struct.Struct(">q")
LENGTH = struct.Struct(">i")


class _Message(NamedTuple):
    offset: int
    size: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def legacy_records(data: bytes | memoryview, position: int) -> list[LogRecord]:
    """Return the records of one message, which is a wrapper if it is compressed; ``position`` is its place in the file.

    All of them name the same batch: the wrapper.

    Raises:
        LogFormatError: the message is damaged; the error names what.
    """
    outer = _message(data, 0)
    codec = outer.attributes & CODEC_MASK
    inner = [outer] if codec == 0 else _unwrap(outer, codec)
    stamped = outer.magic == 1 and codec and outer.attributes & LOG_APPEND_TIME_BIT
    batch = BatchHeader(
        position,
        outer.size,
        outer.magic,
        inner[0].offset,
        outer.offset if codec == 0 else inner[-1].offset,
        -1,
        outer.crc,
        outer.attributes,
        outer.timestamp,
        outer.timestamp,
        -1,
        -1,
        -1,
        len(inner),
    )
    return [
        LogRecord(
            message.offset,
            outer.timestamp if stamped else message.timestamp,
            message.key,
            message.value,
            (),
            -1,
            None,
            batch,
        )
        for message in inner
    ]


def _unwrap(outer: _Message, codec: int) -> list[_Message]:
    if outer.value is None:
        raise LogFormatError("a compressed message without a value")
    if CODECS[codec : codec + 1] == ("zstd",):
        raise LogFormatError(f"zstd in message format v{outer.magic}, which does not have it")
    body = decompress(codec, outer.value, magic=outer.magic)
    inner, at = [], 0
    while at < len(body):
        message = _message(body, at)
        if message.attributes & CODEC_MASK:
            raise LogFormatError("a compressed message within a compressed message")
        inner.append(message)
        at += message.size
    if not inner:
        raise LogFormatError("a compressed message with no messages in it")
    if outer.magic == 0:
        return inner
    # Some releases of librdkafka left the wrapper's offset at 0: then the inner offsets are all there is.
    first = outer.offset - inner[-1].offset if outer.offset else 0
    if first < 0:
        raise LogFormatError(f"the wrapper's offset {outer.offset} is below {inner[-1].offset}, its last message's")
    return [message._replace(offset=first + message.offset) for message in inner]


def _message(data: bytes | memoryview, at: int) -> _Message:
    left = len(data) - at
    if left < UP_TO_MAGIC + 1:
        raise LogFormatError(f"{left} bytes where a message should be")
    offset, length, crc, magic, attributes = HEAD.unpack_from(data, at)
    if magic not in (0, 1) or not MIN_LENGTH[magic] <= length <= left - LOG_OVERHEAD:
        raise LogFormatError(f"a message of magic {magic} and {length} bytes where {left - LOG_OVERHEAD} are left")
    end = at + LOG_OVERHEAD + length
    field = at + HEAD.size
    timestamp = -1
    if magic == 1:
        timestamp = TIMESTAMP.unpack_from(data, field)[0]
        field += TIMESTAMP.size
    key, field = _bytes(data, field, end)
    value, field = _bytes(data, field, end)
    if field != end:
        raise LogFormatError(f"a message that is {end - field} bytes longer than its fields")
    return _Message(offset, length + LOG_OVERHEAD, crc, magic, attributes, timestamp, key, value)


def _bytes(data: bytes | memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    if end - at < LENGTH.size:
        raise LogFormatError("a message that ends within its fields")
    length = LENGTH.unpack_from(data, at)[0]
    at += LENGTH.size
    if length < 0:
        return None, at
    if length > end - at:
        raise LogFormatError(f"a field of {length} bytes where {end - at} are left in the message")
    return bytes(data[at : at + length]), at + length
