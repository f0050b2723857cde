"""Which groups something new bears on: what is made of the others stays as it is."""

from __future__ import annotations

from typing import Final

from jobs.sources.files import SHARE_TOPICS
from jobs.tables.reader import TableReader

NEW: Final = "cluster = :cluster AND run_id > :since"

PLACES: Final = f"""
SELECT log_topic, log_partition FROM $log_ranges WHERE {NEW}
UNION SELECT log_topic, log_partition FROM $commit_summaries WHERE {NEW}
UNION SELECT log_topic, log_partition FROM $log_records
WHERE cluster = :cluster AND revised_by > :since AND log_partition IS NOT NULL
"""
"""Log partitions that have new records, or of which a new run has told more. Their end is the present of a group."""

IN_PLACES: Final = " UNION ".join(
    f"SELECT t.group_id AS group_id FROM ${table} AS t JOIN places AS p "
    "ON t.log_topic = p.log_topic AND t.log_partition = p.log_partition WHERE t.cluster = :cluster"
    for table in ("group_states", "group_records", "commit_summaries")
)

GROUPS: Final = f"""
WITH places AS ({PLACES})
SELECT group_id FROM ({IN_PLACES}
  UNION SELECT group_id FROM $group_states WHERE cluster = :cluster AND (run_id > :since OR log_topic IN :topics)
  UNION SELECT group_id FROM $share_partitions WHERE cluster = :cluster
  UNION SELECT group_id FROM $share_initializations WHERE cluster = :cluster
) AS found WHERE group_id IS NOT NULL
"""
"""What is said of a share group depends on the extent of logs that may not have records of it: all are included."""


def changed_groups(tables: TableReader, cluster: str, since: str) -> list[str]:
    """Return the groups of a cluster on which runs after ``since`` bear: by own records, or by the end of their log."""
    rows = tables.rows(GROUPS, cluster=cluster, since=since, topics=SHARE_TOPICS)
    return sorted(row["group_id"] for row in rows)
