"""The commits of one group from the tables, joined to runs by the reader of the tables."""

from collections import defaultdict
from typing import Final

from coordinator_core.audit.offsets.runs import CommitRun, GroupCommits, Held
from coordinator_core.groups.group import GROUP_ENDS
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import GROUP_LOG, LogPosition
from jobs.relations.commit_sums import topic_ends
from jobs.relations.commits import ABORTED, KEY, OF_GROUP, in_order
from jobs.relations.positions import stored_position
from jobs.relations.topics import topics_given
from jobs.tables.reader import Row, TableReader

RUNS: Final = f"""
{in_order(KEY, OF_GROUP)}, edges AS (
  SELECT a.since.partition AS log_partition, a.partition AS partition, a.since.offset AS log_offset
  FROM $assignments AS a WHERE a.cluster = :cluster AND a.group_id = :group_id AND a.kind = 'current'
  UNION SELECT a.until.partition, a.partition, a.until.offset
  FROM $assignments AS a WHERE a.cluster = :cluster AND a.group_id = :group_id AND a.kind = 'current'
    AND a.until.offset IS NOT NULL
  -- An epoch is an edge of every partition, also of one whose owner stayed: commits of two epochs are two runs.
  UNION SELECT e.opened.partition, k.partition, e.opened.offset FROM $group_epochs AS e
  CROSS JOIN (SELECT DISTINCT partition FROM kept) AS k WHERE e.cluster = :cluster AND e.group_id = :group_id
  UNION SELECT e.ended.partition, k.partition, e.ended.offset FROM $group_epochs AS e
  CROSS JOIN (SELECT DISTINCT partition FROM kept) AS k WHERE e.cluster = :cluster AND e.group_id = :group_id
    AND e.ended.offset IS NOT NULL
), named AS (
  -- Metadata is any text of a client: it names a committer only where it is the id of a member.
  SELECT DISTINCT member_id AS committer FROM $memberships WHERE cluster = :cluster AND group_id = :group_id
), stretched AS (
  SELECT *, sum(edge) OVER (PARTITION BY {KEY} ORDER BY log_offset, edge DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS stretch
  FROM (
    SELECT {KEY}, log_offset, timestamp_ms, is_tombstone, committed_offset, topic_id, expire_timestamp,
      commit_timestamp, effective, committer, 0 AS edge FROM kept LEFT JOIN named ON metadata = committer
    UNION ALL
    SELECT k.log_topic, k.log_partition, k.topic, k.partition, e.log_offset, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
      NULL, 1
    FROM edges AS e JOIN (SELECT DISTINCT {KEY} FROM kept) AS k
    ON k.log_partition = e.log_partition AND k.partition = e.partition
  ) AS both_kinds
), linked AS (
  SELECT *, lag(is_tombstone) OVER w AS gone_before, lag(log_offset) OVER w AS held_at,
    lag(timestamp_ms) OVER w AS before_ms, lag(committed_offset) OVER w AS held_offset,
    lag(topic_id) OVER w AS held_topic_id, lag(expire_timestamp) OVER w AS held_expires,
    lag(commit_timestamp) OVER w AS held_committed, lag(stretch) OVER w AS stretch_before,
    lag(committer) OVER w AS committer_before
  FROM stretched WHERE edge = 0 WINDOW w AS (PARTITION BY {KEY} ORDER BY effective, log_offset)
), alone AS (
  -- A topic that was made again counts from 0: its offsets do not go on from those of the old one.
  SELECT *, (is_tombstone OR coalesce(gone_before, TRUE) OR committed_offset < held_offset
    OR coalesce(topic_id <> held_topic_id, FALSE)) AS is_alone FROM linked
), begun AS (
  SELECT *, CASE WHEN is_alone OR stretch <> stretch_before
    OR coalesce(committer, '') <> coalesce(committer_before, '')
    OR lag(is_alone) OVER (PARTITION BY {KEY} ORDER BY effective, log_offset)
    THEN 1 ELSE 0 END AS begins FROM alone
), numbered AS (
  SELECT *, sum(begins) OVER (PARTITION BY {KEY} ORDER BY effective, log_offset
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS run FROM begun
), summed AS (
  SELECT {KEY}, run, count(*) AS commits, max(log_offset) AS last_at,
    -- Only one row of a run begins it, so that the maximum just picks that row's value.
    max(CASE WHEN begins = 1 THEN effective END) AS effective
  FROM numbered GROUP BY {KEY}, run
)
SELECT f.log_partition AS log_partition, f.topic AS topic, f.partition AS partition, s.commits AS commits,
  f.log_offset AS first_at, f.timestamp_ms AS first_ms, l.log_offset AS last_at, l.timestamp_ms AS last_ms,
  f.committed_offset AS first_offset, l.committed_offset AS last_offset, f.is_tombstone AS is_tombstone,
  f.topic_id AS topic_id, f.gone_before AS gone_before, f.held_at AS held_at, f.before_ms AS before_ms,
  f.held_offset AS held_offset, f.held_topic_id AS held_topic_id, f.held_expires AS held_expires,
  f.held_committed AS held_committed, f.committer AS committer
FROM summed AS s
JOIN numbered AS f ON f.begins = 1 AND f.run = s.run AND f.log_partition = s.log_partition AND f.topic = s.topic
  AND f.partition = s.partition AND f.log_topic = s.log_topic
JOIN numbered AS l ON l.log_offset = s.last_at AND l.log_partition = s.log_partition AND l.topic = s.topic
  AND l.partition = s.partition AND l.log_topic = s.log_topic
ORDER BY s.effective, f.log_offset
"""
"""A run ends where an offset is not above the one before, where a tombstone lies, and where the owner, the epoch of the
group, or the member that the commits name changes. Numbers of one partition rise with the log, as commits that were
overtaken are left out.

The steps, each a row for each commit until the last one:

- ``edges``: the positions at which an owner or an epoch begins or ends; ``stretched`` puts them between the commits and
  counts how many lie before each commit. Commits with the same count have the same owner and epoch. Both kinds are rows
  of one window: a join by ``<`` would compare all pairs.
- ``named``: the members of the group, one of which the metadata of a commit may name.
- ``linked``: the commit before, of the same partition; ``alone``: a commit that makes a run of its own, because the
  offset went back, or the partition had none before or has none now.
- ``begun``: 1 where a run begins, also behind a commit that is alone; ``numbered``: the sum of these numbers each run.
- ``summed``: a row for each run, joined to its first and its last commit.

A commit of a transaction holds from the end of the transaction on (``effective``), so commits are linked in that order;
stretches follow the log, as the owner is that of the time of writing."""

