"""Log segments on disk: in folders, as single files, or inside tar archives."""

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.cluster.image import MOST_PARTITIONS
from coordinator_core.errors import GoneError, InputError
from coordinator_core.records import GROUP_LOG, LOG_TOPICS, Family
from coordinator_core.wire.batch_format import Damage, DamageKind, ReadAt
from coordinator_core.wire.batches import read_columns
from coordinator_core.wire.value_times import ValueTimes, lack_times
from jobs.sources import packed
from jobs.sources.archives import cut_at, is_archive, members, read_member
from jobs.sources.bounded_warnings import Warn
from jobs.sources.file_kinds import kind_of
from jobs.sources.left_beside import FOLDER, LEFTOVER, LeftBeside
from jobs.sources.log_parts import LogPlaced
from jobs.sources.packed import head_of
from jobs.sources.printed.forms import is_printed, printed_below
from jobs.sources.printed.logs import PrintedLog, printed_logs

LOG_SUFFIX = ".log"
SNAPSHOT_SUFFIX = ".checkpoint"
"""Suffix of KRaft snapshots, which have the same format, in the folder of the metadata log."""

SNAPSHOT = re.compile(r"(?P<end>\d{20})-(?P<epoch>\d{10})\.checkpoint")
"""The name of a snapshot: its end offset in the log (excluded), and the epoch of its last record."""

FIRST_SEGMENT = "00000000000000000000.log"
"""The segment that begins with the first record of a log partition."""

SEGMENT = re.compile(r"\d{20}\.(log|checkpoint)")

SWAP_SUFFIX = ".swap"
"""Of a cleaned segment that takes the place of others: a broker that starts takes this end off."""

METADATA_TOPIC = LOG_TOPICS[Family.METADATA]

FAMILIES = {topic: family for family, topic in LOG_TOPICS.items()}
"""The kind of log in each topic that can be decoded."""

GROUP_TOPICS = tuple(topic for topic, family in FAMILIES.items() if family in (Family.GROUP, Family.CONNECT))
"""The topics whose records change groups."""

SHARE_TOPICS = tuple(topic for topic, family in FAMILIES.items() if family is Family.SHARE)
"""The topics with the state of share partitions."""

REPLAYED_TOPICS = (*GROUP_TOPICS, *SHARE_TOPICS)
"""The topics whose records are folded to histories, by group."""

KNOWN_TOPICS = frozenset(FAMILIES) | {""}
"""These topics, and "" for segments outside a topic's folder."""

UNKNOWN_PARTITION = -1

ABSENT = "it belongs to records that are not there: the log goes on, and its end is missing"

MOST_LOOKED_AT = 100
"""So many files of an archive that are no segments are looked into, to say what they are."""

HEAD_BYTES = 4096
"""Bytes by which it is known what a file is that was named itself."""


def ignore(warning: str) -> None:
    """Take a warning that another one who finds the same logs gives."""


def log_name(topic: str, partition: int) -> str:
    """Return the name of a log partition, as that of its folder; that of its topic where the partition is not known."""
    return topic if partition == UNKNOWN_PARTITION else f"{topic}-{partition}"


