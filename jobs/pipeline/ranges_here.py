"""The ranges of offsets of a small run, found by this process; ``log_ranges`` finds the same with Spark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from jobs.sources.files import FIRST_SEGMENT
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_PARTITION, LOG_RANGES, PLACED

NEW: Final = "cluster = :cluster AND run_id > :done AND run_id <= :upto"
NEW_RECORDS: Final = f"SELECT sum(records) AS number FROM $runs WHERE job = 'ingest' AND {NEW}"
OF: Final = ", ".join(("cluster", "run_id", *LOG_PARTITION, "leader_epoch"))
RANGES: Final = f"""
WITH placed AS (
  SELECT {OF}, log_offset, CASE WHEN timestamp_ms >= 0 THEN timestamp_ms END AS time_ms,
    log_offset = 0 OR ends_with(source, '{FIRST_SEGMENT}') AS is_start,
    log_offset - row_number() OVER (PARTITION BY {OF} ORDER BY log_offset) AS range
  FROM $log_records WHERE {NEW} AND kind IN ('record', 'control') AND {PLACED}
)
SELECT {OF}, min(log_offset) AS first_offset, max(log_offset) AS last_offset, min(time_ms) AS first_ms,
  max(time_ms) AS last_ms, count(*) AS records, bool_or(is_start) AS has_start
FROM placed GROUP BY {OF}, range
"""
"""Offsets that follow each other are equally far from their numbers in order."""


def ranges_here(tables: FolderReader, cluster: str, done: str, upto: str, most: int) -> pa.Table | None:
    """Return the rows of ``log_ranges`` of the runs after ``done`` up to ``upto``; None: they are for Spark.

    Raises:
        UnsupportedTableError: this process cannot read one of the tables.
    """
    given = {"cluster": cluster, "done": done, "upto": upto}
    (new,) = tables.rows(NEW_RECORDS, **given)
    if (new["number"] or 0) > most:
        return None
    found = pa.Table.from_batches(tables.batches(RANGES, **given))
    return found.select(LOG_RANGES.schema.names).cast(to_arrow_schema(LOG_RANGES.schema))
