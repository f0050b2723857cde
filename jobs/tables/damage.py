"""Damage to Delta tables in a folder of this machine: which file is missing or broken, without Spark.

A table is checked by its folder: the commits of its log follow each other, each of them is JSON, and every data file
that the log names is there, the newest ones with their size. A run checks all tables before it writes any. Spark
reports only a part of such damage: a table whose log is gone looks like a new one, and one whose last commit is gone or
empty lacks rows.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from coordinator_core.errors import InputError

LOG_FOLDER: Final = "_delta_log"
LAST_CHECKPOINT: Final = "_last_checkpoint"
COMMIT: Final = re.compile(r"(\d{20})\.json")
CHECKSUM: Final = re.compile(r"(\d{20})\.crc")
CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?(?:\.[0-9a-f-]+)?\.(?:parquet|json)")

SIZED_FILES: Final = 1_000
"""Number of newest data files of a table whose sizes are compared: a crash cuts those that were written last."""


class TableDamage(NamedTuple):
    """The first damage of one table: the file, and what is wrong with it."""

    table: str
    file: Path
    cause: str


class Companions(NamedTuple):
    """The ``tables`` that exist once another table exists and has had ``commits`` commits after its creation."""

    commits: int
    tables: tuple[str, ...]


class DamagedTableError(InputError):
    """A table in a folder is damaged."""


def check(location: str, names: Iterable[str], companions: Mapping[str, Companions]) -> None:
    """Raise DamagedTableError if one of these tables in a folder is damaged; see ``find``."""
    problems = list(find(location, names, companions))
    if not problems:
        return
    first, *others = problems
    also = f" Also damaged: {', '.join(damage.table for damage in others)}." if others else ""
    raise _error(location, first, also)


def check_log(location: str, name: str) -> None:
    """Raise DamagedTableError if the log of one table in a folder is damaged. Data files are not looked at."""
    folder = Path(location, name)
    if is_there(folder) and (problem := _problem_of_log(folder / LOG_FOLDER)) is not None:
        raise _error(location, TableDamage(name, *problem))


def _error(location: str, damage: TableDamage, also: str = "") -> DamagedTableError:
    return DamagedTableError(
        f"table {location}/{damage.table} is damaged: {damage.file} {damage.cause}.{also} "
        f"Run: coordinator-audit rebuild --tables {location}"
    )


def find(location: str, names: Iterable[str], companions: Mapping[str, Companions]) -> Iterator[TableDamage]:
    """Yield the first damage of each of these tables in a folder.

    A table that does not exist is damaged only if another table exists whose ``companions`` have it.
    """
    wanted: dict[str, str] = {}
    for name, (commits, others) in companions.items():
        if _newest_commit(Path(location, name, LOG_FOLDER)) >= commits:
            wanted |= dict.fromkeys(others, name)
    for name in names:
        folder = Path(location, name)
        if is_there(folder):
            problem = _problem(folder)
        else:
            problem = (folder, f"is missing, but {wanted[name]} is there") if name in wanted else None
        if problem is not None:
            yield TableDamage(name, *problem)


def is_there(folder: Path) -> bool:
    """Return whether a folder has a file of a table: a run that ended while it created a table may leave none."""
    return any(
        file.suffix == ".parquet" or COMMIT.fullmatch(file.name) or CHECKSUM.fullmatch(file.name)
        for file in folder.rglob("*")
    )


def spare_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a table, and the file that names the last one, if its commits say all that they say.

    Without these files the table can be read, if nothing else is damaged. The list is empty if a commit is missing.
    """
    log = folder / LOG_FOLDER
    names = sorted(os.listdir(log)) if log.is_dir() else []
    if _problem_of_commits(log, names, first=0) is not None:
        return []
    return [log / name for name in names if CHECKPOINT.fullmatch(name) or name == LAST_CHECKPOINT]


Problem = tuple[Path, str]


