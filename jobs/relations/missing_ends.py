"""The log partitions in the tables whose end is missing, as groups in them had to write more by now.

Most log partitions end where the metadata log does, or have no group that was about to write: then no state of a group
is read.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.group import Group
from coordinator_core.history.lost_records import NOTHING_LOST, LostRecords
from coordinator_core.history.missing_ends import SHORTEST_MS, AtEnd, LogTail, missing_end, shown_end
from coordinator_core.records import GROUP_LOG
from coordinator_core.state_json import VERSION
from jobs.relations.topics import stored_topics
from jobs.sources.files import METADATA_TOPIC
from jobs.tables.reader import TableReader, Value, known_rows

# Controllers write to the metadata log all the time: its end tells up to when groups, which may be quiet, had to write.
TAILS: Final = """
WITH ends AS (
  SELECT log_topic, log_partition, max(last_offset) AS last_offset, max(last_ms) AS last_ms,
    min(coalesce(leader_epoch, -1)) AS leader_epoch FROM $log_ranges
  WHERE cluster = :cluster AND log_topic IN (:groups, :metadata) AND log_partition IS NOT NULL
  GROUP BY log_topic, log_partition
)
SELECT e.log_topic AS log_topic, e.log_partition AS log_partition, e.last_offset AS last_offset, e.last_ms AS last_ms,
  e.leader_epoch AS leader_epoch, m.last_ms AS until_ms
