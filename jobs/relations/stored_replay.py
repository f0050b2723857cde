"""Whether the last run that wrote the tables has ended, and whether the history has all records that they have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from jobs.sources.files import REPLAYED_TOPICS
from jobs.tables.reader import TableReader

UNREPLAYED_RECORDS: Final = (
    "SELECT run_id FROM $group_records WHERE cluster = :cluster AND run_id > :known AND log_topic IN :topics "
    "AND log_partition IS NOT NULL AND log_offset IS NOT NULL LIMIT 1"
)
"""Finds a record of a group that no replay has taken in."""

NOT_REPLAYED: Final = (
    "the last night has not ended: not all records in the tables are replayed, so that history, verdicts and findings "
    "may lack rows, or all rows of a group; run nightly again, or wait for its end"
)


def has_replayed_all(tables: TableReader, cluster: str) -> bool:
    """Return whether the tables of history have all records of a cluster.

    They have not between the steps of a night, nor after a night that was interrupted: the staged rows of a replay stay
    until it has ended, and tables that were set aside to be made again have no states.
    """
    if tables.exists("replayed") and list(
        tables.rows("SELECT cluster FROM $replayed WHERE cluster = :cluster LIMIT 1", cluster=cluster)
    ):
        return False
    if not tables.exists("group_records"):
        return True
    known = ""
    if tables.exists("group_states"):
        newest = "SELECT max(run_id) AS run_id FROM $group_states WHERE cluster = :cluster"
        (found,) = tables.rows(newest, cluster=cluster)
        known = found["run_id"] or ""
    given = {"cluster": cluster, "known": known, "topics": REPLAYED_TOPICS}
    return not list(tables.rows(UNREPLAYED_RECORDS, **given))


def unfinished_run(tables: TableReader, now: datetime) -> str | None:
    """Return a warning about a run that writes the tables now, or was killed while it did; None: the last one ended.

    Each run holds the lease on the tables until it ends, and one that is killed does not give it back.
    """
    if not tables.exists("leases"):
        return None
    row = next(tables.rows("SELECT owner, acquired_at, expires_at FROM $leases WHERE owner IS NOT NULL LIMIT 1"), None)
    if row is None:
        return None
    since, until = (row[name].astimezone(UTC) for name in ("acquired_at", "expires_at"))
    began = f"{row['owner']}, which began to write the tables at {since.isoformat(timespec='seconds')},"
    if until > now:
        return f"the run {began} has not ended: rows may be missing until it has; if it was killed, run nightly again"
    return f"the run {began} was killed before its end: rows may be missing; run nightly again"