def _problem(folder: Path) -> Problem | None:
    from deltalake.exceptions import DeltaError  # not at the top: Python workers of Spark have no use for it

    from jobs.tables.opened import opened

    if (problem := _problem_of_log(folder / LOG_FOLDER)) is not None:
        return problem
    try:
        files = pa.table(opened(str(folder), again=True).get_add_actions(flatten=True))
    except (DeltaError, OSError) as error:
        text = " ".join(str(error).split())
        # Spark reads features that this library does not know.
        return None if "unsupported" in text.lower() else (folder / LOG_FOLDER, f"cannot be read: {text}")
    return _problem_of_files(folder, files)


def _problem_of_log(log: Path) -> Problem | None:
    """Return the first problem of a table's log, or None."""
    names = sorted(os.listdir(log)) if log.is_dir() else []
    # What a whole checkpoint sums up is not needed any more, and Delta may have deleted it: commits count behind it.
    checkpoints = [-1, *_checkpoints(names)]
    if checkpoints == [-1] and not any(map(COMMIT.fullmatch, names)):
        return log, "is missing or has no commits, but the folder of the table has files"
    named = _named_checkpoint(log)
    if named is not None and named > max(checkpoints):
        return log / f"{named:020d}.checkpoint.parquet", f"is missing, but {LAST_CHECKPOINT} names it"
    return _problem_of_commits(log, names, first=max(checkpoints) + 1)


def _problem_of_commits(log: Path, names: list[str], first: int) -> Problem | None:
    """Return the first problem of the commits from version ``first`` on. Checksums tell of commits after the last."""
    known = [int(match[1]) for name in names if (match := COMMIT.fullmatch(name) or CHECKSUM.fullmatch(name))]
    for version in range(first, max(known, default=first - 1) + 1):
        file = log / f"{version:020d}.json"
        if not file.is_file():
            return file, f"is missing, but the table has version {max(known)}"
        if (line := _broken_line(file)) is not None:
            return file, f"is cut or broken: line {line} is not JSON"
    return None


def _newest_commit(log: Path) -> int:
    """Return the newest version of a table; -1: there is none."""
    names = os.listdir(log) if log.is_dir() else []
    return max((int(match[1]) for name in names if (match := COMMIT.fullmatch(name))), default=-1)


def _checkpoints(names: Iterable[str]) -> Iterator[int]:
    """Yield the versions of the checkpoints whose parts are all there."""
    parts: dict[int, int] = {}
    for name in names:
        if match := CHECKPOINT.fullmatch(name):
            version, total = int(match[1]), int(match[3] or 1)
            parts[version] = parts.get(version, 0) + 1
            if parts[version] >= total:
                yield version


def _named_checkpoint(log: Path) -> int | None:
    """Return the version that ``_last_checkpoint`` names; None: there is no such file, or it is broken.

    A broken one does no harm: readers list the log then.
    """
    try:
        return int(json.loads((log / LAST_CHECKPOINT).read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _broken_line(commit: Path) -> int | None:
    """Return the number of the first line that is not JSON; 1 for an empty file."""
    lines = commit.read_bytes().splitlines()
    for number, line in enumerate(lines, 1):
        try:
            json.loads(line)
        except ValueError:
            return number
    return None if lines else 1


def _problem_of_files(folder: Path, files: pa.Table) -> Problem | None:
    """Return the first problem of the data files, the newest ones first. Only they are asked for their sizes."""
    listed: dict[Path, frozenset[str]] = {}
    newest = files.sort_by([("modification_time", "descending")])
    rows = zip(newest["path"].to_pylist(), newest["size_bytes"].to_pylist(), strict=True)
    for number, (path, size) in enumerate(rows):
        file = folder / unquote(path)
        if file.parent not in listed:
            listed[file.parent] = frozenset(os.listdir(file.parent)) if file.parent.is_dir() else frozenset()
        if file.name not in listed[file.parent]:
            return file, "is missing, but the log of the table names it"
        if number < SIZED_FILES and (length := file.stat().st_size) != size:
            return file, f"has {length} bytes, but the log of the table says {size}"
    return None
