"""Logs of which some records cannot be decoded, as if a newer broker had written them."""

import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

from coordinator_core.wire.batch_format import CONTROL_BIT, TRANSACTIONAL_BIT, read_header
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batch_writer import NewRecord, Producer, encode_batch
from coordinator_core.wire.batches import read_rows
from tests.jobs.logs import batches

NEWER = struct.pack(">h", 77)
"""A version of a key or a value that no schema has."""

Change = Callable[[NewRecord], NewRecord]


def newer_value(record: NewRecord) -> NewRecord:
    """The record with a value of a version that no schema has; a tombstone stays one."""
    return record if record.value is None else record._replace(value=NEWER + record.value[2:])


def cut_key(record: NewRecord) -> NewRecord:
    """The record with a key of which only the type is there, so that it may be about any group."""
    return record if record.key is None else record._replace(key=record.key[:2])


def with_new_types(file: Path, every: int) -> list[int]:
    """Put a record of a type that no schema has behind every so-many-th batch of a segment, and a tombstone at last.

    Returns their offsets; those of the other records rise.
    """
    found, offsets = [], list[int]()
    for number, (base, data) in enumerate(batches(file.read_bytes()), 1):
        found.append((base + len(offsets)).to_bytes(8) + data[8:])
        if number % every == 0:
            offsets.append(read_header(found[-1], 0, 0).last_offset + 1)
            value = None if len(offsets) % 2 == 0 else NEWER
            found.append(encode_batch([NewRecord(offsets[-1], 1_700_000_000_000, NEWER + b"of this new type", value)]))
    file.write_bytes(b"".join(found))
    return offsets


def rewritten(file: Path, change: Change, every: int, first: int = 0) -> None:
    """Write a segment again with every so-many-th record changed, from the one of that number on."""
    found, number = [], 0
    for _, data in batches(file.read_bytes()):
        header = read_header(data, 0, 0)
        rows = list(read_rows(partial(_part, data), len(data)))
        if header.attributes & CONTROL_BIT or not all(isinstance(row, LogRecord) for row in rows):
            found.append(data)  # the end of a transaction, or a batch that compaction has emptied
            continue
        records = []
        for row in rows:
            assert isinstance(row, LogRecord)
            record = NewRecord(row.offset, row.timestamp, row.key, row.value)
            records.append(change(record) if number >= first and (number - first) % every == 0 else record)
            number += 1
        producer = Producer(header.producer_id, header.producer_epoch, header.base_sequence)
        found.append(
            encode_batch(
                records,
                leader_epoch=header.leader_epoch,
                producer=producer,
                transactional=bool(header.attributes & TRANSACTIONAL_BIT),
            )
        )
    file.write_bytes(b"".join(found))


def _part(data: bytes, at: int, size: int) -> bytes:
    return data[at : at + size]
