"""Log folders replayed in this process, without Spark and without tables: for a quick look at one dump.

The fold is the core's own, the same that the replay job runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import GroupOffsets
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.state_log import ShareStateLog
from coordinator_core.records import Family, RecordType
from coordinator_core.wire import control
from coordinator_core.wire.batch_format import Kind
from coordinator_core.wire.control import control_name
from coordinator_core.wire.primitives import INT16
from jobs.queries.interface import AsOf
from jobs.sources.files import LogPart
from jobs.sources.log_reader import LogReader, LogRow, Warn, by_partition
from jobs.sources.topics import topic_history

COMMIT_KEYS = tuple(INT16.pack(each) for each in (RecordType.OFFSET_COMMIT, RecordType.LEGACY_OFFSET_COMMIT))
"""How the keys of offset commits begin."""

MARKERS = {control_name(control.COMMIT): True, control_name(control.ABORT): False}
"""Whether the transaction that a marker ends was committed."""


@dataclass(slots=True)
class ReplayedGroups:
    """The coordinator at a moment: ``shards`` by log partition; what was not given is None."""

    shards: dict[int, CoordinatorShard] = field(default_factory=dict)
    connect: dict[int, CoordinatorShard] = field(default_factory=dict)
    topics: TopicHistory | None = None
    share_state: ShareStateLog | None = None
    time_ms: int | None = None

    def groups(self) -> Iterator[tuple[Group, GroupOffsets]]:
        """Every group that there is, or that offsets were committed for, with its offsets, by group id."""
        found = []
        for shard in (*self.shards.values(), *self.connect.values()):
            for group_id, group in shard.groups.items():
                held = shard.offsets_of(group_id)
                if group.state is not None or held.committed:
                    found.append((group, held))
        yield from sorted(found, key=lambda each: each[0].group_id)

    def image(self) -> TopicImage | None:
        """The topics at the moment, None where nothing is known of them."""
        return None if self.topics is None else self.topics.image_at(self.time_ms)

    def surroundings(self) -> Surroundings:
        """What descriptions need beyond the group."""
        oldest_broker = None if self.topics is None else self.topics.oldest_broker(self.time_ms)
        return Surroundings(self.image(), self.share_state, oldest_broker=oldest_broker)


def replay(logs: Iterable[LogPart], moment: AsOf, warn: Warn) -> ReplayedGroups:
    """Replays the logs up to the moment; what could not be read or decoded is told to ``warn`` and left out."""
    partitions = by_partition(logs)
    replayed = ReplayedGroups(time_ms=moment.time_ms)
    cuts: list[_Cut] = []
    for family, shards in ((Family.GROUP, replayed.shards), (Family.CONNECT, replayed.connect)):
        for partition, files in partitions[family].items():
            reader = LogReader(files, warn)
            shard = shards[partition] = CoordinatorShard(from_start=reader.from_start, family=family)
            cut = _replay_groups(shard, reader, moment, moment.offsets.get(partition))
            if cut is not None and moment.time_ms is None:
                cuts.append(cut)
    share_time = moment.time_ms
    if cuts:
        share_time = min(cut.before for cut in cuts)
        replayed.time_ms = max((cut.last for cut in cuts if cut.last is not None), default=share_time)
    for files in partitions[Family.SHARE].values():
        replayed.share_state = replayed.share_state or ShareStateLog()
        _replay_share_state(replayed.share_state, LogReader(files, warn), share_time)
    for files in partitions[Family.METADATA].values():
        replayed.topics = topic_history(files, warn)
    return replayed


def _replay_share_state(state: ShareStateLog, reader: LogReader, time_ms: int | None) -> None:
    """Replays a partition of the share state log up to a time."""
    last: int | None = None
    for row in reader.rows(time_ms):
        if last is not None and row.offset != last + 1:
            state.lose(reader.partition)
        last = row.offset
        record = reader.decoded(row) if row.kind == Kind.RECORD.value else None
        if record is not None:
            state.apply(record)


class _Cut(NamedTuple):
    """Where offsets cut a partition, in ms: the last record that counts (None: none does), and before the next one."""

    last: int | None
    before: int


def _replay_groups(shard: CoordinatorShard, reader: LogReader, moment: AsOf, end: int | None) -> _Cut | None:
    """Replays a partition of groups; returns where ``end`` cut it, None if it left nothing out.

    Of the plain commits of one partition only the last before anything else that bears on it is decoded.
    """
    commits: dict[bytes, LogRow] = {}
    last: int | None = None
    losses = 0
    for row in reader.rows(moment.time_ms):
        if end is not None and row.offset >= end:
            _apply_all(shard, reader, commits)
            return _Cut(last, row.timestamp - 1)
        last = row.timestamp
        if reader.losses > losses:
            losses = reader.losses
            _apply_all(shard, reader, commits)
            shard.lose()
        if row.key[:2] in COMMIT_KEYS and row.value is not None and not row.is_transactional:
            commits[row.key] = row
            continue
        if row.value is None or row.is_transactional:
            _apply_all(shard, reader, commits)
        if row.kind == Kind.RECORD.value:
            _apply_all(shard, reader, {row.key: row})
        elif row.control_type in MARKERS:
            shard.end_transaction(row.producer_id, committed=MARKERS[row.control_type])
    _apply_all(shard, reader, commits)
    return None


def _apply_all(shard: CoordinatorShard, reader: LogReader, rows: dict[bytes, LogRow]) -> None:
    for row in rows.values():
        record = reader.decoded(row)
        if record is not None:
            shard.apply(record, row.producer_id if row.is_transactional else None, row.leader_epoch)
    rows.clear()
