"""What a replay reads: new records and commits of groups, what is known of the log at each, and the groups that begin
again, as their stored state or their rows rest on less than is known now.
"""

from datetime import UTC, datetime
from typing import Final

from jobs.relations.unreadable import IS_COMMIT, OF_STATE, UNREADABLE
from jobs.relations.up_to_date import newest_run_in
from jobs.sources.files import REPLAYED_TOPICS
from jobs.tables.reader import TableReader, known_rows
from jobs.tables.table import PLACED

IDENTITY: Final = ("log_topic", "group_id")
"""The columns that identify a group within a cluster."""
GROUP: Final = ", ".join(IDENTITY)
LOG: Final = "log_topic, log_partition"

STATE: Final = "state"
COMMIT: Final = "commit"
"""What a record that cannot be decoded is about."""

NEW: Final = "run_id > :done AND run_id <= :upto"
ALL: Final = "run_id <= :upto"

BLOCK: Final = 1 << 20
"""Number of offsets in which one task searches what was read of the log: a busy log partition is no single task."""


def _some(runs: str) -> str:
    return f"cluster = :cluster AND {runs} AND log_topic IN :topics"


def _records(runs: str) -> str:
    """Return a text of the records of groups from these runs, without those that have no place in the log.

    Of each partition it has the first and the last commit between two records of its group: the fold needs no others.
    Records that cannot be decoded have no key here, but the key that was read tells the group; of such commits the
    first one is enough, as nothing is said of commits from there on.
    """
    some = _some(runs)
    return f"""
SELECT {GROUP}, log_partition, log_offset, timestamp_ms, batch_base, key, value, NULL AS committed_topic,
  NULL AS committed_partition, NULL AS committed_topic_id, NULL AS unreadable
FROM $group_records WHERE {some} AND {PLACED}
UNION ALL
SELECT {GROUP}, log_partition, h.beside.log_offset, h.beside.timestamp_ms, NULL, NULL, NULL, topic, partition,
  h.beside.topic_id, NULL
FROM (
  SELECT {GROUP}, log_partition, topic, partition, each_of(beside) AS beside FROM $commit_summaries
  WHERE {some} AND hour_ms IS NOT NULL AND cardinality(beside) > 0
) AS h
UNION ALL
SELECT {GROUP}, log_partition, log_offset, timestamp_ms, NULL, NULL, NULL, NULL, NULL, NULL, '{STATE}'
FROM {UNREADABLE} AND {runs} AND {OF_STATE}
UNION ALL
SELECT {GROUP}, log_partition, min(log_offset), min(timestamp_ms), NULL, NULL, NULL, NULL, NULL, NULL, '{COMMIT}'
FROM {UNREADABLE} AND {runs} AND {IS_COMMIT} AND group_id IS NOT NULL GROUP BY {GROUP}, log_partition"""


def _block(offset: str) -> str:
    # Made divisible first: engines differ in whether ``/`` of two whole numbers leaves a fraction.
    return f"CAST(({offset} - {offset} % :block) / :block AS BIGINT)"


LATE: Final = """
SELECT log_topic, log_partition, first FROM (
  SELECT log_topic, log_partition, min(CASE WHEN run_id > :done THEN first_offset END) AS first,
    max(CASE WHEN run_id <= :done THEN last_offset END) AS last
  FROM $log_ranges WHERE cluster = :cluster AND run_id <= :upto AND log_topic IN :topics
  GROUP BY log_topic, log_partition
) AS places WHERE first < last
"""
"""Log partitions in which new records lie before known ones, with the first new offset."""

MOVED: Final = f"""
SELECT count(*) AS groups FROM (
  SELECT log_topic, group_id, log_partition FROM $group_records
  WHERE cluster = :cluster AND run_id > :done AND run_id <= :upto AND log_topic IN :topics
  UNION ALL SELECT log_topic, group_id, log_partition FROM $commit_summaries
  WHERE cluster = :cluster AND run_id > :done AND run_id <= :upto AND hour_ms IS NOT NULL
  UNION ALL SELECT log_topic, group_id, log_partition FROM {UNREADABLE} AND {NEW} AND {OF_STATE}
) AS n JOIN $group_states AS s
ON s.cluster = :cluster AND n.log_topic = s.log_topic AND n.group_id = s.group_id AND n.log_partition < s.log_partition
"""
"""How many new records of groups, readable or not, lie in another log partition than known ones of them, and before it.
"""


