"""Whether a table that was made from the log knows all of the log: a night may have ended before it was continued."""

from typing import Final

from coordinator_core.records import GROUP_LOG
from jobs.relations.gaps import COMMITS
from jobs.tables.reader import TableReader

# A marker that a later run brings decides commits of earlier ones: it revises their rows, and adds none of its own.
UNKNOWN_COMMITS: Final = (
    "SELECT run_id FROM $offset_commits WHERE cluster = :cluster AND run_id > :known LIMIT 1",
    "SELECT run_id FROM $log_records WHERE cluster = :cluster AND revised_by > :known "
    f"AND log_topic = '{GROUP_LOG}' AND record_type IN {COMMITS} LIMIT 1",
)
UNKNOWN_RECORDS: Final = (
    "SELECT run_id FROM $log_records WHERE cluster = :cluster AND run_id > :known AND kind IN ('record', 'control') "
    "AND log_partition IS NOT NULL AND log_offset IS NOT NULL LIMIT 1",
    "SELECT run_id FROM $log_records WHERE cluster = :cluster AND revised_by > :known LIMIT 1",
)
"""Each finds a row that a run after ``:known`` has added, or of which it has told more."""


def has_all_commits(tables: TableReader, cluster: str) -> bool:
    """Return whether ``commit_summaries`` has taken in all commits of a cluster."""
    return _has_all(tables, cluster, "commit_summaries", UNKNOWN_COMMITS)


def has_all_records(tables: TableReader, cluster: str) -> bool:
    """Return whether ``log_ranges`` has taken in all records of a cluster."""
    return _has_all(tables, cluster, "log_ranges", UNKNOWN_RECORDS)


def newest_run_in(tables: TableReader, cluster: str, table: str) -> str | None:
    """Return the newest run of a cluster of which a table has rows; None: it has none of the cluster."""
    (newest,) = tables.rows(f"SELECT max(run_id) AS run_id FROM ${table} WHERE cluster = :cluster", cluster=cluster)
    run_id: str | None = newest["run_id"]
    return run_id


def _has_all(tables: TableReader, cluster: str, table: str, unknown: tuple[str, ...]) -> bool:
    if not tables.exists(table):
        return False
    known = newest_run_in(tables, cluster, table)
    if known is None:
        return False
    return not any(list(tables.rows(question, cluster=cluster, known=known)) for question in unknown)
