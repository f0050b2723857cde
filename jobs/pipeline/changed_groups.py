"""Which groups something new bears on: what is made of the others stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jobs.relations.groups import OWN_TIMES
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.reader import TableReader

NEW: Final = "cluster = :cluster AND run_id > :since"

PLACES: Final = """
SELECT log_topic, log_partition FROM $log_records
WHERE cluster = :cluster AND revised_by > :since AND log_partition IS NOT NULL
UNION SELECT log_topic, log_partition FROM $log_ranges
WHERE cluster = :cluster AND concat(log_topic, '-', CAST(log_partition AS STRING)) IN :moved
"""
"""Log partitions of which a new run has told more than was known, and those of which it has found records missing."""

IN_PLACES: Final = " UNION ".join(
    f"SELECT t.group_id AS group_id FROM ${table} AS t JOIN places AS p "
    "ON t.log_topic = p.log_topic AND t.log_partition = p.log_partition WHERE t.cluster = :cluster"
    for table in ("group_states", "group_records", "commit_summaries")
)

GROUPS: Final = f"""
WITH places AS ({PLACES})
SELECT group_id FROM ({IN_PLACES}
  UNION SELECT group_id FROM $group_states WHERE {NEW}
  UNION SELECT group_id FROM $group_records WHERE {NEW}
  UNION SELECT group_id FROM $commit_summaries WHERE {NEW}
  UNION SELECT p.group_id AS group_id FROM $group_pages AS p LEFT JOIN ({OWN_TIMES["own_times"].text}) AS o
    ON p.group_id = o.group_id
    WHERE p.cluster = :cluster AND (p.until_ms <= coalesce(o.last_ms, 0) OR (:with_pages = 1 AND p.summary IS NULL))
) AS found WHERE group_id IS NOT NULL
""".replace("{among}", "TRUE")
"""Of the other groups, what is known holds: it says itself how long it does (``group_pages.until_ms``)."""


def changed_groups(
    tables: TableReader, cluster: str, since: str, moved: Sequence[str] = (), *, with_pages: bool = False
) -> list[str]:
    """Return the groups of a cluster on which runs after ``since`` bear: by own records, or by the end of their log.

    ``moved``: log partitions, by name, that are whole from another offset on. ``with_pages``: with those that have no
    page yet.
    """
    given = {"cluster": cluster, "since": since, "moved": moved, "topics": GROUP_TOPICS}
    rows = tables.rows(GROUPS, **given, with_pages=int(with_pages))
    return sorted(row["group_id"] for row in rows)
