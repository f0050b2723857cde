"""Which nights of a catalog are made on a working copy of its tables and published, and which Spark makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from jobs.pipeline import seen_files
from jobs.settings import Settings
from jobs.sources.dump import DumpFormat, format_of
from jobs.sources.files import with_copy
from jobs.tables.delta import Tables
from jobs.tables.kept_copy import drop_kept_copy
from jobs.tables.reader import is_catalog_name

if TYPE_CHECKING:
    from jobs.tables.working_copy import WorkingCopy

READ_HERE: Final = (DumpFormat.SEGMENTS, DumpFormat.JSON_LINES, DumpFormat.LIVE)
"""The formats of dumps that this process reads as it is: of the others Spark reads some."""


@contextmanager
def working_copy(tables: Tables, settings: Settings, note: Callable[[str], None]) -> Iterator[WorkingCopy | None]:
    """Yield a copy of the tables for a night that has their lease; None: the night works on the tables themselves.

    ``note`` is told which of both it is, where there is a choice.
    """
    if tables.is_here() or not is_catalog_name(tables.location):
        yield None
        return
    from jobs.tables.working_copy import WorkingCopy  # not at the top: only a catalog needs it

    with TemporaryDirectory(prefix="coordinator-audit-") as temporary:
        copy = WorkingCopy(tables, Path(settings.engine.working_copy or temporary, tables.location))
        if (why := _why_not(copy, settings)) is None:
            read = f"of which {copy.copied_bytes / 1e6:.1f} MB were read now"
            note(f"this night works on a copy of the tables, {read}, and publishes it")
            yield copy
        else:
            drop_kept_copy(settings.engine.working_copy, tables.location)
            note(f"Spark makes each step of this night on the tables themselves, as {why}")
            yield None


def _why_not(copy: WorkingCopy, settings: Settings) -> str | None:
    """Return why a night works on the tables themselves; None: it does not, and the copy is what they are."""
    engine = settings.engine
    if not engine.published_mb:
        return "engine.published_mb is 0"
    if settings.checks.project is not None or settings.checks.data_docs is not None:
        return "checks.project and checks.data_docs name the tables of the catalog"
    most = engine.published_mb << 20
    if copy.spark is not None:  # it makes what is too much for this process, as in any folder
        if copy.renew(most if engine.working_copy is None else None):
            return None
        return "a copy is larger than engine.published_mb, and engine.working_copy names no folder that keeps it"
    if (path := _read_by_spark(settings)) is not None:
        return f"it reads {path}, and Spark, which can, does not have the files of this machine"
    if not copy.renew(most):
        return "a copy is larger than engine.published_mb"
    if copy.copied_bytes + _new_bytes(copy.tables, settings) > most:
        return "the copy and the new dumps are larger than engine.published_mb"
    return None


def _read_by_spark(settings: Settings) -> str | None:
    """Return the first dump that this process does not read."""
    chosen = settings.input
    for path in chosen.dumps if "ingest" in settings.nightly.steps else ():
        of = DumpFormat(chosen.format) if chosen.format else format_of(path)
        if of not in READ_HERE or ("://" in path and of is not DumpFormat.LIVE):
            return path
    return None


def _new_bytes(tables: Tables, settings: Settings) -> int:
    """Return how many bytes of files the night will take in; what a broker has is read piece by piece."""
    if "ingest" not in settings.nightly.steps:
        return 0
    chosen = settings.input
    of = DumpFormat(chosen.format) if chosen.format else None
    found = seen_files.changes(tables, settings.cluster, chosen.dumps, of, with_copy(chosen.copied_topic))
    return sum(file.size for file in found.files)