def _same(one: str, other: str) -> str:
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in IDENTITY)


BEHIND_TOPICS: Final = (
    f"cluster = :cluster AND run_id <= :done AND log_topic IN :groups AND timestamp_ms >= :shown_ms AND {PLACED}"
)
"""The known records of groups whose replay did not see the topics of their time, and would now (``:shown_ms``).

Commits do not count: what is said of them does not rest on the topics of their time.
"""


REBUILT: Final = f"""
late AS ({LATE}), firsts AS (
  SELECT {GROUP}, min(named_struct('log_partition', log_partition, 'log_offset', log_offset)) AS first
  FROM fresh GROUP BY {GROUP}
), begun AS (
  SELECT s.log_topic AS log_topic, s.group_id AS group_id FROM states AS s LEFT JOIN firsts AS f ON {_same("f", "s")}
  WHERE :done = '' OR version <> :version OR timestamp_ms >= :news_ms OR (s.log_topic NOT IN :shares AND (
    f.first.log_partition < s.log_partition
    OR (f.first.log_partition = s.log_partition AND f.first.log_offset <= s.log_offset)))
  UNION SELECT {GROUP} FROM $replayed WHERE cluster = :cluster
  UNION SELECT p.log_topic, p.group_id FROM (
    SELECT {GROUP}, log_partition, log_offset FROM $group_records
    WHERE cluster = :cluster AND run_id <= :done AND {PLACED}
    UNION ALL SELECT {GROUP}, log_partition, log_offset FROM states
  ) AS p JOIN late AS l ON p.log_topic = l.log_topic AND p.log_partition = l.log_partition
  WHERE l.first <= p.log_offset + 1
  UNION SELECT {GROUP} FROM $group_records WHERE {BEHIND_TOPICS}
), rebuilt AS (
  SELECT {GROUP} FROM states AS s LEFT SEMI JOIN begun AS b ON s.group_id = b.group_id
  UNION SELECT {GROUP} FROM begun
),"""
"""The groups that begin again.

- ``begun``: a state has another format than ``:version``, or its replay has passed the time of news of topics or
  settings (``:news_ms``), or records that it has are not before the new ones. A share group has records in several log
  partitions, in any order. Without runs that are done, all groups begin again.
- A group has known records at times whose topics are shown now, and were not when they were replayed.
- The run that replayed a group was interrupted: its rows are still staged.
- A group has known records behind late ones, or right before the first of them: what was missing there was a gap for
  its rows. Groups without records of their own, of which there are only commits, have a state all the same.
- ``rebuilt``: what a share group has in its two logs is replayed apart; both begin again together.
"""

BEGUN_AGAIN: Final = f"""
SELECT f.* FROM fresh AS f LEFT ANTI JOIN rebuilt AS r ON {_same("f", "r")}
UNION ALL SELECT a.* FROM ({_records(ALL)}) AS a LEFT SEMI JOIN rebuilt AS r ON {_same("a", "r")}"""

ROW: Final = (
    *("batch_base", "key", "value", "committed_topic", "committed_partition", "committed_topic_id"),
    *("timestamp_ms", "unreadable"),
)
"""What a row says apart from its group and its place in the log."""
KNOWN: Final = ("leader_epoch", "unbroken_since", "gap_follows", "from_start")

