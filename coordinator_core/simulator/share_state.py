"""The share state log (KIP-932): what share coordinators write while groups share the records of their topics.

The key of a share partition decides about its log partition, so its group may be in any shard. All share groups are
therefore simulated again for each partition of this log; that is possible because groups do not depend on each other.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence

from coordinator_core.coordinator.config import BrokerConfig, GroupConfig
from coordinator_core.coordinator.share.share_coordinator import ShareCoordinator
from coordinator_core.groups.log_partition import log_partition_of, share_partition
from coordinator_core.groups.share.state_log import SharePartition, ShareStateRecord
from coordinator_core.records import SHARE_LOG, Family
from coordinator_core.simulator.log import Piece
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.simulator.seeded_random import SeededRandom
from coordinator_core.simulator.share_activity import ShareActivity, ShareLifetime
from coordinator_core.simulator.share_delivery import NEVER, Records, ShareHabits, SimulatedSharePartition
from coordinator_core.simulator.topic_plan import TopicPlan
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import encode_key, encode_value

PIECE_RECORDS = 10_000


class ShareStates:
    """One partition of the share state log, with the methods of a ``Shard`` that write a log and its truth.

    It is the clock of its share partitions, too.
    """

    commit_count = 0

    def __init__(
        self, scenario: Scenario, plan: TopicPlan, seed: int, partition: int, activities: Sequence[ShareActivity]
    ) -> None:
        """``activities`` of all shards of the scenario, which have been run to their end."""
        self.now = scenario.start_ms
        config = BrokerConfig.of(scenario.cluster.config)
        self.coordinator = ShareCoordinator(config, partition)
        self._end_ms = scenario.start_ms + scenario.lasts
        self._partition = partition
        self._partitions = scenario.cluster.share_partitions
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._turns = 0
        self._truth: list[dict[str, object]] = []
        self._batches: list[bytes] = []
        self._leaders = plan.leaders_after_start(SHARE_LOG, partition)
        self._deliveries = [
            self._delivery(scenario, plan, seed, habits, activity, lifetime)
            for habits, activity, lifetime in self._lifetimes(scenario, config, activities)
        ]

    def _lifetimes(
        self, scenario: Scenario, config: BrokerConfig, activities: Sequence[ShareActivity]
    ) -> Iterator[tuple[ShareHabits, ShareActivity, ShareLifetime]]:
        """The share partitions whose state is in this partition of the log, by time."""
        habits: dict[str, ShareHabits] = {}
        for name, group in scenario.groups.items():
            if group.type == "share":
                every = NEVER if group.commits is None else group.commits.every
                leaving = group.commits is not None and group.commits.when_leaving
                settings = GroupConfig.of(config, group.configs)
                habits |= dict.fromkeys(scenario.ids(name), ShareHabits(every, leaving, group.delivery, settings))
        lifetimes = [
            (habits[lifetime.which.group_id], activity, lifetime)
            for activity in activities
            for lifetime in (*activity.initialized.values(), *activity.removed)
            if self._is_here(lifetime.which)
        ]
        yield from sorted(lifetimes, key=lambda entry: (entry[2].since_ms, entry[2].which))

    def _is_here(self, which: SharePartition) -> bool:
        name = share_partition(which.group_id, which.topic_id, which.partition)
        return log_partition_of(name, self._partitions) == self._partition

    def _delivery(
        self,
        scenario: Scenario,
        plan: TopicPlan,
        seed: int,
        habits: ShareHabits,
        activity: ShareActivity,
        lifetime: ShareLifetime,
    ) -> SimulatedSharePartition:
        which = lifetime.which
        # In any step: the topic may be gone in the end.
        topic = next(step.image.by_id[which.topic_id] for step in plan.steps if which.topic_id in step.image.by_id)
        created_ms = plan.created_ms.get(topic.name, scenario.start_ms)
        records = Records(topic.name, round(plan.rates.get(topic.name, 0.0) * 1_000), created_ms)
        chance = SeededRandom(seed).fork("share", *which, lifetime.since_ms)
        leaders = plan.leaders(topic.name, which.partition)
        return SimulatedSharePartition(self, lifetime, activity, habits, records, leaders, chance)

    # --- time, and the log -------------------------------------------------------------------------------------------

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        """Call the action at this time; actions for the same time are called in the order in which they were added."""
        self._turns += 1
        heapq.heappush(self._queue, (time_ms, self._turns, action))

    def append(self, record: ShareStateRecord) -> None:
        """Add a record to the log."""
        at, key = record.at, dict(record.key)
        value = None if record.value is None else encode_value(record.type, 0, dict(record.value), Family.SHARE)
        new = NewRecord(at.offset, at.timestamp_ms, encode_key(record.type, key, Family.SHARE), value)
        epoch = sum(leader.time_ms < at.timestamp_ms for leader in self._leaders)
        self._batches.append(encode_batch([new], leader_epoch=epoch))

    def tell(self, row: dict[str, object]) -> None:
        """Add a row of truth."""
        self._truth.append(row)

    def run(self) -> Iterator[Piece]:
        """Yield the log, piece by piece."""
        for delivery in self._deliveries:
            delivery.schedule()
        self.at(self.now + self._cold_ms, self._snapshot_cold_partitions)
        base = 0
        while self._queue and self._queue[0][0] < self._end_ms:
            self.now, _, action = heapq.heappop(self._queue)
            action()
            if len(self._batches) >= PIECE_RECORDS:
                yield self._piece(base)
                base = self.coordinator.end_offset
        self.now = self._end_ms
        if self._batches:
            yield self._piece(base)

    def _piece(self, base: int) -> Piece:
        batches, self._batches = self._batches, []
        return Piece(b"".join(batches), base, len(batches))

    @property
    def _cold_ms(self) -> int:
        return self.coordinator.config.share_coordinator_cold_partition_snapshot_interval_ms

    def _snapshot_cold_partitions(self) -> None:
        for record in self.coordinator.snapshot_cold_partitions(self.now):
            self.append(record)
        self.at(self.now + self._cold_ms, self._snapshot_cold_partitions)

    # --- truth -------------------------------------------------------------------------------------------------------

    def take_truth(self) -> Iterator[dict[str, object]]:
        """Yield which records were given up so far, each row in one call only."""
        yield from self._truth
        self._truth.clear()

    def last_truth(self) -> Iterator[dict[str, object]]:
        """Yield the final state of each share partition."""
        for delivery in self._deliveries:
            row = delivery.truth()
            if row is not None:
                yield row
