"""Records and batches of a group that come close to what a broker takes: beyond it, the group can no longer change.

A coordinator writes the records of one operation in one batch, which has to fit into ``max.message.bytes`` of the
topic. The classic group's record has the metadata and assignment of all members, the target record of a Connect group
on KIP-848 the work of all workers; the target of the other groups is a batch of one record for each member.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, RecordSize
from coordinator_core.records import LOG_TOPICS
from coordinator_core.wire.schema import record_schemas

BROKER_LIMIT = 1_048_588
"""The default of ``message.max.bytes`` (1 MiB and the overhead of a batch), in bytes."""

_FAMILIES = {topic: family for family, topic in LOG_TOPICS.items()}


def near_limit(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each record type, or else the batch, whose largest one comes close to the limit."""
    large = [record for record in history.sizes if record.size >= limits.record_bytes]
    of_one_record = [record for record in large if record.record_type is not None]
    for record in of_one_record or large:
        name = _name(record)
        largest = (
            f"one {name}" if record.record_type is not None else f"one batch of {record.records} records of the group"
        )
        percent = 100 * record.size // BROKER_LIMIT
        yield history.finding(
            FindingKind.RECORD_NEAR_LIMIT,
            record.size,
            f"{largest} takes {record.size} bytes as a batch, with keys and framing, {percent}% of what a broker takes "
            "by default (message.max.bytes): beyond it the coordinator cannot write it, and the group cannot change "
            "any more",
            [record.at],
            threshold=limits.record_bytes,
            subject=name,
        )


def _name(record: RecordSize) -> str | None:
    if record.record_type is None:
        return None
    return record_schemas(_FAMILIES[record.log_topic])[record.record_type].name
