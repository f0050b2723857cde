"""Make damaged tables again: set them aside, and mark what has to be done again, so that the next run does it.

Nothing is deleted. Tables in a folder of this machine are moved to ``.damaged`` there; tables of a catalog get another
name. What a table is made from decides what goes with it:

- ``log_records`` and the decoded tables are made from the dumps in one pass, and everything else from them. No bytes
  are stored twice, so none of these tables can be made from the others;
- the history of groups is made by one replay, so its tables go together;
- what snapshots said is read again only from their files, so the table of known files goes with them;
- committed offsets, checks and steps of earlier runs are not made again: they stay in the table that is set aside.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from coordinator_core.errors import InputError, UsageError
from jobs.tables.catalog import CATALOG, COMPANIONS, DECODED
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.damage import find, spare_checkpoints
from jobs.tables.delta import Tables
from jobs.tables.history import GROUP_STATES, HISTORY, REPLAYED
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, RUNS
from jobs.tables.nightly import DUMPED_FILES
from jobs.tables.results import FINDINGS
from jobs.tables.snapshots import BROKER_EVENTS, END_OFFSETS, SNAPSHOT_SETTINGS
from jobs.tables.table import Table

ASIDE: Final = ".damaged"
"""The folder beside the tables for what was set aside."""

OF_HISTORY: Final = (*HISTORY.values(), GROUP_STATES, REPLAYED)
OF_SNAPSHOTS: Final = (END_OFFSETS, SNAPSHOT_SETTINGS, DUMPED_FILES)
OF_LOG: Final = (LOG_RECORDS, RUNS, DUMPED_FILES, *DECODED, LOG_RANGES, COMMIT_SUMMARIES, *OF_HISTORY, FINDINGS)


class Rebuild(NamedTuple):
    """What was done. ``aside``: the tables that are empty now, and where their old content is.

    ``repaired``: tables whose checkpoints were damaged and not needed, and where these are now. ``needs_dumps``: the
    next run must be given all dumps again, not only new ones; ``needs_snapshots``: all snapshots.
    """

    aside: dict[str, str]
    repaired: dict[str, str]
    needs_dumps: bool
    needs_snapshots: bool


def damaged(tables: Tables) -> list[str]:
    """Return the damaged tables.

    Raises:
        UsageError: the tables are not in a folder of this machine, so that their files cannot be looked at.
    """
    if not tables.is_folder:
        raise UsageError(f"the files of {tables.location} cannot be checked from here: name the tables to rebuild")
    return [damage.table for damage in find(tables.location, CATALOG, COMPANIONS)]


def check_names(names: Iterable[str]) -> None:
    """Raise UsageError for the name of a table that does not exist."""
    if unknown := sorted(set(names) - set(CATALOG)):
        raise UsageError(f"unknown table {', '.join(unknown)}: use {', '.join(CATALOG)}")


def run(tables: Tables, names: Iterable[str], now: datetime) -> Rebuild:
    """Set these tables and those that are made with them aside.

    Raises:
        InputError: the tables are in an object store.
    """
    wanted = set(names)
    # A checkpoint only sums up the log of a table: without a damaged one Delta reads that log, and no row is made
    # again.
    dropped = {name: _drop_checkpoints(tables, name, now) for name in sorted(wanted)}
    repaired = {name: str(place) for name, place in dropped.items() if place is not None}
    wanted -= set(repaired)
    aside = companions(wanted)
    places = {
        table.name: _set_aside(tables, table, now) for table in _pointers_first(aside) if _is_there(tables, table)
    }
    fresh = Tables(tables.session, tables.location, tables.limits)  # a catalog that names them reads the new ones
    fresh.check_lease = tables.check_lease
    for table in aside:
        fresh.create(table)
    return Rebuild(places, repaired, LOG_RECORDS in aside, END_OFFSETS in aside)


def companions(wanted: set[str]) -> list[Table]:
    """Return these tables and all that are made again with them."""
    if wanted & {table.name for table in (LOG_RECORDS, *DECODED)}:
        wanted = wanted | {table.name for table in OF_LOG}
    if wanted & {END_OFFSETS.name, SNAPSHOT_SETTINGS.name}:
        wanted = wanted | {table.name for table in OF_SNAPSHOTS}
    if BROKER_EVENTS.name in wanted:
        wanted = wanted | {DUMPED_FILES.name}
    if wanted & {table.name for table in OF_HISTORY}:
        wanted = wanted | {table.name for table in OF_HISTORY}
    return [table for name, table in CATALOG.items() if name in wanted]


def _pointers_first(aside: list[Table]) -> list[Table]:
    """Return the tables in the order in which they are set aside.

    What says that something was done goes before what was done: if this run is killed in between, the next run finds
    that there is nothing, and makes it again. Records are taken in once ``log_records`` has them.
    """
    first = (DUMPED_FILES, GROUP_STATES, REPLAYED, COMMIT_SUMMARIES, LOG_RANGES, RUNS, LOG_RECORDS)
    return sorted(aside, key=lambda table: first.index(table) if table in first else len(first))


def _drop_checkpoints(tables: Tables, name: str, now: datetime) -> Path | None:
    """Move the checkpoints of a damaged table away if that repairs it. Return where they are now; None: it does not."""
    if not tables.is_folder or not list(find(tables.location, [name], COMPANIONS)):
        return None
    aside = _folder(tables, now) / f"{name}-checkpoints"
    moved = {file: aside / file.name for file in spare_checkpoints(Path(tables.location, name))}
    if not moved:
        return None
    aside.mkdir(parents=True)
    for file, place in moved.items():
        file.rename(place)
    if not list(find(tables.location, [name], COMPANIONS)):
        return aside
    for file, place in moved.items():
        # The log alone does not make the table whole: the checkpoints go back, so that it is set aside as it was found.
        place.rename(file)
    aside.rmdir()
    return None


def _is_there(tables: Tables, table: Table) -> bool:
    if tables.is_folder:
        return Path(tables.location, table.name).exists()
    return tables.exists(table)


def _folder(tables: Tables, now: datetime) -> Path:
    return Path(tables.location, ASIDE, f"{now:%Y%m%dT%H%M%S%f}")


def _set_aside(tables: Tables, table: Table, now: datetime) -> str:
    """Set one table aside, and return where it is now."""
    tables.check_lease()
    if tables.is_folder:
        place = _folder(tables, now) / table.name
        place.parent.mkdir(parents=True, exist_ok=True)
        Path(tables.location, table.name).rename(place)
        return str(place)
    if "://" in tables.location:
        raise InputError(
            f"folders of {tables.location} cannot be moved from here: move {table.name} away with the tools of the "
            "store, then run this command again"
        )
    ending = f"_damaged_{now:%Y%m%dT%H%M%S%f}"
    # Within its schema: Spark's own catalog takes no new name that has the catalog in it.
    tables.spark.sql(f"ALTER TABLE {tables.name(table)} RENAME TO {table.name}{ending}")
    return f"{tables.name(table)}{ending}"