FROM ends AS e JOIN ends AS m ON m.log_topic = :metadata AND e.last_ms + :shortest_ms <= m.last_ms
WHERE e.log_topic = :groups
ORDER BY log_partition
"""
"""The partitions of the log of groups that end long enough before the metadata log."""

CHANGED: Final = (
    "SELECT max(greatest(coalesce(t.since.timestamp_ms, -1), coalesce(t.until.timestamp_ms, -1))) AS changed_ms "
    "FROM $topic_history AS t WHERE cluster = :cluster"
)
STATES: Final = """
SELECT s.log_partition AS log_partition, s.state AS state FROM $group_states AS s JOIN (
  SELECT group_id FROM $rebalances WHERE cluster = :cluster AND is_open AND outcome = 'open'
  UNION SELECT group_id FROM $memberships AS m WHERE cluster = :cluster AND is_open AND m.away_since IS NOT NULL
  UNION SELECT group_id FROM $group_epochs AS e WHERE cluster = :cluster AND is_open
    AND group_type IN ('CONSUMER', 'SHARE', 'STREAMS') AND e.opened.timestamp_ms <= :changed_ms
) AS o ON s.group_id = o.group_id
WHERE s.cluster = :cluster AND s.log_topic = :groups AND s.log_partition IN :quiet AND s.version = :version
ORDER BY s.log_partition, s.group_id
"""
"""The states of the groups in these log partitions that may have to write: they rebalance, or topics changed later."""

COMMITTED: Final = """
SELECT DISTINCT c.log_partition AS log_partition, c.group_id AS group_id, c.topic AS topic FROM $commit_summaries AS c
JOIN $topic_history AS t ON t.cluster = c.cluster AND t.topic = c.topic
WHERE c.cluster = :cluster AND c.log_topic = :groups AND c.log_partition IN :quiet AND c.hour_ms IS NULL
AND c.committed.log_offset IS NOT NULL AND t.ended_by IN ('deleted', 'replaced') AND t.until.timestamp_ms > :last_ms
ORDER BY log_partition, group_id, topic
"""
"""The groups in these log partitions with the topics of which they have offsets and that were deleted later."""

SHOWN: Final = """
SELECT partition AS log_partition, timestamp_ms, end_offset FROM $end_offsets
WHERE cluster = :cluster AND topic = :groups AND partition IN :quiet AND end_offset IS NOT NULL
AND timestamp_ms > :last_ms ORDER BY log_partition, timestamp_ms
"""
"""The end offsets of these log partitions, as snapshots show them."""


class StoredEnd(NamedTuple):
    """A log partition whose end is missing: its last offset that is there, and in words why more is missing."""

    last: int
    reason: str


def missing_ends(
    tables: TableReader, cluster: str, lost_records: Callable[[], LostRecords]
) -> dict[tuple[str, int], StoredEnd]:
    """Return the log partitions whose ends are missing. ``lost_records``: where there are some, no state counts."""
    if not (tables.exists("log_ranges") and tables.exists("group_states") and tables.exists("rebalances")):
        return {}
    of: dict[str, Value] = {"cluster": cluster, "groups": GROUP_LOG}
    rows = list(tables.rows(TAILS, **of, metadata=METADATA_TOPIC, shortest_ms=SHORTEST_MS))
    quiet = [LogTail(row["log_topic"], row["log_partition"], row["last_offset"], row["last_ms"]) for row in rows]
    lost = lost_records() if quiet else NOTHING_LOST
    doubtful = {*lost.ranges, *lost.unreadable, *lost.unplaced}
    # Where records are lost or cannot be read, the state that would have to prove a missing end is itself in doubt.
    quiet = [tail for tail in quiet if (tail.topic, tail.partition) not in doubtful]
    if not quiet:
        return {}
    of |= {"quiet": [tail.partition for tail in quiet]}
    # One bound for all partitions keeps the questions few: what is too early for one of them is judged by its own end.
    states, since_ms = _states(tables, of), min(tail.last_ms for tail in quiet)
    committed, shown = _committed(tables, of, since_ms), _shown(tables, of, since_ms)
    # Rows without a leader epoch are of a dump that lacks control records: offsets behind its last one may be those.
    until_ms = {row["log_partition"]: row["until_ms"] if row["leader_epoch"] >= 0 else -1 for row in rows}
    topics = stored_topics(tables, cluster) if states or committed else None
    found = {}
    for tail in quiet:
        there = partial(AtEnd, _groups(states.get(tail.partition, ())), committed.get(tail.partition, ()))
        by_snapshot = shown_end(tail, shown.get(tail.partition, ()), until_ms[tail.partition])
        reason = by_snapshot or missing_end(tail, there, topics)
        if reason is not None:
            found[tail.topic, tail.partition] = StoredEnd(tail.offset, reason)
    return found


def _states(tables: TableReader, of: dict[str, Value]) -> dict[int, list[str]]:
    (changed,) = tables.rows(CHANGED, cluster=of["cluster"]) if tables.exists("topic_history") else ({},)
    changed_ms = changed.get("changed_ms")
    by_partition = defaultdict[int, list[str]](list)
    given = of | {"version": str(VERSION), "changed_ms": -1 if changed_ms is None else changed_ms}
    for row in tables.rows(STATES, **given):
        by_partition[row["log_partition"]].append(row["state"])
    return by_partition


def _committed(tables: TableReader, of: dict[str, Value], last_ms: int) -> dict[int, list[tuple[str, str]]]:
    by_partition = defaultdict[int, list[tuple[str, str]]](list)
    for row in known_rows(tables, COMMITTED, **of, last_ms=last_ms):
        by_partition[row["log_partition"]].append((row["group_id"], row["topic"]))
    return by_partition


def _shown(tables: TableReader, of: dict[str, Value], last_ms: int) -> dict[int, list[EndOffset]]:
    by_partition = defaultdict[int, list[EndOffset]](list)
    for row in known_rows(tables, SHOWN, **of, last_ms=last_ms):
        by_partition[row["log_partition"]].append(EndOffset(row["timestamp_ms"], row["end_offset"]))
    return by_partition


def _groups(states: Sequence[str]) -> Iterator[Group]:
    from coordinator_core.audit.group_audit import STATE_FORM  # half of the core, of which most questions need nothing

    return (STATE_FORM.decode(state).group for state in states)
