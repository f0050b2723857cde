"""The commits of one group, reduced to what findings need: one ``PartitionCommits`` for each partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.audit.folds.group_history import OpenTransaction, PartitionCommits, Removal, Rewind
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.record_fields.offset_commit import OffsetCommitRecord, OffsetCommitValue
from coordinator_core.records import LogPosition

MOST_KEPT = 1_000
"""The first rewinds and the first removals of a partition are kept, at most this many of each."""
SHORTEST_RETENTION_MS = 60_000
"""Least offsets.retention.minutes that a broker accepts: an offset that was removed earlier did not expire."""
TOPIC_CLEANUP_MS = 10_000
"""After a topic is deleted the coordinator may take this long (ms) to remove its offsets."""


def removal_window(deleted_ms: Any) -> tuple[Any, Any]:
    """Return between which times of the coordinator's clock the offsets of a topic are removed that was deleted at this
    time of the controller's clock: numbers, or columns of them.
    """
    return deleted_ms - CLOCK_TOLERANCE_MS, deleted_ms + (TOPIC_CLEANUP_MS + CLOCK_TOLERANCE_MS)


@dataclass(slots=True)
class _Partition:
    first: LogPosition
    last: LogPosition
    commits: int = 0
    offset: int | None = None
    topic_id: str | None = None
    expires_ms: int | None = None
    committed_ms: int = -1
    rewinds: list[Rewind] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)

    def goes_back(self, offset: int, topic_id: str | None) -> bool:
        """Whether a commit is below the last one, of the same topic: a topic that was created again has another id."""
        same = self.topic_id is None or topic_id is None or topic_id == self.topic_id
        return same and self.offset is not None and offset < self.offset


def how_removed(age_ms: int | None, *, past_expiry: bool) -> str:
    """Return what a tombstone proves that was written for neither a deleted group nor a deleted topic.

    ``age_ms`` is the time since the commit, None if that is not known; ``past_expiry``: the expiry that the commit
    itself names had passed. Of another commit a request must have removed what is too young to expire.
    """
    if past_expiry:
        return "expired"
    return "deleted" if age_ms is not None and age_ms < SHORTEST_RETENTION_MS else "expired or deleted"


class CommitFold:
    """The commits of one group, fed in log order: plain ones, transactional ones, and the ends of transactions."""

    __slots__ = ("_open", "_partitions")

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._open: dict[int, list[OffsetCommitRecord]] = {}

    def feed(self, record: OffsetCommitRecord, producer_id: int | None = None) -> None:
        """Take in an OFFSET_COMMIT record; one of a transaction (``producer_id``) counts once the transaction is
        committed.
        """
        if record.value is None:
            self._remove(record)
        elif producer_id is not None:
            self._open.setdefault(producer_id, []).append(record)
        else:
            self._commit(record, record.value)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Take in the marker that ends the producer's transaction; plain commits later in the log override its
        commits.
        """
        for record in self._open.pop(producer_id, ()):
            known = self._partitions.get(_key(record))
            later = known is not None and known.last.offset > record.at.offset
            if committed and record.value is not None and not later:
                self._commit(record, record.value)

    def group_deleted(self, at: LogPosition) -> None:
        """Take in that the group ended at this position: offsets removed at the same time were removed with the
        group.
        """
        for partition in self._partitions.values():
            partition.removals = [
                each._replace(how="group deleted") if each.at.timestamp_ms == at.timestamp_ms else each
                for each in partition.removals
            ]

    def topic_deleted(self, topic: str, deleted_ms: int) -> None:
        """Take in that a topic was deleted: its offsets removed around that time were removed with the topic, unless
        they were removed with the group, of which the log itself has the order.
        """
        since_ms, until_ms = removal_window(deleted_ms)
        for (name, _), partition in self._partitions.items():
            if name == topic:
                partition.removals = [
                    each._replace(how="topic deleted")
                    if each.how != "group deleted" and since_ms <= each.at.timestamp_ms <= until_ms
                    else each
                    for each in partition.removals
                ]

    def partitions(self) -> Iterator[PartitionCommits]:
        """Yield what is known of each partition."""
        for (topic, number), each in sorted(self._partitions.items()):
            yield PartitionCommits(
                topic,
                number,
                each.commits,
                each.first,
                each.last,
                each.offset,
                tuple(each.rewinds),
                tuple(each.removals),
            )

    def transactions(self) -> Iterator[OpenTransaction]:
        """Yield the transactions that have not ended."""
        for producer_id, records in self._open.items():
            partitions = {_key(record) for record in records}
            yield OpenTransaction(producer_id, records[0].at, len(partitions))

    def give_up_transactions(self) -> None:
        """Drop all open transactions: part of the log is missing here, so how they ended is not known."""
        self._open.clear()

    def _commit(self, record: OffsetCommitRecord, value: OffsetCommitValue) -> None:
        key, at, offset, topic_id = _key(record), record.at, value["offset"], value.get("topicId")
        known = self._partitions.get(key)
        if known is None:
            known = self._partitions[key] = _Partition(at, at)
        elif known.goes_back(offset, topic_id) and len(known.rewinds) < MOST_KEPT:
            known.rewinds.append(Rewind(at, known.offset or 0, offset))
        known.commits += 1
        known.last, known.offset, known.topic_id = at, offset, topic_id
        known.expires_ms, known.committed_ms = value.get("expireTimestamp", -1), value["commitTimestamp"]

    def _remove(self, record: OffsetCommitRecord) -> None:
        for records in self._open.values():
            records[:] = [each for each in records if _key(each) != _key(record)]
        self._open = {producer_id: records for producer_id, records in self._open.items() if records}
        known = self._partitions.get(_key(record))
        if known is None or known.offset is None:
            return
        now_ms = record.at.timestamp_ms
        past_expiry = known.expires_ms is not None and 0 <= known.expires_ms <= now_ms
        age_ms = now_ms - known.committed_ms if known.committed_ms >= 0 <= now_ms else None
        if len(known.removals) < MOST_KEPT:
            known.removals.append(Removal(record.at, known.offset, how_removed(age_ms, past_expiry=past_expiry)))
        known.offset = None


def _key(record: OffsetCommitRecord) -> tuple[str, int]:
    return record.key["topic"], record.key["partition"]
