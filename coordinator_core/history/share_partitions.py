"""The share state log of one group, folded to the rows of ``share_partitions``; and whether the dead-letter queue of
the group can have taken records, by the metadata log (KIP-1191).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.snapshot_settings import int_setting
from coordinator_core.cluster.topic_history import TOPIC_RESOURCE, TopicHistory
from coordinator_core.groups.share.delivery import GIVEN_UP, DeliveryChange, DeliveryState, changes, state_name
from coordinator_core.groups.share.state_log import (
    SHARE_SNAPSHOT,
    UNSET,
    SharePartition,
    SharePartitionState,
    ShareStateRecord,
    next_state,
)
from coordinator_core.history import grounds
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.rows import OffsetRange, SharePartitionRow, ShareWrite, StateCount
from coordinator_core.history.testimony import lacking
from coordinator_core.records import SHARE_LOG
from coordinator_core.state_json import StoredAs

QUEUE: Final = "errors.deadletterqueue.topic.name"
"""The setting of a group that names its dead-letter queue."""
IS_QUEUE: Final = "errors.deadletterqueue.group.enable"
"""The setting of a topic that lets share groups write there; it is false by default."""
INTERNAL: Final = "__"


def why_not_queued(topics: TopicHistory | None, group_id: str, time_ms: int) -> str | None:
    """Return why the queue of a group cannot have taken records about a time (ms); None: it can, or it is not known.

    A broker archives them then all the same. It may create the topic at the first record, so the topic may appear
    within ``CLOCK_TOLERANCE_MS``.
    """
    name = None if topics is None else topics.group_config(group_id, QUEUE, time_ms)
    if topics is None or not name:
        return None
    if name.startswith(INTERNAL):
        return f"{QUEUE} names {name}, and no name of a queue begins with {INTERNAL}"
    around = (time_ms - CLOCK_TOLERANCE_MS, time_ms, time_ms + CLOCK_TOLERANCE_MS)
    counts = {topics.partitions_at(name, moment) for moment in around if moment <= topics.last_seen_ms} or {None}
    if counts == {0}:
        return f"{QUEUE} names {name}, and there is no such topic"
    if None in counts or 0 in counts:
        return None
    settings = [topics.config(TOPIC_RESOURCE, name, topics.version_at(moment)).get(IS_QUEUE, "") for moment in around]
    if topics.is_listed or any(value.strip().lower() == "true" for value in settings):
        return None
    return f"{QUEUE} names {name}, and {IS_QUEUE} of this topic is not true"


DELIVERY_LIMIT = "share.delivery.count.limit"
STATE_DELETED, NEXT_WRITE = "state deleted", "next write"
"""How a row ends."""


@dataclass(slots=True)
class TrackedPartition:
    """A share partition as of its last record, at offset ``last`` of the log: its state, None where it was deleted.

    ``is_whole``: no batch of it is missing. ``row`` is the one that lasts.
    """

    last: int
    state: SharePartitionState | None
    is_whole: bool
    row: SharePartitionRow | None = None


OfPartitions = dict[str, dict[int, TrackedPartition]]
"""The share partitions of a group, by topic id and partition."""


def _in_order(partitions: OfPartitions) -> OfPartitions:
    """Sort share partitions: the order in which they came depends on where the nights end.

    They lie in several partitions of the log, and a run reads one after the other.
    """
    return {topic_id: dict(sorted(of_topic.items())) for topic_id, of_topic in sorted(partitions.items())}


@dataclass(slots=True)
class OpenShareHistory:
    """Everything that the history of a group's share state needs from run to run."""

    group_id: str
    partitions: Annotated[OfPartitions, StoredAs(OfPartitions, _in_order, dict)] = field(default_factory=dict)


class KnownBefore(NamedTuple):
    """What was known of a share partition before a record: its state, None: there was none.

    ``lost`` names the records of it that may be missing before this one; None: there are none. ``missing`` is the same,
    or names what the state lacks.
    """

    state: SharePartitionState | None
    lost: str | None
    missing: str | None


