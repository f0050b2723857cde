"""The topics of a scenario over time, and the metadata log of its cluster (KRaft).

Both follow from scenario and seed alone: every coordinator of the cluster sees the same topics at the same time.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.cluster.topic_history import GROUP_RESOURCE
from coordinator_core.records import LOG_TOPICS, MetadataRecordType
from coordinator_core.simulator.brokers import FEATURES, Brokers, Leader, MetadataRecord
from coordinator_core.simulator.internal_topics import internal_topics
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.simulator.seeded_random import SeededRandom
from coordinator_core.wire.primitives import uuid_text

INTERNAL_TOPIC_DELAY_MS = 400
"""The internal topics of a streams group are created this long (ms) after its start."""
INTERNAL_RATE = 1.0


class TopicStep(NamedTuple):
    """The topics from ``time_ms`` on (``image``), and the names of those that changed.

    ``deleted`` maps names to ids. ``records`` are the same step in the metadata log, as one batch that ends at
    ``image.version``. ``away`` are the brokers that are down.
    """

    time_ms: int
    image: TopicImage
    created: tuple[str, ...]
    grown: tuple[str, ...]
    deleted: dict[str, str]
    records: tuple[MetadataRecord, ...]
    away: frozenset[int]


class _Change(NamedTuple):
    """A topic gets that many partitions; 0: it is deleted."""

    time_ms: int
    name: str
    partitions: int
    replicas: int


@dataclass(slots=True)
class TopicPlan:
    """Every step of the topics, the rate of records in each topic, and the brokers with the partitions they lead.

    ``end_ms`` is the time up to which the controller is there.
    """

    steps: list[TopicStep]
    rates: dict[str, float]
    created_ms: dict[str, int]
    brokers: Brokers
    end_ms: int

    def leaders(self, topic: str, partition: int) -> Sequence[Leader]:
        """Return the leaders of a partition in order of time; of a partition that is gone, one that it always had."""
        return self.brokers.leaders(topic, partition) or (Leader(self.created_ms.get(topic, 0), 0, 0),)

    def leaders_after_start(self, topic: str, partition: int) -> Sequence[Leader]:
        """Return the leaders of a partition after its first one, in order of time."""
        return self.brokers.leaders(topic, partition)[1:]


def plan_topics(scenario: Scenario, seed: int) -> TopicPlan:
    """Return the steps of a scenario's topics; the first one has the brokers and the topics that exist from the
    start.
    """
    chance = SeededRandom(seed).fork("topics")
    rates: dict[str, float] = {}
    logs = Counter(LOG_TOPICS[family] for family, _ in scenario.logs)
    changes = [
        *(_Change(scenario.start_ms, log, count, min(3, scenario.cluster.brokers)) for log, count in logs.items()),
        *_scripted(scenario, rates),
        *_internal(scenario, rates),
    ]
    changes.sort(key=lambda change: (change.time_ms, change.name, change.partitions))
    writer = _Writer(scenario, chance)
    outages = scenario.cluster.outages
    gone = {scenario.start_ms + outage.at: outage.broker for outage in outages}
    back = {scenario.start_ms + outage.at + outage.lasts: outage.broker for outage in outages}
    for time_ms in sorted({*(change.time_ms for change in changes), *gone, *back}):
        writer.step(time_ms, [change for change in changes if change.time_ms == time_ms])
        if time_ms in gone:
            writer.fail(time_ms, gone[time_ms])
        if time_ms in back:
            writer.come_back(time_ms, back[time_ms])
    return TopicPlan(writer.steps, rates, writer.created_ms, writer.brokers, scenario.start_ms + scenario.lasts)


def _scripted(scenario: Scenario, rates: dict[str, float]) -> Iterator[_Change]:
    for template, topic in scenario.topics.items():
        for number in range(topic.count):
            name = template.replace("{n}", str(number))
            rates[name] = topic.rate
            begin = scenario.start_ms
            yield _Change(begin + topic.created, name, topic.partitions, topic.replicas)
            for at, partitions in topic.grows.items():
                if topic.created < at and (topic.deleted is None or at < topic.deleted):
                    yield _Change(begin + at, name, partitions, topic.replicas)
            if topic.deleted is not None and topic.deleted > topic.created:
                yield _Change(begin + topic.deleted, name, 0, topic.replicas)


def _internal(scenario: Scenario, rates: dict[str, float]) -> Iterator[_Change]:
    """What brokers create for streams groups; their partition counts follow those of the sources at that time."""
    for name, group in scenario.groups.items():
        if group.type not in ("streams", "classic-streams"):
            continue
        sources = [topic for topic in scenario.topics_of(group) if topic.created <= group.starts]
        sources = sources or scenario.topics_of(group)
        if not sources:
            continue
        at = max(group.starts + group.spread, *(topic.created for topic in sources)) + INTERNAL_TOPIC_DELAY_MS
        largest = max(topic.partitions for topic in sources)
        for group_id in scenario.ids(name):
            for topic, partitions in internal_topics(group_id, group.streams, largest).items():
                rates[topic] = INTERNAL_RATE
                yield _Change(scenario.start_ms + at, topic, partitions, 1)


class _Writer:
    """Puts changes into images and metadata records."""

    def __init__(self, scenario: Scenario, chance: SeededRandom) -> None:
        self.steps: list[TopicStep] = []
        self.created_ms: dict[str, int] = {}
        self._scenario = scenario
        self._chance = chance
        racks = scenario.cluster.racks
        self._racks = {
            broker: racks[broker % len(racks)] if racks else None for broker in range(scenario.cluster.brokers)
        }
        self.brokers = Brokers(self._racks, chance)
        self._topics: dict[str, Topic] = {}
        self._lives: dict[str, int] = {}
        self._version = -1

    def step(self, time_ms: int, changes: list[_Change]) -> None:
        if not self.steps:
            self._add(time_ms, self._cluster(), [], [], {})
        records: list[MetadataRecord] = []
        created: list[str] = []
        grown: list[str] = []
        deleted: dict[str, str] = {}
        for change in changes:
            known = self._topics.get(change.name)
            if change.partitions == 0:
                if known is not None:
                    deleted[change.name] = known.id
                    del self._topics[change.name]
                    self.brokers.remove(change.name)
                    records.append(MetadataRecord(MetadataRecordType.REMOVE_TOPIC, 0, {"topicId": known.id}))
                continue
            (created if known is None else grown).append(change.name)
            records += self._put(change, known)
            self.created_ms.setdefault(change.name, time_ms)
        if records:
            self._add(time_ms, records, created, grown, deleted)

    def _add(
        self, time_ms: int, records: list[MetadataRecord], created: list[str], grown: list[str], deleted: dict[str, str]
    ) -> None:
        # The version of an image is the offset of the last record in it.
        self._version += len(records)
        image = TopicImage.of(self._topics.values(), self._racks, self._version)
        away = frozenset(self.brokers.down)
        self.steps.append(TopicStep(time_ms, image, tuple(created), tuple(grown), deleted, tuple(records), away))

    def _put(self, change: _Change, known: Topic | None) -> Iterator[MetadataRecord]:
        name, first = change.name, 0
        if known is None:
            life = self._lives[name] = self._lives.get(name, 0) + 1
            topic_id = uuid_text(self._chance.fork("topic", name, life).uuid().bytes)
            yield MetadataRecord(MetadataRecordType.TOPIC, 0, {"name": name, "topicId": topic_id})
        else:
            topic_id, first = known.id, known.partitions
        brokers = len(self._racks)
        # By the name alone: the partitions that a topic has stay where they are when it grows.
        start = self._chance.fork("placement", name).below(brokers)
        replicas = tuple(
            tuple((start + partition + copy) % brokers for copy in range(change.replicas))
            for partition in range(change.partitions)
        )
        racks = tuple(tuple(rack for broker in ids if (rack := self._racks[broker]) is not None) for ids in replicas)
        self._topics[name] = Topic(name, topic_id, change.partitions, racks, replicas)
        for partition in range(first, change.partitions):
            yield self.brokers.place(change.time_ms, name, topic_id, partition, replicas[partition])

    def fail(self, time_ms: int, broker: int) -> None:
        """A broker goes down."""
        self._add(time_ms, list(self.brokers.fail(time_ms, broker)), [], [], {})

    def come_back(self, time_ms: int, broker: int) -> None:
        """A broker is back."""
        self._add(time_ms, list(self.brokers.come_back(time_ms, broker, self._version + 1)), [], [], {})

    def _cluster(self) -> list[MetadataRecord]:
        """The records of a new cluster: features, brokers, and the configs of groups."""
        records = [
            MetadataRecord(MetadataRecordType.FEATURE_LEVEL, 0, {"name": name, "featureLevel": level})
            for name, (_, _, level) in FEATURES.items()
        ]
        for broker in self._racks:
            records += self.brokers.start(broker, len(records))
        for name, group in self._scenario.groups.items():
            for group_id, (key, value) in product(self._scenario.ids(name), group.configs.items()):
                config = {"resourceType": GROUP_RESOURCE, "resourceName": group_id, "name": key, "value": value}
                records.append(MetadataRecord(MetadataRecordType.CONFIG, 0, config))
        return records
