"""The records of groups up to a moment, from the tables, and what they make of a group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from coordinator_core.groups.certainty import record_key
from coordinator_core.groups.group import Group
from coordinator_core.groups.proven_state import GroupKeys
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.records import AnyRecord
from coordinator_core.wire.record_codec import decode_key
from coordinator_core.wire.record_decoder import RecordDecoder
from jobs.queries.from_tables.commits import OF_GROUP, GroupKey
from jobs.queries.from_tables.selection import Selection
from jobs.relations.log_extent import NOTHING, Extents, before_end, followed
from jobs.relations.positions import stored_position
from jobs.sources.files import FAMILIES
from jobs.tables.reader import Row

GROUP: Final = ("log_topic", "log_partition", "group_id")
RECORD: Final = ", ".join((*GROUP, "log_offset", "timestamp_ms", "batch_base", "key", "value"))


def record_of(row: Row, decoder: RecordDecoder) -> AnyRecord:
    """Return the record of a row with the columns ``RECORD``."""
    at = stored_position(row["log_partition"], row["log_offset"], row["timestamp_ms"])
    return decoder.record(at, row["key"], row["value"], row["batch_base"])


class GroupRecords:
    """The records of the groups of a selection; one group is in memory at a time."""

    def __init__(self, selected: Selection, extents: Extents) -> None:
        """``extents`` of the log partitions end at the moment."""
        self._selected, self._extents = selected, extents

    def named(self) -> Iterator[str]:
        """Yield the ids of the groups that have records up to the moment, each once."""
        before = f"{self._selected.condition} AND {before_end(self._extents)}"
        rows = self._selected.rows(f"SELECT DISTINCT group_id FROM $group_records WHERE {before}")
        return (row["group_id"] for row in rows)

    def by_group(self) -> Iterator[tuple[GroupKey, list[Row]]]:
        """Yield the rows of each group by ``order_of_groups``, in the order of the log."""
        rows = self._rows("group_id, log_topic, log_partition, log_offset")
        return ((key, list(of_group)) for key, of_group in groupby(rows, OF_GROUP))

    def by_log(self) -> Iterator[tuple[Group, Iterator[AnyRecord]]]:
        """Yield each group as it was before its first record, and its records in the order of the log."""
        for (topic, partition, group_id), rows in groupby(self._rows(", ".join((*GROUP, "log_offset"))), OF_GROUP):
            family = FAMILIES[topic]
            group = Group(group_id, from_start=self._extents[topic, partition].from_start, family=family)
            decoder = RecordDecoder(family)
            yield group, (record_of(row, decoder) for row in rows)

    def later_keys(self) -> dict[GroupKey, list[bytes]]:
        """Return the keys with a record behind the moment, by group, where they decide what is known of it."""
        keys: dict[GroupKey, list[bytes]] = defaultdict(list)
        later_rows = followed(self._extents)
        if later_rows == NOTHING:
            return keys
        for row in self._selected.rows(
            f"SELECT DISTINCT {', '.join(GROUP)}, key FROM $group_records "
            f"WHERE {self._selected.condition} AND {later_rows}"
        ):
            keys[OF_GROUP(row)].append(row["key"])
        return keys

    def fold(
        self, key: GroupKey, rows: Iterable[Row], last_commit: int | None, later: Iterable[bytes]
    ) -> tuple[Group, GroupKeys]:
        """Return a group after its records, and which keys it has.

        ``last_commit``: the offset of its last commit, which makes a group, too. ``later``: its ``later_keys``.
        """
        topic, partition, group_id = key
        extent, family = self._extents[topic, partition], FAMILIES[topic]
        shard, keys, decoder = CoordinatorShard(extent.from_start, family), GroupKeys(), RecordDecoder(family)
        keys.followed.update(record_key(*decode_key(of_record, family)) for of_record in later)
        group = shard.group(group_id)
        for row in rows:
            # In its place in the log: behind a tombstone a commit makes the group anew, before one it does not.
            if last_commit is not None and last_commit < row["log_offset"]:
                group.commit()
                last_commit = None
            record = record_of(row, decoder)
            shard.apply(record, None, extent.leader_epoch(row["log_offset"]))
            keys.note(record, group)
        if last_commit is not None:
            group.commit()
        shard.follow(extent.last_epoch)
        return group, keys

    def _rows(self, order: str) -> Iterator[Row]:
        """Yield the records up to the moment, with the columns ``RECORD``."""
        return self._selected.rows(
            f"SELECT {RECORD} FROM $group_records WHERE {self._selected.condition} AND {before_end(self._extents)} "
            f"ORDER BY {order}"
        )
