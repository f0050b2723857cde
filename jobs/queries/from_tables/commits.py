"""Committed offsets at a moment, from the tables: what was committed, what was open, and what is known of it."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from coordinator_core.groups.certainty import CommitRecords
from coordinator_core.groups.offsets import Commit, GroupOffsets, TopicPartition
from jobs.queries.from_tables.selection import Selection
from jobs.relations.commits import ABORTED, COMMITTED, COUNTS, OPEN, UNDECIDED
from jobs.relations.log_extent import NOTHING, Extents, any_of, before_end, by_place, followed
from jobs.relations.positions import stored_position
from jobs.relations.up_to_date import has_all_commits
from jobs.tables.reader import Row
from jobs.tables.table import PLACED

GROUP: Final = "log_topic, log_partition, group_id"
ORDER: Final = "group_id, log_topic, log_partition"
KEY: Final = f"{GROUP}, topic, partition"
PLACE: Final = ("log_topic", "log_partition")
DETAILS: Final = (
    "committed_offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, topic_id, producer_id, timestamp_ms"
)

OF_GROUP: Final = itemgetter("log_topic", "log_partition", "group_id")

GroupKey = tuple[str, int, str]
"""Log topic, log partition and group id."""


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


DETAILED: Final = f"SELECT {KEY}, {{0}}.log_offset AS log_offset, " + ", ".join(
    f"{{0}}.{name} AS {name}" for name in DETAILS.split(", ")
)
SUMMARIES: Final = "$commit_summaries AS s WHERE hour_ms IS NULL AND "
NOT_COUNTED: Final = "written > commits + coalesce(cardinality(pending), 0)"
"""Rows of partitions with commits of aborted transactions, or that a later commit overtook: no summary names them."""


def commits_then(selected: Selection, extents: Extents) -> Iterator[tuple[GroupKey, GroupCommitsThen]]:
    """Yield the groups of a selection that have commits up to a moment, by ``order_of_groups``."""
    return commits_of(selected, extents).groups()


def commits_of(selected: Selection, extents: Extents) -> "CommitsThen":
    """Return what reads the commits of a selection up to a moment: the summaries of them, where that is the end."""
    is_at_end = all(extent.end is None for extent in extents.values())
    if is_at_end and has_all_commits(selected.tables, selected.cluster):
        return SummarizedCommits(selected, extents)
    return CommitsThen(selected, extents)


class CommitsThen:
    """The commits of a selection up to a moment, from ``offset_commits``."""

    def __init__(self, selected: Selection, extents: Extents) -> None:
        self._rows = selected.rows
        self._mine = selected.condition
        self._extents = extents
        self._then = self._commits()

    def groups(self) -> Iterator[tuple[GroupKey, GroupCommitsThen]]:
        """Yield each group that has commits, by ``order_of_groups``."""
        is_whole = all(extent.gaps.lists_all for extent in self._extents.values())
        parts = [self.last(), self.held(), iter(()) if is_whole else self.records()]
        numbered = (_numbered(number, rows) for number, rows in enumerate(parts))
        # All three come in the same order: merged, one group at a time is in memory.
        merged = merge(*numbered, key=lambda part: order_of_groups(part[0]))
        for key, of_group in groupby(merged, itemgetter(0)):
            by_part: tuple[list[Row], ...] = ([], [], [])
            for _, number, row in of_group:
                by_part[number].append(row)
            last, held, about = by_part
            yield key, GroupCommitsThen(last[0]["log_offset"] if last else None, held, about)

    def named(self) -> Iterator[str]:
        """Yield the ids of the groups that have commits or tombstones of commits up to the moment, each once."""
        return (row["group_id"] for row in self._rows(f"WITH {self._then} SELECT DISTINCT group_id FROM commits_then"))

    def last(self) -> Iterator[Row]:
        """Yield the offset of the last commit of each group."""
        return self._rows(
            f"WITH {self._then}, written AS ({self._written()}) "
            f"SELECT {GROUP}, max(log_offset) AS log_offset FROM written GROUP BY {GROUP} ORDER BY {ORDER}"
        )

    def _written(self) -> str:
        """Return a text of the commits, or of those among which the last one of each group is."""
        return f"SELECT {GROUP}, log_offset FROM commits_then WHERE NOT is_tombstone"

    def held(self) -> Iterator[Row]:
        """Yield the commits that count at the moment and those of open transactions, ``status`` tells which.

        A tombstone ends what was committed before it, by transactions that were open then, too.
        """
        # First which offsets count, from narrow columns; what these few commits say is joined to them at the end.
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
            f"SELECT d.*, c.status FROM ({self._details()}) AS d JOIN chosen AS c ON {same} "
            f"ORDER BY {ORDER}, log_offset"
        )

    def _details(self) -> str:
        """Return a text of what the commits say, with their place."""
        return f"SELECT {KEY}, log_offset, {DETAILS} FROM $offset_commits WHERE {self._mine}"

    def records(self) -> Iterator[Row]:
        """Yield what ``CommitRecords`` has of the partitions of each group for which it decides anything.

        A partition that only aborted transactions name is none of them.
        """
        doubtful = any_of(of for of, extent in self._extents.items() if not extent.gaps.lists_all)
        gaps = {of: extent.gaps for of, extent in self._extents.items()}
        # Where nothing is lost, the last record of a partition proves itself unless something follows it or is pending.
        may_be_lost = any_of(of for of, gap in gaps.items() if gap.lost >= 0 or gap.lost_later)
        later_rows = followed(self._extents)
        later = (
            f"UNION ALL SELECT DISTINCT {KEY}, CAST(NULL AS BIGINT), FALSE, CAST(NULL AS STRING), "
            f"CAST(NULL AS BIGINT), FALSE, TRUE FROM $offset_commits WHERE {self._mine} AND {later_rows}"
        )
        return self._rows(
            f"WITH {self._then}, about AS ("
            f"SELECT {KEY}, log_offset, is_tombstone, outcome, producer_id, is_decided_later, FALSE AS follows "
            f"FROM commits_then WHERE {doubtful} {'' if later_rows == NOTHING else later}"
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
            f"WHERE is_followed OR opened > ended OR ((last >= 0 OR is_undecided) AND {may_be_lost}) ORDER BY {ORDER}"
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
        lost = by_place({of: extent.gaps.lost for of, extent in self._extents.items()})
        # A marker of the producer between a commit and the moment ended its transaction: its last one before the
        # moment tells.
        has_ended = f"outcome IN ('{COMMITTED}', '{ABORTED}') AND NOT coalesce(marker_offset > log_offset, FALSE)"
        # The loss that hides the marker lies behind the moment, unless something is lost between the commit and the
        # moment.
        is_undecided = f"{UNDECIDED} AND log_offset > coalesce({lost}, -1)"
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


def _numbered(number: int, rows: Iterator[Row]) -> Iterator[tuple[GroupKey, int, Row]]:
    # Not where it is called: what is drawn later would have the number of the last part.
    return ((OF_GROUP(row), number, row) for row in rows)


class SummarizedCommits(CommitsThen):
    """The same at the end of the log, from ``commit_summaries``: the few commits of each partition that matter."""

    def __init__(self, selected: Selection, extents: Extents) -> None:
        rows = selected.rows(
            f"SELECT DISTINCT group_id FROM {SUMMARIES} {selected.condition} AND {NOT_COUNTED} ORDER BY group_id"
        )
        self._uncounted = [row["group_id"] for row in rows]
        super().__init__(selected, extents)
        self._rows = partial(selected.rows, uncounted=self._uncounted)

    def _written(self) -> str:
        if not self._uncounted:
            return super()._written()
        return (
            f"{super()._written()} UNION ALL SELECT {GROUP}, log_offset FROM $offset_commits WHERE {self._mine} "
            f"AND group_id IN :uncounted AND NOT is_tombstone AND {PLACED}"
        )

    def _details(self) -> str:
        committed, pending = DETAILED.format("s.committed"), DETAILED.format("p.pending_commit")
        return (
            f"{committed}, s.committed.outcome AS outcome FROM {SUMMARIES} {self._mine} "
            f"AND s.committed.log_offset IS NOT NULL UNION ALL {pending}, p.pending_commit.outcome FROM "
            f"(SELECT {KEY}, each_of(pending) AS pending_commit FROM {SUMMARIES} {self._mine} "
            f"AND cardinality(pending) > 0) AS p"
        )

    def _commits(self) -> str:
        """Return the commits that hold or are open, the last tombstones, and the last commits that hold."""
        place = f"SELECT {KEY}, {{}} AS log_offset, {{}} AS is_tombstone, -1 AS producer_id, '{{}}' AS outcome".format
        parts = [
            f"SELECT {KEY}, log_offset, FALSE AS is_tombstone, producer_id, outcome FROM ({self._details()}) AS d",
            f"{place('s.last.offset', 'FALSE', COMMITTED)} FROM {SUMMARIES} {self._mine} AND s.last.offset IS NOT NULL",
            f"{place('ended', 'TRUE', COMMITTED)} FROM {SUMMARIES} {self._mine} AND ended IS NOT NULL",
        ]
        return f"commits_then AS (SELECT *, FALSE AS is_decided_later FROM ({' UNION ALL '.join(parts)}) AS c)"


def read_offsets(held: Iterable[Row]) -> GroupOffsets:
    """Return the rows of ``held`` of one group, in the order of the log, as the core has them."""
    offsets = GroupOffsets()
    for row in held:
        producer_id = None if row["producer_id"] in (None, -1) else row["producer_id"]
        commit = Commit(
            row["committed_offset"],
            None if row["leader_epoch"] in (None, -1) else row["leader_epoch"],
            row["metadata"],
            row["commit_timestamp"],
            None if row["expire_timestamp"] in (None, -1) else row["expire_timestamp"],
            row["topic_id"],
            stored_position(row["log_partition"], row["log_offset"], row["timestamp_ms"]),
            producer_id,
        )
        opened_by = -1 if producer_id is None else producer_id
        of = offsets.committed if row["status"] == "committed" else offsets.pending.setdefault(opened_by, {})
        of[TopicPartition(row["topic"], row["partition"])] = commit
    return offsets


def read_records(about: Iterable[Row]) -> dict[TopicPartition, CommitRecords]:
    """Return the rows of ``records`` of one group as the core has them."""
    return {
        TopicPartition(row["topic"], row["partition"]): CommitRecords(
            row["last"], row["pending"], row["is_followed"], row["is_decided_later"]
        )
        for row in about
    }
