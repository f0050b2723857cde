"""The offsets of groups at the end of the log: committed, pending in open transactions, start offsets of share groups;
and the end offsets of partitions.

Commits of a dump that has no offsets cannot be ordered and are left out, as are those of aborted transactions. A dump
by a consumer does not show transactions: the ``outcome`` of its commits is unknown, and they count as committed.
"""

from typing import Final

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from jobs.relations.commits import OPEN
from jobs.tables.reader import TableReader, known_rows
from jobs.tables.table import COMMIT, OFFSET_KEY, PLACED

ALL: Final = "$commit_summaries WHERE hour_ms IS NULL"
KEYS: Final = ", ".join(OFFSET_KEY)
IS_OPEN: Final = f"pending_commit.outcome = '{OPEN}' AND pending_commit.log_offset > coalesce(ended, -1)"


def _parts(struct: str) -> str:
    return ", ".join(f"{struct}.{name} AS {name}" for name in COMMIT)


COMMITTED: Final = f"""
WITH pending AS (
  SELECT {KEYS}, ended, each_of(pending) AS pending_commit FROM {ALL} AND cardinality(pending) > 0
), opened AS (
  SELECT {KEYS}, {_parts("p.pending_commit")},
    -- Each producer has its own transaction; of several commits in one, the last would hold.
    row_number() OVER (PARTITION BY {KEYS}, p.pending_commit.producer_id ORDER BY p.pending_commit.log_offset DESC)
      AS nth
  FROM pending AS p WHERE {IS_OPEN}
), unstable AS (SELECT DISTINCT {", ".join(f"{name} AS u_{name}" for name in OFFSET_KEY)} FROM opened
), committed AS (SELECT {KEYS}, committed FROM {ALL} AND committed.log_offset > coalesce(ended, -1)
), offsets AS (
  SELECT {KEYS}, {_parts("c.committed")}, 'committed' AS status, u_cluster IS NULL AS is_stable
  FROM committed AS c LEFT JOIN unstable AS u ON {" AND ".join(f"{name} = u_{name}" for name in OFFSET_KEY)}
  UNION ALL SELECT {KEYS}, {", ".join(COMMIT)}, 'pending' AS status, FALSE AS is_stable FROM opened WHERE nth = 1
)"""
"""The commits that hold, and the newest one of each open transaction that no tombstone ended, as ``offsets``.

``is_stable``: no transaction is open for the partition: a fetch with requireStable returns the offset (KIP-447).
"""

OFFSETS: Final = f"{COMMITTED} SELECT * FROM offsets WHERE cluster = :cluster"

OF_SHARE: Final = "cluster, log_topic, log_partition, group_id, topic_id, partition"


def _field(path: str) -> str:
    """Return a field of a share partition's record, of either type. Subscripts keep the case of names."""
    return f"coalesce(share_snapshot{path}, share_update{path})"


def _newest(value: str, condition: str) -> str:
    """Return the newest value that meets a condition, as a struct; positions decide, as they come first."""
    return f"max(CASE WHEN {condition} THEN named_struct('at', log_offset, 'value', {value}) END)"


def _changed(value: str) -> str:
    """Return the newest value that a record set: in an update, -1 means that the field does not change."""
    return _newest(value, f"NOT is_tombstone AND (is_snapshot OR {value} <> -1)")


SHARES: Final = f"""
, written AS (
  SELECT cluster, log_topic, log_partition, group_id, log_offset, timestamp_ms, is_tombstone,
    share_snapshot['key'] IS NOT NULL AS is_snapshot, {_field("['key']['topicId']")} AS topic_id,
    {_field("['key']['partition']")} AS partition, {_field("['value']['startOffset']")} AS start_offset,
    {_field("['value']['leaderEpoch']")} AS leader_epoch, {_field("['value']['deliveryCompleteCount']")} AS delivered
  FROM $group_records
  WHERE (share_snapshot['key'] IS NOT NULL OR share_update['key'] IS NOT NULL) AND {PLACED}
), states AS (
  SELECT {OF_SHARE}, max(log_offset) AS log_offset, {_newest("timestamp_ms", "TRUE")} AS newest_time,
    {_newest("delivered", "TRUE")} AS newest_delivered, {_changed("start_offset")} AS newest_start,
    {_changed("leader_epoch")} AS newest_epoch, max(CASE WHEN is_tombstone THEN log_offset END) AS ended
  FROM written GROUP BY {OF_SHARE}
), names AS (
  SELECT DISTINCT cluster AS n_cluster, topic_id AS n_topic_id, topic FROM $topic_history
), starts AS (
  SELECT s.*, n.topic AS topic FROM states AS s LEFT JOIN names AS n ON cluster = n_cluster AND topic_id = n_topic_id
  WHERE log_offset > coalesce(ended, -1)
)"""
"""The share partitions, with what their newest records say: ``starts``. ``delivered``: records after the start offset
that are processed; -1 where the log does not count them."""