class SharePartitionFold:
    """The history of a group's share partitions; its records may come partition by partition of the share state log."""

    def __init__(self, open_history: OpenShareHistory, topics: TopicHistory | None, coverage: Coverage) -> None:
        """Begin with ``OpenShareHistory(group_id)``, or go on with the one that an earlier run left."""
        self.open_history = open_history
        self._topics = topics
        self._coverage = coverage

    def known_before(self, record: ShareStateRecord) -> KnownBefore:
        """What is known of the share partition that a record is about, before the record is fed."""
        known, at = self._tracked(SharePartition.of(record)), record.at
        state, is_whole = (None, True) if known is None else (known.state, known.is_whole)
        lost = None
        if not self._coverage.unbroken(at.partition, 0 if known is None else known.last, at.offset):
            log = f"{SHARE_LOG}-{at.partition}"
            if state is None:
                lost = grounds.LOST_SINCE_BEGINNING.format(log, at.offset)
            else:
                lost = grounds.LOST_OF_LOG.format(log, state.at.offset, at.offset)
        return KnownBefore(state, lost, lost or (None if is_whole else grounds.NO_SNAPSHOT_BEFORE))

    def feed(self, record: ShareStateRecord) -> list[SharePartitionRow]:
        """Return the rows that a record makes final; raises nothing. Feed each record once, in offset order."""
        which, before = SharePartition.of(record), self.known_before(record)
        known = self._tracked(which)
        old = None if known is None else known.row
        after = next_state(before.state, record)
        # A snapshot has the whole state: what was lost before it matters no more.
        is_whole = record.value is None or record.type == SHARE_SNAPSHOT or before.missing is None
        row, ended = old, list[SharePartitionRow]()
        if old is None or after is None or _differ(before, after, is_whole):
            row = None if after is None else self._row(which, record, before, after, old, is_whole=is_whole)
            ended = [] if old is None else [_ended(old, record, before)]
        partitions = self.open_history.partitions.setdefault(which.topic_id, {})
        partitions[which.partition] = TrackedPartition(record.at.offset, after, is_whole, row)
        return ended

    def open_rows(self) -> Iterator[SharePartitionRow]:
        """Rows of what lasts as of the last record: a later run replaces them by their keys."""
        for partitions in _in_order(self.open_history.partitions).values():
            yield from (partition.row for partition in partitions.values() if partition.row is not None)

    def _tracked(self, which: SharePartition) -> TrackedPartition | None:
        return self.open_history.partitions.get(which.topic_id, {}).get(which.partition)

    def _row(
        self,
        which: SharePartition,
        record: ShareStateRecord,
        before: KnownBefore,
        after: SharePartitionState,
        old: SharePartitionRow | None,
        *,
        is_whole: bool,
    ) -> SharePartitionRow:
        write = _write(before, after, record)
        # All of a first snapshot would look new, though it happened in records that are not there.
        changed = () if write is ShareWrite.FIRST_SEEN and record.type == SHARE_SNAPSHOT else _changes(before, after)
        start = None if after.start_offset == UNSET else after.start_offset
        next_offset = after.next_offset if is_whole and start is not None else None
        totals = after.by_state
        if old is not None and old.next_offset == next_offset:
            # A record that does not move the offset leaves it to the one that did: rows tell since when it stands
            # still.
            advanced, shown = old.advanced, old.next_offset_shown
        else:
            advanced, shown = record.at if before.missing is None else None, record.at
        end = after.end_offset if after.batches else start
        covered = None if start is None or end is None else end - start - totals.total()
        steps = [(part, part.before or _NONE, part.after or _NONE) for part in changed]
        # Offsets that were on their way to the dead-letter queue are not given up a second time.
        queued = tuple(
            _range(part)
            for part, (was, _), (now, _) in steps
            if (was, now) == (DeliveryState.ARCHIVING, DeliveryState.ARCHIVED)
        )
        archiving, archived = (
            tuple(_range(part) for part, (was, _), (now, _) in steps if now == state and was not in GIVEN_UP)
            for state in (DeliveryState.ARCHIVING, DeliveryState.ARCHIVED)
        )
        why_not = why_not_queued(self._topics, which.group_id, record.at.timestamp_ms) if queued else None
        topics, time_ms = self._topics, record.at.timestamp_ms
        limit = None if topics is None else topics.group_config(which.group_id, DELIVERY_LIMIT, time_ms)
        row = SharePartitionRow(
            group_id=which.group_id,
            topic=None if self._topics is None else self._topics.topic_name(which.topic_id),
            topic_id=which.topic_id,
            partition=which.partition,
            since=record.at,
            until=None,
            ended_by=None,
            is_open=True,
            write=write.value,
            snapshot_epoch=after.snapshot_epoch,
            state_epoch=after.state_epoch,
            leader_epoch=after.leader_epoch,
            start_offset=start,
            next_offset=next_offset,
            end_offset=end,
            complete=None if after.delivery_complete_count == UNSET else after.delivery_complete_count,
            available=totals[DeliveryState.AVAILABLE] if is_whole else None,
            acknowledged=totals[DeliveryState.ACKNOWLEDGED] if is_whole else None,
            archiving=totals[DeliveryState.ARCHIVING] if is_whole else None,
            archived=totals[DeliveryState.ARCHIVED] if is_whole else None,
            unknown=covered if is_whole else None,
            counts=_counts(after) if is_whole else (),
            delivery_limit=int_setting(limit or ""),
            accepted_now=sum(
                _records(part) for part, (was, _), (now, _) in steps if now == DeliveryState.ACKNOWLEDGED != was
            ),
            # A delivery of these offsets ended without an acknowledgement.
            released_now=tuple(
                _range(part)
                for part, (_, before), (now, count) in steps
                if now == DeliveryState.AVAILABLE and before < count
            ),
            archiving_now=archiving,
            archived_now=archived,
            unqueued_now=queued if why_not else (),
            unqueued_why=why_not,
            redelivered_now=sum(_records(part) for part, (_, before), (_, count) in steps if count > max(1, before)),
            passed_over=_passed_over(before.state, after) if before.missing is None else None,
            advanced=advanced,
            next_offset_shown=shown,
        )
        return lacking(row, before.missing)


