"""What was read of each log partition, from the records of the tables."""

from __future__ import annotations

from typing import Final

from jobs.sources.files import FIRST_SEGMENT
from jobs.tables.columns import LOG_PARTITION, PLACED

BLOCK: Final = 1 << 16
"""Number of offsets in a block of ``RANGES``."""

IS_START: Final = f"(log_offset = 0 OR source LIKE '%{FIRST_SEGMENT}')"
"""A row of ``log_records`` that proves that its log partition was read from its start.

It is the first record ever written, or comes from the segment that began with it: compaction may have removed that
record since.
"""

OF_RANGE: Final = ("cluster", "run_id", *LOG_PARTITION, "leader_epoch")
"""All offsets of a range have these in common."""

OF: Final = ", ".join(OF_RANGE)
OF_PIECE: Final = ", ".join(f"p.{name} AS {name}" for name in OF_RANGE)
RANGES: Final = f"""
WITH placed AS (
  SELECT {OF}, log_offset - log_offset % :block AS block, log_offset, {IS_START} AS is_start,
    CASE WHEN timestamp_ms >= 0 THEN timestamp_ms END AS time_ms
  FROM $log_records WHERE {{which}} AND kind IN ('record', 'control') AND {PLACED}
), blocks AS (
  SELECT {OF}, block, min(log_offset) AS first_offset, max(log_offset) AS last_offset, count(*) AS records,
    min(time_ms) AS first_ms, max(time_ms) AS last_ms, bool_or(is_start) AS has_start
  FROM placed GROUP BY {OF}, block
), pieces AS (
  SELECT {OF}, first_offset, last_offset, records, first_ms, last_ms, has_start
  FROM blocks WHERE records = last_offset - first_offset + 1
  UNION ALL
  SELECT {OF_PIECE}, p.log_offset AS first_offset, p.log_offset AS last_offset, CAST(1 AS BIGINT) AS records,
    time_ms AS first_ms, time_ms AS last_ms, is_start AS has_start
  FROM placed AS p LEFT SEMI JOIN (SELECT * FROM blocks WHERE records < last_offset - first_offset + 1) AS b
  ON p.block = b.block AND {" AND ".join(f"(p.{name} IS NOT DISTINCT FROM b.{name})" for name in OF_RANGE)}
), bounds AS (
  SELECT *, CASE WHEN lag(last_offset) OVER (PARTITION BY {OF} ORDER BY first_offset) = first_offset - 1
    THEN 0 ELSE 1 END AS begins
  FROM pieces
), numbered AS (
  SELECT *, sum(begins) OVER (PARTITION BY {OF} ORDER BY first_offset) AS number FROM bounds
)
SELECT {OF}, min(first_offset) AS first_offset, max(last_offset) AS last_offset, min(first_ms) AS first_ms,
  max(last_ms) AS last_ms, sum(records) AS records, bool_or(has_start) AS has_start
FROM numbered GROUP BY {OF}, number
"""
"""Rows of ``log_ranges``: offsets that follow each other, of the rows of ``log_records`` that ``{which}`` names.

A log is whole nearly everywhere, so that its rows are only counted, by block, which needs no order. The rows of blocks
with missing offsets are put in order, and then the blocks. A row or block that does not follow the one before begins a
range; the number of beginnings so far is the same for all parts of a range, and so groups them.
"""
