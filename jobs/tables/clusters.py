"""Which clusters the tables hold, and which of them a question is about."""

from __future__ import annotations

from coordinator_core.errors import InputError
from jobs.tables.reader import TableReader


def clusters(tables: TableReader) -> list[str]:
    """Return the names of the clusters of which a log was ingested, sorted.

    Raises:
        MissingTableError: nothing was ingested into these tables.
    """
    rows = tables.rows("SELECT DISTINCT cluster FROM $runs WHERE cluster IS NOT NULL")
    return sorted(row["cluster"] for row in rows)


def choose_cluster(tables: TableReader, named: str | None) -> str:
    """Return the cluster that a question is about: the one that is named, or the only one in the tables.

    Raises:
        InputError: the named cluster is not in the tables, or none is named and the tables hold none or several.
        MissingTableError: nothing was ingested into these tables.
    """
    there = clusters(tables)
    listed = ", ".join(there)
    if named is not None:
        if named in there:
            return named
        raise InputError(f"no cluster {named!r} in the tables at {tables.location}: they hold {listed or 'no cluster'}")
    if len(there) == 1:
        return there[0]
    if not there:
        raise InputError(f"the tables at {tables.location} hold no cluster: no log was ingested")
    raise InputError(f"the tables at {tables.location} hold several clusters: name one with --cluster ({listed})")
