"""The groups of a selection at a moment, from the tables: folded in this process one by one, and what is proven."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter

from coordinator_core.groups.certainty import NO_OFFSET, CommitRecords
from coordinator_core.groups.moved_groups import without_moved
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.proven_state import GroupKeys, GroupThen, prove, prove_offsets, still_unread, undecided
from jobs.queries.from_tables.commits import (
    NO_COMMITS,
    GroupCommitsThen,
    GroupKey,
    commits_then,
    order_of_groups,
    read_offsets,
    read_records,
)
from jobs.queries.from_tables.group_records import GroupRecords
from jobs.queries.from_tables.selection import Selection
from jobs.queries.from_tables.unread_keys import UnreadKeys
from jobs.relations.log_extent import Extents, StoredLogExtent
from jobs.tables.reader import Row


@dataclass(slots=True)
class _Evidence:
    """What the tables have of one group: records, commits, and what is behind the moment or cannot be decoded.

    ``followed_commits`` are partitions with a commit behind the moment that cannot be decoded.
    """

    rows: Sequence[Row] = ()
    commits: GroupCommitsThen = NO_COMMITS
    later: Sequence[bytes] = ()
    followed_commits: Sequence[TopicPartition] = ()


class StoredGroups:
    """The groups of a selection in logs that end at a moment."""

    def __init__(self, selected: Selection, extents: Extents) -> None:
        self._selected, self._extents = selected, extents
        self._records = GroupRecords(selected, extents)
        self._unread = UnreadKeys(selected, extents)

    def all(self) -> Iterator[GroupThen]:
        """Yield every group that there was or may have been, by group id; one is in memory at a time."""
        return without_moved(self._of_logs())

    def _of_logs(self) -> Iterator[GroupThen]:
        """Yield what each log shows of each group, by ``order_of_groups``."""
        for key, evidence in self._evidence():
            group, keys = self._records.fold(key, evidence.rows, evidence.commits.last, evidence.later)
            unread_commits = self._unread.note(key, keys)
            then = GroupThen(group, read_offsets(evidence.commits.held))
            extent = self._extents[key[:2]]
            if not extent.gaps.lists_all or unread_commits or keys.has_unread:
                then = _proven(then, keys, evidence, extent, unread_commits)
            if extent.may_hide_ends:
                then = undecided(then)
            if then.is_possible:
                yield then

    def _evidence(self) -> Iterator[tuple[GroupKey, _Evidence]]:
        """Yield what there is of each group, by ``order_of_groups``."""
        is_whole = all(extent.gaps.lists_all for extent in self._extents.values())
        later = {} if is_whole else self._records.later_keys()
        followed_commits = {} if is_whole else self._unread.note_later(later)
        others = {*later, *self._unread.by_group, *followed_commits}
        parts: Iterable[tuple[GroupKey, GroupCommitsThen | list[Row] | None]] = merge(
            self._records.by_group(),
            commits_then(self._selected, self._extents),
            ((key, None) for key in sorted(others, key=order_of_groups)),
            key=lambda part: order_of_groups(part[0]),
        )
        for key, of_group in groupby(parts, itemgetter(0)):
            evidence = _Evidence(later=later.get(key, ()), followed_commits=followed_commits.get(key, ()))
            for _, part in of_group:
                if isinstance(part, GroupCommitsThen):
                    evidence.commits = part
                elif part is not None:
                    evidence.rows = part
            yield key, evidence


def _proven(
    then: GroupThen, keys: GroupKeys, evidence: _Evidence, extent: StoredLogExtent, unread: dict[TopicPartition, int]
) -> GroupThen:
    """Return what the log proves of a group; ``unread`` has the commits that cannot be decoded, with their offsets."""
    group, certainty = prove(then.group, keys, extent.gaps)
    records = read_records(evidence.commits.about)
    for partition in evidence.followed_commits:
        held = then.offsets.committed.get(partition)
        known = records.get(partition) or CommitRecords(NO_OFFSET if held is None else held.at.offset)
        records[partition] = known._replace(is_followed=True)
    return prove_offsets(
        GroupThen(group, then.offsets, certainty),
        records,
        extent.gaps,
        transactions_are_known=extent.transactions_are_known,
        unread=still_unread(unread, then.offsets),
    )
