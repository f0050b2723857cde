"""Records of the share state log, made by hand: one share partition, at consecutive offsets and a second apart."""

from typing import Any

from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT, SHARE_UPDATE
from coordinator_core.records import AnyRecord, CoordinatorRecord, LogPosition

TOPIC_ID = "b3JkZXJzb3JkZXJzb3JkZQ"

Batches = list[tuple[int, int, int, int]]
"""First offset, last offset, delivery state and delivery count of each batch."""


class ShareLog:
    """Makes records; epochs follow from what was made before."""

    def __init__(self, group_id: str = "g", partition: int = 0, log_partition: int = 0) -> None:
        self._key = {"groupId": group_id, "topicId": TOPIC_ID, "partition": partition}
        self._log_partition = log_partition
        self._epoch = -1
        self.offset = 0

    def snapshot(self, start: int = -1, batches: Batches = [], complete: int = -1, **more: Any) -> AnyRecord:  # noqa: B006
        self._epoch += 1
        value = self._value(start, batches, complete) | {"stateEpoch": 2, "createTimestamp": 0, "writeTimestamp": 0}
        return self._record(SHARE_SNAPSHOT, value | more)

    def update(self, start: int = 0, batches: Batches = [], complete: int = 0, **more: Any) -> AnyRecord:  # noqa: B006
        return self._record(SHARE_UPDATE, self._value(start, batches, complete) | more)

    def tombstone(self) -> AnyRecord:
        self._epoch = -1
        return self._record(SHARE_SNAPSHOT, None)

    def _value(self, start: int, batches: Batches, complete: int) -> dict[str, Any]:
        names = ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
        return {
            "snapshotEpoch": self._epoch,
            "leaderEpoch": 0,
            "startOffset": start,
            "deliveryCompleteCount": complete,
            "stateBatches": [dict(zip(names, each, strict=True)) for each in batches],
        }

    def _record(self, kind: int, value: dict[str, Any] | None) -> AnyRecord:
        at = LogPosition(self._log_partition, self.offset, 1_000 * self.offset)
        self.offset += 1
        return CoordinatorRecord(at, kind, self._key, value, None if value is None else 0)
