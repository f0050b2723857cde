"""The layout of record batches: header fields, attribute bits, names of codecs and control types.

Record batch v2 is Kafka's DefaultRecordBatch (KIP-98); message formats v0 and v1 are its predecessors (KIP-31, KIP-32).
All integers are big-endian. The first 17 bytes have the same meaning in every format, so that a file can be walked
without knowing which format comes next: offset (8), length of what follows (4), four bytes of CRC or leader epoch,
magic (1).
"""

import struct
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ReadAt = Callable[[int, int], bytes]
"""``read_at(position, size)`` gives the bytes there, fewer only at the end of the file."""

LOG_OVERHEAD = 12
"""Bytes of offset and length, which the length itself does not count."""

UP_TO_MAGIC = 17
"""Bytes of a batch that all formats have in common: its magic byte, the last of them, says which one it is."""
MAGIC_AT = 16
CRC_FROM_V2 = 21
CRC_FROM_LEGACY = 16
"""The first byte that the checksum covers: in v2 the attributes, before that the magic byte."""

HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
"""The header of record batch v2 as it lies in the file: 61 bytes, no padding."""

HEADER_SIZE = HEADER.itemsize
HEADER_STRUCT = struct.Struct(">qiibIhiqqqhii")

MIN_LENGTH = {0: 14, 1: 22, 2: HEADER_SIZE - LOG_OVERHEAD}
"""The least that the length field can say, by magic."""

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

IN_VALUE = 2
"""A record without a time, whose time here is that in its value (``value_times``)."""

TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime", IN_VALUE: "InValue"}
"""Kafka's names by the ids that Spark's Kafka source uses too, and ``IN_VALUE``."""

MAX_BATCH_BYTES = 64 << 20
"""Larger batches are refused, as they lie in the file or decompressed: brokers allow 1 MB unless configured."""


class Kind(Enum):
    """The kind of a row that is read from a log."""

    RECORD = "record"
    CONTROL = "control"
    EMPTY = "empty"
    """A batch that compaction has emptied and kept, for its offsets or its producer's state."""


class BatchHeader(NamedTuple):
    """The header of one batch. In message formats v0 and v1 missing fields hold Kafka's "none" values (-1).

    ``position`` is the byte position in the file, ``size`` the batch's bytes there. ``base_timestamp`` is the delete
    horizon when that bit is set (KIP-534); timestamps of records are still relative to it.
    """

    position: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def compression(self) -> str:
        """The codec's name; codes that Kafka does not use yet are ``unknown(code)``."""
        code = self.attributes & CODEC_MASK
        return CODECS[code] if code < len(CODECS) else f"unknown({code})"

    @property
    def timestamp_type(self) -> int:
        """The timestamp type: a key of TIMESTAMP_TYPES."""
        return -1 if self.magic == 0 else int(bool(self.attributes & LOG_APPEND_TIME_BIT))

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is data written in a transaction, or a marker that ends one."""
        return self.magic >= 2 and bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether the records of the batch are control records."""
        return self.magic >= 2 and bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the cleaner may remove the batch's tombstones or markers; None if it is not set."""
        return self.base_timestamp if self.magic >= 2 and self.attributes & DELETE_HORIZON_BIT else None


ENDS_WITHIN = "the file ends within"
"""How the cause of TRUNCATED damage begins."""


class DamageKind(Enum):
    """Why bytes of a log contain no readable records."""

    TRUNCATED = "truncated"
    """The file ends within a batch, as after a crash or in a copy of a live file."""
    CRC = "crc"
    FORMAT = "format"
    ABSENT = "absent"
    """The file is not there."""


class Damage(NamedTuple):
    """Bytes of a log without readable records: the row of the quarantine.

    ``size`` bytes from ``position`` on; ``data`` holds them, or only their beginning if they are more than
    ``MAX_DAMAGE_BYTES``. ``base_offset`` and ``last_offset`` are what the batch's header says, -1 if it has no header.
    """

    kind: DamageKind
    position: int
    size: int
    cause: str
    data: bytes
    base_offset: int = -1
    last_offset: int = -1


MAX_DAMAGE_BYTES = 1 << 20
"""Of damaged bytes the first ones are kept, as much as a batch of the default size: a lost disk may leave gigabytes."""


def read_header(data: bytes | memoryview, at: int, position: int) -> BatchHeader:
    """Return the v2 header at ``data[at:]``; ``position`` is where that lies in the file."""
    base, length, leader_epoch, magic, crc, attributes, last_delta, *rest = HEADER_STRUCT.unpack_from(data, at)
    first = (position, length + LOG_OVERHEAD, magic, base, base + last_delta, leader_epoch, crc, attributes)
    return BatchHeader._make((*first, *rest))


def read_headers(data: NDArray[np.uint8], positions: NDArray[np.int64]) -> NDArray[np.void]:
    """Return the v2 headers at these positions of ``data``, as one structured array of dtype ``HEADER``."""
    if not len(positions):
        return np.empty(0, HEADER)
    # Row i of the view is data[i : i + 61], without a copy: only the rows that are picked are copied.
    rows = np.lib.stride_tricks.sliding_window_view(data, HEADER_SIZE)[positions]
    return np.ascontiguousarray(rows).view(HEADER).reshape(-1)
