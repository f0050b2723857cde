"""A consumer of the classic protocol, as the Java client behaves: join, synchronise, and assign when it leads."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence

from coordinator_core.assignors.client.claimed_partitions import NO_GENERATION
from coordinator_core.assignors.client.leader_view import subscribed_member
from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.assignors.leader_round import leader_round
from coordinator_core.cluster.client_view import without_racks
from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.classic.rebalance import heartbeat_key
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.member_timers import session_key
from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.record_fields.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
    CooperativeStickyAssignorUserData,
    StickyAssignorUserData,
)
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.client import Client
from coordinator_core.simulator.clients.consumer import is_at_target
from coordinator_core.simulator.ground_truth import TrueCause
from coordinator_core.wire.embedded import decode_assignment, decode_subscription, encode_blob

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 9, 5, 4, 5
SESSION_TIMEOUT_MS = 45_000
"""The default of the Java consumer, in ms."""


class ClassicClient(Client):
    """The classic protocol itself (JoinGroup, SyncGroup, Heartbeat, LeaveGroup), for whatever work the members
    assign.
    """

    protocol_type = "consumer"

    def reset(self) -> None:
        """Forget the member id, as a new process does."""
        self.member_id = ""
        self.epoch = NO_GENERATION
        self._joining = False
        self._leader = False
        self._protocol = ""
        self.forget()

    def join(self) -> None:
        """Send JoinGroup; the coordinator responds when all members have joined."""
        self._joining = True
        self.be_heard()
        data = {
            "groupId": self.group_id,
            "sessionTimeoutMs": self.script.session_timeout or SESSION_TIMEOUT_MS,
            "rebalanceTimeoutMs": self.script.rebalance_timeout,
            "memberId": self.member_id,
            "groupInstanceId": self.setup.instance_id,
            "protocolType": self.protocol_type,
            "protocols": [{"name": name, "metadata": data} for name, data in self.protocols().items()],
        }
        self.shard.send(self, "JoinGroup", JOIN_VERSION, data)

    def beat(self) -> None:
        """Send Heartbeat."""
        if not self._joining:
            self.shard.send(self, "Heartbeat", HEARTBEAT_VERSION, self._identity())

    def say_goodbye(self) -> None:
        """Send LeaveGroup; a static member sends nothing and keeps its place."""
        if self.setup.instance_id is None and self.member_id:
            leaving = [{"memberId": self.member_id, "groupInstanceId": None}]
            self.shard.send(self, "LeaveGroup", LEAVE_VERSION, {"groupId": self.group_id, "members": leaving})

    def _identity(self) -> Fields:
        return {
            "groupId": self.group_id,
            "generationId": self.epoch,
            "memberId": self.member_id,
            "groupInstanceId": self.setup.instance_id,
        }

    # --- answers -----------------------------------------------------------------------------------------------------

    def answered(self, api: str, response: Fields) -> None:
        """Continue with the next step of the protocol."""
        if not self.running:
            return
        if self.shard.now < self.frozen_until:
            # A response that comes while the process hangs is read when it goes on.
            self.soon(0, lambda: self.answered(api, response))
            return
        error = ErrorCode(response.get("errorCode", 0))
        if api == "JoinGroup":
            self._joined(error, response)
        elif api == "SyncGroup":
            self._synced(error, response)
        elif api == "Heartbeat":
            if error is ErrorCode.NONE:
                self.rest()
            elif error is ErrorCode.REBALANCE_IN_PROGRESS:
                self._rejoin()
            else:
                self.refused(api, error)

    def _joined(self, error: ErrorCode, response: Fields) -> None:
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response["memberId"]
            self.soon(1, self.join)
            return
        if error is not ErrorCode.NONE:
            self.refused("JoinGroup", error)
            return
        self.member_id, self.epoch = response["memberId"], response["generationId"]
        self._protocol = response["protocolName"]
        self._leader = response["leader"] == self.member_id
        assignments = []
        # KIP-814: a static leader that is back learns of the members, but the group keeps its assignment.
        if self._leader and not response["skipAssignment"]:
            decided = self.assign(self._protocol, response["members"])
            assignments = [{"memberId": member, "assignment": assignment} for member, assignment in decided.items()]
        self._sync(assignments)

    def _sync(self, assignments: list[Fields]) -> None:
        data = self._identity() | {
            "protocolType": self.protocol_type,
            "protocolName": self._protocol,
            "assignments": assignments,
        }
        self.soon(self.chance.between(1, 10), lambda: self.shard.send(self, "SyncGroup", SYNC_VERSION, data))

    def _synced(self, error: ErrorCode, response: Fields) -> None:
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin()
        elif error is not ErrorCode.NONE:
            self.refused("SyncGroup", error)
        else:
            self._joining = False
            self.beat_in(self.script.heartbeat)
            self.assigned(response["assignment"])

    def _rejoin(self) -> None:
        """A rebalance is on: give up what has to be given up, and join again."""
        self._joining = True
        self.be_heard()
        self.soon(self.prepare(), self.join)

    def refused(self, api: str, error: ErrorCode) -> None:
        """Join again if the coordinator does not know the member; stop if it fenced the member or does not accept
        it.
        """
        if not self.running or api in ("LeaveGroup", "OffsetCommit"):
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS):
            if error is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            if error is not ErrorCode.REBALANCE_IN_PROGRESS:
                self.epoch = NO_GENERATION
                self.lose()
            self._joining = True
            self.soon(self.chance.between(20, 200), self.join)
        else:
            self._stop()

    # --- sleep -------------------------------------------------------------------------------------------------------

    def session_key(self) -> str:
        """Return the key of the member's session timer, for the type that its group has now."""
        live = self.shard.memory.live.get(self.group_id)
        key = session_key if isinstance(live, LiveConsumerGroup) else heartbeat_key
        return key(self.group_id, self.member_id)

    def settled(self) -> bool:
        """Whether the group is stable, or, in a consumer group, the member is at its target."""
        live = self.shard.memory.live.get(self.group_id)
        if self._joining:
            return False
        if isinstance(live, LiveClassicGroup):
            return live.state is ClassicGroupState.STABLE and live.generation == self.epoch
        if not isinstance(live, LiveConsumerGroup):
            return False
        return is_at_target(live, self.member_id, self.shard.now)

    # --- what members assign -----------------------------------------------------------------------------------------

    @abstractmethod
    def protocols(self) -> Mapping[str, bytes]:
        """Return the protocols that the member supports, with its metadata for each."""

    @abstractmethod
    def assign(self, protocol: str, members: list[Fields]) -> Mapping[str, bytes]:
        """Return, as the leader, the assignment of every member."""

    @abstractmethod
    def assigned(self, data: bytes) -> None:
        """Take the member's part of the assignment."""

    @abstractmethod
    def prepare(self) -> int:
        """Give up what has to be given up before joining again; return how long that takes, in ms."""

    @abstractmethod
    def lose(self) -> None:
        """Drop all work: the process is no longer a member."""

    @abstractmethod
    def forget(self) -> None:
        """Forget all work, as a new process does."""


