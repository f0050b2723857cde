"""What ``commit_summaries`` says of a group: sums of its commits, commits that went back, removed offsets and why they
were removed, and open transactions.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa

from coordinator_core.audit.findings.resets import PartitionRewind
from coordinator_core.audit.folds.commits import OpenTransaction, PartitionCommits, Removal, Rewind
from coordinator_core.audit.folds.removals import TOPIC_DELETED, how_by_lines, how_removed, removal_window, with_group
from coordinator_core.audit.folds.witness import BrokerLines
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.cluster.given_topics import TopicReach
from coordinator_core.groups.group import GROUP_ENDS
from coordinator_core.records import LogPosition
from coordinator_core.wire.transactions import TransactionOutcome
from jobs.relations.positions import stored_position
from jobs.tables.reader import Row, TableReader

Batches: TypeAlias = "Iterable[pa.RecordBatch]"

Place = tuple[str, int]
"""Log topic and log partition."""


class Summary(NamedTuple):
    """What histories need of a row of all commits of ``commit_summaries``."""

    group_id: str
    log_topic: str
    log_partition: int
    topic: str
    partition: int
    commits: int | None
    ended: int | None
    offset: int | None
    first_partition: int
    first_offset: int
    first_ms: int
    last_partition: int
    last_offset: int
    last_ms: int
    rewinds: Sequence[Row] | None
    removals: Sequence[Row] | None
    pending: Sequence[Row] | None
    rewind_count: int | None
    removal_count: int | None
    topic_id: str | None


class GroupEnd(NamedTuple):
    """The tombstone of a group."""

    log_topic: str
    log_partition: int
    log_offset: int
    timestamp_ms: int


NESTED: Final = {
    "offset": "s.committed.committed_offset",
    "topic_id": "s.committed.topic_id",
    **{
        f"{end}_{name}": f"s.{end}.{part}"
        for end in ("first", "last")
        for name, part in zip(("partition", "offset", "ms"), LogPosition._fields, strict=True)
    },
    **{name: f"CASE WHEN cardinality(s.{name}) > 0 THEN s.{name} END" for name in ("rewinds", "removals", "pending")},
}
"""Most partitions have no steps. Structs and lists take most of the time that a row takes on its way here."""

SUMMARY: Final = ", ".join(f"{NESTED.get(name, f's.{name}')} AS {name}" for name in Summary._fields)

SUMMARIES: Final = f"SELECT {SUMMARY} FROM $commit_summaries AS s WHERE cluster = :cluster AND hour_ms IS NULL"
"""The columns of ``Summary``."""

REWINDS_OF_GROUP: Final = f"{SUMMARIES} AND group_id = :group_id AND cardinality(s.rewinds) > 0"
"""The rows of ``SUMMARIES`` of one group whose commits went back."""

GROUP_ENDS_TEXT: Final = (
    "SELECT group_id, log_topic, log_partition, log_offset, timestamp_ms FROM $group_records "
    "WHERE cluster = :cluster AND is_tombstone AND record_type IN :types AND log_offset IS NOT NULL"
)
"""The columns of ``GroupEnd``: the tombstones of groups, of the types ``END_TYPES``."""

END_TYPES: Final = sorted(kind.value for kind in GROUP_ENDS)

OF_GROUP: Final = ("cluster", "log_topic", "log_partition", "group_id")
KEYS: Final = ", ".join((*OF_GROUP, "topic", "partition"))
OF_RECORD: Final = ("cluster", "log_topic", "log_partition", "log_offset")


def _same(one: str, other: str, names: Sequence[str]) -> str:
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in names)


def _steps(kind: str) -> str:
    """Return a text of the rewinds or removals of each hour, as ``step``."""
    return (
        f"SELECT {KEYS}, each_of({kind}) AS step FROM $commit_summaries "
        f"WHERE cluster = :cluster AND hour_ms IS NOT NULL AND cardinality({kind}) > 0"
    )


REWINDS: Final = f"""
WITH steps AS ({_steps("rewinds")}), went_back AS (
  SELECT {", ".join(f"s.{name} AS {name}" for name in KEYS.split(", "))}, s.step.at.offset AS log_offset,
    s.step.at.timestamp_ms AS timestamp_ms, s.step.before AS offset_before,
    s.step.log_offset_before AS log_offset_before, s.step.after AS committed_offset, m.member_id AS committer
  FROM steps AS s LEFT JOIN (SELECT DISTINCT cluster, group_id, member_id FROM $memberships) AS m
    ON {_same("m", "s", ("cluster", "group_id"))} AND m.member_id = s.step.metadata
), owners AS (
  SELECT {", ".join(f"b.{name} AS {name}" for name in OF_RECORD)},
    -- Partitions overlap for a moment in a cooperative rebalance: who of two owners went back is not known.
    CASE WHEN min(a.member_id) = max(a.member_id) THEN min(a.member_id) END AS owner
  FROM went_back AS b JOIN $assignments AS a ON {_same("a", "b", ("cluster", "group_id", "topic", "partition"))}
    AND a.kind = 'current' AND a.role = 'partition' AND a.since.partition = b.log_partition
    AND a.since.offset <= b.log_offset AND coalesce(a.until.offset > b.log_offset, TRUE)
  GROUP BY {", ".join(f"b.{name}" for name in OF_RECORD)}
), before AS (
  SELECT {", ".join(f"b.{name} AS {name}" for name in OF_RECORD)}, r.at AS rebalance_at, r.to_epoch AS rebalance_to,
    coalesce(r.finished.offset >= b.log_offset, TRUE) AS in_rebalance,
    row_number() OVER (PARTITION BY {", ".join(f"b.{name}" for name in OF_RECORD)} ORDER BY r.at.offset DESC) AS nth
  FROM went_back AS b JOIN $rebalances AS r ON {_same("r", "b", ("cluster", "group_id"))}
    AND r.at.partition = b.log_partition AND r.at.offset <= b.log_offset
)
SELECT b.*, o.owner AS owner, l.rebalance_at AS rebalance_at, l.rebalance_to AS rebalance_to,
  l.in_rebalance AS in_rebalance
