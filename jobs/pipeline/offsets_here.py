"""Committed offsets as rows of ``group_offsets``, found by this process: few of them take no Spark job.

``offsets`` says what the columns mean, and finds the same rows with Spark.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator_core.wire.transactions import TransactionOutcome
from jobs.sources.files import SHARE_TOPICS
from jobs.tables.folder_reader import FolderReader
from jobs.tables.results import COMMIT, GROUP_OFFSETS, OFFSET_KEY

ALL: Final = "$commit_summaries WHERE hour_ms IS NULL"
KEYS: Final = ", ".join(OFFSET_KEY)
IS_OPEN: Final = f"each.outcome = '{TransactionOutcome.OPEN.value}' AND each.log_offset > coalesce(ended, -1)"


def _parts(struct: str) -> str:
    return ", ".join(f"{struct}.{name} AS {name}" for name in COMMIT)


OFFSETS: Final = f"""
WITH pending AS (
  SELECT {KEYS}, ended, unnest(pending) AS each FROM {ALL} AND cardinality(pending) > 0
), opened AS (
  SELECT {KEYS}, {_parts("each")},
    row_number() OVER (PARTITION BY {KEYS}, each.producer_id ORDER BY each.log_offset DESC) AS nth
  FROM pending AS p WHERE {IS_OPEN}
), unstable AS (SELECT DISTINCT {", ".join(f"{name} AS u_{name}" for name in OFFSET_KEY)} FROM opened
), committed AS (SELECT {KEYS}, committed FROM {ALL} AND committed.log_offset > coalesce(ended, -1)
)
SELECT {KEYS}, {_parts("c.committed")}, 'committed' AS status, u_cluster IS NULL AS is_stable
FROM committed AS c LEFT JOIN unstable AS u ON {" AND ".join(f"{name} = u_{name}" for name in OFFSET_KEY)}
UNION ALL SELECT {KEYS}, {", ".join(COMMIT)}, 'pending' AS status, FALSE AS is_stable FROM opened WHERE nth = 1
"""
NO_ENDS: Final = f"""
SELECT *, CAST(NULL AS BIGINT) AS end_offset, CAST(NULL AS BIGINT) AS end_offset_ms, CAST(NULL AS BIGINT) AS lag
FROM ({OFFSETS}) AS found
"""
WITH_ENDS: Final = f"""
SELECT found.*, e.end_offset AS end_offset, e.timestamp_ms AS end_offset_ms,
  CASE WHEN e.end_offset IS NOT NULL AND committed_offset >= 0 THEN greatest(0, e.end_offset - committed_offset) END
    AS lag
FROM ({OFFSETS}) AS found LEFT JOIN (
  SELECT cluster AS e_cluster, topic AS e_topic, partition AS e_partition, end_offset, timestamp_ms,
    row_number() OVER (PARTITION BY cluster, topic, partition ORDER BY timestamp_ms DESC) AS nth
  FROM $end_offsets WHERE end_offset IS NOT NULL
) AS e ON nth = 1 AND cluster = e_cluster AND topic = e_topic AND partition = e_partition
"""


def offsets_here(tables: FolderReader, run_id: str, most: int) -> pa.Table | None:
    """Return the rows of ``group_offsets`` as of a run; None: they are for Spark, being more than ``most``.

    Spark finds them where there are many, and where the log has share groups.

    Raises:
        UnsupportedTableError: this process cannot read one of the tables.
    """
    (sums,) = tables.rows(f"SELECT count(*) AS number FROM {ALL}")
    shares = tables.rows("SELECT log_topic FROM $group_records WHERE log_topic IN :topics LIMIT 1", topics=SHARE_TOPICS)
    if sums["number"] > most or next(shares, None) is not None:
        return None
    found = pa.Table.from_batches(tables.batches(WITH_ENDS if tables.exists("end_offsets") else NO_ENDS))
    found = found.append_column("run_id", pa.array([run_id] * found.num_rows, pa.string()))
    return found.select(GROUP_OFFSETS.schema.names).cast(to_arrow_schema(GROUP_OFFSETS.schema))
