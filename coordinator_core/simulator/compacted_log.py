"""What a coordinator reads when it takes over a partition: its log, of which compaction may have left only part."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.records import AnyRecord, Family
from coordinator_core.wire.record_codec import encode_key


@dataclass(slots=True)
class KeptRecords:
    """The records of groups in one log partition, in their order; those of offsets are left out."""

    family: Family
    records: list[AnyRecord] = field(default_factory=list)

    def append(self, records: Iterable[AnyRecord]) -> None:
        """Append what an operation wrote."""
        self.records += records

    def compact(self, until_ms: int) -> None:
        """Keep, of the records before this time, only the last one of each key, and no tombstones."""
        count = bisect_left(self.records, until_ms, key=lambda record: record.at.timestamp_ms)
        # A key keeps the place of its first record in a dict: so what is left is put in the order of the log again.
        last = {encode_key(record.type, record.key, self.family): record for record in self.records[:count]}
        self.records[:count] = sorted(
            (record for record in last.values() if record.value is not None), key=lambda record: record.at.offset
        )

    def load(self, former: CoordinatorState) -> CoordinatorState:
        """Return the state of a coordinator that has read the records, with the settings of the ``former`` one."""
        log = CoordinatorShard(family=self.family)
        fresh = type(former)(
            former.group_classes, former.config, former.partition, former.end_offset, log, profile=former.profile
        )
        fresh.group_configs = former.group_configs
        for record in self.records:
            fresh.follow(record)
        return fresh
