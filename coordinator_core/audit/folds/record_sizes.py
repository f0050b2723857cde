"""The largest record of each type, and the largest batch, of one group, in bytes as a broker counts them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from coordinator_core.audit.folds.group_history import RecordSize
from coordinator_core.records import LOG_TOPICS, Family, LogPosition
from coordinator_core.wire.batch_format import HEADER_SIZE

VARINT_STEPS = (1 << 6, 1 << 13, 1 << 20, 1 << 27)
"""A zigzag varint takes a byte more from each of these values on."""


def record_bytes(key_bytes: int, value_bytes: int, offset_delta: int) -> int:
    """Return the bytes of a record within its batch (record batch v2), uncompressed and without headers.

    Attributes, time and number of headers take a byte each: a coordinator writes no headers, and the records of a batch
    within a few milliseconds. ``value_bytes`` is 0 for a tombstone, whose length takes one byte, too.
    """
    fields = (offset_delta, key_bytes, value_bytes)
    body = 3 + sum(map(_varint_bytes, fields)) + key_bytes + value_bytes
    return _varint_bytes(body) + body


def _varint_bytes(value: int) -> int:
    return 1 + bisect_right(VARINT_STEPS, value)


@dataclass(slots=True)
class SizeMemory:
    """All that a fold of record sizes keeps: the largest ones, and base offset, records and bytes of the last batch."""

    largest: list[RecordSize] = field(default_factory=list)
    batch: tuple[int, int, int] = (-1, 0, 0)


class RecordSizeFold:
    """The largest record of each type, and the largest batch, of one group; fed in log order."""

    __slots__ = ("_base", "_batch", "_largest", "_log_topic")

    def __init__(self, family: Family, memory: SizeMemory | None = None) -> None:
        """Begin, or go on with the ``memory`` that an earlier fold left."""
        memory = memory or SizeMemory()
        self._log_topic = LOG_TOPICS[family]
        self._largest = {record.record_type: record for record in memory.largest}
        self._base, *batch = memory.batch
        self._batch = (batch[0], batch[1])

    @property
    def memory(self) -> SizeMemory:
        """What a later fold needs to go on."""
        return SizeMemory(list(self._largest.values()), (self._base, *self._batch))

    def feed(self, record_type: int, key_bytes: int, value_bytes: int, at: LogPosition, batch_base: int) -> None:
        """Take in a record, in the batch that begins at offset ``batch_base``; a tombstone has no bytes of value."""
        base = batch_base if batch_base >= 0 else at.offset
        records, total = self._batch if base == self._base else (0, HEADER_SIZE)
        size = record_bytes(key_bytes, value_bytes, at.offset - base)
        self._base, self._batch = base, (records + 1, total + size)
        self._keep(RecordSize(self._log_topic, record_type, HEADER_SIZE + size, 1, at))
        self._keep(RecordSize(self._log_topic, None, total + size, records + 1, at._replace(offset=base)))

    def sizes(self) -> Iterator[RecordSize]:
        """Yield the largest ones."""
        yield from self._largest.values()

    def _keep(self, record: RecordSize) -> None:
        known = self._largest.get(record.record_type)
        if known is None or known.size < record.size:
            self._largest[record.record_type] = record