LOCATED: Final = f"""
ranges AS (
  SELECT {LOG}, first_offset, last_offset, leader_epoch,
    coalesce(lead(first_offset) OVER (PARTITION BY {LOG} ORDER BY first_offset) > last_offset + 1, FALSE)
      AS gap_follows,
    coalesce(bool_or(has_start) OVER (PARTITION BY {LOG}), FALSE) AS from_start,
    CASE WHEN lag(last_offset) OVER (PARTITION BY {LOG} ORDER BY first_offset) = first_offset - 1 THEN NULL
      ELSE first_offset END AS begins
  FROM $log_ranges WHERE cluster = :cluster AND log_topic IN :topics
), unbroken AS (
  -- The beginnings of unbroken stretches rise with the offset: the highest one so far is that of this range.
  SELECT *, max(begins) OVER (PARTITION BY {LOG} ORDER BY first_offset) AS unbroken_since,
    {_block("first_offset")} AS first_block, {_block("last_offset")} AS last_block
  FROM ranges
), pieces AS (
  SELECT {LOG}, first_offset, each_of(blocks) AS block, known FROM (
    -- A range stands in each block that it touches: every row finds its range in its own block.
    SELECT *, numbers(first_block, last_block) AS blocks,
      named_struct('last_offset', last_offset, {", ".join(f"'{name}', {name}" for name in KNOWN)}) AS known
    FROM unbroken
  ) AS u
), both_kinds AS (
  SELECT {LOG}, block, first_offset AS log_offset, 0 AS is_row, known, NULL AS group_id,
    {", ".join(f"NULL AS {name}" for name in ROW)}
  FROM pieces
  UNION ALL SELECT {LOG}, {_block("log_offset")}, log_offset, 1, NULL, group_id, {", ".join(ROW)} FROM chosen
), located AS (
  SELECT *, last_value(known) IGNORE NULLS OVER (PARTITION BY {LOG}, block ORDER BY log_offset, is_row
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS place FROM both_kinds
)"""
"""The rows of ``chosen`` with what is known of the log at each place: ``KNOWN``, of a place that was read.

``leader_epoch``: that of the range; ``unbroken_since``: the first offset of the ranges without a gap up to it;
``gap_follows``: the log goes on behind the range, but the next offset is missing; ``from_start``: the log was read from
its start. Ranges and rows are rows of one window, in blocks of offsets: a join by ``<`` would compare all pairs.
"""


def _known(name: str) -> str:
    """Return what is known at a row; a gap follows only the last offset of a range."""
    value = f"(l.place.{name} AND log_offset = l.place.last_offset)" if name == "gap_follows" else f"l.place.{name}"
    return f"CASE WHEN log_offset <= l.place.last_offset THEN {value} END AS {name}"


# A null is between no two ids: rows without a group would be in no part of the groups.
ID: Final = "coalesce(group_id, '')"

NEW_GROUPS: Final = f"SELECT DISTINCT {ID} AS group_id FROM ({_records(NEW)}) AS n ORDER BY group_id"
"""The ids of groups with new rows, in an order."""

SOME_GROUPS: Final = f"{ID} BETWEEN :first_group AND :last_group"
"""The rows of some groups in that order; a share group has both its logs among them."""


def replayed_rows(*, is_first: bool = False, rebuilds: bool = False, among: str = "TRUE") -> str:
    """Return the text of what a replay reads, with the columns ``replay_arrow.INPUT`` and ``is_record``.

    Of each group its stored state (``is_record`` is false), and its new rows. ``is_first``: there are no states yet.
    ``rebuilds``: of groups that begin again all rows, and a row with an empty state. ``among``: ``SOME_GROUPS`` or all.
    """
    of_state = "s.log_topic, s.group_id, s.log_partition, s.log_offset, s.timestamp_ms, s.state"
    of_states = f"{GROUP}, log_partition, log_offset, timestamp_ms, state"
    nothing = ", ".join(f"NULL AS {name}" for name in (*ROW, *KNOWN) if name != "timestamp_ms")
    continued = f"SELECT {of_state} FROM states AS s LEFT SEMI JOIN fresh AS n ON {_same('n', 's')}"
    if rebuilds:
        continued = f"""
SELECT {of_state} FROM ({continued}) AS s LEFT ANTI JOIN rebuilt AS r ON {_same("r", "s")}
UNION ALL SELECT {GROUP}, NULL, NULL, NULL, '' FROM rebuilt"""
    return f"""
WITH states AS (SELECT * FROM $group_states WHERE cluster = :cluster AND {among}
), fresh AS (SELECT * FROM ({_records(NEW)}) AS n WHERE {among}
), {REBUILT if rebuilds else ""} chosen AS ({BEGUN_AGAIN if rebuilds else "SELECT * FROM fresh"}
), {LOCATED}
SELECT {GROUP}, log_partition, log_offset, coalesce(timestamp_ms, -1) AS timestamp_ms, NULL AS state, TRUE AS is_record,
  {", ".join(name for name in ROW if name != "timestamp_ms")}, {", ".join(map(_known, KNOWN))}
FROM located AS l WHERE is_row = 1
{"" if is_first else f"UNION ALL SELECT {of_states}, FALSE, {nothing} FROM ({continued}) AS c"}
"""