@dataclass(frozen=True, slots=True)
class LogFile:
    """A segment file. If it is inside an archive, ``path`` is the archive and ``member`` the name within it.

    If it was printed (``printed.logs``), ``texts`` are all files of printed records that were given, ``path`` the first
    one that has some of it, and ``member`` the name that a broker would give its segment. Topic and partition come from
    the name of the folder (``__consumer_offsets-3/``). Without such a folder the topic is empty and the partition is
    UNKNOWN_PARTITION. ``size`` is in bytes. Records at ``upto`` and behind it do not count: they were never replicated
    (``copies``). ``is_absent``: it is not there, nor another one with the offset of its name, as ``path`` shows, which
    is a file beside it. ``inode`` is the number of the file when it was listed; 0: unknown.
    """

    path: str
    size: int
    segment: str
    topic: str = ""
    partition: int = UNKNOWN_PARTITION
    member: str = ""
    texts: tuple[str, ...] = ()
    upto: int | None = None
    is_absent: bool = False
    inode: int = 0

    @property
    def name(self) -> str:
        """The name used in messages."""
        return f"{self.path}:{self.member}" if self.member else self.path

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of this machine in which it is."""
        return self.texts or (self.path,)

    @property
    def family(self) -> Family:
        """The kind of log; segments outside a topic's folder are read as logs of the group coordinator."""
        return Family.METADATA if self.is_snapshot else FAMILIES.get(self.topic, Family.GROUP)

    @property
    def is_snapshot(self) -> bool:
        """Whether it is a KRaft snapshot; the offsets in a snapshot are not log offsets."""
        return self.segment.endswith(SNAPSHOT_SUFFIX)

    @contextmanager
    def open(self, start: int = 0) -> Iterator[ReadAt]:
        """Open the file to read from a position on. Yields a function that reads a number of bytes at a position.

        Raises:
            InputError: it was printed, so that there are no bytes of it, or it may not be read.
            GoneError: a broker has deleted it since it was listed, or put a cleaned one there, in which other batches
                are behind its begin.
        """
        if self.texts:
            raise InputError(f"{self.path}: records that were printed: this needs the segment itself")
        if not self.member:
            try:
                opened = open(self.path, "rb")  # noqa: SIM115  closed below
            except FileNotFoundError:
                raise GoneError(f"{self.path}: a broker has just deleted it, or renamed it: begin again") from None
            except OSError as error:
                raise InputError(f"{self.path}: {error.strerror}") from None
            with opened as stream:
                there = os.fstat(stream.fileno())
                # Not all file systems keep the numbers of their files, but none changes a size besides.
                if start and self.inode not in (0, there.st_ino) and there.st_size != self.size:
                    raise GoneError(f"{self.path}: a broker has just put another file there: begin again")
                # pread leaves no position behind: several readers of one file do not move each other.
                yield lambda position, size: os.pread(stream.fileno(), size, position)
        else:
            yield read_member(self.path, self.member)

    def parts(self) -> Iterator[pa.RecordBatch | Damage]:
        """Yield its records as Arrow batches with the columns ``LOG_COLUMNS``, and its damaged byte ranges."""
        return self.parts_within(0, self.size)

    def parts_within(self, start: int, stop: int) -> Iterator[pa.RecordBatch | Damage]:
        """Yield the same of a range of its bytes (see ``read_columns``); a text is not divided.

        Records of batches without times have those in their values (``value_times``).
        """
        for part in self._all_within(start, stop):
            if isinstance(part, Damage):
                yield part
                continue
            kept = part if self.upto is None else _before(part, self.upto)
            if kept.num_rows:
                yield _value_times(self).put_into(kept) if self._may_have_times(kept) else kept

    def _may_have_times(self, rows: pa.RecordBatch) -> bool:
        """Return whether values may have the times that rows lack; a text may lack those that its records have."""
        return self.family is Family.GROUP and not self.texts and bool(lack_times(rows).any())

    def _all_within(self, start: int, stop: int) -> Iterator[pa.RecordBatch | Damage]:
        if self.is_absent:
            first = int(self.segment.partition(".")[0])
            yield Damage(DamageKind.ABSENT, 0, 0, ABSENT, b"", first, first)
            return
        if self.texts:
            yield from self._printed().parts() if start < stop == self.size else ()
            return
        with self.open(start) as read_at:
            yield from read_columns(read_at, self.size, start, stop, name=self.name)

    @property
    def is_placed(self) -> bool:
        """Whether partition and offsets are those of the log: a text may not have them."""
        return self.partition != UNKNOWN_PARTITION and not (self.texts and self._printed().is_numbered)

    def _printed(self) -> PrintedLog:
        return next(log for log in printed_logs(self.texts).logs if log.name == self.member)


def numbered(logs: Iterable[LogPlaced]) -> tuple[str, ...]:
    """Return the names of the log partitions that were printed without positions."""
    places = {(log.topic, log.partition) for log in logs if log.partition != UNKNOWN_PARTITION and not log.is_placed}
    return tuple(f"{topic}-{number}" for topic, number in sorted(places))


@lru_cache(maxsize=4)
def _value_times(log: LogFile) -> ValueTimes:
    """Return the times of a segment, whichever of its ranges are read."""
    return ValueTimes(log._all_within(0, log.size))


