"""The local dump files that were ingested before, so that a nightly run reads only new and changed ones."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from jobs.sources.bounded_warnings import Warn
from jobs.sources.dump import DumpFormat, format_of
from jobs.sources.files import KNOWN_TOPICS, find_logs, ignore
from jobs.tables.delta import Tables
from jobs.tables.nightly import DUMPED_FILES
from jobs.tables.table import few


class DumpedFile(NamedTuple):
    """A file: its path, size in bytes, and modification time."""

    path: str
    size: int
    modified_ns: int


class Changes(NamedTuple):
    """``paths``: the dumps to read. ``files``: the new and changed files, to be remembered once they are ingested."""

    paths: list[str]
    files: list[DumpedFile]


def changes(
    tables: Tables,
    cluster: str,
    paths: Iterable[str],
    dump_format: DumpFormat | None = None,
    topics: Collection[str] = KNOWN_TOPICS,
    warn: Warn = ignore,
) -> Changes:
    """Return what is new or has changed below these paths: segment files one by one, other dumps as a whole.

    ``topics``: whose segments are read. Dumps that are not local files (a broker, an object store) are always read.
    ``warn`` is told what is left out beside segments.

    Raises:
        InputError: a path does not exist.
    """
    known = _known(tables, cluster)
    wanted: list[str] = []
    new: list[DumpedFile] = []
    for path in paths:
        is_of_segments = (dump_format or format_of(path)) is DumpFormat.SEGMENTS
        files = _segments(path, topics, warn) if is_of_segments else _files(path)
        changed = [file for file in map(_now, files) if file not in known]
        if is_of_segments:
            # An empty segment is read only if it was named itself.
            wanted += [file.path for file in changed if file.size or file.path == os.path.abspath(path)]
        elif changed or not files:
            wanted.append(path)
        # All of them are remembered, empty ones too: the next night need not look at them again.
        new += changed
    return Changes(wanted, new)


def changed(tables: Tables, cluster: str, files: Iterable[str]) -> list[DumpedFile]:
    """Return those of these local files that are new or have changed."""
    known = _known(tables, cluster)
    return [file for file in map(_now, files) if file not in known]


def _known(tables: Tables, cluster: str) -> set[DumpedFile]:
    tables.create(DUMPED_FILES)
    rows = tables.engine().rows(
        f"SELECT {', '.join(DumpedFile._fields)} FROM $dumped_files WHERE cluster = :cluster", cluster=cluster
    )
    return {DumpedFile(**row) for row in rows}


def remember(tables: Tables, cluster: str, files: Iterable[DumpedFile]) -> None:
    """Store that these files were ingested."""
    rows = few(DUMPED_FILES, ({"cluster": cluster, **file._asdict()} for file in files))
    state = {"size": "s.size", "modified_ns": "s.modified_ns"}
    tables.merge(DUMPED_FILES, rows, state, insert=True)


def _segments(path: str, topics: Collection[str], warn: Warn) -> list[str]:
    logs = find_logs([path], topics=topics, snapshots=True, warn=warn)
    return list(dict.fromkeys(file for log in logs for file in log.paths))


def _files(path: str) -> list[str]:
    place = Path(path)
    return [str(file) for file in ([place] if place.is_file() else sorted(place.rglob("*"))) if file.is_file()]


def _now(path: str) -> DumpedFile:
    state = os.stat(path)
    return DumpedFile(os.path.abspath(path), state.st_size, state.st_mtime_ns)
