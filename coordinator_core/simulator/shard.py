"""The coordinator of one log partition with its clients and its clock: the simulation itself.

Only changes are simulated. Heartbeats of a member at its target would change nothing, so it sleeps, with its session
timer set aside, until something happens to its group. Times are milliseconds since the epoch.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.assignors.profiles import PROFILES
from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState
from coordinator_core.coordinator.connect.heartbeat import DELAY_OVER
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.coordinator.protocol import Request, RequestOutcome, Task, Timer
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.share.partitions import INITIALIZE_EFFECT
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups import re2
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.groups.connect.state import units
from coordinator_core.groups.share.state_log import SharePartition
from coordinator_core.groups.streams.sources import readers
from coordinator_core.records import (
    LOG_TOPICS,
    ConnectRecordType,
    CoordinatorRecord,
    Family,
    Fields,
    LogPosition,
    RecordType,
)
from coordinator_core.simulator.brokers import Leader
from coordinator_core.simulator.bulk_commits import CommitStreams, SimulatedTransaction, TopicPartition
from coordinator_core.simulator.clients.client import Client
from coordinator_core.simulator.commit_batches import VALUE_VERSION
from coordinator_core.simulator.ground_truth import EXPIRED, LEFT, AnyGroup, GroupTruth, Row, TrueCause, ending
from coordinator_core.simulator.log import GroupBatch, KeptRecords, PartitionLog, Piece
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.simulator.seeded_random import SeededRandom
from coordinator_core.simulator.share_activity import HoldEnd, ShareActivity
from coordinator_core.simulator.topic_plan import TopicPlan, TopicStep

RETRY_MS = 100
"""After a new coordinator is available, a client connects to it within this time."""
WINDOW_MS = 60_000
"""The log is put together in windows of this length."""

_QUIET: dict[Family, frozenset[int]] = {
    Family.GROUP: frozenset(
        (
            RecordType.OFFSET_COMMIT,
            RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        )
    ),
    Family.CONNECT: frozenset((ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT,)),
}
"""By log: records that concern only the member that they name."""


@dataclass(slots=True)
class Clock:
    """The time, and what is to be done when, in order of time and then of asking."""

    now: int
    queue: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    turns: int = 0


class Shard:
    """One log partition. ``run`` simulates it to the end and yields its log; ``take_truth`` yields what is known
    meanwhile.
    """

    def __init__(
        self, scenario: Scenario, plan: TopicPlan, seed: int, partition: int, family: Family = Family.GROUP
    ) -> None:
        self.scenario = scenario
        self.plan = plan
        self.family = family
        config = BrokerConfig.of(scenario.cluster.config)
        self.memory: CoordinatorState = (
            ConnectCoordinatorState(config=config, partition=partition)
            if family is Family.CONNECT
            else coordinator.new_state(config, partition=partition, profile=PROFILES[scenario.cluster.profile])
        )
        self.topics = TopicImage.of([])
        self.away: frozenset[int] = frozenset()
        self.clock = Clock(scenario.start_ms)
        self.end_ms = scenario.start_ms + scenario.lasts
        self.commits = CommitStreams(plan, partition)
        self.groups: dict[str, GroupTruth] = {}
        self.clients: dict[str, list[Client]] = {}
        self._log = PartitionLog(self.commits, partition, family)
        self.sharing = ShareActivity()
        self._chance = SeededRandom(seed).fork(family.value, partition)
        self._chances: dict[str, SeededRandom] = {}
        self._ids: dict[str, Iterator[UUID]] = {}
        self._timers: dict[str, int] = {}
        self._parked: dict[int, Client] = {}
        self._requests = 0
        self._leaders = plan.leaders_after_start(LOG_TOPICS[family], partition)
        # Only a coordinator that takes over reads them: without a fail-over they would fill the memory for nothing.
        self._kept = KeptRecords(family) if self._leaders else None
        self._up_at = 0
        self._ready: list[Piece] = []
        self._rows: list[Row] = []

    # --- time --------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """Return the time, in ms since the epoch."""
        return self.clock.now

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        """Call the action at this time; actions for the same time are called in the order in which they were added."""
        self.clock.turns += 1
        heapq.heappush(self.clock.queue, (max(time_ms, self.now), self.clock.turns, action))

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Call the action after this delay."""
        self.at(self.now + delay_ms, action)

    def schedule(self) -> None:
        """Put what happens to topics and brokers into the queue."""
        for step in self.plan.steps:
            self.at(step.time_ms, partial(self._publish, step))
        for leader in self._leaders:
            self.at(leader.time_ms, partial(self._fail_over, leader))

    def run(self) -> Iterator[Piece]:
        """Yield the log, piece by piece, as the simulation proceeds."""
        self.schedule()
        clock, window = self.clock, self.now + WINDOW_MS
        while clock.queue and clock.queue[0][0] < self.end_ms:
            while clock.queue[0][0] >= window:
                # All of the window is known: the queue is in order of time, and nothing is put before the present.
                self._flush(window)
                window += WINDOW_MS
            clock.now, _, action = heapq.heappop(clock.queue)
            action()
            if self._ready:
                yield from self._ready
                self._ready.clear()
        clock.now = self.end_ms
        self._flush(self.end_ms)
        yield from self._ready

    def _flush(self, until: int) -> None:
        """Put the log before a time together."""
        self._ready += self._log.pieces(until)

    @property
    def commit_count(self) -> int:
        """Return the number of offset commits in the log."""
        return self.commits.count

    def take_truth(self) -> Iterator[Row]:
        """Yield what is certain about the log so far, each row in one call only."""
        yield from self._rows
        self._rows.clear()
        for group in self.groups.values():
            yield from group.rows()

    def last_truth(self) -> Iterator[Row]:
        """Yield, after the end, the rebalances under way and the final state of each group."""
        commits = self.commits.committed()
        transactions: dict[str, list[SimulatedTransaction]] = {}
        for transaction in self.commits.open_transactions():
            transactions.setdefault(transaction.group_id, []).append(transaction)
        for group_id, group in self.groups.items():
            yield from group.last_rows()
            left_open = transactions.get(group_id, ())
            yield ending(group, self.group(group_id), commits.get(group_id, {}), left_open)

    def group(self, group_id: str) -> AnyGroup | None:
        """Return the group in the coordinator's state; None if it does not exist."""
        memory = self.memory
        return memory.group(group_id) if isinstance(memory, ConnectCoordinatorState) else memory.live.get(group_id)

    def tell(self, kind: str, group_id: str, **details: object) -> None:
        """Add a row about what the log does not contain and nothing in it implies."""
        self._rows.append({"kind": kind, "time_ms": self.now, "group_id": group_id, **details})

    # --- topics ------------------------------------------------------------------------------------------------------

    def _publish(self, step: TopicStep) -> None:
        if self._is_loading:
            self.at(self._up_at, partial(self._publish, step))
            return
        self.topics, self.away = step.image, step.away
        names = {"topic_created": step.created, "topic_grown": step.grown, "topic_deleted": tuple(step.deleted)}
        for kind, changed in names.items():
            for name in changed:
                for group_id in sorted(self._concerned(name)):
                    self.groups[group_id].expect(TrueCause(kind, topics=(name,)))
                    self.wake(group_id)
        self.memory.publish(step.image.version, step.created, step.grown, tuple(step.deleted))
        if step.deleted:
            with self._knowing_commits():
                self.settle(coordinator.delete_topics(self.memory, self.topics, self.now, step.deleted))
            self.commits.forget(lambda _, topic: topic in step.deleted)
            ids = set(step.deleted.values())
            self.settle(coordinator.clean_up_share_state(self.memory, self.topics, self.now, ids))
            self.sharing.remove(lambda which: which.topic_id in ids, self.now)
        for clients in self.clients.values():
            for client in clients:
                client.topics_changed()

    def _concerned(self, name: str) -> set[str]:
        """Groups with epochs that subscribe to a topic, by name or by a regex (resolved yet or not)."""
        by_regex = {
            group_id
            for group_id, live in self.memory.live.items()
            if isinstance(live, LiveConsumerGroup)
            and any(re2.matching(regex, [name]) for regex in live.subscriptions.regexes)
        }
        by_regex |= {
            group_id
            for group_id, live in self.memory.live.items()
            if isinstance(live, LiveStreamsGroup) and readers(live.log.topology, name)
        }
        return by_regex | {
            group_id for group_id in self.memory.subscribers.get(name, ()) if group_id in self.memory.live
        }

    @contextmanager
    def _knowing_commits(self) -> Iterator[None]:
        """Let the coordinator's memory have the commits that were written without it, for as long as it needs them."""
        # Up to a time means before it: what is committed in this very millisecond counts, too.
        self._flush(self.now + 1)
        for group_id, commits in self.commits.committed().items():
            for partition, (offset, time_ms) in commits.items():
                self._know(group_id, partition, offset, time_ms, None)
        pending = self.commits.open_transactions()
        for transaction in pending:
            for partition in transaction.partitions:
                self._know(transaction.group_id, partition, 0, transaction.since_ms, transaction.producer_id)
        yield
        for transaction in pending:
            self.memory.log.end_transaction(transaction.producer_id, committed=False)

    def _know(
        self, group_id: str, partition: TopicPartition, offset: int, time_ms: int, producer_id: int | None
    ) -> None:
        key = {"group": group_id, "topic": partition[0], "partition": partition[1]}
        value = {"offset": offset, "leaderEpoch": 0, "metadata": "", "commitTimestamp": time_ms}
        at = LogPosition(self.memory.partition, self.memory.end_offset, time_ms)
        self.memory.follow(CoordinatorRecord(at, RecordType.OFFSET_COMMIT, key, value, VALUE_VERSION), producer_id)

    def _chance_of(self, group_id: str) -> SeededRandom:
        """What happens to a group does not depend on what else is in its log partition."""
        chance = self._chances.get(group_id)
        if chance is None:
            chance = self._chances[group_id] = self._chance.fork("group", group_id)
        return chance

    # --- requests ----------------------------------------------------------------------------------------------------

    def send(self, client: Client, api: str, version: int, data: Fields, why: tuple[TrueCause, ...] = ()) -> None:
        """Send a client's request, and hand the client the response.

        ``why`` has the causes of the rebalance that the request starts, if it starts one. While no coordinator is
        available the client retries until it stops.
        """
        if self._is_loading:
            delay = self._up_at - self.now + client.chance.between(1, RETRY_MS)
            # Not ``self.send``: by then workers may be in the other log of a pair, as the shard of the client knows.
            client.soon(delay, partial(client.shard.send, client, api, version, data, why))
            return
        self._requests += 1
        request = Request(api, version, client.client_id, data, client.host, self._requests)
        ids = self._ids.get(client.group_id)
        if ids is None:
            ids = self._ids[client.group_id] = self._chance_of(client.group_id).fork("ids").uuids()
        outcome = coordinator.handle(self.memory, request, self.topics, self.now, ids)
        if outcome.pending:
            self._parked[request.correlation] = client
        self.settle(outcome, client.group_id, why, LEFT)
        if api == "OffsetCommit":
            for record in outcome.records:
                assert record.value is not None
                partition = record.key["topic"], record.key["partition"]
                self.commits.note(client.group_id, partition, record.value["offset"], self.now)
        if outcome.error is not None:
            code = outcome.error.code
            self.tell("refused", client.group_id, client_id=client.client_id, api=api, error=code.name)
            client.refused(api, code)
        elif outcome.response is not None:
            client.answered(api, outcome.response)

    def delete_group(self, group_id: str) -> None:
        """Send DeleteGroups for one group."""
        if self._is_loading:
            self.at(self._up_at, partial(self.delete_group, group_id))
            return
        with self._knowing_commits():
            outcome = coordinator.delete_group(self.memory, self.topics, self.now, group_id)
        if outcome.error is None:
            self.commits.forget(lambda group, _: group == group_id)
            self.sharing.remove(lambda which: which.group_id == group_id, self.now)
        self.settle(outcome, group_id)

    def settle(
        self, outcome: RequestOutcome, group_id: str = "", why: tuple[TrueCause, ...] = (), how: str = EXPIRED
    ) -> None:
        """Carry out all that follows from an operation on a group: log, truth, sleepers, timers, responses, tasks,
        share state.

        ``why`` has the causes of the rebalance that it starts, if it starts one; ``how`` says how members left that are
        no longer there.
        """
        if self._kept is not None:
            self._kept.append(outcome.records)
        batch = self._log.append(self.now, outcome.records) if outcome.records else None
        if group_id:
            self._note_operation(group_id, batch, why, how)
        for key, timer in outcome.timers.items():
            if timer is not None:
                self._arm(key, timer)
        for answer in outcome.completed:
            client = self._parked.pop(answer.request.correlation, None)
            if client is not None:
                self.later(1, partial(client.answered, answer.request.api, answer.response))
        for task in outcome.tasks:
            self.later(self._chance_of(group_id).between(20, 120), partial(self._complete, task))
        asked = outcome.effects.get(INITIALIZE_EFFECT)
        if asked:
            epoch = self._log.leader_epoch
            delay = self._chance_of(group_id).between(10, 60)
            self.later(delay, partial(self._initialize, epoch, group_id, asked))

    def _note_operation(self, group_id: str, batch: GroupBatch | None, why: tuple[TrueCause, ...], how: str) -> None:
        """Write down the truth about an operation, and wake the group's clients if it concerns them."""
        live = self.group(group_id)
        group = self.groups.setdefault(group_id, GroupTruth(group_id, self.family))
        group.operation(live, why if batch else (), batch, how)
        if self._concerns_others(live, batch):
            self.wake(group_id)
            if isinstance(live, LiveShareGroup):
                gone = HoldEnd.LEFT if how == LEFT else HoldEnd.EXPIRED
                self.sharing.assign(group_id, live.log.targets, self.now, gone)

    def _concerns_others(self, live: AnyGroup | None, batch: GroupBatch | None) -> bool:
        """Whether an operation concerns more members than the one whose request it was."""
        if isinstance(live, LiveClassicGroup):
            return live.state is not ClassicGroupState.STABLE
        quiet = _QUIET[self.family]
        return batch is not None and any(record.type not in quiet for record in batch.records)

    def _complete(self, task: Task) -> None:
        """Background work is done: regexes are resolved."""
        if self._is_loading:
            return
        before = self._resolved(task.group_id)
        outcome = coordinator.complete(self.memory, task, self.topics, self.now)
        after = self._resolved(task.group_id)
        why = tuple(
            TrueCause("regex_resolved", topics=tuple(sorted(topics ^ before.get(regex, set()))))
            for regex, topics in after.items()
            if topics != before.get(regex, set())
        )
        self.settle(outcome, task.group_id, why)

    def _resolved(self, group_id: str) -> dict[str, set[str]]:
        live = self.memory.live.get(group_id)
        if not isinstance(live, LiveConsumerGroup):
            return {}
        return {regex: set(resolved.topics) for regex, resolved in live.log.regexes.items()}

    def _initialize(self, leader_epoch: int, group_id: str, asked: list[Fields]) -> None:
        """The share coordinator has done what it was asked for, by a group coordinator that may be gone."""
        if self._is_loading or leader_epoch != self._log.leader_epoch:
            return
        partitions = {
            topic["topic_id"]: [state["partition"] for state in topic["partitions"]]
            for topic in asked
            if topic["topic_id"] in self.topics.by_id
        }
        names = tuple(sorted(self.topics.by_id[topic_id].name for topic_id in partitions))
        outcome = coordinator.share_state_initialized(self.memory, self.topics, self.now, group_id, partitions)
        self.settle(outcome, group_id)
        if outcome.records:
            self.groups[group_id].expect(TrueCause("share_state_initialized", topics=names))
            for topic in asked:
                for state in topic["partitions"] if topic["topic_id"] in partitions else ():
                    which = SharePartition(group_id, topic["topic_id"], state["partition"])
                    self.sharing.initialize(which, state["state_epoch"], self.now)

    # --- groups of Connect -------------------------------------------------------------------------------------------

    def configure_connect(self, group_id: str, settings: Mapping[str, str]) -> None:
        """Set the settings of a group on KIP-848 from now on."""
        if self._is_loading:
            self.at(self._up_at, partial(self.configure_connect, group_id, settings))
            return
        self.settle(
            coordinator.configure_connect(self.memory, coordinator.NO_TOPICS, self.now, group_id, settings), group_id
        )

    def set_connect_work(self, group_id: str, connectors: Mapping[str, int]) -> None:
        """Set the connectors of a group on KIP-848 from now on; the numbers are task counts."""
        if self._is_loading:
            self.at(self._up_at, partial(self.set_connect_work, group_id, connectors))
            return
        assert isinstance(self.memory, ConnectCoordinatorState)
        group = self.memory.group(group_id)
        before = set() if group is None else set(units(group.work))
        now: dict[ConnectorOrTask, None] = {}
        for name, tasks in connectors.items():
            now |= dict.fromkeys([name, *((name, number) for number in range(tasks))])
        changed = {unit if isinstance(unit, str) else unit[0] for unit in before ^ now.keys()}
        why = (TrueCause("connectors_changed", topics=tuple(sorted(changed))),) if changed else ()
        self.settle(
            coordinator.set_connect_work(self.memory, coordinator.NO_TOPICS, self.now, group_id, now), group_id, why
        )

    # --- timers ------------------------------------------------------------------------------------------------------

    def _arm(self, key: str, timer: Timer) -> None:
        """See to it that the timer is looked at when it is due: one look a key is waiting at a time."""
        waiting = self._timers.get(key)
        if waiting is None or timer.deadline_ms < waiting:
            self._timers[key] = timer.deadline_ms
            self.at(timer.deadline_ms, partial(self._look_at, key, timer.deadline_ms))

    def _look_at(self, key: str, due: int) -> None:
        if self._timers.get(key) != due:
            return
        del self._timers[key]
        timer = self.memory.timers.get(key)
        if timer is None or self._is_loading:
            return
        # A heartbeat since then has put the deadline off.
        if timer.deadline_ms > self.now:
            self._arm(key, timer)
            return
        outcome = coordinator.expire(self.memory, timer, self.topics, self.now)
        self.settle(outcome, timer.group_id, (TrueCause("delay_elapsed"),) if timer.action == DELAY_OVER else ())

    # --- coordinators ------------------------------------------------------------------------------------------------

    @property
    def _is_loading(self) -> bool:
        """Whether the partition has no coordinator: the new one still reads it."""
        return self.now < self._up_at

    def _fail_over(self, leader: Leader) -> None:
        """Another broker leads the partition: what the former coordinator knew beside its log is lost."""
        self._rows.append(
            {"kind": "fail-over", "time_ms": self.now, "broker": leader.broker, "leader_epoch": leader.epoch}
        )
        self._log.lead(self.now)
        self._up_at = self.now + self.scenario.cluster.loading
        self.at(self._up_at, self._load)
        parked, self._parked = self._parked, {}
        for client in parked.values():
            client.soon(self._up_at - self.now + client.chance.between(1, RETRY_MS), client.disconnected)

    def _load(self) -> None:
        if self._is_loading:  # the leader changed again before this one had read the partition: the next one reads it
            return
        assert self._kept is not None
        # A log is read before or after the cleaner came by, which leaves the newest part: groups are to be the same.
        if self._chance.below(2):
            self._kept.compact(self._chance.between(self.scenario.start_ms, self.now))
        self.memory = self._kept.load(self.memory)
        self.memory.publish(self.topics.version)
        for group_id, group in self.groups.items():
            group.loaded(self.group(group_id))
        self.settle(coordinator.take_over(self.memory, self.topics, self.now))
        for group_id in self.clients:
            self.wake(group_id)

    # --- sleep -------------------------------------------------------------------------------------------------------

    def set_aside(self, key: str) -> None:
        """Stop the session timer of a sleeping member: neither it nor the heartbeats that would reset it are
        simulated.
        """
        self.memory.timers.pop(key, None)

    def wake(self, group_id: str) -> None:
        """Wake the members of a group, because something happened to it."""
        for client in self.clients.get(group_id, ()):
            client.wake()