def _before(rows: pa.RecordBatch, upto: int) -> pa.RecordBatch:
    return rows.filter(pc.less(pc.coalesce(rows.column("offset"), rows.column("batch_last_offset")), upto))


def find_logs(
    paths: Iterable[str | os.PathLike[str]],
    *,
    topics: Collection[str] = KNOWN_TOPICS,
    snapshots: bool = False,
    warn: Warn = ignore,
) -> list[LogFile]:
    """Return the segments in these folders, archives and files, sorted by topic, partition and offset.

    From folders and archives, two kinds of files are taken: ``*.log`` in the folder of one of the ``topics``, and files
    with the name of a segment outside any topic's folder. With ``snapshots``, KRaft snapshots are taken too. A folder
    without any may have archives, and one without these files of printed records. ``warn`` is told what is left out,
    and what printed records lack.

    Raises:
        InputError: a path does not exist, cannot be read, contains no such file, or records of other topics alone.
    """
    wanted = FileFilter.of(topics, snapshots=snapshots)
    files: list[LogFile] = []
    texts: list[str] = []
    for path in (os.fspath(path) for path in paths):
        try:
            logs, left_out = ([], LeftBeside()) if is_printed(path) else _listed(path, wanted, warn)
            beside = _beside(path, wanted) if logs else []
            # One form is read of a folder: archives and texts beside segments may be copies of them.
            packed = [] if logs else _archives_in(path)
            left_out = LeftBeside() if packed else left_out
            logs += [log for archive in packed for log in _logs_in(archive, wanted, left_out, warn)]
            printed = _printed_in(path) if packed or not logs else []
            if packed and logs:
                beside, printed = printed, []
            for file in beside:
                warn(f"{file}: left out, as there are segments beside it: name it to read it")
        except OSError as error:
            kind = GoneError if isinstance(error, FileNotFoundError) else InputError
            where = error.filename or path or "an empty path"
            raise kind(f"{where}: {error.strerror or error}") from None
        if not logs and not printed:
            _note_others(path, left_out)
            there = "".join(f"; {line}" for line in left_out.lines(all_of_it=True))
            raise InputError(f"{path}: contains no segments of {', '.join(sorted(filter(None, wanted.topics)))}{there}")
        for line in left_out.lines(all_of_it=False):
            warn(f"{path}: left out: {line}")
        files += logs
        texts += printed
    # At last, and all together: one log partition may be printed in several files.
    files += _printed_logs(texts, wanted, warn)
    # Names of segments have 20 digits, so that the order of the texts is that of the offsets.
    # A file that was named twice, as by itself and by its folder, is read once, though it may have grown in between.
    return sorted({log.name: log for log in files}.values(), key=lambda log: (log.topic, log.partition, log.segment))


def files_below(path: str) -> list[str]:
    """Return the file itself, or all files below a folder, also in hidden folders."""
    return [path] if os.path.isfile(path) else sorted(str(file) for file in Path(path).rglob("*") if file.is_file())


def _note_others(path: str, left_out: LeftBeside) -> None:
    """Note what the first files below a folder without logs are."""
    for file in files_below(path)[:MOST_LOOKED_AT] if os.path.isdir(path) else ():
        left_out.note_other(os.path.basename(file), head_of(file, HEAD_BYTES))


def _printed_in(path: str) -> list[str]:
    """Return the files of printed records at a path: the file itself, or all that are below a folder."""
    return printed_below(path, files_below(path))


def _beside(path: str, wanted: "FileFilter") -> list[str]:
    """Return the files in a folder that has segments which are archives or printed records."""
    if not os.path.isdir(path):
        return []
    files = sorted(file.path for file in os.scandir(path) if file.is_file() and _place(file.path) not in wanted)
    unknown = (file for file in files if kind_of(os.path.basename(file), b"") is None)
    return [file for file in unknown if is_printed(file) or is_archive(file)]


def _archives_in(path: str) -> list[str]:
    """Return the archives below a folder."""
    return [file for file in files_below(path) if is_archive(file)] if os.path.isdir(path) else []


