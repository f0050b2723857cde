"""Tables of a folder, opened once: as long as nobody commits, they are not opened again."""

import os
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from jobs.tables.conflicts import TableCommit
from jobs.tables.reader import is_folder

LOG_FOLDER: Final = "_delta_log"

Newest = tuple[str, int, int]
"""The newest commit in a log: the name of its file, its number on the disk, and when it was written (ns)."""

Known = dict[str, tuple[Newest, DeltaTable]]
"""Tables by their places, with the newest commit when they were opened."""

_read: Known = {}
"""Those that this process only reads: a commit moves a table that it is made with to the next version."""


def opened(place: str, known: Known = _read, *, again: bool = False) -> DeltaTable:
    """Return the newest version of a table, opened ``again`` in any case. Raises what ``DeltaTable`` raises.

    ``known``: whoever commits has tables of its own.
    """
    newest = _newest(place) if is_folder(place) else None
    if not again and newest is not None and place in known and known[place][0] == newest:
        table = known[place][1]
        if table.version() == int(newest[0][:20]):
            return table
    table = DeltaTable(place)
    # A commit may have come between the listing and the opening: that version is not kept under this name.
    if newest is not None and table.version() == int(newest[0][:20]):
        known[place] = newest, table
    return table


def commits(place: str, most: int) -> list[TableCommit] | None:
    """Return the last commits of a table, the newest first; None: delta-rs does not know a feature of it."""
    try:
        found = opened(place).history(most)
    except DeltaError:
        return None
    return [
        TableCommit(each["version"], each["timestamp"], each["operation"], each.get("userMetadata")) for each in found
    ]


def _newest(place: str) -> Newest | None:
    log = f"{place}/{LOG_FOLDER}"
    try:
        # By its name alone the log of a table that was removed and made again would pass for the old one.
        name = max((name for name in os.listdir(log) if name.endswith(".json") and name[:20].isdigit()), default=None)
        found = None if name is None else os.stat(f"{log}/{name}")
    except OSError:
        return None
    return None if name is None or found is None else (name, found.st_ino, found.st_mtime_ns)
