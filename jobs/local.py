"""Log folders replayed in this process, without Spark and without tables: for a quick look at one dump.

The fold is the core's own, the same that the replay job runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError, UnknownTypeError
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.group import Group
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.offsets import ShareStateLog
from coordinator_core.records import CoordinatorRecord, Family, LogPosition
from coordinator_core.wire.batch_format import BatchHeader, Damage
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.control import COMMIT
from coordinator_core.wire.row import decode_record
from jobs.sources.files import LogFile

FIRST_SEGMENT = "00000000000000000000.log"

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Moment:
    """Up to where logs are replayed.

    ``time_ms``: of each log, the records before the first one later than that. ``offsets``: of a partition of the
    coordinator log, the records below that offset, so that an end offset names what was there when it was taken; the
    other logs then end before the first coordinator record that was left out. Both None: all there is.
    """

    time_ms: int | None = None
    offsets: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Replayed:
    """The coordinator at a moment: ``shards`` by log partition; what was not given is None."""

    shards: dict[int, CoordinatorShard] = field(default_factory=dict)
    connect: dict[int, CoordinatorShard] = field(default_factory=dict)
    topics: TopicHistory | None = None
    share_state: ShareStateLog | None = None
    time_ms: int | None = None

    def groups(self) -> Iterator[tuple[Group, CoordinatorShard]]:
        """Every group that there is, or that offsets were committed for, with the shard that holds it."""
        for shard in (*self.shards.values(), *self.connect.values()):
            for group_id, group in shard.groups.items():
                if group.state is not None or shard.offsets_of(group_id).committed:
                    yield group, shard

    def image(self) -> TopicImage | None:
        """The topics at the moment, None where nothing is known of them."""
        if self.topics is None or not len(self.topics):
            return None
        if self.time_ms is None:
            return self.topics.version(len(self.topics) - 1).image
        version = self.topics.at(self.time_ms)
        return None if version is None else version.image

    def surroundings(self) -> Surroundings:
        """What descriptions need beyond the group."""
        return Surroundings(self.image(), self.share_state)


def replay(logs: Iterable[LogFile], moment: Moment, warn: Warn) -> Replayed:
    """Replays the logs up to the moment; what could not be read or decoded is told to ``warn`` and left out."""
    partitions: dict[Family, dict[int, list[LogFile]]] = {family: {} for family in Family}
    for file in logs:
        partitions[file.family].setdefault(file.partition, []).append(file)
    replayed = Replayed(time_ms=moment.time_ms)
    for family, shards in ((Family.GROUP, replayed.shards), (Family.CONNECT, replayed.connect)):
        for partition, files in partitions[family].items():
            reader = LogReader(files, warn)
            shard = shards[partition] = CoordinatorShard(from_start=reader.from_start, family=family)
            left_out = _replay_groups(shard, reader, moment.time_ms, moment.offsets.get(partition))
            if left_out is not None:
                before = left_out - 1
                replayed.time_ms = before if replayed.time_ms is None else min(before, replayed.time_ms)
    for files in partitions[Family.SHARE].values():
        replayed.share_state = replayed.share_state or ShareStateLog()
        for record in LogReader(files, warn).records(replayed.time_ms):
            replayed.share_state.apply(record)
    for files in partitions[Family.METADATA].values():
        replayed.topics = fold_metadata_log(LogReader(files, warn).records())
    return replayed


def _replay_groups(shard: CoordinatorShard, reader: LogReader, time_ms: int | None, end: int | None) -> int | None:
    """Replays a partition of groups; returns the time of the first record left out because of its offset."""
    for row in reader.rows(time_ms):
        if end is not None and row.offset >= end:
            return row.timestamp
        if row.batch.is_control:
            if row.control is not None:
                shard.end_transaction(row.batch.producer_id, committed=row.control.type == COMMIT)
            continue
        record = reader.decoded(row)
        if record is not None:
            producer_id = row.batch.producer_id if row.batch.is_transactional else None
            shard.apply(record, producer_id, row.batch.leader_epoch)
    return None


class LogReader:
    """The records of one partition, from its segment files in the order of their offsets."""

    def __init__(self, files: list[LogFile], warn: Warn) -> None:
        self._files = files
        self._warn = warn

    @property
    def from_start(self) -> bool:
        """Whether the first file is named as the partition's first segment."""
        return self._files[0].segment == FIRST_SEGMENT

    def rows(self, time_ms: int | None = None) -> Iterator[LogRecord]:
        """Records and markers, each once even where dumps overlap, before the first one later than ``time_ms``."""
        last = -1
        for file in self._files:
            with file.open() as read_at:
                for row in read_rows(read_at, file.size, name=file.name):
                    if isinstance(row, Damage):
                        self._warn(f"{file.name} at byte {row.position}: {row.cause} ({row.size} bytes left out)")
                    elif not isinstance(row, BatchHeader) and row.offset > last:
                        if time_ms is not None and row.timestamp > time_ms:
                            return
                        last = row.offset
                        yield row

    def records(self, time_ms: int | None = None) -> Iterator[CoordinatorRecord]:
        """The decoded records, without markers."""
        for row in self.rows(time_ms):
            record = None if row.batch.is_control else self.decoded(row)
            if record is not None:
                yield record

    def decoded(self, row: LogRecord) -> CoordinatorRecord | None:
        """The record in a row; None, and a warning, if it cannot be decoded."""
        file = self._files[0]
        try:
            decoded = decode_record(row.key, row.value, file.family)
        except DecodeError as error:
            # Most types of the metadata log say nothing of topics, and have no schema here.
            if file.family is not Family.METADATA or not isinstance(error, UnknownTypeError):
                self._warn(f"{file.topic}-{file.partition} offset {row.offset}: {error}")
            return None
        at = LogPosition(file.partition, row.offset, row.timestamp)
        batch = row.batch.base_offset
        return CoordinatorRecord(at, decoded.type, decoded.key, decoded.value, decoded.value_version, batch)
