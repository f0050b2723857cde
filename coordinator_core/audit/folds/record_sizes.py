"""The largest record of each type, and the largest batch, of one group."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_core.audit.folds.group_history import RecordSize
from coordinator_core.records import LOG_TOPICS, Family, LogPosition


class RecordSizeFold:
    """The largest record of each type, and the largest batch, of one group; fed in log order."""

    __slots__ = ("_base", "_batch", "_largest", "_log_topic")

    def __init__(self, family: Family) -> None:
        self._log_topic = LOG_TOPICS[family]
        self._largest: dict[int | None, RecordSize] = {}
        self._batch = (0, 0)
        self._base = -1

    def feed(self, record_type: int, size: int, at: LogPosition, batch_base: int) -> None:
        """Take in a record with a value of ``size`` bytes, in the batch that begins at offset ``batch_base``."""
        base = batch_base if batch_base >= 0 else at.offset
        records, total = self._batch if base == self._base else (0, 0)
        self._base, self._batch = base, (records + 1, total + size)
        self._keep(RecordSize(self._log_topic, record_type, size, 1, at))
        self._keep(RecordSize(self._log_topic, None, total + size, records + 1, at._replace(offset=base)))

    def sizes(self) -> Iterator[RecordSize]:
        """Yield the largest ones."""
        yield from self._largest.values()

    def _keep(self, each: RecordSize) -> None:
        known = self._largest.get(each.record_type)
        if known is None or known.size < each.size:
            self._largest[each.record_type] = each