class ClassicConsumer(ClassicClient):
    """A consumer that uses one of Kafka's own assignors."""

    def forget(self) -> None:
        """Forget the partitions, also those that it had before."""
        self._owned: dict[str, list[int]] = {}
        self._sticky: dict[str, list[int]] = {}
        self._sticky_generation = NO_GENERATION
        self._memory: object = None
        self._assignor = self.setup.assignor or "range"

    @property
    def _cooperative(self) -> bool:
        return self._assignor == "cooperative-sticky"

    def protocols(self) -> Mapping[str, bytes]:
        """Return the assignor that the consumer is configured with."""
        owned = self._owned if self._cooperative else self._sticky
        generation = self._sticky_generation
        data = _subscription(self._assignor, self.setup.topics, owned, generation, self.setup.rack)
        return {self._assignor: data}

    def assign(self, protocol: str, members: list[Fields]) -> Mapping[str, bytes]:
        """Return the assignor's result for the topics as the leader knows them."""
        specs = {member["memberId"]: _spec(protocol, member) for member in members}
        names = sorted({topic for spec in specs.values() for topic in spec.topics})
        self.shard.groups[self.group_id].assigned(names, self.shard.topics)
        seen = without_racks(self.shard.topics, self.shard.away, names)
        result = leader_round(protocol, specs, seen, self._memory)
        self._memory = result.memory
        if protocol == "cooperative-sticky":
            lose = (member for member in members if _loses(member, result.assignments.get(member["memberId"], {})))
            self.shard.groups[self.group_id].takes(self.epoch, (loser["memberId"] for loser in lose))
        return {member: _assignment(result.assignments.get(member, {})) for member in specs}

    def assigned(self, data: bytes) -> None:
        """Take the partitions; a cooperative member gives up its other partitions and joins again so that others
        get them.
        """
        blob = decode_assignment("consumer", self._protocol, data)
        wanted = _partitions_of(blob.fields["assignedPartitions"]) if blob is not None else {}
        self._sticky, self._sticky_generation = wanted, self.epoch
        lost = [
            (topic, number)
            for topic, numbers in self._owned.items()
            for number in numbers
            if number not in wanted.get(topic, ())
        ]
        self._own(wanted)
        if self._cooperative and lost:
            self._joining = True
            self.soon(self.chance.between(1, self.setup.revocation_ms), self.join)

    def prepare(self) -> int:
        """Give up all partitions if the assignor is eager; return how long that takes, in ms."""
        if self._cooperative or not self._owned:
            return 1
        self._own({})
        return self.chance.between(1, self.setup.revocation_ms)

    def lose(self) -> None:
        """Drop all partitions."""
        self._own({})
        self._sticky, self._sticky_generation = {}, NO_GENERATION

    def _own(self, partitions: dict[str, list[int]]) -> None:
        self._owned = partitions
        self.commit([(topic, None, number) for topic, numbers in partitions.items() for number in numbers])

    def subscribe(self, topics: list[str]) -> None:
        """Join again with the new topics."""
        changed = tuple(sorted(set(topics) ^ set(self.setup.topics)))
        self.setup.topics = topics
        if self.running and self.epoch != NO_GENERATION and not self._joining:
            self.shard.groups[self.group_id].expect(TrueCause("subscription_changed", self.member_id, changed))
            self._rejoin()

    def choose(self, assignor: str) -> None:
        """Use this assignor from the next start of the process: a running consumer does not change assignors."""
        self.setup.assignor = assignor

    def topics_changed(self) -> None:
        """As the leader, notice changed topics within ``metadata_age`` and make the group rebalance."""
        super().topics_changed()
        if self.running and self._leader:
            self.soon(self.chance.between(1, self.script.metadata_age), self._look_at_topics)

    def _look_at_topics(self) -> None:
        known = self.shard.groups[self.group_id].topics
        now: TopicImage = self.shard.topics
        differs = any(now.by_name.get(name) != topic for name, topic in known.items())
        if self._leader and not self._joining and differs:
            self._rejoin()


