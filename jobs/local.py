"""Log folders replayed in this process, without Spark and without tables: for a quick look at one dump.

The fold is the core's own, the same that the replay job runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.metadata_log import MetadataLog
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError, InputError, UnknownTypeError
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.group import Group
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.offsets import ShareStateLog
from coordinator_core.records import CoordinatorRecord, Family, LogPosition
from coordinator_core.wire.batch_format import BatchHeader, Damage, ReadAt
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.control import COMMIT
from coordinator_core.wire.row import decode_record

FAMILIES = {
    "__consumer_offsets": Family.GROUP,
    "__share_group_state": Family.SHARE,
    "__cluster_metadata": Family.METADATA,
    "__worker_offsets": Family.CONNECT,
}
"""Topics that are replayed; folders of others are left alone."""

PARTITION_FOLDER = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
SEGMENT_FILE = re.compile(r"(?P<base>\d{20})\.log")

Warn = Callable[[str], None]


class LogPartition(NamedTuple):
    """A partition of a topic, as its folder is named."""

    topic: str
    partition: int


class Segment(NamedTuple):
    """A segment file and the offset that it begins at."""

    base_offset: int
    path: Path


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


def find_logs(paths: Iterable[Path]) -> dict[LogPartition, list[Segment]]:
    """The segments under these files and folders, by partition, in the order of their offsets.

    The folder that holds a segment names its topic and partition, as on a broker. Raises InputError for a path that
    does not exist or holds no segment of a log that is known here.
    """
    found: dict[LogPartition, set[Segment]] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        segments = [path] if path.is_file() else sorted(path.rglob("*.log"))
        known = 0
        for segment in segments:
            folder = PARTITION_FOLDER.fullmatch(segment.resolve().parent.name)
            name = SEGMENT_FILE.fullmatch(segment.name)
            if folder and name and folder["topic"] in FAMILIES:
                partition = LogPartition(folder["topic"], int(folder["partition"]))
                found.setdefault(partition, set()).add(Segment(int(name["base"]), segment.resolve()))
                known += 1
        if not known:
            topics = ", ".join(FAMILIES)
            raise InputError(f"{path}: no segment (20 digits and .log) in a folder <topic>-<partition> of {topics}")
    return {partition: sorted(found[partition]) for partition in sorted(found)}


def replay(logs: Mapping[LogPartition, list[Segment]], moment: Moment, warn: Warn) -> Replayed:
    """Replays the logs up to the moment; what could not be read or decoded is told to ``warn`` and left out."""
    replayed = Replayed(time_ms=moment.time_ms)
    for partition in logs:
        if FAMILIES[partition.topic] in (Family.GROUP, Family.CONNECT):
            left_out = _replay_groups(replayed, partition, logs[partition], moment, warn)
            if left_out is not None and moment.time_ms is None:
                replayed.time_ms = min(left_out - 1, replayed.time_ms if replayed.time_ms is not None else left_out)
    metadata = MetadataLog()
    for partition in logs:
        family = FAMILIES[partition.topic]
        if family is Family.SHARE:
            replayed.share_state = replayed.share_state or ShareStateLog()
            for row in _until(replayed.time_ms, log_records(logs[partition], warn)):
                record = None if row.control else _decoded(partition, row, warn)
                if record is not None:
                    replayed.share_state.apply(record)
        elif family is Family.METADATA:
            for row in log_records(logs[partition], warn):
                record = None if row.batch.is_control else _decoded(partition, row, warn)
                if record is not None:
                    metadata.apply(record)
            replayed.topics = metadata.finish()
    return replayed


def _replay_groups(
    replayed: Replayed, partition: LogPartition, segments: list[Segment], moment: Moment, warn: Warn
) -> int | None:
    """Replays a partition of groups; returns the time of the first record left out because of its offset."""
    shards = replayed.shards if FAMILIES[partition.topic] is Family.GROUP else replayed.connect
    shard = shards[partition.partition] = CoordinatorShard(
        from_start=segments[0].base_offset == 0, family=FAMILIES[partition.topic]
    )
    end = moment.offsets.get(partition.partition)
    for row in _until(moment.time_ms, log_records(segments, warn)):
        if end is not None and row.offset >= end:
            return row.timestamp
        if row.batch.is_control:
            if row.control is not None:
                shard.end_transaction(row.batch.producer_id, committed=row.control.type == COMMIT)
            continue
        record = _decoded(partition, row, warn)
        if record is not None:
            producer_id = row.batch.producer_id if row.batch.is_transactional else None
            shard.apply(record, producer_id, row.batch.leader_epoch)
    return None


def _until(time_ms: int | None, rows: Iterator[LogRecord]) -> Iterator[LogRecord]:
    for row in rows:
        if time_ms is not None and row.timestamp > time_ms:
            return
        yield row


def log_records(segments: Iterable[Segment], warn: Warn) -> Iterator[LogRecord]:
    """The records of one partition in offset order, each once even where dumps overlap."""
    last = -1
    for segment in segments:
        with segment.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            for row in read_rows(_reader(file.fileno()), size, name=str(segment.path)):
                if isinstance(row, Damage):
                    warn(f"{segment.path} at byte {row.position}: {row.cause} ({row.size} bytes left out)")
                elif not isinstance(row, BatchHeader) and row.offset > last:
                    last = row.offset
                    yield row


def _reader(descriptor: int) -> ReadAt:
    return lambda at, count: os.pread(descriptor, count, at)


def _decoded(partition: LogPartition, row: LogRecord, warn: Warn) -> CoordinatorRecord | None:
    family = FAMILIES[partition.topic]
    at = LogPosition(partition.partition, row.offset, row.timestamp)
    try:
        decoded = decode_record(row.key, row.value, family)
    except UnknownTypeError as error:
        if family is not Family.METADATA:  # most of its types say nothing of topics and are not described
            warn(f"{partition.topic}-{partition.partition} offset {row.offset}: {error}")
        return None
    except DecodeError as error:
        warn(f"{partition.topic}-{partition.partition} offset {row.offset}: {error}")
        return None
    return CoordinatorRecord(at, decoded.type, decoded.key, decoded.value, decoded.value_version, row.batch.base_offset)
