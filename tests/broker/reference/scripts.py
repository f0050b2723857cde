"""Random requests to one group, sensible and not, for Kafka's coordinator and the model alike."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.coordinator.protocol import Request, RequestOutcome
from coordinator_core.coordinator.share.partitions import INITIALIZE_EFFECT
from coordinator_core.records import COMMIT_TYPES, CoordinatorRecord, RecordType
from tests.broker.reference import Both, Line, StepDifference
from tests.broker.reference.random_requests import KINDS, TOPICS, random_request, topic_id
from tests.core.coordinator.transcript import GROUP, START_MS

MOST_TIMERS = 100
"""So many at a time: a rebalance that waits 0 ms for a static member has a timer again and again."""

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.max.size": "3",
    "group.share.max.size": "3",
    "group.streams.max.size": "3",
    "group.max.size": "3",
    "group.streams.initial.rebalance.delay.ms": "0",
    "offset.metadata.max.bytes": "8",
    "offsets.retention.minutes": "1",
}


def differences(seed: int, steps: int, do: Callable[[Line], Line]) -> tuple[int, list[StepDifference]]:
    """Do so many random steps, or fewer: the first difference ends the script, as all later ones may follow from it.

    Return the number of steps and the differences of the last one.
    """
    script = _Script(random.Random(seed), Both(do))
    script.begin()
    for number in range(steps):
        script.step()
        if script.both.differences:
            return number + 1, script.both.differences
    return steps, []


class _Marker(NamedTuple):
    """The end of a producer's transaction in the log."""

    producer_id: int
    committed: bool


def _group_of(record: CoordinatorRecord) -> str:
    return str(record.key["group" if record.type == RecordType.GROUP_METADATA else "groupId"])


@dataclass
class _Script:
    draw: random.Random
    both: Both
    now: int = START_MS
    memory: CoordinatorState = field(default_factory=coordinator.new_state)
    topics: TopicImage = field(default_factory=lambda: TopicImage.of([], version=0))
    log: list[_Marker | tuple[CoordinatorRecord, int | None]] = field(default_factory=list)
    requests: int = 0
    kind: str = "consumer"

    def begin(self) -> None:
        self.kind = self.draw.choice(KINDS)
        settings = dict(SETTINGS)
        for kind in ("consumer", "share", "streams"):
            settings[f"group.{kind}.assignment.interval.ms"] = self.draw.choice(["0", "1000"])
        self.both.begin(settings)
        self.memory = coordinator.new_state(BrokerConfig.of(settings))
        self._set_topics({"a": 2, "b": 3})

    def step(self) -> None:
        chance = self.draw.random()
        if chance < 0.08:
            self._pass_time(self.draw.choice([100, 1_000, 10_000, 50_000, 400_000]))
        elif chance < 0.1:
            counts = {name: topic.partitions for name, topic in self.topics.by_name.items()}
            name = self.draw.choice(TOPICS)
            if name in counts and self.draw.random() < 0.4:
                del counts[name]
            else:
                counts[name] = counts.get(name, 0) + 1
            self._set_topics(counts)
        elif chance < 0.12:
            self._took_over()
        elif chance < 0.14:
            self.both.command = "clean"
            self._written(self.both.clean_up(self.memory, self.topics, self.now))
        elif chance < 0.155:
            self.both.command = "delete"
            self._written(self.both.delete_group(self.memory, self.topics, self.now, GROUP))
        elif chance < 0.18:
            self.both.command = "end of the transaction"
            producer, committed = self.draw.choice([1, 2]), self.draw.random() < 0.6
            self.both.end_transaction(self.memory, producer, committed=committed, now=self.now)
            self.log.append(_Marker(producer, committed))
        elif chance < 0.22:
            for task in list(self.memory.tasks.values()):
                self.both.command = "background"
                self._written(self.both.complete(self.memory, task, self.topics, self.now))
        else:
            self._request()
        self.both.command = "describe"
        self.both.describe(self.memory, self.topics, self.now)

    def _request(self) -> None:
        api, version, data = random_request(self.draw, self.kind, self.memory, self.topics)
        self.requests += 1
        request = Request(api, version, self.draw.choice(["x", "y"]), data, correlation=self.requests)
        self.both.command = f"{api} v{version} {data}"
        ids = iter([UUID(int=self.requests)])
        outcome = self.both.handle(self.memory, request, self.topics, self.now, ids)
        self._written(outcome)
        asked = {
            each["topic_id"]: [state["partition"] for state in each["partitions"]]
            for each in outcome.effects.get(INITIALIZE_EFFECT, ())
        }
        if asked and self.draw.random() < 0.8:
            self.both.command += " (initialised)"
            self._written(self.both.share_state_initialized(self.memory, self.topics, self.now, GROUP, asked))

    def _set_topics(self, counts: dict[str, int]) -> None:
        before = self.topics.by_name
        topics = [Topic(name, topic_id(name), count) for name, count in counts.items()]
        version = self.topics.version + 1
        deleted = {name: before[name].id for name in before if name not in counts}
        self.topics = TopicImage.of(topics, version=version)
        self.memory.publish(
            version,
            created=[name for name in counts if name not in before],
            changed=[name for name in counts if name in before and before[name].partitions != counts[name]],
            deleted=list(deleted),
        )
        self.both.command = f"topics {counts}"
        for outcome in self.both.publish(self.memory, self.topics, self.now):
            self._written(outcome)

    def _pass_time(self, ms: int) -> None:
        until = self.now + ms
        for _ in range(MOST_TIMERS):
            due = [timer for timer in self.memory.timers.values() if timer.deadline_ms <= until]
            if not due:
                break
            timer = min(due, key=lambda each: (each.deadline_ms, each.key))
            self.now = max(self.now, timer.deadline_ms)
            self.both.command = f"expire {timer.key}"
            self._written(self.both.expire(self.memory, timer, self.topics, self.now))
            if self.both.differences:
                return
        self.now = until

    def _loads(self) -> bool:
        """Whether Kafka loads the log: no group follows one of another type of which there is no tombstone.

        It forgets an empty consumer group whose tombstones it does not write if a classic member is refused then.
        """
        types: dict[str, str] = {}
        for entry in self.log:
            if isinstance(entry, _Marker) or entry[0].type in COMMIT_TYPES:
                continue
            record, _ = entry
            group, (group_type, _, is_of) = _group_of(record), record.type.name.partition("_")
            if record.value is not None and types.setdefault(group, group_type) != group_type:
                return False
            if record.value is None and is_of in ("METADATA", "GROUP_METADATA"):
                types.pop(group, None)
        return True

    def _took_over(self) -> None:
        if not self._loads():
            return
        self.both.command = "take over"
        before = self.memory
        self.memory = coordinator.new_state(before.config, profile=before.profile, group_configs=before.group_configs)
        for entry in self.log:
            if isinstance(entry, _Marker):
                self.memory.log.end_transaction(entry.producer_id, committed=entry.committed)
            else:
                self.memory.follow(*entry)
        self.memory.end_offset = before.end_offset
        self.memory.publish(self.topics.version, created=list(self.topics.by_name))
        self._written(self.both.take_over(self.memory, self.topics, self.now))

    def _written(self, outcome: RequestOutcome) -> None:
        self.log += [(record, outcome.producer_id) for record in outcome.records]
