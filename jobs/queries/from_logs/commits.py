"""The commits of one group from log files, in one pass that decodes the records of this group alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.audit.findings.commits import GROUP_ENDS
from coordinator_core.audit.offsets.runs import CommitOrder, CommitRun, GroupCommits
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import Family, LogPosition, RecordType
from coordinator_core.wire.batch_format import Kind
from jobs.queries.from_logs.log_partition import MARKERS
from jobs.sources.files import LogPart
from jobs.sources.log_reader import LogReader, LogRow, Warn, by_partition, log_rows
from jobs.sources.topics import topic_history


def group_commits(logs: Iterable[LogPart], warn: Warn, group_id: str, listed: TopicHistory | None) -> GroupCommits:
    """Return the commits of a group. ``warn`` is called for what cannot be read or decoded.

    ``listed`` are the topics where the metadata log is not given.
    """
    partitions = by_partition(logs)
    topics = listed
    for files in partitions[Family.METADATA].values():
        topics = topic_history(files, warn)
    passes = [_Pass(LogReader(files, warn), group_id) for files in partitions[Family.GROUP].values()]
    runs = [run for each in passes for run in each.runs()]
    return GroupCommits(
        runs,
        Coverage({each.reader.partition: each.ranges for each in passes}),
        [end for each in passes for end in each.group_ends],
        topic_ends(topics),
        sum(each.order.left_out for each in passes),
    )


def topic_ends(topics: TopicHistory | None) -> dict[str, list[int]]:
    """Return the times (ms) at which topics were deleted, by name."""
    found: dict[str, list[int]] = defaultdict(list)
    for interval in () if topics is None else topics.intervals():
        if interval.until is not None and interval.ended_by in ("deleted", "replaced"):
            found[interval.topic].append(interval.until.timestamp_ms)
    return found


class _Pass:
    """The pass over one partition of the log. ``ranges`` are the offsets that are there, without gaps."""

    def __init__(self, reader: LogReader, group_id: str) -> None:
        self.reader = reader
        self.order = CommitOrder()
        self.ranges: list[tuple[int, int]] = []
        self.group_ends: list[LogPosition] = []
        self._group_id = group_id
        self._key = group_id.encode()
        self._losses = 0

    def runs(self) -> Iterator[CommitRun]:
        for batch in self.reader.batches():
            if self.reader.losses > self._losses:
                self._losses = self.reader.losses
                self.order.give_up_transactions()
            self.ranges += _ranges(batch)
            for row in log_rows(batch.filter(self._is_mine(batch))):
                yield from self._apply(row)

    def _is_mine(self, batch: pa.RecordBatch) -> pa.Array:
        """Return which rows may be of the group (the id lies in their keys), or end transactions."""
        names = pc.match_substring(batch.column("key"), self._key)
        return pc.or_(pc.fill_null(names, False), pc.equal(batch.column("kind"), Kind.CONTROL.value))

    def _apply(self, row: LogRow) -> Iterator[CommitRun]:
        if row.control_type in MARKERS:
            yield from self.order.end_transaction(row.producer_id, committed=MARKERS[row.control_type])
        record = self.reader.decoded(row) if row.kind == Kind.RECORD.value else None
        if record is None or record.group_id != self._group_id:
            return
        if record.type <= RecordType.OFFSET_COMMIT:
            yield from self.order.feed(record, row.producer_id if row.is_transactional else None)
        elif record.value is None and record.type in GROUP_ENDS:
            self.group_ends.append(record.at)


def _ranges(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield the ranges of offsets that have a record."""
    offsets = batch.column("offset").drop_null().to_numpy(zero_copy_only=False)
    if not len(offsets):
        return
    breaks = (offsets[1:] != offsets[:-1] + 1).nonzero()[0] + 1
    firsts = [0, *breaks.tolist()]
    lasts = [*(each - 1 for each in breaks.tolist()), len(offsets) - 1]
    yield from ((int(offsets[first]), int(offsets[last])) for first, last in zip(firsts, lasts, strict=True))
