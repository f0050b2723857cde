"""The commits that hold, in the order in which they do, as SQL for every reader of the tables."""

from typing import Final

from coordinator_core.wire.transactions import BY_CONTROL_TYPE, TransactionOutcome

OPEN: Final = TransactionOutcome.OPEN.value
ABORTED: Final = TransactionOutcome.ABORTED.value
COMMITTED: Final = TransactionOutcome.COMMITTED.value
UNDECIDED: Final = f"(outcome = '{TransactionOutcome.UNKNOWN.value}' AND coalesce(producer_id >= 0, FALSE))"
"""Whether a commit is in a transaction whose end is lost. A dump by a consumer does not show its producer."""
COUNTS: Final = f"NOT coalesce(outcome IN ('{OPEN}', '{ABORTED}') OR {UNDECIDED}, FALSE)"
"""Whether a commit holds: it is in no transaction, or in one that was committed."""

MARKER: Final = f"is_transactional AND control_type IN {tuple(sorted(BY_CONTROL_TYPE))}"
"""Rows of ``log_records`` that end a transaction."""

OF_GROUP: Final = "cluster = :cluster AND group_id = :group_id"
KEY: Final = "log_topic, log_partition, topic, partition"
"""What names a partition of one group."""

PLACE: Final = "m.log_topic = {0}.log_topic AND m.log_partition = {0}.log_partition"


def in_order(key: str, wanted: str) -> str:
    """Return the begin of an SQL text (``WITH ...``) whose last part ``kept`` has the commits and tombstones that hold.

    ``key``: the columns that name a partition of a group. ``wanted``: a condition on ``offset_commits``. A commit of a
    transaction holds from the marker that ends the transaction (``effective``, an offset of the log; ``held_ms``, its
    time), unless a later commit came before it.
    """
    return f"""
WITH mine AS (
  SELECT {key}, log_offset, timestamp_ms, is_tombstone, committed_offset, topic_id, commit_timestamp, expire_timestamp,
    -- Only what a transaction committed waits for a marker. Without a producer the join finds none.
    metadata, CASE WHEN outcome = '{COMMITTED}' THEN producer_id END AS producer_id
  FROM $offset_commits WHERE {wanted} AND log_offset IS NOT NULL AND {COUNTS}
), ends AS (
  SELECT log_topic, log_partition, producer_id, log_offset AS marker, timestamp_ms AS marker_ms FROM $log_records
  WHERE cluster = :cluster AND {MARKER}
), ended AS (
  -- A producer has one transaction at a time: its first marker behind a record is the end of that record's.
  SELECT m.log_topic, m.log_partition, m.log_offset,
    min(named_struct('marker', e.marker, 'marker_ms', e.marker_ms)) AS first_marker
  FROM mine AS m
  JOIN ends AS e ON {PLACE.format("e")} AND m.producer_id = e.producer_id AND m.log_offset < e.marker
  GROUP BY m.log_topic, m.log_partition, m.log_offset
), steps AS (
  SELECT m.*, coalesce(n.first_marker.marker, m.log_offset) AS effective,
    coalesce(n.first_marker.marker_ms, m.timestamp_ms) AS held_ms
  FROM mine AS m LEFT JOIN ended AS n ON {PLACE.format("n")} AND m.log_offset = n.log_offset
), overtaken AS (
  -- Coordinators keep the commit with the highest log offset, also where a transaction with a lower one ends later.
  SELECT *, max(log_offset) OVER (PARTITION BY {key} ORDER BY effective, log_offset
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newest_before FROM steps
), kept AS (
  SELECT * FROM overtaken WHERE newest_before IS NULL OR newest_before < log_offset
)"""
