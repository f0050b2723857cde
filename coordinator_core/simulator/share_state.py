"""The share state log (KIP-932): what share coordinators write while groups share the records of their topics.

The key of a share partition decides about its log partition, so its group may be in any shard. All share groups are
therefore simulated again for each partition of this log; that is possible because groups do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT, SHARE_UPDATE, SharePartition
from coordinator_core.records import LOG_TOPICS, Family, Fields
from coordinator_core.simulator.log import Piece
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.simulator.topics import TopicPlan
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import encode_key, encode_value

SNAPSHOT_UPDATES = 500
"""A snapshot follows after this many updates, as is the default of Kafka's share coordinators."""
PIECE_RECORDS = 10_000
ACKNOWLEDGED = 2


@dataclass(slots=True)
class ShareActivity:
    """What share groups did: share partitions with the time and epoch of their state, and when topics were delivered.

    ``spells`` has, by group and topic id, the times at which members began to have partitions of the topic and ceased
    to, in turn.
    """

    initialized: dict[SharePartition, tuple[int, int]] = field(default_factory=dict)
    removed: list[tuple[SharePartition, int, int, int]] = field(default_factory=list)
    spells: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def initialize(self, group_id: str, topic_id: str, partition: int, epoch: int, now: int) -> None:
        """Take in that a share partition gets its state, if it has none yet."""
        self.initialized.setdefault(SharePartition(group_id, topic_id, partition), (now, epoch))

    def assign(self, group_id: str, topic_ids: Collection[str], now: int) -> None:
        """Take in that the group's members now have partitions of these topics, and of no others."""
        of_group = self.spells.setdefault(group_id, {})
        for topic_id in {*of_group, *topic_ids}:
            spells = of_group.setdefault(topic_id, [])
            if (topic_id in topic_ids) != len(spells) % 2:
                spells.append(now)

    def remove(self, gone: Callable[[SharePartition], bool], now: int) -> None:
        """Take in that the state of share partitions was removed, with their topic or their group."""
        for which in [each for each in self.initialized if gone(each)]:
            self.removed.append((which, *self.initialized.pop(which), now))


class _Write(NamedTuple):
    time_ms: int
    which: SharePartition
    type: int
    value: Fields | None


class ShareStates:
    """One partition of the share state log, with the methods of a ``Shard`` that write a log and its truth."""

    commit_count = 0

    def __init__(
        self, scenario: Scenario, plan: TopicPlan, partition: int, activities: Sequence[ShareActivity]
    ) -> None:
        """``activities`` of all shards of the scenario, which have been run to their end."""
        self._end_ms = scenario.start_ms + scenario.lasts
        self._plan = plan
        self._partition = partition
        self._partitions = scenario.cluster.share_partitions
        self._every = {
            group_id: group.commits.every
            for name, group in scenario.groups.items()
            if group.type == "share" and group.commits is not None
            for group_id in scenario.ids(name)
        }
        self._topics = {topic.id: topic for step in plan.steps for topic in step.image.by_id.values()}
        self._activities = activities
        self._truth: list[dict[str, Any]] = []

    def run(self) -> Iterator[Piece]:
        """Yield the log, piece by piece."""
        writes = sorted(self._writes(), key=lambda write: (write.time_ms, write.which))
        leaders = self._plan.leaders_after_start(LOG_TOPICS[Family.SHARE], self._partition)
        for base in range(0, len(writes), PIECE_RECORDS):
            batches = []
            for offset, write in enumerate(writes[base : base + PIECE_RECORDS], base):
                value = None if write.value is None else encode_value(write.type, 0, write.value, Family.SHARE)
                group_id, topic_id, number = write.which
                names: Fields = {"groupId": group_id, "topicId": topic_id, "partition": number}
                record = NewRecord(offset, write.time_ms, encode_key(write.type, names, Family.SHARE), value)
                epoch = sum(leader.time_ms < write.time_ms for leader in leaders)
                batches.append(encode_batch([record], leader_epoch=epoch))
            yield Piece(b"".join(batches), base, len(batches))

    def take_truth(self) -> Iterator[dict[str, Any]]:
        """Yield nothing: all is known at the end only."""
        return iter(())

    def last_truth(self) -> Iterator[dict[str, Any]]:
        """Yield the final state of each share partition."""
        yield from self._truth

    def _writes(self) -> Iterator[_Write]:
        for activity in self._activities:
            for which, (since, epoch) in activity.initialized.items():
                if self._is_here(which):
                    yield from self._life(activity, which, since, epoch, None)
            for which, since, epoch, until in activity.removed:
                if self._is_here(which):
                    yield from self._life(activity, which, since, epoch, until)

    def _is_here(self, which: SharePartition) -> bool:
        return (
            log_partition_of(f"{which.group_id}:{which.topic_id}:{which.partition}", self._partitions)
            == self._partition
        )

    def _life(
        self, activity: ShareActivity, which: SharePartition, since: int, state_epoch: int, until: int | None
    ) -> Iterator[_Write]:
        """A share partition from its first snapshot to its tombstone, if there is one; all of it is acknowledged."""
        name = self._topics[which.topic_id].name
        speed, created = round(self._plan.rates.get(name, 0.0) * 1_000), self._plan.created_ms.get(name, since)
        snapshot: Fields = {
            "snapshotEpoch": 0,
            "stateEpoch": state_epoch,
            "leaderEpoch": 0,
            "startOffset": -1,
            "createTimestamp": since,
            "writeTimestamp": since,
            "stateBatches": [],
        }
        yield _Write(since, which, SHARE_SNAPSHOT, dict(snapshot))
        end = self._end_ms if until is None else until
        position = start = count = None
        updates = 0
        for now in self._deliveries(activity, which, since, end):
            here = max(now - created, 0) * speed // 1_000_000
            if position is None:
                position = here
                continue
            if here == position:
                continue
            start, count = position, here - position
            batch = {"firstOffset": start, "lastOffset": here - 1, "deliveryState": ACKNOWLEDGED, "deliveryCount": 1}
            state: Fields = {"startOffset": start, "deliveryCompleteCount": count, "stateBatches": [batch]}
            position, updates = here, updates + 1
            if updates % SNAPSHOT_UPDATES:
                epochs = {"snapshotEpoch": snapshot["snapshotEpoch"], "leaderEpoch": 0}
                yield _Write(now, which, SHARE_UPDATE, epochs | state)
            else:
                snapshot |= state | {"snapshotEpoch": snapshot["snapshotEpoch"] + 1, "writeTimestamp": now}
                yield _Write(now, which, SHARE_SNAPSHOT, dict(snapshot))
        if until is not None:
            yield _Write(until, which, SHARE_SNAPSHOT, None)
            return
        self._truth.append(
            {
                "kind": "share-offset",
                "group_id": which.group_id,
                "partition": f"{name}-{which.partition}",
                "start_offset": start,
                "delivered": count,
            }
        )

    def _deliveries(self, activity: ShareActivity, which: SharePartition, since: int, end: int) -> Iterator[int]:
        """When members acknowledge: every so often while the topic is assigned to some."""
        every = self._every.get(which.group_id)
        spells = [*activity.spells.get(which.group_id, {}).get(which.topic_id, ()), end]
        if every is not None:
            for begin, over in zip(spells[::2], spells[1::2], strict=False):
                first = max(begin, since)
                yield from range(first + every, min(over, end), every)
