"""The commits of one group from log files, in one pass that decodes the records of this group alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.audit.offsets.burrow import (
    LagPoint,
    LogReach,
    LogSpan,
    TimedCommit,
    UnreadCommits,
    group_lag,
    note_unread,
    point_order,
)
from coordinator_core.audit.offsets.runs import CommitOrder, CommitRun, GroupCommits
from coordinator_core.cluster.given_topics import NO_REACH
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import GROUP_ENDS
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import Family, LogPosition, RecordType
from coordinator_core.wire.batch_format import Kind
from coordinator_core.wire.control import MARKERS
from coordinator_core.wire.record_decoder import UnreadableRecord
from jobs.sources.bounded_warnings import Warn
from jobs.sources.end_offsets import EndOffsets
from jobs.sources.files import LogPart
from jobs.sources.log_reader import LogReader, LogRow, by_partition, log_rows
from jobs.sources.topics import known_topics


def group_commits(logs: Iterable[LogPart], warn: Warn, group_id: str, listed: TopicHistory | None) -> GroupCommits:
    """Return the commits of a group. ``warn`` is called for what cannot be read or decoded.

    ``listed`` are the topics where the metadata log is not given.
    """
    partitions = by_partition(logs)
    topics = known_topics(partitions, listed, warn)
    passes = [_Pass(LogReader(files, warn), group_id) for files in partitions[Family.GROUP].values()]
    runs = [run for one_pass in passes for run in one_pass.runs()]
    return GroupCommits(
        runs,
        Coverage({one_pass.reader.partition: [span[:2] for span in one_pass.spans] for one_pass in passes}),
        [end for one_pass in passes for end in one_pass.group_ends],
        topic_ends(topics),
        sum(one_pass.order.left_out for one_pass in passes),
        NO_REACH if topics is None else topics.reach,
    )


def lag_from_logs(logs: Iterable[LogPart], warn: Warn, group_id: str, ends: EndOffsets) -> list[LagPoint]:
    """Return the lag of a group at each snapshot of the end offsets, by topic, partition and time."""
    points: list[LagPoint] = []
    for files in by_partition(logs)[Family.GROUP].values():
        one_pass = _Pass(LogReader(files, warn), group_id)
        commits: dict[TopicPartition, list[TimedCommit]] = defaultdict(list)
        for run in one_pass.runs():
            held_ms = run.last.timestamp_ms if run.held_ms is None else run.held_ms
            commits[run.partition].append(TimedCommit(held_ms, run.last, run.offset, run.topic_id))
        reach = LogReach.of(one_pass.spans, one_pass.reader.gaps.last_lost_below(None), one_pass.unread)
        points += group_lag(group_id, commits, ends, reach)
    return sorted(points, key=point_order)


def topic_ends(topics: TopicHistory | None) -> dict[str, list[int]]:
    """Return the times (ms) at which topics were deleted, by name."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for interval in () if topics is None else topics.intervals():
        if interval.until is not None and interval.ended_by in ("deleted", "replaced"):
            by_name[interval.topic].append(interval.until.timestamp_ms)
    return by_name


class _Pass:
    """The pass over one partition of the log. ``spans`` are the offsets that are there, ``unread`` the commits of the
    group that cannot be decoded.
    """

    def __init__(self, reader: LogReader, group_id: str) -> None:
        self.reader = reader
        self.order = CommitOrder()
        self.spans: list[LogSpan] = []
        self.group_ends: list[LogPosition] = []
        self.unread: dict[tuple[str, TopicPartition], list[UnreadCommits]] = {}
        self._group_id = group_id
        self._key = group_id.encode()
        self._losses = 0

    def runs(self) -> Iterator[CommitRun]:
        for batch in self.reader.batches():
            if self.reader.losses > self._losses:
                self._losses = self.reader.losses
                self.order.give_up_transactions()
            self.spans += _spans(batch)
            for row in log_rows(batch.filter(self._is_mine(batch))):
                yield from self._apply(row)

    def _is_mine(self, batch: pa.RecordBatch) -> pa.Array:
        """Return which rows may be of the group (the id lies in their keys), or end transactions."""
        names = pc.match_substring(batch.column("key"), self._key)
        return pc.or_(pc.fill_null(names, False), pc.equal(batch.column("kind"), Kind.CONTROL.value))

    def _apply(self, row: LogRow) -> Iterator[CommitRun]:
        if row.control_type in MARKERS:
            yield from self.order.end_transaction(
                row.producer_id, committed=MARKERS[row.control_type], held_ms=row.timestamp
            )
        record = self.reader.read(row)
        if record is None or record.group_id != self._group_id:
            return
        if isinstance(record, UnreadableRecord):
            self._note_unread(record)
        elif record.type <= RecordType.OFFSET_COMMIT:
            yield from self.order.feed(record, row.producer_id if row.is_transactional else None)
        elif record.value is None and record.type in GROUP_ENDS:
            self.group_ends.append(record.at)

    def _note_unread(self, record: UnreadableRecord) -> None:
        if record.is_commit and record.key is not None:
            partition = TopicPartition(record.key["topic"], record.key["partition"])
            note_unread(self.unread, self._group_id, partition, record.at)


def _spans(batch: pa.RecordBatch) -> Iterator[LogSpan]:
    """Yield the ranges of offsets that have a record."""
    rows = batch.filter(pc.is_valid(batch.column("offset")))
    offsets = rows.column("offset").to_numpy(zero_copy_only=False)
    times = rows.column("timestamp").fill_null(-1).to_numpy(zero_copy_only=False)
    breaks = (offsets[1:] != offsets[:-1] + 1).nonzero()[0] + 1
    for first, end in pairwise([0, *breaks.tolist(), len(offsets)]):
        if end > first:
            yield LogSpan(int(offsets[first]), int(offsets[end - 1]), int(times[first:end].max()))
