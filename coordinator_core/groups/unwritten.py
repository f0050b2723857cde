"""Records that a coordinator is about to write, as far as the groups with epochs (consumer, share, streams) agree."""

from __future__ import annotations

from collections.abc import Iterable

from coordinator_core.records import Fields, RecordType

Unwritten = tuple[RecordType, Fields, Fields | None]
"""Record type, key and value (None: a tombstone)."""


def member_key(group_id: str, member_id: str) -> Fields:
    """The key of each record about a member."""
    return {"groupId": group_id, "memberId": member_id}


def tombstones(record_type: RecordType, group_id: str, members: Iterable[str]) -> list[Unwritten]:
    """The records of that type about these members go."""
    return [(record_type, member_key(group_id, member_id), None) for member_id in members]


def target_epoch_value(epoch: int, timestamp_ms: int) -> Fields:
    """The epoch and time of a target assignment; time 0 is not written."""
    value: Fields = {"assignmentEpoch": epoch}
    if timestamp_ms:
        value["assignmentTimestamp"] = timestamp_ms
    return value
