"""Small log folders, written as a broker lays them out."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from coordinator_core.records import CoordinatorRecord, Family
from coordinator_core.simulator.brokers import MetadataRecord
from coordinator_core.wire.batch_writer import NewRecord, Producer, encode_batch
from coordinator_core.wire.record_codec import encode_key, encode_value
from tests.core.wire.other_batches import encode_marker_batch

VALUE_VERSIONS = {1: 4, 2: 3}
"""Of record types whose newest versions brokers write; 0 for all others."""


def write_segment(folder: Path, batches: Iterable[bytes], base_offset: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base_offset:020}.log"
    path.write_bytes(b"".join(batches))
    return path


def batch(*records: CoordinatorRecord, family: Family = Family.GROUP, producer_id: int | None = None) -> bytes:
    """One batch of these records; transactional if a producer is given."""
    new = [
        NewRecord(
            record.at.offset,
            record.at.timestamp_ms,
            None if family is Family.METADATA else encode_key(record.type, record.key, family),
            None if record.value is None else encode_value(record.type, _version(record, family), record.value, family),
        )
        for record in records
    ]
    if producer_id is None:
        return encode_batch(new)
    return encode_batch(new, producer=Producer(producer_id, 0, 0), transactional=True)


def metadata_batches(metadata: Iterable[tuple[int, Sequence[MetadataRecord]]]) -> Iterator[bytes]:
    """The metadata log with these records, which were written at these times (ms), as batches."""
    offset = 0
    for time_ms, records in metadata:
        if not records:
            continue
        new = [
            NewRecord(offset + at, time_ms, None, encode_value(each.type, each.version, each.value, Family.METADATA))
            for at, each in enumerate(records)
        ]
        yield encode_batch(new, leader_epoch=1)
        offset += len(new)


def marker(control_type: int, producer_id: int, offset: int, timestamp: int) -> bytes:
    return encode_marker_batch(control_type, 0, offset=offset, timestamp=timestamp, producer=Producer(producer_id, 1))


def batches(segment: bytes) -> Iterator[tuple[int, bytes]]:
    """The record batches of a segment, each with its first offset."""
    position = 0
    while position < len(segment):
        base, length = struct.unpack_from(">qi", segment, position)
        yield base, segment[position : position + 12 + length]
        position += 12 + length


def _version(record: CoordinatorRecord, family: Family) -> int:
    if record.value_version is not None:
        return record.value_version
    return VALUE_VERSIONS.get(record.type, 0) if family is Family.GROUP else 0
