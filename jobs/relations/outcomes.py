"""Outcomes of transactions that a dump leaves open, or unknown because offsets without a record follow.

The next marker of the producer decides a transactional record. Compaction keeps it as long as a record of its
transaction is left, so a gap that compaction explains changes nothing; but where data is missing in between, or the
dump cannot show control records there, the true marker may have been among it: the outcome stays unknown. A marker's
epoch is that of the data or higher, or it is not theirs.
"""

from typing import Final

from coordinator_core.wire.transactions import BY_CONTROL_TYPE, TransactionOutcome
from jobs.relations.commits import OPEN
from jobs.relations.gaps import GAPS

UNKNOWN: Final = TransactionOutcome.UNKNOWN.value

UNDECIDED: Final = f"kind = 'record' AND is_transactional AND outcome IN ('{OPEN}', '{UNKNOWN}')"
"""Records whose outcome the log may still tell."""

COUNT: Final = f"SELECT count(*) FROM $log_records WHERE cluster = :cluster AND {UNDECIDED}"

# A hole matters only behind a record whose marker is looked for: what comes before the first one is not examined.
BEGINS: Final = (
    "SELECT log_topic, log_partition, min(log_offset) AS floor FROM undecided GROUP BY log_topic, log_partition"
)
SAID: Final = " ".join(f"WHEN '{name}' THEN '{outcome.value}'" for name, outcome in BY_CONTROL_TYPE.items())
KEY: Final = "cluster, log_topic, log_partition, log_offset, kind, stray"
CROSSED: Final = (
    "f.log_topic = g.log_topic AND f.log_partition = g.log_partition AND g.first_offset > f.log_offset "
    "AND (f.marker.log_offset IS NULL OR g.first_offset < f.marker.log_offset)"
)

DECIDED: Final = f"""
WITH undecided AS (SELECT * FROM $log_records WHERE cluster = :cluster AND {UNDECIDED}
), lost AS (SELECT * FROM ({GAPS.format(begins=BEGINS)}) AS gaps WHERE cause <> 'compaction'
), both_kinds AS (
  SELECT {KEY}, producer_id, producer_epoch, outcome AS outcome_before, 0 AS is_marker, NULL AS marker_here
  FROM undecided
  UNION ALL
  SELECT {KEY}, producer_id, NULL, NULL, 1, named_struct('log_offset', log_offset, 'producer_epoch', producer_epoch,
    'said', CASE control_type {SAID} ELSE '{UNKNOWN}' END)
  FROM $log_records WHERE cluster = :cluster AND is_transactional AND control_type IS NOT NULL
), followed AS (
  SELECT *, last_value(marker_here) IGNORE NULLS OVER (
    PARTITION BY log_topic, log_partition, stray, producer_id ORDER BY log_offset DESC, is_marker
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS marker
  FROM both_kinds
), told AS (
  SELECT {KEY}, outcome_before, CASE WHEN f.marker.log_offset IS NULL THEN '{OPEN}'
    -- Since KIP-890 a transaction ends with a higher epoch than its records have; a lower one is of an older producer.
    WHEN f.marker.producer_epoch >= producer_epoch THEN f.marker.said ELSE '{UNKNOWN}' END AS outcome
  FROM followed AS f LEFT ANTI JOIN lost AS g ON {CROSSED} WHERE is_marker = 0
  UNION ALL
  -- An anti join with its semi join, and no left join: that would give a record once for each hole behind it.
  SELECT {KEY}, outcome_before, '{UNKNOWN}' FROM followed AS f LEFT SEMI JOIN lost AS g ON {CROSSED} WHERE is_marker = 0
)
SELECT {KEY}, outcome FROM told WHERE outcome <> outcome_before
"""
"""The undecided records whose outcome is another than is stored, by the key of ``log_records``.

The marker behind a record is the last one before it in descending order, which Spark finds in one pass.
"""