FROM went_back AS b LEFT JOIN owners AS o ON {_same("o", "b", OF_RECORD)}
LEFT JOIN (SELECT * FROM before WHERE nth = 1) AS l ON {_same("l", "b", OF_RECORD)}
"""
"""The commits that went back, with the owner of the partition then, if it had one alone, and the last rebalance
before.
"""

# A left join: most offsets are removed while their group lives, and have no end of a group beside them.
REMOVALS: Final = f"""
WITH steps AS ({_steps("removals")}), removed AS (
  SELECT {KEYS}, s.step.at.offset AS log_offset, s.step.at.timestamp_ms AS timestamp_ms,
    s.step.offset AS offset_before, s.step.log_offset_before AS log_offset_before, s.step.age_ms AS age_ms,
    s.step.past_expiry AS past_expiry
  FROM steps AS s
), ends AS (
  -- A coordinator writes all records of one operation with one time: an equal time joins offsets to their group.
  SELECT cluster, log_topic, log_partition, group_id, timestamp_ms, max(log_offset) AS group_end FROM $group_records
  WHERE cluster = :cluster AND is_tombstone AND record_type IN :types AND log_offset IS NOT NULL
  GROUP BY cluster, log_topic, log_partition, group_id, timestamp_ms
)
SELECT r.*, e.group_end AS group_end
FROM removed AS r LEFT JOIN ends AS e ON {_same("e", "r", (*OF_GROUP, "timestamp_ms"))}
"""
"""The tombstones of committed offsets; ``group_end``: the last tombstone of the group at the same time."""


def removal_rows(
    topic_ends: Mapping[str, Sequence[int]],
    reach: TopicReach,
    lines: Mapping[str | None, Sequence[BrokerEvent]],
    schema: pa.Schema,
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return the fold of ``REMOVALS``, in any order, that adds the ``cause`` of each.

    ``topic_ends``: when topics were deleted (ms), by name; ``reach``: over which times each deletion is known.
    ``lines``: what brokers' application logs say of removals, by the group that they name (None: they name none).
    """
    # Rows come in any order, and lines are sorted out once for each group, not for each of its partitions.
    of_group: dict[str, BrokerLines] = {}

    def about(group_id: str) -> BrokerLines:
        if group_id not in of_group:
            of_group[group_id] = BrokerLines({*lines.get(group_id, ()), *lines.get(None, ())})
        return of_group[group_id]

    def with_cause(row: Row) -> dict[str, object]:
        in_deletion = row["group_end"] is not None and row["group_end"] > row["log_offset"]
        at = stored_position(row["log_partition"], row["log_offset"], row["timestamp_ms"])
        proven = removal_cause(at.timestamp_ms, topic_ends.get(row["topic"], ()), row, in_deletion=in_deletion)
        cause = how_by_lines(proven, about(row["group_id"]), row["topic"], row["partition"], at, reach)
        return {**row, "cause": cause}

    def fold(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist([with_cause(row) for row in batch.to_pylist()], schema)

    return fold


def sums_of_group(
    summaries: Iterable[Summary], group_ends: Iterable[GroupEnd], topic_ends: Mapping[str, Sequence[int]]
) -> Iterator[PartitionCommits | OpenTransaction]:
    """Yield for each log partition the sums of the commits of a group in it, and its open transactions.

    ``topic_ends``: when topics were deleted (ms), by name.
    """
    by_place: dict[Place, list[Summary]] = defaultdict(list)
    for row in summaries:
        by_place[row.log_topic, row.log_partition].append(row)
    ends = [*group_ends]
    for place, of_log in by_place.items():
        ends_there = [end for end in ends if (end.log_topic, end.log_partition) == place]
        for row in of_log:
            if row.commits:
                yield _partition_commits(row, ends_there, topic_ends.get(row.topic, ()))
        yield from _open_transactions(of_log)


def _partition_commits(row: Summary, group_ends: Sequence[GroupEnd], topic_ends: Sequence[int]) -> PartitionCommits:
    """Return the sums; ``group_ends``: the group's tombstones; ``topic_ends``: deletions of the topic."""
    # The lists have the first steps alone, so that a row stays small; counts tell how many more there were.
    rewinds: tuple[Rewind, ...] = ()
    removals: tuple[Removal, ...] = ()
    if row.rewinds is not None:
        rewinds = tuple(map(_rewind, row.rewinds))
    if row.removals is not None:
        removals = tuple(_removal(removal, group_ends, topic_ends) for removal in row.removals)
    return PartitionCommits(
        row.topic,
        row.partition,
        row.commits or 0,
        stored_position(row.first_partition, row.first_offset, row.first_ms),
        stored_position(row.last_partition, row.last_offset, row.last_ms),
        row.offset,
        rewinds,
        removals,
        max((row.rewind_count or 0) - len(rewinds), 0),
        max((row.removal_count or 0) - len(removals), 0),
        row.topic_id,
    )


def _rewind(row: Row) -> Rewind:
    return Rewind(stored_position(**row["at"]), row["before"], row["after"], row["metadata"], row["log_offset_before"])


def _removal(row: Row, group_ends: Sequence[GroupEnd], topic_ends: Sequence[int]) -> Removal:
    at = stored_position(**row["at"])
    # Without times (-1) nothing proves that two records were written in one operation.
    same_time = (end for end in group_ends if end.timestamp_ms == at.timestamp_ms >= 0)
    in_deletion = any(end.log_offset > at.offset for end in same_time)
    return Removal(at, row["offset"], removal_cause(at.timestamp_ms, topic_ends, row, in_deletion=in_deletion))


def removal_cause(at_ms: int, topic_ends: Sequence[int], row: Row, *, in_deletion: bool) -> str:
    """Return why an offset was removed; ``row`` has the age of the commit, and whether its expiry had passed.

    ``in_deletion``: a tombstone of the group follows at the same time. A coordinator that deletes a group writes the
    tombstones of its offsets before that of the group.
    """
    how = how_removed(row["age_ms"], past_expiry=bool(row["past_expiry"]))
    if in_deletion:
        return with_group(how)
    if any(since <= at_ms <= until for since, until in map(removal_window, topic_ends)):
        return TOPIC_DELETED
    return how


def _open_transactions(summaries: Sequence[Summary]) -> Iterator[OpenTransaction]:
    """Yield the transactions of one group without an end in the log, as far as no tombstone ended their commits."""
    positions: dict[int, list[LogPosition]] = defaultdict(list)
    partitions: dict[int, set[tuple[str, int]]] = defaultdict(set)
    for row in summaries:
        ended = -1 if row.ended is None else row.ended
        for commit in row.pending or ():
            if commit["outcome"] == TransactionOutcome.OPEN.value and commit["log_offset"] > ended:
                producer_id = commit["producer_id"]
                at = stored_position(row.log_partition, commit["log_offset"], commit["timestamp_ms"])
                positions[producer_id].append(at)
                partitions[producer_id].add((row.topic, row.partition))
    for producer_id, of_producer in positions.items():
        yield OpenTransaction(producer_id, min(of_producer), len(partitions[producer_id]))


def rewinds_of_group(tables: TableReader, cluster: str, group_id: str) -> Iterator[PartitionRewind]:
    """Yield the commits of a group with a lower offset than the commit before: the first ones of each partition."""
    for row in tables.rows(REWINDS_OF_GROUP, cluster=cluster, group_id=group_id):
        for rewind in map(_rewind, row["rewinds"]):
            yield PartitionRewind(row["topic"], row["partition"], rewind.before, rewind.after, rewind.at)


def topic_ends(tables: TableReader, cluster: str) -> dict[str, list[int]]:
    """Return the times (ms) at which topics of a cluster were deleted, or created again, by name."""
    rows = tables.rows(
        "SELECT t.topic AS topic, t.until.timestamp_ms AS ended_ms FROM $topic_history AS t "
        "WHERE cluster = :cluster AND ended_by IN ('deleted', 'replaced')",
        cluster=cluster,
    )
    by_name: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_name[row["topic"]].append(row["ended_ms"])
    return by_name