def _printed_logs(texts: Sequence[str], wanted: "FileFilter", warn: Warn) -> list[LogFile]:
    """Return the logs in files of printed records, as far as they are ``wanted``."""
    if not texts:
        return []
    of = tuple(dict.fromkeys(texts))
    printed = printed_logs(of)
    for note in printed.notes:
        warn(note)
    refuse_other_topics(texts[0], (log.topic for log in printed.logs), wanted.topics)
    return [
        LogFile(
            log.files[0],
            log.rows.nbytes or len(log.damages),
            log.segment,
            log.topic,
            UNKNOWN_PARTITION if log.partition is None else log.partition,
            log.name,
            of,
        )
        for log in printed.logs
        if log.topic in wanted.topics
    ]


def refuse_other_topics(path: str, found: Iterable[str], wanted: Collection[str]) -> None:
    """Raise InputError if records are there, and none is of a topic that is ``wanted``: a topic was mistaken."""
    others = sorted(set(found))
    if others and not set(others) & set(wanted):
        raise InputError(f"{path}: its records are of {', '.join(others[:3])}, and none of {GROUP_LOG}")


def with_copy(copied_topic: str | None) -> frozenset[str]:
    """Return the topics that are read, with one that is a copy of the log of groups (None: there is none)."""
    return KNOWN_TOPICS if copied_topic is None else KNOWN_TOPICS | {f"{copied_topic}={GROUP_LOG}"}


def find_group_logs(
    paths: Sequence[str | os.PathLike[str]], warn: Warn, topics: Collection[str] = KNOWN_TOPICS
) -> list[LogFile]:
    """Return the segments and snapshots in these paths for a question about groups; see ``find_logs``.

    Raises:
        InputError: as ``find_logs``; or all named files are empty, or there is only the metadata log: the answer would
            be that there are no groups.
    """
    logs = find_logs(paths, topics=topics, snapshots=True, warn=warn)
    if not logs:
        raise InputError(f"{', '.join(map(str, paths))}: no record is there")
    refuse_empty_files([os.fspath(path) for path in paths], logs)
    if all(log.family is Family.METADATA for log in logs):
        named = ", ".join(map(str, paths))
        raise InputError(
            f"{named}: only the metadata log is there, which says nothing of groups: name the folders of "
            f"{GROUP_LOG}, too"
        )
    return logs


def refuse_empty_files(paths: Iterable[str], logs: Iterable[LogFile]) -> None:
    """Raise InputError if files are named and all of them are empty. Empty segments in folders are normal."""
    named = [path for path in paths if os.path.isfile(path)]
    if named and not any(log.size for log in logs):
        raise InputError(f"{named[0]}: the file is empty")


@dataclass(frozen=True, slots=True)
class FileFilter:
    """Selects the files to take from a folder or an archive.

    ``copies``: by topic, the log of which it is a copy. ``given``: a folder that was named itself.
    """

    topics: frozenset[str]
    suffixes: tuple[str, ...]
    copies: Mapping[str, str] = field(default_factory=dict)
    given: str = ""

    @classmethod
    def of(cls, topics: Iterable[str], *, snapshots: bool) -> "FileFilter":
        """Return the filter for these topics, of which one may be ``COPY=LOG``: the first is a copy of the second."""
        named = [topic.partition("=") for topic in topics]
        copies = {copy: log for copy, is_copy, log in named if is_copy}
        suffixes = (LOG_SUFFIX, SNAPSHOT_SUFFIX) if snapshots else (LOG_SUFFIX,)
        return cls(frozenset(copies.get(topic, topic) for topic, *_ in named), suffixes, copies)

    def __contains__(self, file: PurePosixPath) -> bool:
        if file.name.startswith("."):  # what macOS, rsync and editors put beside a file: it may have the same end
            return False
        folder = self.folder_of(file)
        if folder is None:
            is_leftover = LEFTOVER.fullmatch(file.parent.name) is not None
            return SEGMENT.fullmatch(file.name) is not None and "" in self.topics and not is_leftover
        return folder[0] in self.topics and file.name.removesuffix(SWAP_SUFFIX).endswith(self.suffixes)

    def folder_of(self, file: PurePosixPath) -> tuple[str, int] | None:
        """Return the log partition in whose folder a file is; None: in none.

        Raises:
            InputError: the folder's name has a partition that no topic has.
        """
        name = file.parent.name
        found = FOLDER.fullmatch(name) or (LEFTOVER.fullmatch(name) if name == self.given else None)
        if found is None:
            return None
        if (partition := int(found["partition"][:10])) >= MOST_PARTITIONS:
            raise InputError(
                f"{file.parent}: partition {found['partition']}, but a topic has at most {MOST_PARTITIONS}"
            )
        return self.copies.get(found["topic"], found["topic"]), partition


