"""A publication writes many tables of a catalog, all or none: what one that was killed has written is taken back.

Delta makes each commit of one table whole, and knows no commit of two. So before its first commit a publication notes
the version of each table that it will write, in a property of the table of leases, and removes the note after its last
one. Whoever takes the lease and finds a note restores these versions (``RESTORE TABLE``), and begins from there.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from jobs.tables.catalog import CATALOG
from jobs.tables.conflicts import MAINTENANCE, ConflictError
from jobs.tables.delta import Tables
from jobs.tables.nightly import LEASES
from jobs.tables.reader import is_catalog_name

NOTE: Final = "coordinatorAudit.publication"
"""Property of the table of leases: by table, the version before the publication and the number of commits (JSON)."""

COMMITS: Final = 10
"""How many commits of a table are looked at beside those of a publication: maintenance by the platform makes few."""

RESTORED: Final = "RESTORE"
"""The operation by which Delta's history names a table that was restored."""


class Planned(NamedTuple):
    """The version of a table before a publication, and how many commits the publication makes of it."""

    version: int
    commits: int


def begin(tables: Tables, planned: Mapping[str, Planned]) -> None:
    """Note what a publication will write, by the names of the tables."""
    tables.set_property(LEASES, NOTE, json.dumps(planned, sort_keys=True))


def end(tables: Tables) -> None:
    """Note that a publication is whole."""
    tables.set_property(LEASES, NOTE, "")


def take_back(tables: Tables) -> bool:
    """Restore what a publication wrote that did not end. Return whether there was one. Needs the lease.

    Raises:
        ConflictError: another program has changed one of its tables since; nothing of that table was restored.
    """
    if tables.is_here() or not is_catalog_name(tables.location):
        return False
    note = tables.properties(LEASES).get(NOTE)
    if not note:
        return False
    # The note goes last: a run that is killed here leaves it, and the next one finds which tables are restored
    # already.
    for name, planned in json.loads(note).items():
        _restore(tables, name, Planned(*planned))
    end(tables)
    return True


def _restore(tables: Tables, name: str, planned: Planned) -> None:
    table = tables.there(CATALOG[name])
    commits = table.commits(planned.commits + COMMITS)
    since = [commit for commit in commits if commit.version > planned.version]
    changes = [commit.operation for commit in since if commit.operation not in MAINTENANCE]
    # Behind so many commits of maintenance, and in a table that was made again, what the night wrote is out of sight.
    is_in_sight = any(commit.version == planned.version for commit in commits)
    # Newest first: an earlier attempt came as far as this table.
    if changes[:1] == [RESTORED] or (is_in_sight and not changes):
        return
    if len(changes) > planned.commits or not is_in_sight:
        made = f"{len(changes)} commits" if is_in_sight else f"{len(commits)} commits or more, or other ones,"
        raise ConflictError(
            f"table {tables.name(CATALOG[name])} has {made} since version {planned.version}, and the "
            f"night that was killed made {planned.commits} at most: restore the right version by RESTORE TABLE, "
            f"and remove the property {NOTE} of table {tables.name(LEASES)}"
        )
    tables.commit(CATALOG[name], partial(table.restore, planned.version))
