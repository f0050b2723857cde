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
    if (why := _why_not(settings)) is not None:
        note(f"Spark makes each step of this night, as {why}")
        yield None
        return
    from jobs.tables.working_copy import WorkingCopy  # not at the top: only a catalog needs it

    kept = settings.engine.working_copy
    with TemporaryDirectory(prefix="coordinator-audit-") as temporary:
        copy = WorkingCopy(tables, Path(kept or temporary, tables.location))
        most = settings.engine.published_mb << 20
        copied = copy.renew(most)
        if copied is None or copied + _new_bytes(copy.tables, settings) > most:
            if copied is not None:
                copy.keep()
            note("Spark makes each step of this night, as it is larger than engine.published_mb")
            yield None
            return
        note(
            f"this night works on a copy of the tables, of which {copied / 1e6:.1f} MB were read now, and publishes it"
        )
        yield copy


def _why_not(settings: Settings) -> str | None:
    """Return why a night is for Spark, whatever its size; None: it is not."""
    if not settings.engine.published_mb:
        return "engine.published_mb is 0"
    if settings.checks.project is not None or settings.checks.data_docs is not None:
        return "checks.project and checks.data_docs name the tables of the catalog"
    chosen = settings.input
    if "ingest" not in settings.nightly.steps:
        return None
    for path in chosen.dumps:
        of = DumpFormat(chosen.format) if chosen.format else format_of(path)
        if of not in READ_HERE or ("://" in path and of is not DumpFormat.LIVE):
            return f"it reads {path}"
    return None


def _new_bytes(tables: Tables, settings: Settings) -> int:
    """Return how many bytes of files the night will take in; what a broker has is read piece by piece."""
    if "ingest" not in settings.nightly.steps:
        return 0
    chosen = settings.input
    of = DumpFormat(chosen.format) if chosen.format else None
    found = seen_files.changes(tables, settings.cluster, chosen.dumps, of, with_copy(chosen.copied_topic))
    return sum(file.size for file in found.files)
