"""The topics that dumped files of the metadata log tell of: its segments, and the KRaft snapshot before them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import pyarrow.compute as pc

from coordinator_core.cluster.metadata_log import Snapshot, fold_metadata_log
from coordinator_core.cluster.topic_changes import HistoryGap, hole_before
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError
from coordinator_core.history.strange_topics import kinship
from coordinator_core.records import AnyRecord, Family, LogPosition
from coordinator_core.wire.batch_format import Damage, Kind
from coordinator_core.wire.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, control_name, snapshot_time_ms
from coordinator_core.wire.record_decoder import UnreadableRecord
from jobs.sources.bounded_warnings import Warn
from jobs.sources.files import SEGMENT, SNAPSHOT, SNAPSHOT_SUFFIX
from jobs.sources.log_parts import LogPart
from jobs.sources.log_reader import LogReader, are_commits, log_rows

ROWS_EXAMINED: Final = 200_000
"""So many rows of the logs of groups may be read before they are, to see whose topics the metadata log has."""
COMMITS_EXAMINED: Final = 50
"""So many offset commits of each part of a log are among them: newer brokers write topic ids into commits, too."""


def topic_history(files: list[LogPart], warn: Warn) -> TopicHistory:
    """The history of topics; where the first segments are gone, from the snapshot that took their place on."""
    segments = [file for file in files if not file.segment.endswith(SNAPSHOT_SUFFIX)]
    snapshot = snapshot_before(files, segments, warn)
    if not segments:
        return fold_metadata_log((), snapshot)
    log = _Whole(LogReader(segments, warn))
    history = fold_metadata_log(log.records(), snapshot)
    if log.hole is not None:
        history.gaps.append(log.hole)
    return history


def known_topics(
    logs: Mapping[Family, Mapping[int, list[LogPart]]], listed: TopicHistory | None, warn: Warn
) -> TopicHistory | None:
    """Return the topics of the metadata log, or the listed ones without it; ``logs`` are files by log and partition.

    The settings that snapshots show go with both. Topics of another cluster than that of the groups are left out.

    Raises:
        InputError: the logs of groups are of two clusters.
    """
    topics = listed
    for files in logs[Family.METADATA].values():
        topics = topic_history(files, warn)
        of_groups = logs[Family.GROUP].values()
        of = kinship(topics, {each[0].name: _first_records(each, len(of_groups)) for each in of_groups})
        topics.is_of_groups = of.is_proven
        if of.strange is not None:
            topics = TopicHistory.of_another_cluster(of.strange)
        if listed is not None:
            topics.snapshots = listed.snapshots
    return topics


def _first_records(files: list[LogPart], of: int) -> Iterator[AnyRecord]:
    """Yield what one of so many logs of groups begins with, and only some of its many offset commits."""
    reader, left = LogReader(files, lambda message: None), ROWS_EXAMINED // of
    for rows in chain.from_iterable(file.parts() for file in files):
        if isinstance(rows, Damage):
            continue
        is_commit = are_commits(rows.column("key"))
        others, commits = (
            rows.filter(pc.invert(is_commit)).slice(0, left),
            rows.filter(is_commit).slice(0, COMMITS_EXAMINED),
        )
        for row in chain(log_rows(others), log_rows(commits)):
            record = reader.read(row)
            if record is not None and not isinstance(record, UnreadableRecord):
                yield record
        # Counted by rows and not by what was decoded: a log of commits alone is left soon, too.
        left -= rows.num_rows
        if left <= 0:
            break


class _Whole:
    """A metadata log while it is read, and the first place where it is not whole; nothing compacts it."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self.hole: HistoryGap | None = None

    def records(self) -> Iterator[AnyRecord]:
        """The decoded records, without control records."""
        reader, last, last_ms = self._reader, -1, -1
        for row in reader.rows():
            if self.hole is None and -1 < last != row.offset - 1:
                self.hole = hole_before(LogPosition(reader.partition, row.offset, row.timestamp), last_ms)
            last, last_ms = row.offset, max(last_ms, row.timestamp)
            record = reader.decoded(row)
            if record is not None:
                yield record


def snapshot_before(files: Sequence[LogPart], segments: Sequence[LogPart], warn: Warn) -> Snapshot | None:
    """Return the oldest whole snapshot from which the segments go on, the newest where there are none.

    None: there is none, or the segments begin with the first record.
    """
    ends = {int(named["end"]): file for file in files if (named := SNAPSHOT.fullmatch(file.segment))}
    if not segments:
        wanted = sorted(ends, reverse=True)
    else:
        first = int(segments[0].segment[:20]) if SEGMENT.fullmatch(segments[0].segment) else 0
        # A log from offset 0 on needs no snapshot. The oldest one that reaches it leaves the log to tell most itself.
        wanted = sorted(end for end in ends if end >= first) if first else []
    # A generator: the next snapshot is read only where the one before is not whole.
    snapshots = (_read(ends[end], end, warn) for end in wanted)
    return next((snapshot for snapshot in snapshots if snapshot is not None), None)


def _read(file: LogPart, end: int, warn: Warn) -> Snapshot | None:
    """None for one that is not whole: it has no footer, or something in it cannot be read."""
    reader, records, time_ms, is_whole = LogReader([file], warn), [], -1, False
    for row in reader.rows():
        if row.kind == Kind.RECORD.value:
            records.append(reader.decoded(row))
        elif row.control_type == control_name(SNAPSHOT_HEADER):
            time_ms = _time_of(file, row.value, warn)
        # Of the last row: a snapshot whose footer is followed by anything was not written by a controller.
        is_whole = row.control_type == control_name(SNAPSHOT_FOOTER)
    if not is_whole or reader.damages:
        warn(f"{file.name}: not a whole snapshot, and left out")
        return None
    known = [record for record in records if record is not None]
    return Snapshot(known, LogPosition(file.partition, end - 1, time_ms))


def _time_of(file: LogPart, header: bytes | None, warn: Warn) -> int:
    try:
        return snapshot_time_ms(header)
    except DecodeError as error:
        warn(f"{file.name}: {error}")
        return -1