_NONE = (None, -1)
"""The delivery state and count of offsets without a state."""


def _differ(before: KnownBefore, after: SharePartitionState, is_whole: bool) -> bool:
    """Whether a record changes what a row tells; a cold snapshot changes nothing."""
    old = before.state
    return (
        old is None
        or (before.missing is None) != is_whole
        or (old.start_offset, old.delivery_complete_count, old.leader_epoch, old.state_epoch, old.batches)
        != (after.start_offset, after.delivery_complete_count, after.leader_epoch, after.state_epoch, after.batches)
    )


def _ended(row: SharePartitionRow, record: ShareStateRecord, before: KnownBefore) -> SharePartitionRow:
    """End a row. What it said may have ended before, by a record that is lost."""
    ended_by = STATE_DELETED if record.value is None else NEXT_WRITE
    return lacking(row, before.lost)._replace(until=record.at, ended_by=ended_by, is_open=False)


def _write(before: KnownBefore, after: SharePartitionState, record: ShareStateRecord) -> ShareWrite:
    old, is_snapshot = before.state, record.type == SHARE_SNAPSHOT
    is_empty = is_snapshot and not after.batches
    if old is None:
        if is_empty and after.snapshot_epoch == 0:
            return ShareWrite.INITIALIZED if after.start_offset == UNSET else ShareWrite.ALTERED
        return ShareWrite.DELIVERY if before.lost is None else ShareWrite.FIRST_SEEN
    if is_empty and _begins_again(old, after):
        return ShareWrite.INITIALIZED if after.start_offset == UNSET else ShareWrite.ALTERED
    if any(change.after is not None for change in _changes(before, after)):
        return ShareWrite.DELIVERY
    return ShareWrite.LEADER_CHANGED if after.leader_epoch != old.leader_epoch else ShareWrite.START_MOVED


def _begins_again(old: SharePartitionState, new: SharePartitionState) -> bool:
    """Whether a snapshot without batches ends what was known, as initialisation and alteration do."""
    lost = any(batch.last >= new.start_offset for batch in old.batches)
    return lost or new.start_offset < old.start_offset or new.state_epoch != old.state_epoch


def _changes(before: KnownBefore, after: SharePartitionState) -> Sequence[DeliveryChange]:
    return tuple(changes(() if before.state is None else before.state.batches, after.batches))


def _records(change: DeliveryChange) -> int:
    return max(0, change.last - change.first + 1)  # a broken record has its bounds swapped


def _range(change: DeliveryChange) -> OffsetRange:
    return OffsetRange(change.first, change.last, 0 if change.after is None else change.after[1])


def _counts(state: SharePartitionState) -> tuple[StateCount, ...]:
    records = state.by_state_and_count
    return tuple(StateCount(state_name(state), count, records[state, count]) for state, count in sorted(records))


def _passed_over(before: SharePartitionState | None, after: SharePartitionState) -> int:
    """Records given back that lie below the new start offset: they were deleted, or the offset was altered."""
    if before is None:
        return 0
    waiting = (batch for batch in before.batches if batch.state == DeliveryState.AVAILABLE)
    return sum(max(0, min(batch.last + 1, after.start_offset) - batch.first) for batch in waiting)