def _listed(path: str, wanted: FileFilter, warn: Warn, again: int = 2) -> tuple[list[LogFile], LeftBeside]:
    """Return the logs at a path, and what was left out there."""
    left_out = LeftBeside()
    try:
        return list(_logs_in(path, wanted, left_out, warn)), left_out
    except FileNotFoundError:
        # A broker deletes and renames segments, also while their folder is listed.
        if not again:
            raise
        return _listed(path, wanted, warn, again - 1)


def _logs_in(path: str, wanted: FileFilter, left_out: LeftBeside, warn: Warn) -> Iterator[LogFile]:
    if not os.path.isdir(path):
        status = _status(path)
        if is_archive(path):
            yield from _logs_in_archive(path, wanted, left_out, warn)
            return
        place = _place(path)
        if (kind := kind_of(place.name, head_of(path, HEAD_BYTES))) is not None and status.st_size:
            raise InputError(f"{path}: {kind.what}: {kind.do}")
        yield _log_file(path, status, place, replace(wanted, given=place.parent.name))
        return
    wanted = replace(wanted, given=os.path.basename(os.path.abspath(path)))
    seen = {os.path.realpath(path)}

    def pass_over(error: OSError) -> None:
        """Pass over a folder of another topic that a broker has deleted or renamed meanwhile, or that may not be read,
        and that of a file system.
        """
        name = os.path.basename(error.filename)
        found = FOLDER.fullmatch(name)
        is_other = found["topic"] not in wanted.topics if found is not None else LEFTOVER.fullmatch(name)
        if not (
            (is_other and isinstance(error, FileNotFoundError | PermissionError))
            or (name == "lost+found" and isinstance(error, PermissionError))
        ):
            raise error

    for folder, folders, files in os.walk(path, onerror=pass_over, followlinks=True):
        # In place, as os.walk goes into what is left in this very list.
        folders[:] = [name for name in sorted(folders) if _is_new(os.path.join(folder, name), seen)]
        for whole in (os.path.join(folder, file) for file in sorted(files)):
            if (place := _place(whole)) in wanted:
                yield _log_file(whole, _status(whole), place, wanted)
            else:
                left_out.note(place, wanted.topics)


def _is_new(folder: str, seen: set[str]) -> bool:
    """Note a folder; return whether it was not visited yet: symbolic links may lead to it, and back."""
    real = os.path.realpath(folder)
    is_new = real not in seen
    seen.add(real)
    return is_new


def _status(path: str) -> os.stat_result:
    """Return what is known of a file; raises InputError for what is not a file, such as a pipe, whose size is 0."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: neither a file nor a folder; copy what it gives to a file first")
    return status


def _logs_in_archive(path: str, wanted: FileFilter, left_out: LeftBeside, warn: Warn) -> Iterator[LogFile]:
    others = []
    for member in members(path):
        if (place := PurePosixPath(member.name)) in wanted:
            yield replace(_log_file(path, os.stat(path), place, wanted), size=member.size, member=member.name)
        else:
            left_out.note(place, wanted.topics)
            others.append(member)
    for member in others[:MOST_LOOKED_AT]:
        left_out.note_contents(member.name, read_member(path, member.name)(0, packed.HEAD_BYTES))
    if (last := cut_at(path)) is not None:
        warn(f"{path}: the archive is cut within {last}: folders before it are read, and the rest is missing")


def _place(path: str) -> PurePosixPath:
    return PurePosixPath(Path(os.path.abspath(path)).as_posix())


def _log_file(path: str, status: os.stat_result, place: PurePosixPath, wanted: FileFilter) -> LogFile:
    topic, partition = wanted.folder_of(place) or ("", UNKNOWN_PARTITION)
    segment = place.name.removesuffix(SWAP_SUFFIX)
    return LogFile(path, status.st_size, segment, topic, partition, inode=status.st_ino)
