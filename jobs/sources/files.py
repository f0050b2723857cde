"""Log segments on disk: in directories, as single files, or inside a tar archive."""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

import pyarrow as pa

from coordinator_core.errors import InputError
from coordinator_core.records import LOG_TOPICS, Family
from coordinator_core.wire.batch_format import Damage, ReadAt
from coordinator_core.wire.batches import read_columns

LOG_SUFFIX = ".log"
SNAPSHOT_SUFFIX = ".checkpoint"
"""A KRaft snapshot: the same format, in the folder of the metadata log."""

SNAPSHOT = re.compile(r"(?P<end>\d{20})-(?P<epoch>\d{10})\.checkpoint")
"""A snapshot's name: the offset of the log at which it ends (excluded), and the epoch of the last record in it."""

FIRST_SEGMENT = "00000000000000000000.log"
"""The segment that begins with the first record of a log partition."""

SEGMENT = re.compile(r"\d{20}\.(log|checkpoint)")
FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")

LEFTOVER = re.compile(r".+-\d+\.[0-9a-f]+-(delete|future|stray)")
"""What brokers call the folder of a partition that is deleted, moved to another disk, or not theirs."""

METADATA_TOPIC = LOG_TOPICS[Family.METADATA]

FAMILIES = {topic: family for family, topic in LOG_TOPICS.items()}
"""The topics that we can decode."""

GROUP_TOPICS = [topic for topic, family in FAMILIES.items() if family in (Family.GROUP, Family.CONNECT)]
"""The topics whose records change groups."""

SHARE_TOPICS = [topic for topic, family in FAMILIES.items() if family is Family.SHARE]
"""The topics with the state of share partitions."""

REPLAYED_TOPICS = [*GROUP_TOPICS, *SHARE_TOPICS]
"""The topics whose records are folded to histories, by group."""

KNOWN_TOPICS = frozenset(FAMILIES) | {""}
"""Those, and folders that are not named after a topic."""

UNKNOWN_PARTITION = -1


class LogPart(Protocol):
    """A log partition, or one segment of it, wherever it is kept."""

    @property
    def name(self) -> str:
        """How messages call it."""

    @property
    def topic(self) -> str:
        """The log's topic, empty if nobody says."""

    @property
    def partition(self) -> int:
        """The log's partition."""

    @property
    def segment(self) -> str:
        """The name of the segment with which it begins."""

    @property
    def size(self) -> int:
        """Its size in bytes."""

    @property
    def family(self) -> Family:
        """What its records are."""

    def parts(self) -> Iterator[pa.RecordBatch | Damage]:
        """Its records as Arrow batches with columns of ``LOG_COLUMNS``, and the bytes that are none."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One segment file, or one inside a tar archive (then ``path`` is the archive and ``member`` the name within).

    Topic and partition come from the name of the folder (``__consumer_offsets-3/``); without such a folder the topic is
    empty and the partition UNKNOWN_PARTITION. ``size`` is in bytes.
    """

    path: str
    size: int
    segment: str
    topic: str = ""
    partition: int = UNKNOWN_PARTITION
    member: str = ""

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{self.path}:{self.member}" if self.member else self.path

    @property
    def family(self) -> Family:
        """What its records are; segments outside of a topic's folder are taken for group coordinator logs."""
        return Family.METADATA if self.is_snapshot else FAMILIES.get(self.topic, Family.GROUP)

    @property
    def is_snapshot(self) -> bool:
        """Whether it is a KRaft snapshot, whose offsets are not those of the log."""
        return self.segment.endswith(SNAPSHOT_SUFFIX)

    @contextmanager
    def open(self) -> Iterator[ReadAt]:
        """A way to read bytes at positions, as long as the context lasts."""
        if not self.member:
            with open(self.path, "rb") as stream:
                yield lambda position, size: os.pread(stream.fileno(), size, position)
        else:
            with tarfile.open(self.path) as archive, _member(archive, self) as stream:
                yield _seeking(stream)

    def parts(self) -> Iterator[pa.RecordBatch | Damage]:
        """Its records as Arrow batches of ``LOG_COLUMNS``, and the bytes that are none."""
        with self.open() as read_at:
            yield from read_columns(read_at, self.size, name=self.name)


