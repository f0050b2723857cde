"""Keys of groups whose newest record cannot be decoded, from the tables: what they leave open at a moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.proven_state import GroupKeys
from coordinator_core.records import Family, Fields, RecordType
from coordinator_core.wire.record_codec import decode_key
from jobs.queries.from_tables.commits import KEY, GroupKey
from jobs.queries.from_tables.selection import Selection
from jobs.relations.log_extent import NOTHING, Extents, before_end, below_ends, followed
from jobs.relations.unreadable import UnreadKey, last_of_keys
from jobs.sources.files import FAMILIES


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
