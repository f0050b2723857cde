"""The groups of a selection at a moment, from the tables: folded in this process one by one, and what is proven, also
where the newest record of a key cannot be decoded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter

from coordinator_core.groups.certainty import NO_OFFSET, CommitRecords
from coordinator_core.groups.moved_groups import without_moved
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.proven_state import GroupKeys, GroupThen, prove, prove_offsets, still_unread, undecided
from coordinator_core.records import Family, Fields, RecordType
from coordinator_core.wire.record_codec import decode_key
from jobs.queries.from_tables.commits import (
    KEY,
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
from jobs.relations.log_extent import NOTHING, Extents, StoredLogExtent, before_end, below_ends, followed
from jobs.relations.unreadable import UnreadKey, last_of_keys
from jobs.sources.files import FAMILIES
from jobs.tables.reader import Row


class UnreadKeys:
    """The keys of the groups of a selection, up to the ends of ``extents``. The groups are ``by_group``."""

    def __init__(self, selected: Selection, extents: Extents) -> None:
        self._selected, self._extents = selected, extents
        self.by_group = self._by_group(below_ends(extents))
        self._removed = self._last_tombstones() if self.by_group else {}

    def note(self, group: GroupKey, keys: GroupKeys) -> dict[TopicPartition, int]:
        """Note those of one group; return the offset of the last such commit of each of its partitions."""
        commits: dict[TopicPartition, int] = {}
        for unread in self.by_group.get(group, ()):
            fields = _key_of(unread)
            if (partition := _committed(unread, fields)) is not None:
                if unread.offset > self._removed.get((group, partition), -1):
                    commits[partition] = unread.offset
            else:
                keys.note_unreadable(unread.record_type, fields, unread.offset)
        return commits

    def note_later(self, later: dict[GroupKey, list[bytes]]) -> dict[GroupKey, list[TopicPartition]]:
        """Add to ``later`` the keys of such records behind the moment; return the partitions of those of commits."""
        commits: dict[GroupKey, list[TopicPartition]] = defaultdict(list)
        later_rows = followed(self._extents)
        for group, of_group in ({} if later_rows == NOTHING else self._by_group(later_rows)).items():
            for unread in of_group:
                if (partition := _committed(unread, _key_of(unread))) is not None:
                    commits[group].append(partition)
                else:
                    later.setdefault(group, []).append(unread.key)
        return commits

    def _last_tombstones(self) -> dict[tuple[GroupKey, TopicPartition], int]:
        """Return the offset of the last tombstone of each partition of groups with records that cannot be decoded."""
        rows = self._selected.rows(
            f"SELECT {KEY}, max(log_offset) AS last FROM $offset_commits WHERE {self._selected.condition} "
            f"AND {before_end(self._extents)} AND is_tombstone AND group_id IN :groups GROUP BY {KEY}",
            groups=sorted({group_id for _, _, group_id in self.by_group}),
        )
        return {
            (
                (row["log_topic"], row["log_partition"], row["group_id"]),
                TopicPartition(row["topic"], row["partition"]),
            ): row["last"]
            for row in rows
        }

    def _by_group(self, condition: str) -> dict[GroupKey, list[UnreadKey]]:
        selected = self._selected
        unread: Iterator[UnreadKey] = last_of_keys(selected.tables, selected.cluster, condition, selected.group_id)
        by_group: dict[GroupKey, list[UnreadKey]] = defaultdict(list)
        for unread_key in unread:
            by_group[*unread_key.place, unread_key.group_id].append(unread_key)
        return by_group


def _key_of(unread: UnreadKey) -> Fields:
    return decode_key(unread.key, FAMILIES[unread.place[0]])[1]


def _committed(unread: UnreadKey, key: Fields) -> TopicPartition | None:
    """Return the partition whose commit a record is; None: it is about the group."""
    is_commit = FAMILIES[unread.place[0]] is Family.GROUP and unread.record_type <= RecordType.OFFSET_COMMIT
    return TopicPartition(key["topic"], key["partition"]) if is_commit else None


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
