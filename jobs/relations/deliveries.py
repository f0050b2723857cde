"""Deliveries of share groups: the rows of ``share_partitions`` summed up; ``audit.folds.share_deliveries`` is the same
of one group's rows in memory.
"""

from collections.abc import Sequence
from typing import Final

from coordinator_core.audit.folds.share_deliveries import BEGINNINGS, MOST_GIVEN_UP, ShareDelivery
from coordinator_core.history.rows import SharePartitionRow
from jobs.tables.row_reader import tuple_reader

KEY: Final = "group_id, topic_id, partition"
WRITES: Final = ", ".join(f"'{write}'" for write in BEGINNINGS)
KINDS: Final = ("archived", "archiving", "released", "unqueued")
GIVEN_UP: Final = "'archived', 'archiving'"
UNQUEUED: Final = "cardinality(unqueued_now) > 0"
CURRENT: Final = ", ".join(f"'{name}', n.{name}" for name in SharePartitionRow._fields)
SAME: Final = " AND ".join(f"{{0}}.{name} = n.{name}" for name in KEY.split(", ")).format


def _parts(name: str) -> str:
    """Return a text of the offset ranges of each write; the bounds of a broken record are swapped: it has none."""
    return (
        f"SELECT {KEY}, since, log_offset, delivery_limit, part, '{name}' AS kind, "
        "greatest(0, p.part.last - p.part.first + 1) AS records "
        f"FROM (SELECT *, each_of({name}_now) AS part FROM written WHERE cardinality({name}_now) > 0) AS p"
    )


def _at(end: str, condition: str, column: str = "since") -> str:
    """Return the first (``min``) or last (``max``) write that meets a condition, as a struct with ``column``."""
    # Structs are compared by their first field: the offset decides, and the value beside it comes along without a join.
    return f"{end}(CASE WHEN {condition} THEN named_struct('log_offset', log_offset, '{column}', {column}) END)"


DELIVERY: Final = tuple_reader(ShareDelivery)

# Each list of ranges is unrolled in a query of its own: two lists of one row, unrolled together, would give a row for
# each pair of their parts.
DELIVERIES: Final = f"""
WITH written AS (
  SELECT *, s.since.offset AS log_offset FROM $share_partitions AS s WHERE cluster = :cluster AND {{among}}
), newest AS (
  SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY {KEY} ORDER BY log_offset DESC) AS nth FROM written
  ) AS placed WHERE nth = 1
), sums AS (
  SELECT {KEY}, sum(accepted_now) AS accepted, sum(redelivered_now) AS redelivered,
    {_at("min", "redelivered_now > 0")} AS first_redelivery, {_at("max", "redelivered_now > 0")} AS last_redelivery,
    {_at("min", UNQUEUED)} AS first_unqueued, {_at("max", UNQUEUED)} AS last_unqueued,
    {_at("max", UNQUEUED, "unqueued_why")} AS unqueued_why,
    {_at("max", f"write IN ({WRITES})")} AS beginning, {_at("min", "TRUE")} AS earliest
  FROM written GROUP BY {KEY}
), parts AS ({" UNION ALL ".join(map(_parts, KINDS))}
), ended AS (
  SELECT {KEY}, sum(CASE WHEN kind <> 'unqueued' THEN records ELSE 0 END) AS records,
    sum(CASE WHEN kind IN ({GIVEN_UP}) THEN records ELSE 0 END) AS archived,
    sum(CASE WHEN kind = 'unqueued' THEN records ELSE 0 END) AS unqueued
  FROM parts GROUP BY {KEY}
), latest AS (
  SELECT {KEY}, array_agg(named_struct('at', since, 'first', l.part.first, 'last', l.part.last,
    'delivery_count', l.part.delivery_count, 'delivery_limit', delivery_limit,
    'dead_letter', kind = 'archiving')) AS given_up
  FROM (
    SELECT *, row_number() OVER (PARTITION BY {KEY} ORDER BY log_offset DESC, p.part.first DESC) AS nth
    FROM parts AS p WHERE kind IN ({GIVEN_UP})
  ) AS l WHERE nth <= {MOST_GIVEN_UP} GROUP BY {KEY}
), counted AS (
  SELECT {KEY}, max(c.held.delivery_count) AS most FROM (
    SELECT {KEY}, each_of(counts) AS held FROM written WHERE cardinality(counts) > 0
  ) AS c GROUP BY {KEY}
)
SELECT n.group_id AS group_id, n.topic AS topic, n.topic_id AS topic_id, n.partition AS partition,
  s.accepted AS accepted, s.accepted + coalesce(e.records, 0) AS ended, s.redelivered AS redelivered,
  coalesce(c.most, 0) AS most_delivered, coalesce(e.archived, 0) AS archived, l.given_up AS given_up,
  coalesce(e.unqueued, 0) AS unqueued, s.unqueued_why.unqueued_why AS unqueued_why,
  s.first_unqueued.since AS first_unqueued, s.last_unqueued.since AS last_unqueued,
  s.first_redelivery.since AS first_redelivery, s.last_redelivery.since AS last_redelivery,
  CASE WHEN n.is_open THEN named_struct({CURRENT}) END AS current,
  coalesce(s.beginning.since, s.earliest.since) AS began
FROM newest AS n JOIN sums AS s ON {SAME("s")} LEFT JOIN ended AS e ON {SAME("e")}
LEFT JOIN latest AS l ON {SAME("l")} LEFT JOIN counted AS c ON {SAME("c")}
"""
"""The columns of ``ShareDelivery``; ``given_up`` is in no order."""


def read_delivery(values: Sequence[object]) -> ShareDelivery:
    """Return a row of ``DELIVERIES``, from its values in the order of ``ShareDelivery``."""
    row: ShareDelivery = DELIVERY(values)
    return row._replace(given_up=tuple(sorted(row.given_up or ())))
