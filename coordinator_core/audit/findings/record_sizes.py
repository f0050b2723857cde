"""Records and batches of a group that come close to what a broker takes: beyond it, the group can no longer change.

A coordinator writes the records of one operation in one batch, which has to fit into ``max.message.bytes`` of the
topic. The classic group's record has the metadata and assignment of all members, the target record of a Connect group
on KIP-848 the work of all workers; the target of the other groups is a batch of one record for each member.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_core.audit.findings.group_history import GroupHistory, RecordSize
from coordinator_core.audit.findings.rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.records import LOG_TOPICS, Family, LogPosition
from coordinator_core.wire.schema import record_schemas

BROKER_LIMIT = 1_048_588
"""The default of ``message.max.bytes`` (1 MiB and the overhead of a batch), in bytes."""

_FAMILIES = {topic: family for family, topic in LOG_TOPICS.items()}


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


def near_limit(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each record type, or else the batch, whose largest one comes close to the limit."""
    large = [each for each in history.sizes if each.size >= limits.record_bytes]
    of_one_record = [each for each in large if each.record_type is not None]
    for each in of_one_record or large:
        name = _name(each)
        what = f"one {name}" if each.record_type is not None else f"one batch of {each.records} records of the group"
        percent = 100 * each.size // BROKER_LIMIT
        yield history.finding(
            FindingKind.RECORD_NEAR_LIMIT,
            each.size,
            limits.record_bytes,
            f"{what} has {each.size} bytes, {percent}% of what a broker takes by default (message.max.bytes): "
            "beyond it the coordinator cannot write it, and the group cannot change any more",
            [each.at],
            subject=name,
        )


def _name(each: RecordSize) -> str | None:
    if each.record_type is None:
        return None
    return record_schemas(_FAMILIES[each.log_topic])[each.record_type].name
