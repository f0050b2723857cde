"""Committed offsets at a moment, from the tables: what was committed, what was open, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from coordinator_core.groups.certainty import CommitRecords
from coordinator_core.groups.offsets import Commit, GroupOffsets, TopicPartition
from coordinator_core.records import LogPosition
from jobs.queries.from_tables.selection import Selection
from jobs.relations.commits import ABORTED, COMMITTED, COUNTS, OPEN, UNDECIDED
from jobs.relations.log_extent import Extents, any_of, before_end, followed, is_of

GROUP: Final = "log_topic, log_partition, group_id"
KEY: Final = f"{GROUP}, topic, partition"
PLACE: Final = ("log_topic", "log_partition")
DETAILS: Final = (
    "committed_offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, topic_id, producer_id, timestamp_ms"
)

OF_GROUP: Final = itemgetter("log_topic", "log_partition", "group_id")

GroupKey = tuple[str, int, str]
"""Log topic, log partition and group id."""

Row = Mapping[str, Any]


class GroupCommitsThen(NamedTuple):
    """The commits of one group at a moment.

    ``last``: the offset of its last commit (None: it has none). ``held``: the commits that count and those of open
    transactions, in the order of the log. ``about``: what ``CommitRecords`` has of its partitions.
    """

    last: int | None
    held: Sequence[Row]
    about: Sequence[Row]


NO_COMMITS: Final = GroupCommitsThen(None, (), ())


def order_of_groups(key: GroupKey) -> tuple[str, str, int]:
    """Return what groups are sorted by: their id, then the log in which they are."""
    topic, partition, group_id = key
    return group_id, topic, partition


class CommitsThen:
    """The commits of a selection up to a moment, from ``offset_commits``."""

    def __init__(self, selected: Selection, extents: Extents) -> None:
        self._rows = selected.rows
        self._mine = selected.condition
        self._extents = extents
        self._then = self._commits()

    def groups(self) -> Iterator[tuple[GroupKey, GroupCommitsThen]]:
        """Yield each group that has commits, by ``order_of_groups``."""
        last = {OF_GROUP(row): row["log_offset"] for row in self.last()}
        held = _by_group(self.held())
        is_whole = all(extent.gaps.lists_all for extent in self._extents.values())
        about = {} if is_whole else _by_group(self.records())
        for key in sorted({*last, *held, *about}, key=order_of_groups):
            yield key, GroupCommitsThen(last.get(key), held.get(key, ()), about.get(key, ()))

    def last(self) -> Iterator[Row]:
        """Yield the offset of the last commit of each group."""
        return self._rows(
            f"WITH {self._then} SELECT {GROUP}, max(log_offset) AS log_offset FROM commits_then "
            f"WHERE NOT is_tombstone GROUP BY {GROUP}"
        )

    def held(self) -> Iterator[Row]:
        """Yield the commits that count at the moment and those of open transactions, ``status`` tells which.

        A tombstone ends what was committed before it, by transactions that were open then, too.
        """
        same = " AND ".join(f"d.{name} = c.{name}" for name in (*PLACE, "log_offset"))
        return self._rows(
            f"WITH {self._then}, latest AS ("
            f"SELECT {KEY}, max(CASE WHEN is_tombstone THEN log_offset END) AS ended, "
            f"max(CASE WHEN NOT is_tombstone AND {COUNTS} THEN log_offset END) AS committed "
            f"FROM commits_then GROUP BY {KEY}"
            f"), opened AS ("
            f"SELECT {KEY}, producer_id, max(log_offset) AS log_offset FROM commits_then "
            f"WHERE outcome = '{OPEN}' AND NOT is_tombstone GROUP BY {KEY}, producer_id"
            f"), chosen AS ("
            f"SELECT log_topic, log_partition, committed AS log_offset, 'committed' AS status FROM latest "
            f"WHERE committed > coalesce(ended, -1) "
            f"UNION ALL SELECT o.log_topic, o.log_partition, o.log_offset, 'pending' FROM opened AS o "
            f"JOIN latest AS l ON "
            + " AND ".join(f"o.{name} = l.{name}" for name in KEY.split(", "))
            + " WHERE o.log_offset > coalesce(l.ended, -1)) "
            f"SELECT d.*, c.status FROM (SELECT {KEY}, log_offset, {DETAILS} FROM $offset_commits "
            f"WHERE {self._mine}) AS d JOIN chosen AS c ON {same} ORDER BY log_offset"
        )

    def records(self) -> Iterator[Row]:
        """Yield what ``CommitRecords`` has of the partitions of each group for which it decides anything.

        A partition that only aborted transactions name is none of them.
        """
        doubtful = any_of(of for of, extent in self._extents.items() if not extent.gaps.lists_all)
        gaps = {of: extent.gaps for of, extent in self._extents.items()}
        may_be_lost = any_of(of for of, each in gaps.items() if each.lost >= 0 or each.lost_later)
        return self._rows(
            f"WITH {self._then}, about AS ("
            f"SELECT {KEY}, log_offset, is_tombstone, outcome, producer_id, is_decided_later, FALSE AS follows "
            f"FROM commits_then WHERE {doubtful} "
            f"UNION ALL SELECT DISTINCT {KEY}, CAST(NULL AS BIGINT), FALSE, CAST(NULL AS STRING), "
            f"CAST(NULL AS BIGINT), FALSE, TRUE FROM $offset_commits WHERE {self._mine} AND {followed(self._extents)}"
            f"), found AS ("
            f"SELECT {KEY}, "
            f"coalesce(max(CASE WHEN NOT follows AND (is_tombstone OR {COUNTS}) THEN log_offset END), -1) AS last, "
            f"coalesce(max(CASE WHEN outcome = '{OPEN}' AND NOT is_tombstone THEN log_offset END), -1) AS opened, "
            f"coalesce(max(CASE WHEN is_tombstone THEN log_offset END), -1) AS ended, "
            f"coalesce(bool_or(outcome = '{OPEN}' AND NOT is_tombstone AND is_decided_later), FALSE) "
            f"AS is_decided_later, bool_or(follows) AS is_followed, "
            f"coalesce(bool_or(NOT follows AND {UNDECIDED}), FALSE) AS is_undecided FROM about GROUP BY {KEY}) "
            f"SELECT {KEY}, last, CASE WHEN opened > ended THEN opened ELSE -1 END AS pending, is_followed, "
            f"is_decided_later FROM found "
            f"WHERE is_followed OR opened > ended OR ((last >= 0 OR is_undecided) AND {may_be_lost})"
        )

    def _commits(self) -> str:
        """Return the commits with their outcome as of the moment: a transaction that ended later was open.

        ``is_decided_later``: it was open, and not aborted since.
        """
        before = before_end(self._extents)
        names = f"{KEY}, log_offset, is_tombstone, producer_id"
        if all(extent.end is None for extent in self._extents.values()):
            return (
                f"commits_then AS (SELECT {names}, outcome, FALSE AS is_decided_later "
                f"FROM $offset_commits WHERE {self._mine} AND {before})"
            )
        lost = " ".join(f"WHEN {is_of(of)} THEN {extent.gaps.lost}" for of, extent in self._extents.items())
        has_ended = f"outcome IN ('{COMMITTED}', '{ABORTED}') AND NOT coalesce(marker_offset > log_offset, FALSE)"
        is_undecided = f"{UNDECIDED} AND log_offset > CASE {lost} ELSE -1 END"
        return (
            f"ends AS (SELECT log_topic AS end_topic, log_partition AS end_partition, producer_id AS end_producer, "
            f"max(log_offset) AS marker_offset FROM $log_records WHERE cluster = :cluster AND is_transactional "
            f"AND control_type IS NOT NULL AND {before} GROUP BY log_topic, log_partition, producer_id"
            f"), judged AS (SELECT {names}, outcome, "
            f"coalesce(({has_ended}) OR ({is_undecided}), FALSE) AS was_open FROM "
            f"(SELECT * FROM $offset_commits WHERE {self._mine} AND {before}) AS c LEFT JOIN ends "
            f"ON log_topic = end_topic AND log_partition = end_partition AND producer_id = end_producer"
            f"), commits_then AS (SELECT {names}, CASE WHEN was_open THEN '{OPEN}' ELSE outcome END AS outcome, "
            f"was_open AND outcome <> '{ABORTED}' AS is_decided_later FROM judged)"
        )


def _by_group(rows: Iterable[Row]) -> dict[GroupKey, list[Row]]:
    found: dict[GroupKey, list[Row]] = {}
    for row in rows:
        found.setdefault(OF_GROUP(row), []).append(row)
    return found


def read_offsets(held: Iterable[Row]) -> GroupOffsets:
    """Return the rows of ``held`` of one group, in the order of the log, as the core has them."""
    found = GroupOffsets()
    for row in held:
        producer_id = None if row["producer_id"] in (None, -1) else row["producer_id"]
        commit = Commit(
            row["committed_offset"],
            None if row["leader_epoch"] in (None, -1) else row["leader_epoch"],
            row["metadata"],
            row["commit_timestamp"],
            None if row["expire_timestamp"] in (None, -1) else row["expire_timestamp"],
            row["topic_id"],
            LogPosition(row["log_partition"], row["log_offset"], row["timestamp_ms"]),
            producer_id,
        )
        opened_by = -1 if producer_id is None else producer_id
        of = found.committed if row["status"] == "committed" else found.pending.setdefault(opened_by, {})
        of[TopicPartition(row["topic"], row["partition"])] = commit
    return found


def read_records(about: Iterable[Row]) -> dict[TopicPartition, CommitRecords]:
    """Return the rows of ``records`` of one group as the core has them."""
    return {
        TopicPartition(row["topic"], row["partition"]): CommitRecords(
            row["last"], row["pending"], row["is_followed"], row["is_decided_later"]
        )
        for row in about
    }
