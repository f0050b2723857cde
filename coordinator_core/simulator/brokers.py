"""The brokers of a cluster and the partitions they lead, as the controller records them (KRaft, KIP-631)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.records import Fields, MetadataRecordType
from coordinator_core.simulator.seeded_random import SeededRandom
from coordinator_core.wire.primitives import uuid_text

METADATA_VERSION = 30
FEATURES = {
    "metadata.version": (7, METADATA_VERSION, METADATA_VERSION),
    "group.version": (0, 1, 1),
    "share.version": (0, 1, 1),
    "streams.version": (0, 1, 1),
    "transaction.version": (0, 2, 2),
}
"""Feature to the lowest and highest level that brokers support, and the level in force (Kafka 4.3)."""
_FENCED, _UNFENCED = 1, -1
NO_BROKER = -1
"""The leader of a partition while all of its replicas are down."""


class MetadataRecord(NamedTuple):
    """A record of ``__cluster_metadata`` to be written."""

    type: MetadataRecordType
    version: int
    value: Fields


class Leader(NamedTuple):
    """The leader of a partition from ``time_ms`` on: a broker, or ``NO_BROKER``."""

    time_ms: int
    broker: int
    epoch: int


@dataclass(slots=True)
class _Partition:
    topic_id: str
    number: int
    replicas: tuple[int, ...]
    in_sync: list[int]
    leaders: list[Leader]


@dataclass(slots=True)
class Brokers:
    """The brokers that are ``down``, and the leaders of partitions; ``racks`` by broker."""

    racks: dict[int, str | None]
    chance: SeededRandom
    directories: dict[int, str] = field(init=False)
    down: set[int] = field(default_factory=set)
    _lives: dict[int, int] = field(default_factory=dict)
    _epochs: dict[int, int] = field(default_factory=dict)
    _partitions: dict[tuple[str, int], _Partition] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = {broker: self.chance.fork("directory", broker).uuid() for broker in self.racks}
        self.directories = {broker: uuid_text(uuid.bytes) for broker, uuid in ids.items()}

    def leaders(self, topic: str, partition: int) -> Sequence[Leader]:
        """Return the leaders of a partition in order of time; none if it was removed."""
        known = self._partitions.get((topic, partition))
        return () if known is None else known.leaders

    def start(self, broker: int, offset: int) -> Iterator[MetadataRecord]:
        """Yield the records with which a broker registers and is unfenced; ``offset`` is that of the first one."""
        # The epoch of a broker is the offset of its registration.
        self._epochs[broker] = offset
        life = self._lives[broker] = self._lives.get(broker, 0) + 1
        incarnation = ("incarnation", broker) if life == 1 else ("incarnation", broker, life)
        registered = {
            "brokerId": broker,
            "isMigratingZkBroker": False,
            "incarnationId": uuid_text(self.chance.fork(*incarnation).uuid().bytes),
            "brokerEpoch": offset,
            "endPoints": [{"name": "PLAINTEXT", "host": f"broker-{broker}", "port": 9092, "securityProtocol": 0}],
            "features": [
                {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
                for name, (low, high, _) in FEATURES.items()
            ],
            "rack": self.racks[broker],
            "fenced": True,
            "inControlledShutdown": False,
            "logDirs": [self.directories[broker]],
        }
        yield MetadataRecord(MetadataRecordType.REGISTER_BROKER, 3, registered)
        yield self._fence(broker, offset, _UNFENCED)

    def place(self, time_ms: int, topic: str, topic_id: str, number: int, replicas: tuple[int, ...]) -> MetadataRecord:
        """Return the record of a new partition, led by the first of its replicas that is up."""
        there = [broker for broker in replicas if broker not in self.down]
        leader = Leader(time_ms, there[0] if there else NO_BROKER, 0)
        self._partitions[topic, number] = _Partition(topic_id, number, replicas, there or list(replicas), [leader])
        value = {
            "partitionId": number,
            "topicId": topic_id,
            "replicas": list(replicas),
            "isr": there or list(replicas),
            "removingReplicas": [],
            "addingReplicas": [],
            "leader": leader.broker,
            "leaderEpoch": 0,
            "partitionEpoch": 0,
            "directories": [self.directories[broker] for broker in replicas],
        }
        return MetadataRecord(MetadataRecordType.PARTITION, 2, value)

    def remove(self, topic: str) -> None:
        """Remove the partitions of a deleted topic."""
        self._partitions = {key: partition for key, partition in self._partitions.items() if key[0] != topic}

    def fail(self, time_ms: int, broker: int) -> Iterator[MetadataRecord]:
        """Yield the records of a broker that stops: it is fenced, and other brokers lead its partitions."""
        self.down.add(broker)
        yield self._fence(broker, self._epochs[broker], _FENCED)
        for partition in self._partitions.values():
            if broker in partition.in_sync:
                yield self._changed(time_ms, partition)

    def come_back(self, time_ms: int, broker: int, offset: int) -> Iterator[MetadataRecord]:
        """Yield the records of a broker that returns, in sync at once; it leads the partitions without a leader."""
        self.down.discard(broker)
        yield from self.start(broker, offset)
        for partition in self._partitions.values():
            if broker in partition.replicas:
                yield self._changed(time_ms, partition)

    def _changed(self, time_ms: int, partition: _Partition) -> MetadataRecord:
        """The replicas in sync are those that are there; the last one stays if none is."""
        there = [broker for broker in partition.replicas if broker not in self.down]
        value: Fields = {"partitionId": partition.number, "topicId": partition.topic_id}
        if there and there != partition.in_sync:
            value["isr"] = partition.in_sync = there
        last = partition.leaders[-1]
        if last.broker not in there:
            broker = there[0] if there else NO_BROKER
            value["leader"] = broker
            partition.leaders.append(Leader(time_ms, broker, last.epoch + 1))
        return MetadataRecord(MetadataRecordType.PARTITION_CHANGE, 2, value)

    @staticmethod
    def _fence(broker: int, epoch: int, fenced: int) -> MetadataRecord:
        value = {"brokerId": broker, "brokerEpoch": epoch, "fenced": fenced}
        return MetadataRecord(MetadataRecordType.BROKER_REGISTRATION_CHANGE, 0, value)