def _loses(member: Fields, given: Mapping[str, Collection[int]]) -> bool:
    """Whether a cooperative member owns something that it is not given any more."""
    blob = decode_subscription("consumer", "cooperative-sticky", member["metadata"])
    owned = _partitions_of(blob.fields.get("ownedPartitions", ())) if blob is not None else {}
    return any(not set(numbers) <= set(given.get(topic, ())) for topic, numbers in owned.items())


def _spec(protocol: str, member: Fields) -> ClassicMemberSpec:
    blob = decode_subscription("consumer", protocol, member["metadata"])
    return subscribed_member(
        blob.fields if blob is not None else {"topics": [], "userData": None}, member["groupInstanceId"]
    )


PROTOCOL_VERSION = 3
"""The newest version of the consumer's subscription and assignment (KIP-881)."""

TopicPartitions = Mapping[str, Sequence[int]]
"""Partitions by topic name."""


def _subscription(
    protocol: str, topics: Sequence[str], owned: TopicPartitions, generation: int, rack: str | None
) -> bytes:
    """Return a member's subscription for an assignor, with the user data that the assignor needs; without a
    generation it is -1.
    """
    cooperative = protocol == "cooperative-sticky"
    user_data = None
    if cooperative:
        user_data = encode_blob(CooperativeStickyAssignorUserData, 0, {"generation": generation})
    elif protocol == "sticky" and generation >= 0:
        memory: StickyAssignorUserData = {"previousAssignment": _listed(owned), "generation": generation}
        user_data = encode_blob(StickyAssignorUserData, 1, memory)
    fields: ConsumerProtocolSubscription = {
        "topics": list(topics),
        "userData": user_data,
        "ownedPartitions": _listed(owned) if cooperative else [],
        "generationId": generation,
        "rackId": rack,
    }
    return encode_blob(ConsumerProtocolSubscription, PROTOCOL_VERSION, fields)


def _assignment(partitions: TopicPartitions) -> bytes:
    """Return a member's assignment."""
    fields: ConsumerProtocolAssignment = {"assignedPartitions": _listed(partitions), "userData": None}
    return encode_blob(ConsumerProtocolAssignment, PROTOCOL_VERSION, fields)


def _partitions_of(
    entries: Iterable[ConsumerProtocolSubscriptionTopicPartition | ConsumerProtocolAssignmentTopicPartition],
) -> dict[str, list[int]]:
    """Return the partitions of a decoded assignment, by topic name."""
    return {entry["topic"]: list(entry["partitions"]) for entry in entries}


def _listed(partitions: TopicPartitions) -> list[ConsumerProtocolSubscriptionTopicPartition]:
    return [{"topic": topic, "partitions": list(numbers)} for topic, numbers in partitions.items() if numbers]
