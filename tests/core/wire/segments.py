"""Small segments for tests, and bytes of message formats v0 and v1 put together by hand."""

import struct
import zlib
from unittest.mock import patch

import pyarrow as pa

from coordinator_core.wire import record_columns
from coordinator_core.wire.batch_format import Damage, ReadAt
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.batches import read_columns, read_rows
from coordinator_core.wire.log_columns import LOG_COLUMNS, LogRow, columns_of_rows


def reader(data: bytes) -> ReadAt:
    return lambda position, size: data[position : position + size]


def rows_of(data: bytes) -> list[LogRow | Damage]:
    """What both readers say, after making sure that they say the same."""
    rows = list(read_rows(reader(data), len(data)))
    expected = columns_of_rows([row for row in rows if not isinstance(row, Damage)])
    for few in (1, 1000):  # all batches side by side, or each alone
        with patch.object(record_columns, "FEW_BATCHES", few):
            parts = list(read_columns(reader(data), len(data)))
        assert [row for row in rows if isinstance(row, Damage)] == [part for part in parts if isinstance(part, Damage)]
        batches = [part for part in parts if not isinstance(part, Damage)]
        for batch in batches:
            batch.validate(full=True)
        assert pa.Table.from_batches(batches, LOG_COLUMNS).combine_chunks().equals(pa.Table.from_batches([expected]))
    return rows


def records(first: int, count: int, *, timestamp: int = 1_700_000_000_000) -> list[NewRecord]:
    """Records that differ in every field, with nulls and empty values among them."""
    return [
        NewRecord(
            offset,
            timestamp + 7 * offset,
            None if offset % 5 == 3 else b"key-%d" % offset,
            None if offset % 4 == 1 else b"v" * (20_000 if offset == 17 else offset % 300),
        )
        for offset in range(first, first + count)
    ]


def segment(batches: int = 4, each: int = 3) -> bytes:
    return b"".join(encode_batch(records(at * each, each)) for at in range(batches))


def message(
    offset: int, key: bytes | None, value: bytes | None, *, magic: int, timestamp: int = -1, attributes: int = 0
) -> bytes:
    """One message of format v0 or v1, its CRC-32 included."""
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    for field in (key, value):
        body += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body
