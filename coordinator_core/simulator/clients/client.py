"""What all simulated clients share: heartbeats, sleep, offsets to commit, and the ways in which they stop."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Protocol

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.records import Fields
from coordinator_core.simulator.bulk_commits import CommitStream, CommitStreams, OwnedPartition
from coordinator_core.simulator.commit_batches import Transactions
from coordinator_core.simulator.ground_truth import GroupTruth, TrueCause
from coordinator_core.simulator.scenario import ScenarioGroup
from coordinator_core.simulator.seeded_random import SeededRandom
from coordinator_core.simulator.share_activity import ShareActivity
from coordinator_core.simulator.state_directory import StateDirectory

COMMIT_VERSION = 9
"""The newest version of OffsetCommit that names topics instead of giving their ids."""

Owned = Sequence[OwnedPartition]
"""Owned partitions, in the order in which the client commits them."""


@dataclass(slots=True)
class ConfigTopic:
    """The config topic of a Connect cluster: task counts by connector, as of each offset."""

    versions: dict[int, dict[str, int]] = field(default_factory=dict)
    offset: int = 0

    def write(self, connectors: Mapping[str, int]) -> None:
        """Write the task counts that hold from now on; each connector takes some records."""
        self.offset += 1 + 2 * len(connectors)
        self.versions[self.offset] = dict(connectors)


@dataclass(slots=True)
class ClientSetup:
    """The configuration of a client: it survives restarts, and group actions change it."""

    topics: list[str]
    regex: str | None = None
    assignor: str | None = None
    instance_id: str | None = None
    rack: str | None = None
    revocation_ms: int = 200
    configs: ConfigTopic = field(default_factory=ConfigTopic)
    versions: tuple[int, int] = (0, 2)
    topology_epoch: int = 0
    disk: StateDirectory = field(default_factory=StateDirectory)


class ClientEnvironment(Protocol):
    """What clients can use: the clock, the coordinator that they talk to, topics and offsets. ``Shard``
    implements it.
    """

    topics: TopicImage
    away: frozenset[int]
    commits: CommitStreams
    groups: dict[str, GroupTruth]
    sharing: ShareActivity

    @property
    def now(self) -> int:
        """The time, in ms since the epoch."""

    @property
    def memory(self) -> CoordinatorState:
        """The coordinator's state, for facts that a real client would find out by asking repeatedly."""

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        """Call the action at this time."""

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Call the action after this delay."""

    def send(self, client: "Client", api: str, version: int, data: Fields, why: tuple[TrueCause, ...] = ()) -> None:
        """Send a request; ``why`` is the true cause of the rebalance that it starts, if it starts one."""

    def set_aside(self, key: str) -> None:
        """Stop the session timer of a client that sleeps."""


class Client(ABC):
    """One client process. It is ``running`` from ``start`` until it leaves or crashes; after that it may start
    again.
    """

    commits: ClassVar[bool] = True

    def __init__(
        self,
        shard: ClientEnvironment,
        group_id: str,
        script: ScenarioGroup,
        number: int,
        setup: ClientSetup,
        chance: SeededRandom,
    ) -> None:
        self.shard = shard
        self.group_id = group_id
        self.script = script
        self.client_id = f"{group_id}-{number}"
        self.setup = setup
        self.chance = chance
        self.host = f"/10.{chance.below(256)}.{chance.below(256)}.{chance.between(1, 254)}"
        self.running = False
        self.frozen_until = 0
        self.member_id = ""
        self.epoch = 0
        self._life = 0
        self._asleep = False
        self._is_counted = True  # whether its session timer runs
        self._restless = False
        self._beat_number = 0
        self._stream: CommitStream | None = None
        self._committed: Owned = ()

    # --- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process and join the group."""
        if not self.running:
            self.running = True
            self.frozen_until = 0
            self.be_heard()
            self.reset()
            self.join()

    def leave(self) -> None:
        """Stop the process after leaving the group; the session of a static member goes on."""
        if self.running:
            if self.script.commits is not None and self.script.commits.when_leaving:
                self.commit(self._committed, once_more=True)
            # The session of a static member goes on: nobody counted it while the member slept, so it begins now.
            if self.setup.instance_id is not None:
                self._rouse()
            self.say_goodbye()
            self._stop()

    def crash(self) -> None:
        """Stop the process without leaving the group."""
        if self.running:
            self._rouse()
            self._abandon_commits()
            self._stop()

    def freeze(self, lasts_ms: int) -> None:
        """Let the process hang for this time; after that it continues as if nothing had happened."""
        if self.running:
            self._rouse()
            owned = self._committed
            offset = self._stream.first_offset(self.shard.now) if self._stream is not None else 0
            self._abandon_commits()
            self.frozen_until = self.shard.now + lasts_ms
            self.soon(lasts_ms, partial(self._thaw, owned, offset))
            # Behind the commit, which is its first deed.
            self.beat_in(lasts_ms + 1)

    def _thaw(self, owned: Owned, offset: int) -> None:
        """The first deed of one that hung is to commit for what it still believes to own, as far as it was then."""
        if owned and self.commits:
            name, _, partition = owned[0]
            entry = {"partitionIndex": partition, "committedOffset": offset, "committedMetadata": None}
            data = {
                "groupId": self.group_id,
                "generationIdOrMemberEpoch": self.epoch,
                "memberId": self.member_id,
                "groupInstanceId": self.setup.instance_id,
                "topics": [{"name": name, "partitions": [entry]}],
            }
            self.shard.send(self, "OffsetCommit", COMMIT_VERSION, data)

    def soon(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Call the action after this delay, unless the process ends first; a process that hangs is late."""
        self.shard.later(delay_ms, partial(self._do_if, self._life, action))

    def _do_if(self, life: int, action: Callable[[], None]) -> None:
        if life == self._life and self.running:
            if self.shard.now < self.frozen_until:
                self.shard.at(self.frozen_until, partial(self._do_if, life, action))
            else:
                action()

    def _rouse(self) -> None:
        """One that sleeps, or woke up a moment ago, sent heartbeats all the time; the last one was just now."""
        if not self._is_counted:
            # The response would put it to sleep again, and set its session timer aside.
            self._restless = True
            self.be_heard()
            self.beat()
            self._restless = False

    def _stop(self) -> None:
        self.running = False
        self._asleep = False
        self._life += 1
        self._beat_number += 1
        self.commit(())

    # --- heartbeats --------------------------------------------------------------------------------------------------

    def be_heard(self) -> None:
        """Let the coordinator hear from it now, and start its session timer; a heartbeat that was planned is none."""
        self._asleep, self._is_counted = False, True
        self._beat_number += 1

    def beat_in(self, delay_ms: int) -> None:
        """Send the next heartbeat after this delay, and none before."""
        self._asleep = False
        self._beat_number += 1
        self.soon(delay_ms, partial(self._beat_if, self._beat_number))

    def _beat_if(self, number: int) -> None:
        if number == self._beat_number:
            self.be_heard()
            self.beat()

    def rest(self) -> None:
        """Do nothing until the next heartbeat, or sleep if heartbeats would change nothing."""
        if self.settled() and not self._restless:
            self._asleep, self._is_counted = True, False
            self._beat_number += 1
            self.shard.set_aside(self.session_key())
        else:
            self.beat_in(self.script.heartbeat)

    def wake(self) -> None:
        """Wake up if asleep, because something happened to the group; the next heartbeat is at some time within
        the interval.
        """
        if self._asleep:
            self.beat_in(self.chance.between(1, self.script.heartbeat))

    # --- offsets -----------------------------------------------------------------------------------------------------

    def commit(self, owned: Owned, *, once_more: bool = False) -> None:
        """Commit these partitions from now on; with ``once_more`` commit now what the client owned before."""
        if self._stream is not None and (once_more or owned != self._committed):
            self._stream.close(self.shard.now, once_more=once_more)
            self._stream = None
        self._committed = owned
        there = [partition for partition in owned if partition[0] in self.shard.topics.by_name]
        if self._stream is None and there and self.script.commits is not None:
            every = self.script.commits.every
            first_ms = self.shard.now + every
            self._stream = self.shard.commits.open(self.group_id, there, every, first_ms, self._transactions())

    def _abandon_commits(self) -> None:
        """The process is gone, or hangs: a transaction that is under way runs into its timeout."""
        if self._stream is not None:
            self._stream.close(self.shard.now, crashed=True)
            self._stream = None
        self.commit(())

    def _transactions(self) -> Transactions | None:
        """How a new producer's transactions go, None if offsets are committed without."""
        script = self.script.commits and self.script.commits.transactions
        if not script:
            return None
        return Transactions(
            self.shard.commits.next_block(),
            self.chance.bits(),
            script.lasts,
            script.timeout,
            round(script.aborts * 2**32),
            round(script.left_open * 2**32),
        )

    def topics_changed(self) -> None:
        """Take in that topics changed: partitions of deleted topics can no longer be committed."""
        if self._stream is not None and any(name not in self.shard.topics.by_name for name, _, _ in self._committed):
            kept = [partition for partition in self._committed if partition[0] in self.shard.topics.by_name]
            self.commit(kept)

    def subscribe(self, topics: list[str]) -> None:
        """Subscribe to other topics."""
        self.setup.topics = topics

    def choose(self, assignor: str) -> None:
        """Ask for another assignor."""
        self.setup.assignor = assignor

    def disconnected(self) -> None:
        """Take in that the coordinator failed before it responded: join at the new one."""
        self.join()

    # --- what each type of client does -------------------------------------------------------------------------------

    @abstractmethod
    def reset(self) -> None:
        """Forget everything about the former life of the process."""

    @abstractmethod
    def join(self) -> None:
        """Join the group."""

    @abstractmethod
    def beat(self) -> None:
        """Send a heartbeat."""

    @abstractmethod
    def say_goodbye(self) -> None:
        """Leave the group."""

    @abstractmethod
    def session_key(self) -> str:
        """Return the key of the member's session timer."""

    @abstractmethod
    def settled(self) -> bool:
        """Whether further heartbeats would change nothing until something happens to the group."""

    @abstractmethod
    def answered(self, api: str, response: Fields) -> None:
        """Take in the coordinator's response."""

    @abstractmethod
    def refused(self, api: str, error: ErrorCode) -> None:
        """Take in the error that the coordinator responded with."""