GIVEN: Final = {
    "log_offset": "s.log_offset",
    "timestamp_ms": "s.newest_time.value",
    "committed_offset": "CASE WHEN s.newest_start.value <> -1 THEN s.newest_start.value END",
    "leader_epoch": "s.newest_epoch.value",
    "topic_id": "s.topic_id",
}
"""What ``COMMIT`` is of a share partition: no offset is committed until a start is set."""

ALL_OFFSETS: Final = f"""
, all_offsets AS (
  SELECT {KEYS}, {", ".join(COMMIT)}, status, is_stable, CAST(0 AS BIGINT) AS delivered FROM offsets
  UNION ALL SELECT {KEYS}, {", ".join(f"{GIVEN.get(name, 'NULL')} AS {name}" for name in COMMIT)},
    'share' AS status, TRUE AS is_stable, CAST(s.newest_delivered.value AS BIGINT) AS delivered FROM starts AS s
)"""

WITHOUT_ENDS: Final = f"""
{COMMITTED}{SHARES}{ALL_OFFSETS}
SELECT *, :run AS run_id, CAST(NULL AS BIGINT) AS end_offset, CAST(NULL AS BIGINT) AS end_offset_ms,
  CAST(NULL AS BIGINT) AS lag
FROM all_offsets
"""
WITH_ENDS: Final = f"""
{COMMITTED}{SHARES}{ALL_OFFSETS}, ends AS (
  SELECT cluster AS e_cluster, topic AS e_topic, partition AS e_partition, topic_id AS e_topic_id, end_offset,
    timestamp_ms AS end_offset_ms,
    row_number() OVER (PARTITION BY cluster, topic, partition ORDER BY timestamp_ms DESC) AS nth
  FROM $end_offsets WHERE end_offset IS NOT NULL
)
SELECT o.*, :run AS run_id, end_offset, end_offset_ms,
  CASE WHEN end_offset IS NOT NULL AND committed_offset >= 0 AND delivered >= 0 AND
      coalesce(topic_id = e_topic_id, TRUE)
    -- Below zero is told only where the end was surely read after the commit: otherwise the end is just the older one.
    THEN CASE WHEN status <> 'share' AND timestamp_ms >= 0 AND end_offset_ms - timestamp_ms >= {CLOCK_TOLERANCE_MS}
      THEN end_offset - committed_offset
      ELSE greatest(0, end_offset - committed_offset - delivered) END END AS lag
FROM all_offsets AS o LEFT JOIN (SELECT * FROM ends WHERE nth = 1) AS e
ON cluster = e_cluster AND topic = e_topic AND partition = e_partition
"""
"""Rows of ``group_offsets`` with the newest end offset of each partition; the lag is that of ``records_behind``."""

ROWS: Final = f"""
SELECT count(*) AS number FROM (
  SELECT cluster FROM {ALL} UNION ALL SELECT cluster FROM $group_records WHERE log_topic IN :topics
) AS both_kinds
"""
"""How many rows are looked at: partitions with commits, and records of the topics of share partitions."""


def newest_ends(tables: TableReader, cluster: str, until_ms: int | None) -> dict[TopicPartition, EndOffset]:
    """Return the newest end offset of each partition that is not later than ``until_ms`` (None: any time)."""
    rows = known_rows(
        tables,
        "SELECT * FROM (SELECT topic, partition, timestamp_ms, end_offset, topic_id, "
        "row_number() OVER (PARTITION BY topic, partition ORDER BY timestamp_ms DESC) AS nth FROM $end_offsets "
        "WHERE cluster = :cluster AND end_offset IS NOT NULL AND timestamp_ms <= :until) AS newest WHERE nth = 1",
        cluster=cluster,
        until=(1 << 62) if until_ms is None else until_ms,
    )
    return {
        TopicPartition(row["topic"], row["partition"]): EndOffset(
            row["timestamp_ms"], row["end_offset"], row["topic_id"]
        )
        for row in rows
    }