# What a transaction without a known end committed is in no run, and the answer says how much that is. Behind a later
# tombstone it does not matter whether the transaction was committed: the offset is gone in both cases.
LEFT_OUT: Final = f"""
SELECT count(*) AS commits FROM $offset_commits AS c LEFT JOIN (
  SELECT {KEY}, max(log_offset) AS ended FROM $offset_commits
  WHERE cluster = :cluster AND group_id = :group_id AND log_offset IS NOT NULL AND is_tombstone GROUP BY {KEY}
) AS t ON c.log_topic = t.log_topic AND c.log_partition = t.log_partition AND c.topic = t.topic
  AND c.partition = t.partition
WHERE c.cluster = :cluster AND c.group_id = :group_id AND c.log_offset > coalesce(t.ended, -1)
  AND c.outcome NOT IN ('committed', '{ABORTED}') AND coalesce(c.producer_id >= 0, FALSE)
"""


def stored_commits(tables: TableReader, cluster: str, group_id: str) -> GroupCommits:
    """Return the commits of a group, with what the logs of its cluster say about removed offsets."""
    of = {"cluster": cluster, "group_id": group_id}
    (left_out,) = tables.rows(LEFT_OUT, **of)
    return GroupCommits(
        [_run(row) for row in tables.rows(RUNS, **of)],
        _coverage(tables, cluster),
        _group_ends(tables, cluster, group_id),
        topic_ends(tables, cluster),
        left_out["commits"],
        topics_given(tables, cluster).reach,
    )


def _run(row: Row) -> CommitRun:
    log = row["log_partition"]
    held = None
    # Null: no commit came before. True: a tombstone removed it. In both cases the partition had no offset to hold.
    if row["gone_before"] is False:
        at = stored_position(log, row["held_at"], row["before_ms"])
        held = Held(
            at,
            row["held_offset"],
            row["held_topic_id"],
            -1 if row["held_expires"] is None else row["held_expires"],
            -1 if row["held_committed"] is None else row["held_committed"],
        )
    return CommitRun(
        TopicPartition(row["topic"], row["partition"]),
        stored_position(log, row["first_at"], row["first_ms"]),
        stored_position(log, row["last_at"], row["last_ms"]),
        row["commits"],
        held,
        row["first_offset"],
        row["last_offset"],
        row["topic_id"],
        metadata=row["committer"],
    )


def _coverage(tables: TableReader, cluster: str) -> Coverage:
    ranges: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row in tables.rows(
        "SELECT log_partition, first_offset, last_offset FROM $log_ranges "
        "WHERE cluster = :cluster AND log_topic = :topic",
        cluster=cluster,
        topic=GROUP_LOG,
    ):
        ranges[row["log_partition"]].append((row["first_offset"], row["last_offset"]))
    return Coverage(ranges)


def _group_ends(tables: TableReader, cluster: str, group_id: str) -> list[LogPosition]:
    rows = tables.rows(
        "SELECT log_partition, log_offset, timestamp_ms FROM $group_records WHERE cluster = :cluster "
        "AND group_id = :group_id AND log_topic = :topic AND is_tombstone AND record_type IN :types "
        "AND log_offset IS NOT NULL",
        cluster=cluster,
        group_id=group_id,
        topic=GROUP_LOG,
        types=sorted(record_type.value for record_type in GROUP_ENDS),
    )
    return [stored_position(row["log_partition"], row["log_offset"], row["timestamp_ms"]) for row in rows]
