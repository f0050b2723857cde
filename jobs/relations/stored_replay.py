"""Whether the tables of history have all records that the tables have: a night may have ended before."""

from __future__ import annotations

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

    They have not between the steps of a night, nor after a night that was interrupted: a replay that begins groups
    again deletes their rows first. Its staged rows stay until it has ended.
    """
    if tables.exists("replayed") and list(
        tables.rows("SELECT cluster FROM $replayed WHERE cluster = :cluster LIMIT 1", cluster=cluster)
    ):
        return False
    if not tables.exists("group_states") or not tables.exists("group_records"):
        return True
    (newest,) = tables.rows("SELECT max(run_id) AS run_id FROM $group_states WHERE cluster = :cluster", cluster=cluster)
    given = {"cluster": cluster, "known": newest["run_id"] or "", "topics": REPLAYED_TOPICS}
    return not list(tables.rows(UNREPLAYED_RECORDS, **given))
