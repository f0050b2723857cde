"""One log partition of groups replayed up to a moment, with what its later records prove of it."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError
from coordinator_core.groups.certainty import NO_OFFSET, CommitRecords, LogGaps, record_key
from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import GroupOffsets, TopicPartition
from coordinator_core.groups.proven_state import GroupKeys, GroupThen, prove, prove_offsets, still_unread, undecided
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.history.lost_records import UnreadableOffsets
from coordinator_core.history.missing_ends import AtEnd, LogTail, missing_end
from coordinator_core.records import COMMIT_TYPES, Family, Fields, group_of_key
from coordinator_core.wire import control
from coordinator_core.wire.batch_format import Kind
from coordinator_core.wire.control import MARKERS, control_name
from coordinator_core.wire.record_codec import decode_key
from coordinator_core.wire.record_decoder import UnreadableRecord
from jobs.queries.from_logs.taken_rows import SeenTimes, newest_rows
from jobs.queries.moment_times import LogEnd
from jobs.sources.log_reader import LogReader, LogRow, are_commits, filled, log_rows

ABORTED = control_name(control.ABORT)


class LogPartition:
    """A partition of a log of groups, up to a moment."""

    def __init__(self, reader: LogReader, topics: TopicHistory | None) -> None:
        """``topics``: those of the metadata log; None: it is not known whether the end of the partition is missing."""
        self.reader = reader
        self._topics = topics
        self.shard = CoordinatorShard(from_start=reader.from_start, family=reader.family)
        self.gaps = LogGaps()
        self.may_hide_ends = False
        self.times = SeenTimes()
        self.is_cut = False
        self._keys: dict[str, GroupKeys] = {}
        self.unreadable = UnreadableOffsets()
        self._unread: dict[str, dict[TopicPartition, int]] = {}
        self._tombstones: dict[str, dict[TopicPartition, int]] = {}
        self._has_transactions = False
        self._undecided: dict[str, set[TopicPartition]] = {}
        self._commit_keys: set[bytes] = set()
        self._later_markers: dict[int, str | None] = {}

    def replay(self, time_ms: int | None, end: int | None) -> LogEnd:
        """Replay the records before the first one later than the time, and below the end offset.

        Returns how the partition ends there.
        """
        last_offset, last_ms = NO_OFFSET, None
        batches = self.reader.batches()
        for batch in batches:
            beyond = first_beyond(batch, time_ms, end)
            counts = batch if beyond is None else batch.slice(0, beyond)
            rest = batch.slice(counts.num_rows)
            cut_at = None if beyond is None else _end_of_moment(rest, end)
            # The reader begins a new batch where offsets are lost: the loss lies before these rows.
            self._note_losses(last_offset, cut_at)
            rows = filled(counts)
            for row in newest_rows(rows, self.reader.family):
                self._apply(row)
                last_offset, last_ms = row.offset, row.timestamp
            self.times.note(rows.column("timestamp"))
            self._has_transactions |= _has_transactions(counts)
            if cut_at is not None:
                self.may_hide_ends = self.reader.may_hide_ends(cut_at)
                self.reader.finish_warnings()
                self._look_beyond(cut_at, chain([rest], batches))
                left_out, self.is_cut = next(log_rows(rest)), True
                self.times.note(rest.column("timestamp").slice(0, 1))
                return self._end(end, last_offset, last_ms, left_out)
        self._note_losses(last_offset, end)
        self.may_hide_ends = self.reader.may_hide_ends(end)
        self.reader.finish_warnings()
        look_for_end(self.reader, self.unreadable, self.times.last_ms, self.at_end, self._topics)
        self.gaps = self._gaps_below(end, at_end=True)
        return self._end(end, last_offset, last_ms, None)

    def _end(self, asked: int | None, last: int, last_ms: int | None, left_out: LogRow | None) -> LogEnd:
        end = LogEnd(self.reader.partition, self.gaps, asked, None if last == NO_OFFSET else last, last_ms)
        if left_out is None:
            return end
        return end._replace(left_out=left_out.offset, left_out_ms=left_out.timestamp)

    def groups(self) -> Iterator[GroupThen]:
        """Every group that there was or may have been, or that offsets were committed for."""
        commits = self._later_commits()
        for group_id in {*self.shard.groups, *self._keys, *self._unread, *commits}:
            then = self._group_then(group_id, commits.get(group_id, frozenset()))
            if self.may_hide_ends:
                then = undecided(then)
            if then.is_possible:
                yield then

    def at_end(self) -> AtEnd:
        """Return the groups and the offsets as of the last record that was replayed."""
        offsets = self.shard.offsets.groups.items()
        committed = ((group_id, partition.topic) for group_id, of_group in offsets for partition in of_group.committed)
        return AtEnd(self.shard.groups.values(), committed)

    def named(self) -> set[str]:
        """Return the ids of all groups of which a record up to the moment tells, be it a tombstone."""
        told = {group_id for group_id, keys in self._keys.items() if keys.last or keys.unread}
        return {*self.shard.groups, *self._tombstones, *self._unread, *told}

    # --- up to the moment --------------------------------------------------------------------------------------------

    def _note_losses(self, last_offset: int, end: int | None) -> None:
        if self.reader.gaps.last_lost_below(end) > last_offset >= 0:
            # Noted before the shard gives them up: the marker that decided these commits may be among what is lost.
            for group_id, offsets in self.shard.offsets.groups.items():
                pending = {partition for commits in offsets.pending.values() for partition in commits}
                self._undecided.setdefault(group_id, set()).update(pending)
            self.shard.lose()

    def _apply(self, row: LogRow) -> None:
        if row.kind == Kind.RECORD.value:
            self._apply_record(row)
        elif row.control_type in MARKERS:
            self.shard.end_transaction(row.producer_id, committed=MARKERS[row.control_type])

    def _apply_record(self, row: LogRow) -> None:
        record = self.reader.read(row)
        if record is None or isinstance(record, UnreadableRecord):
            self._note_unreadable(record)
            return
        self.shard.apply(record, row.producer_id if row.is_transactional else None, row.leader_epoch)
        group_id = record.group_id
        if record.type not in COMMIT_TYPES or self.reader.family is not Family.GROUP:
            self._keys.setdefault(group_id, GroupKeys()).note(record, self.shard.groups[group_id])
        elif record.value is None:
            partition = _partition_of(record.key)
            self._tombstones.setdefault(group_id, {})[partition] = record.at.offset
            # Whatever the commit said that cannot be decoded, the tombstone removed it.
            self._unread.get(group_id, {}).pop(partition, None)

    def _note_unreadable(self, record: UnreadableRecord | None) -> None:
        """Take in a record that says something of a key, or of a group, or of any group of the partition."""
        if record is None:
            return
        offset, group_id = record.at.offset, record.group_id
        self.unreadable.note(group_id, offset, is_commit=record.is_commit)
        if record.key is None or record.type is None or group_id is None:
            return
        if record.type in COMMIT_TYPES and self.reader.family is Family.GROUP:
            self._unread.setdefault(group_id, {})[_partition_of(record.key)] = offset
        else:
            self._keys.setdefault(group_id, GroupKeys()).note_unreadable(record.type, record.key, offset)

    # --- beyond it ---------------------------------------------------------------------------------------------------

    def _gaps_below(self, end: int | None, *, at_end: bool = False) -> LogGaps:
        gaps = self.reader.gaps
        if end is not None and end > gaps.end and at_end:
            return LogGaps(end - 1, end - 1)  # the log, as far as it is there, does not reach the moment
        missing = max(gaps.last_missing_below(end), self.unreadable.last_unplaced)
        # Where nothing is missing below the moment, nothing depends on what is lost later.
        lost_later = missing >= 0 and gaps.is_lost_from(end)
        seen = LogGaps(missing, gaps.last_lost_below(end), lost_later, at_end)
        return seen.with_unreadable(self.unreadable.last_unplaced)

    def _look_beyond(self, end: int, rest: Iterable[pa.RecordBatch]) -> None:
        """Note which keys have later records; where no offset is missing below the moment, nothing depends on them."""
        self.gaps = self._gaps_below(end)
        if self.gaps.missing < 0:
            return
        group_keys: set[bytes] = set()
        times = replace(self.times)
        for rows in rest:
            times.note(rows.column("timestamp"))
            keys = rows.filter(pc.equal(rows.column("kind"), Kind.RECORD.value)).column("key").drop_null()
            is_commit = are_commits(keys)
            # Kept as bytes, each once, and decoded at the end: later records are many, and their keys few.
            self._commit_keys.update(keys.filter(is_commit).unique().to_pylist())
            group_keys.update(keys.filter(pc.invert(is_commit)).unique().to_pylist())
            self._has_transactions |= _has_transactions(rows)
            for producer_id, outcome in _markers(rows):
                # The first marker behind the moment ends what was open at it; those behind end later transactions.
                self._later_markers.setdefault(producer_id, outcome)
        for record_type, key in decoded_keys(group_keys, self.reader.family):
            followed = self._keys.setdefault(group_of_key(key), GroupKeys()).followed
            followed.add(record_key(record_type, key))
        look_for_end(self.reader, self.unreadable, times.last_ms, partial(read_to_end, self.reader), self._topics)
        self.gaps = self._gaps_below(end)

    def _later_commits(self) -> dict[str, set[TopicPartition]]:
        """By group the partitions with a commit or tombstone beyond the moment."""
        later: dict[str, set[TopicPartition]] = {}
        for _, key in decoded_keys(self._commit_keys, Family.GROUP):
            later.setdefault(group_of_key(key), set()).add(_partition_of(key))
        return later

    # --- what it proves ----------------------------------------------------------------------------------------------

    def _group_then(self, group_id: str, followed: Collection[TopicPartition]) -> GroupThen:
        group = self.shard.groups.get(group_id) or Group(group_id, family=self.reader.family)
        offsets = self.shard.offsets_of(group_id)
        keys, unread = self._keys.get(group_id) or GroupKeys(), self._unread.get(group_id, {})
        if self.gaps.lists_all and not unread and not keys.has_unread:
            return GroupThen(group, offsets)
        group, certainty = prove(group, keys, self.gaps)
        records = self._commit_records(group_id, offsets, followed)
        then = GroupThen(group, offsets, certainty)
        # After the end of the log, transactions may have begun that it does not have.
        may_have_more = self._has_transactions or self.gaps.is_after_end or self.reader.missing_end is not None
        # A commit that cannot be decoded may be of a transaction that was open.
        are_known = (self.gaps.lists_all or not may_have_more) and not (unread and self._has_transactions)
        unknown = still_unread(unread, offsets)
        return prove_offsets(then, records, self.gaps, transactions_are_known=are_known, unread=unknown)

    def _commit_records(
        self, group_id: str, offsets: GroupOffsets, followed: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommitRecords]:
        tombstones = self._tombstones.get(group_id, {})
        pending: dict[TopicPartition, int] = {}
        decided: set[TopicPartition] = set()
        for producer_id, commits in offsets.pending.items():
            for partition, commit in commits.items():
                pending[partition] = max(pending.get(partition, NO_OFFSET), commit.at.offset)
                # Only what was not aborted later can be why compaction took older commits of the partition.
                if self._later_markers.get(producer_id, ABORTED) != ABORTED:
                    decided.add(partition)
        records = {}
        undecided = self._undecided.get(group_id, ())
        for partition in {*offsets.committed, *pending, *tombstones, *undecided, *followed}:
            committed = offsets.committed.get(partition)
            records[partition] = CommitRecords(
                max(NO_OFFSET if committed is None else committed.at.offset, tombstones.get(partition, NO_OFFSET)),
                pending.get(partition, NO_OFFSET),
                partition in followed,
                partition in decided,
            )
        return records


def look_for_end(
    reader: LogReader,
    unreadable: UnreadableOffsets,
    last_ms: int | None,
    at_end: Callable[[], AtEnd],
    topics: TopicHistory | None,
) -> None:
    """Note whether records are missing behind the last one of a partition that was read to its end."""
    if last_ms is not None and not unreadable.has_any:
        reader.lose_end(missing_end(LogTail(*reader.place, reader.gaps.end - 1, last_ms), at_end, topics))


def read_to_end(reader: LogReader) -> AtEnd:
    """Return what there is at the end of a partition, which is read again; nothing where a record cannot be decoded:
    then it is not known.
    """
    partition = LogPartition(reader.again(), None)
    partition.replay(None, None)
    return AtEnd() if partition.unreadable.has_any else partition.at_end()


def first_beyond(rows: pa.RecordBatch, time_ms: int | None, end: int | None) -> int | None:
    """The number of the first row later than the time, or from the end offset on; None: there is none."""
    number = -1
    if time_ms is not None:
        # -1: no row is.
        number = pc.index(pc.greater(rows.column("timestamp"), time_ms), True).as_py()
    if end is not None:
        from_end = pc.index(pc.greater_equal(rows.column("offset"), end), True).as_py()
        number = from_end if number < 0 else min(number, from_end) if from_end >= 0 else number
    return None if number < 0 else number


def _end_of_moment(rest: pa.RecordBatch, end: int | None) -> int:
    """The end offset of a moment whose first row that does not count is the first of these."""
    offset: int = rest.column("offset")[0].as_py()
    return offset if end is None else min(end, offset)


def _has_transactions(rows: pa.RecordBatch) -> bool:
    return bool(pc.any(rows.column("is_transactional")).as_py())


def _markers(rows: pa.RecordBatch) -> Iterator[tuple[int, str | None]]:
    """The ends of transactions: producer, and what it says; None where compaction has emptied it."""
    ends = rows.filter(pc.and_(rows.column("is_control"), rows.column("is_transactional")))
    return zip(*(ends.column(name).to_pylist() for name in ("producer_id", "control_type")), strict=True)


def decoded_keys(keys: Iterable[bytes], family: Family) -> Iterator[tuple[int, Fields]]:
    """The keys that can be decoded; of the others there is nothing to say."""
    for key in keys:
        try:
            yield decode_key(key, family)
        except DecodeError:
            continue


def _partition_of(key: Fields) -> TopicPartition:
    return TopicPartition(key["topic"], key["partition"])
