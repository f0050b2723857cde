"""Clients that behave, for scripts over the coordinator model."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.coordinator.protocol import Request, RequestOutcome
from coordinator_core.records import CoordinatorRecord, Fields

GROUP = "g"


@dataclass(slots=True)
class Cluster:
    """A coordinator with its topics, clock and log."""

    memory: CoordinatorState = field(default_factory=coordinator.new_state)
    topics: TopicImage = field(default_factory=lambda: TopicImage.of([], version=0))
    now: int = 1_000_000
    log: list[CoordinatorRecord] = field(default_factory=list)
    ids: Iterator[UUID] = field(default_factory=lambda: _ids())
    requests: int = 0

    @classmethod
    def of(cls, partitions: dict[str, int], **settings: object) -> "Cluster":
        cluster = cls(
            coordinator.new_state(BrokerConfig.of({name.replace("_", "."): value for name, value in settings.items()}))
        )
        cluster.set_topics(partitions)
        return cluster

    def set_topics(self, partitions: dict[str, int]) -> None:
        before = self.topics.by_name
        topics = [Topic(name, name.ljust(22, "A"), count) for name, count in partitions.items()]
        version = self.topics.version + 1
        self.topics = TopicImage.of(topics, version=version)
        self.memory.publish(
            version,
            created=[topic.name for topic in topics if topic.name not in before],
            changed=[topic.name for topic in topics if topic.name in before and topic != before[topic.name]],
            deleted=[name for name in before if name not in partitions],
        )

    def send(self, api: str, version: int, data: Fields, client_id: str = "client") -> RequestOutcome:
        self.requests += 1
        request = Request(api, version, client_id, data, correlation=self.requests)
        return self.append(coordinator.handle(self.memory, request, self.topics, self.now, self.ids))

    def append(self, outcome: RequestOutcome) -> RequestOutcome:
        for record in outcome.records:
            assert record.at.offset == len(self.log)
            self.log.append(record)
        return outcome

    def pass_time(self, ms: int) -> list[RequestOutcome]:
        until = self.now + ms
        outcomes = []
        while due := [timer for timer in self.memory.timers.values() if timer.deadline_ms <= until]:
            timer = min(due, key=lambda each: (each.deadline_ms, each.key))
            self.now = max(self.now, timer.deadline_ms)
            outcomes.append(self.append(coordinator.expire(self.memory, timer, self.topics, self.now)))
        self.now = until
        return outcomes

    def do_background_work(self) -> None:
        for task in list(self.memory.tasks.values()):
            self.append(coordinator.complete(self.memory, task, self.topics, self.now))


def _ids() -> Iterator[UUID]:
    source = random.Random(0)
    while True:
        yield UUID(int=source.getrandbits(128))


@dataclass(slots=True)
class Consumer:
    """A consumer of KIP-848: owns what it was last given, comes back after an error with empty hands."""

    cluster: Cluster
    member_id: str
    topics: list[str] = field(default_factory=list)
    regex: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    epoch: int = 0
    owned: list[Fields] = field(default_factory=list)

    def beat(self, **overrides: object) -> RequestOutcome:
        joins = self.epoch == 0
        data: Fields = {
            "groupId": GROUP,
            "memberId": self.member_id,
            "memberEpoch": self.epoch,
            "instanceId": self.instance_id,
            "rebalanceTimeoutMs": 30_000 if joins else -1,
            "subscribedTopicNames": self.topics if joins else None,
            "subscribedTopicRegex": self.regex if joins else None,
            "serverAssignor": self.assignor if joins else None,
            "topicPartitions": [] if joins else self.owned,
        }
        outcome = self.cluster.send("ConsumerGroupHeartbeat", 1, data | overrides, self.member_id)
        if outcome.response is None:
            self.epoch, self.owned = 0, []
        else:
            self.epoch = max(outcome.response["memberEpoch"], 0)
            if outcome.response["assignment"] is not None:
                self.owned = outcome.response["assignment"]["topicPartitions"]
        return outcome

    def leave(self, epoch: int = -1) -> RequestOutcome:
        outcome = self.beat(memberEpoch=epoch, subscribedTopicNames=None, topicPartitions=None)
        self.epoch, self.owned = 0, []
        return outcome
