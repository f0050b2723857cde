"""Recorded log partitions, read as bytes, cleaned as a broker would have cleaned them, and written again."""

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import NamedTuple

from coordinator_core.wire.batch_format import CONTROL_BIT, TRANSACTIONAL_BIT, Kind
from coordinator_core.wire.batch_writer import NewRecord, Producer, frame, record_bytes
from coordinator_core.wire.batches import read_columns
from coordinator_core.wire.control import COMMIT, control_name
from tests.core.log_cleaner import compact


class RecordedOffset(NamedTuple):
    """One offset of a recorded log, with the bytes of its record."""

    offset: int
    timestamp: int
    key_bytes: bytes | None
    value: bytes | None
    batch: tuple[int, int]
    producer: Producer
    leader_epoch: int
    is_transactional: bool
    control_type: str | None

    @property
    def key(self) -> bytes | None:
        return None if self.control_type is not None else self.key_bytes

    @property
    def is_tombstone(self) -> bool:
        return self.control_type is None and self.value is None

    @property
    def producer_id(self) -> int | None:
        return self.producer.id if self.is_transactional else None

    @property
    def ends(self) -> bool | None:
        return None if self.control_type is None else self.control_type == control_name(COMMIT)


def read_partition(folder: Path) -> list[RecordedOffset]:
    """All offsets of the segments in a folder, which must be whole."""
    found = []
    for file in sorted(folder.glob("*.log")):
        data = file.read_bytes()
        for rows in read_columns(lambda at, size, data=data: data[at : at + size], len(data), name=file.name):  # type: ignore[misc]
            for row in rows.to_pylist():
                assert row["kind"] != Kind.EMPTY.value
                found.append(
                    RecordedOffset(
                        row["offset"],
                        row["timestamp"],
                        row["key"],
                        row["value"],
                        (row["batch_base_offset"], row["batch_last_offset"]),
                        Producer(row["producer_id"], row["producer_epoch"], row["base_sequence"]),
                        row["leader_epoch"],
                        row["is_transactional"],
                        row["control_type"],
                    )
                )
    return found


def write_partition(folder: Path, log: Iterable[RecordedOffset]) -> None:
    """One segment, uncompressed; batches keep their bounds when records of them are gone."""
    folder.mkdir(parents=True)
    parts = (_batch(list(entries)) for _, entries in groupby(log, attrgetter("batch")))
    (folder / f"{0:020}.log").write_bytes(b"".join(parts))


def write_cleaned(whole: Path, cleaned: Path, clean_until: float, tombstones_until: float, chance: Random) -> None:
    """Write the log partitions of groups of a dump as a broker leaves them that has cleaned a part of each.

    ``clean_until`` is the part of the log that was cleaned, ``tombstones_until`` the part of that without tombstones.
    """
    for folder in sorted(whole.glob("__consumer_offsets-*")):
        left = log = read_partition(folder)
        if log:
            clean_end = round(clean_until * (log[-1].offset + 1))
            left = compact(log, clean_end, round(tombstones_until * clean_end), chance)
        write_partition(cleaned / folder.name, left)


def _batch(entries: list[RecordedOffset]) -> bytes:
    first = entries[0]
    base, last = first.batch
    records = [NewRecord(each.offset, each.timestamp, each.key_bytes, each.value) for each in entries]
    body = b"".join(record_bytes(each, each.offset - base, each.timestamp - first.timestamp) for each in records)
    is_control = first.control_type is not None
    return frame(
        body,
        base_offset=base,
        last_offset=last,
        count=len(records),
        base_timestamp=first.timestamp,
        max_timestamp=max(each.timestamp for each in entries),
        attributes=(TRANSACTIONAL_BIT if first.is_transactional else 0) | (CONTROL_BIT if is_control else 0),
        leader_epoch=first.leader_epoch,
        producer=first.producer,
    )
