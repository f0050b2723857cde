"""Committed offsets at the end of the log, from ``commit_summaries``: the same as from all commits of the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from coordinator_core.groups.certainty import LogGaps
from jobs.queries.from_tables.commits import (
    OF_GROUP,
    CommitsThen,
    GroupCommitsThen,
    GroupKey,
    Row,
)
from jobs.queries.from_tables.selection import Selection
from jobs.relations.commits import OPEN
from jobs.relations.log_extent import Extents
from jobs.relations.up_to_date import has_all_commits

KEY: Final = ("log_topic", "log_partition", "group_id", "topic", "partition")
DETAILS: Final = (
    *("log_offset", "committed_offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp"),
    *("topic_id", "producer_id", "timestamp_ms"),
)

SUMMARIES: Final = (
    f"SELECT {', '.join(f's.{name} AS {name}' for name in KEY)}, s.last.offset AS last_counted, s.ended AS ended, "
    f"s.pending AS pending, {', '.join(f's.committed.{name} AS {name}' for name in DETAILS)} "
    "FROM $commit_summaries AS s WHERE hour_ms IS NULL AND "
)

NOT_COUNTED: Final = "hour_ms IS NULL AND written > commits + coalesce(cardinality(pending), 0)"
"""Rows of partitions with commits of aborted transactions, or that a later commit overtook: no summary names them."""


def commits_then(selected: Selection, extents: Extents) -> Iterator[tuple[GroupKey, GroupCommitsThen]]:
    """Yield the groups of a selection that have commits up to a moment, by ``order_of_groups``."""
    is_at_end = all(extent.end is None for extent in extents.values())
    if is_at_end and has_all_commits(selected.tables, selected.cluster):
        return _from_summaries(selected, extents)
    return CommitsThen(selected, extents).groups()


def _from_summaries(selected: Selection, extents: Extents) -> Iterator[tuple[GroupKey, GroupCommitsThen]]:
    last_of_all = _last_where_not_counted(selected)
    rows = selected.rows(f"{SUMMARIES} {selected.condition} ORDER BY group_id, log_topic, log_partition, log_offset")
    for key, of_group in groupby(rows, OF_GROUP):
        mine = list(of_group)
        gaps = extents[key[:2]].gaps
        last = last_of_all.get(key, max((at for row in mine for at in _offsets_of_commits(row)), default=None))
        held = sorted(_held(mine), key=itemgetter("log_offset"))
        about = [] if gaps.lists_all else list(_about(mine, gaps))
        if last is not None or held or about:
            yield key, GroupCommitsThen(last, held, about)


def _last_where_not_counted(selected: Selection) -> dict[GroupKey, int]:
    """Return the offset of the last commit of each group that has commits which its summaries do not name."""
    mine = selected.condition
    found = selected.rows(f"SELECT DISTINCT group_id FROM $commit_summaries WHERE {mine} AND {NOT_COUNTED}")
    names = sorted(row["group_id"] for row in found)
    if not names:
        return {}
    rows = selected.rows(
        "SELECT log_topic, log_partition, group_id, max(log_offset) AS log_offset FROM $offset_commits "
        f"WHERE {mine} AND group_id IN :names AND NOT is_tombstone AND log_offset IS NOT NULL "
        "AND log_partition IS NOT NULL GROUP BY log_topic, log_partition, group_id",
        names=names,
    )
    return {OF_GROUP(row): row["log_offset"] for row in rows}


def _offsets_of_commits(row: Row) -> Iterator[int]:
    if row["last_counted"] is not None:
        yield row["last_counted"]
    for each in row["pending"] or ():
        yield each["log_offset"]


def _held(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield the commits that count and the newest one of each open transaction, ``status`` tells which."""
    for row in rows:
        ended = -1 if row["ended"] is None else row["ended"]
        if row["log_offset"] is not None and row["log_offset"] > ended:
            yield {**row, "status": "committed"}
        newest: dict[int, Row] = {}
        for each in row["pending"] or ():
            known = newest.get(each["producer_id"])
            if _is_open(each, ended) and (known is None or known["log_offset"] < each["log_offset"]):
                newest[each["producer_id"]] = each
        for each in newest.values():
            yield {**row, **each, "status": "pending"}


def _about(rows: Iterable[Row], gaps: LogGaps) -> Iterator[dict[str, Any]]:
    """Yield what ``CommitRecords`` has of the partitions for which it decides anything."""
    may_be_lost = gaps.lost >= 0 or gaps.lost_later
    for row in rows:
        ended = -1 if row["ended"] is None else row["ended"]
        last = max(ended, -1 if row["last_counted"] is None else row["last_counted"])
        opened = max((each["log_offset"] for each in row["pending"] or () if _is_open(each, ended)), default=-1)
        is_undecided = any(each["outcome"] != OPEN for each in row["pending"] or ())
        if opened >= 0 or ((last >= 0 or is_undecided) and may_be_lost):
            yield {**row, "last": last, "pending": opened, "is_followed": False, "is_decided_later": False}


def _is_open(commit: Row, ended: int) -> bool:
    """Return whether the transaction of a commit is open, and no tombstone ended the commit."""
    return bool(commit["outcome"] == OPEN and commit["log_offset"] > ended)
