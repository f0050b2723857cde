"""The commits of one group, or of all, from log files in one pass; for one group only its records are decoded."""

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
from coordinator_core.records import COMMIT_TYPES, Family, LogPosition
from coordinator_core.wire.batch_format import Kind
from coordinator_core.wire.control import MARKERS
from coordinator_core.wire.record_decoder import UnreadableRecord
from jobs.sources.bounded_warnings import Warn
from jobs.sources.end_offsets import EndOffsets
from jobs.sources.log_parts import LogPart
from jobs.sources.log_reader import LogReader, LogRow, by_partition, log_rows
from jobs.sources.topics import known_topics


def group_commits(logs: Iterable[LogPart], warn: Warn, group_id: str, listed: TopicHistory | None) -> GroupCommits:
    """Return the commits of a group. ``warn`` is called for what cannot be read or decoded.

    ``listed`` are the topics where the metadata log is not given.
    """
    partitions = by_partition(logs)
    topics = known_topics(partitions, listed, warn)
    passes = [_Pass(LogReader(files, warn, group_id), group_id) for files in partitions[Family.GROUP].values()]
    runs = [run for one_pass in passes for _, run in one_pass.runs()]
    return GroupCommits(
        runs,
        Coverage({one_pass.reader.partition: [span[:2] for span in one_pass.spans] for one_pass in passes}),
        [end for one_pass in passes for end in one_pass.group_ends],
        topic_ends(topics),
        sum(order.left_out for one_pass in passes for order in one_pass.orders.values()),
        NO_REACH if topics is None else topics.reach,
    )


def lag_from_logs(logs: Iterable[LogPart], warn: Warn, group_id: str | None, ends: EndOffsets) -> list[LagPoint]:
    """Return the lag of a group, or of all (None), at each snapshot of the end offsets, as ``point_order`` orders."""
    points: list[LagPoint] = []
    for files in by_partition(logs)[Family.GROUP].values():
        one_pass = _Pass(LogReader(files, warn, group_id), group_id)
        commits: dict[str, dict[TopicPartition, list[TimedCommit]]] = defaultdict(lambda: defaultdict(list))
        for group, run in one_pass.runs():
            # What a transaction commits holds from its marker on, not from its own record.
            held_ms = run.last.timestamp_ms if run.held_ms is None else run.held_ms
            commits[group][run.partition].append(TimedCommit(held_ms, run.last, run.offset, run.topic_id))
        reach = LogReach.of(one_pass.spans, one_pass.reader.gaps.last_lost_below(None), one_pass.unread)
        for group, of_group in commits.items():
            points += group_lag(group, of_group, ends, reach)
    return sorted(points, key=point_order)


def topic_ends(topics: TopicHistory | None) -> dict[str, list[int]]:
    """Return the times (ms) at which topics were deleted, by name."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for interval in () if topics is None else topics.intervals():
        if interval.until is not None and interval.ended_by in ("deleted", "replaced"):
            by_name[interval.topic].append(interval.until.timestamp_ms)
    return by_name


class _Pass:
    """The pass over one partition of the log, for one group or for all (None).

    ``orders`` have what is open of each group. ``spans`` are the offsets that are there, ``unread`` the commits that
    cannot be decoded, by group and partition.
    """

    def __init__(self, reader: LogReader, group_id: str | None) -> None:
        self.reader = reader
        self.orders: defaultdict[str, CommitOrder] = defaultdict(CommitOrder)
        self.spans: list[LogSpan] = []
        self.group_ends: list[LogPosition] = []
        self.unread: dict[tuple[str, TopicPartition], list[UnreadCommits]] = {}
        self._group_id = group_id
        self._losses = 0
        self._writing: defaultdict[int, set[str]] = defaultdict(set)
        """The groups to which a producer commits in its open transaction."""

    def runs(self) -> Iterator[tuple[str, CommitRun]]:
        """Yield the runs of commits, each with its group."""
        for batch in self.reader.batches():
            # The marker of an open transaction may be among what is lost: whether its commits hold is not known any
            # more.
            if self.reader.losses > self._losses:
                self._losses = self.reader.losses
                for order in self.orders.values():
                    order.give_up_transactions()
                self._writing.clear()
            self.spans += _spans(batch)
            for row in log_rows(
                batch if self._group_id is None else batch.filter(self._may_be_of(self._group_id, batch))
            ):
                yield from self._apply(row)

    def _may_be_of(self, group_id: str, batch: pa.RecordBatch) -> pa.Array:
        """Return which rows may be of the group (the id lies in their keys), or end transactions."""
        names = pc.match_substring(batch.column("key"), group_id.encode())
        return pc.or_(pc.fill_null(names, False), pc.equal(batch.column("kind"), Kind.CONTROL.value))

    def _apply(self, row: LogRow) -> Iterator[tuple[str, CommitRun]]:
        if row.control_type in MARKERS:
            # Only of the groups to which this producer wrote: there may be thousands, and markers are many.
            for group in sorted(self._writing.pop(row.producer_id, ())):
                ended = self.orders[group].end_transaction(
                    row.producer_id, committed=MARKERS[row.control_type], held_ms=row.timestamp
                )
                yield from ((group, run) for run in ended)
        record = self.reader.read(row)
        if record is None or record.group_id is None or self._group_id not in (None, record.group_id):
            return
        if isinstance(record, UnreadableRecord):
            self._note_unread(record, record.group_id)
        elif record.type in COMMIT_TYPES:
            producer_id = row.producer_id if row.is_transactional else None
            if producer_id is not None:
                self._writing[producer_id].add(record.group_id)
            for run in self.orders[record.group_id].feed(record, producer_id):
                yield record.group_id, run
        elif record.value is None and record.type in GROUP_ENDS:
            self.group_ends.append(record.at)

    def _note_unread(self, record: UnreadableRecord, group_id: str) -> None:
        if record.is_commit and record.key is not None:
            partition = TopicPartition(record.key["topic"], record.key["partition"])
            note_unread(self.unread, group_id, partition, record.at)


def _spans(batch: pa.RecordBatch) -> Iterator[LogSpan]:
    """Yield the ranges of offsets that have a record."""
    rows = batch.filter(pc.is_valid(batch.column("offset")))
    offsets = rows.column("offset").to_numpy(zero_copy_only=False)
    times = rows.column("timestamp").fill_null(-1).to_numpy(zero_copy_only=False)
    # breaks[i] is the number of a row behind a hole: between two of them offsets follow each other.
    breaks = (offsets[1:] != offsets[:-1] + 1).nonzero()[0] + 1
    for first, end in pairwise([0, *breaks.tolist(), len(offsets)]):
        if end > first:
            yield LogSpan(int(offsets[first]), int(offsets[end - 1]), int(times[first:end].max()))