BEGINNING_AGAIN: Final = f"""
WITH states AS (SELECT * FROM $group_states WHERE cluster = :cluster
), fresh AS ({_records(NEW)}
), {REBUILT} chosen AS ({BEGUN_AGAIN})
SELECT {{}} FROM chosen"""
ROWS_AGAIN: Final = BEGINNING_AGAIN.format("count(*)")
BYTES_AGAIN: Final = BEGINNING_AGAIN.format("sum(bytes_of(value))")
"""The number of new rows, with all rows of the groups that begin again, and the bytes of their values."""

BYTES: Final = f"""
SELECT sum(bytes) FROM (
  SELECT bytes_of(value) AS bytes FROM $group_records WHERE {_some(NEW)} AND {PLACED}
  UNION ALL SELECT length(s.state) FROM $group_states AS s
  LEFT SEMI JOIN ({_records(NEW)}) AS n ON {_same("n", "s")} WHERE s.cluster = :cluster
) AS both_kinds"""
"""The bytes of new values and of the states of their groups."""
ROWS: Final = f"SELECT count(*) FROM ({_records(NEW)}) AS n"
RANGES: Final = "SELECT count(*) FROM $log_ranges WHERE cluster = :cluster"


# --- whether it has read all ---------------------------------------------------------------------------------------

UNREPLAYED_RECORDS: Final = (
    "SELECT run_id FROM $group_records WHERE cluster = :cluster AND run_id > :known AND log_topic IN :topics "
    "AND log_partition IS NOT NULL AND log_offset IS NOT NULL LIMIT 1"
)
"""Finds a record of a group that no replay has taken in."""

NOT_REPLAYED: Final = (
    "the last night has not ended: not all records in the tables are replayed, so that history, verdicts and findings "
    "may lack rows, or all rows of a group; run nightly again, or wait for its end"
)


def has_replayed_all(tables: TableReader, cluster: str) -> bool:
    """Return whether the tables of history have all records of a cluster.

    They have not between the steps of a night, nor after a night that was interrupted: the staged rows of a replay stay
    until it has ended, and tables that were set aside to be made again have no states.
    """
    if list(known_rows(tables, "SELECT cluster FROM $replayed WHERE cluster = :cluster LIMIT 1", cluster=cluster)):
        return False
    if not tables.exists("group_records"):
        return True
    known = ""
    if tables.exists("group_states"):
        known = newest_run_in(tables, cluster, "group_states") or ""
    given = {"cluster": cluster, "known": known, "topics": REPLAYED_TOPICS}
    return not list(tables.rows(UNREPLAYED_RECORDS, **given))


def unfinished_run(tables: TableReader, now: datetime) -> str | None:
    """Return a warning about a run that writes the tables now, or was killed while it did; None: the last one ended.

    Each run holds the lease on the tables until it ends, and one that is killed does not give it back.
    """
    held = "SELECT owner, acquired_at, expires_at FROM $leases WHERE owner IS NOT NULL LIMIT 1"
    row = next(known_rows(tables, held), None)
    if row is None:
        return None
    since, until = (row[name].astimezone(UTC) for name in ("acquired_at", "expires_at"))
    began = f"{row['owner']}, which began to write the tables at {since.isoformat(timespec='seconds')},"
    if until > now:
        return f"the run {began} has not ended: rows may be missing until it has; if it was killed, run nightly again"
    return f"the run {began} was killed before its end: rows may be missing; run nightly again"