def find_logs(
    paths: Iterable[str | os.PathLike[str]], *, topics: Collection[str] = KNOWN_TOPICS, snapshots: bool = False
) -> list[LogFile]:
    """The segments under these directories and archives, and the files named themselves, by topic, partition, offset.

    In directories and archives what counts is ``*.log`` in the folder of one of these topics, and files named like
    segments in folders that are no topic's. With ``snapshots`` KRaft snapshots count too. Raises InputError for a path
    that does not exist or cannot be read, or holds no such log.
    """
    wanted = FileFilter(frozenset(topics), (LOG_SUFFIX, SNAPSHOT_SUFFIX) if snapshots else (LOG_SUFFIX,))
    found: list[LogFile] = []
    for path in (os.fspath(path) for path in paths):
        try:
            logs = list(_logs_in(path, wanted))
        except OSError as error:
            raise InputError(f"{path or 'an empty path'}: {error.strerror or error}") from None
        if not logs:
            raise InputError(f"{path}: no segments of {', '.join(sorted(filter(None, topics)))} in it")
        found += logs
    return sorted(dict.fromkeys(found), key=lambda log: (log.topic, log.partition, log.segment))


def refuse_empty_files(paths: Iterable[str], logs: Iterable[LogFile]) -> None:
    """Raises InputError where files are named and there is nothing in any; a folder may have empty segments."""
    named = [path for path in paths if os.path.isfile(path)]
    if named and not any(log.size for log in logs):
        raise InputError(f"{named[0]}: an empty file")


@dataclass(frozen=True, slots=True)
class FileFilter:
    """Which files of a directory or an archive are meant."""

    topics: frozenset[str]
    suffixes: tuple[str, ...]

    def __contains__(self, file: PurePosixPath) -> bool:
        folder = FOLDER.fullmatch(file.parent.name)
        if folder is None:
            is_leftover = LEFTOVER.fullmatch(file.parent.name) is not None
            return SEGMENT.fullmatch(file.name) is not None and "" in self.topics and not is_leftover
        return folder["topic"] in self.topics and file.name.endswith(self.suffixes)


def _logs_in(path: str, wanted: FileFilter) -> Iterator[LogFile]:
    if not os.path.isdir(path):
        size = os.stat(path).st_size
        if not path.endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX)) and tarfile.is_tarfile(path):
            yield from _logs_in_archive(path, wanted)
        else:
            yield _log_file(path, size, _place(path))
        return
    for folder, folders, files in os.walk(path, onerror=_raise):
        folders.sort()
        for whole in (os.path.join(folder, file) for file in sorted(files)):
            if (place := _place(whole)) in wanted:
                yield _log_file(whole, os.stat(whole).st_size, place)


def _logs_in_archive(path: str, wanted: FileFilter) -> Iterator[LogFile]:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and (place := PurePosixPath(member.name)) in wanted:
                    yield _log_file(path, member.size, place, member=member.name)
    except (tarfile.TarError, EOFError) as error:
        raise InputError(f"{path}: a damaged archive: {error}") from None


def _place(path: str) -> PurePosixPath:
    return PurePosixPath(Path(os.path.abspath(path)).as_posix())


def _log_file(path: str, size: int, place: PurePosixPath, *, member: str = "") -> LogFile:
    folder = FOLDER.fullmatch(place.parent.name)
    if folder is None:
        return LogFile(path, size, place.name, member=member)
    return LogFile(path, size, place.name, folder["topic"], int(folder["partition"]), member)


def _raise(error: OSError) -> None:
    raise error


@contextmanager
def _member(archive: tarfile.TarFile, log: LogFile) -> Iterator[IO[bytes]]:
    stream = archive.extractfile(log.member)
    if stream is None:
        raise InputError(f"{log.name}: no file in the archive")
    with stream:
        yield stream


def _seeking(stream: IO[bytes]) -> ReadAt:
    def read_at(position: int, size: int) -> bytes:
        stream.seek(position)
        return stream.read(size)

    return read_at
