"""The transcripts' questions, put to the group coordinator of Kafka 4.3.1 and to the model, step by step.

``kafkas_coordinator`` runs Kafka's own coordinator in a Java process: the broker's service with its runtime, on a clock
and a log that the test controls. ``differences`` plays a transcript with both and returns where they are not the same.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock
from uuid import UUID

from coordinator_core.assignors.registry import ASSIGNORS
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.coordinator import coordinator, describe_api
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.memory import CoordinatorPhase, CoordinatorState
from coordinator_core.coordinator.protocol import ErrorCode, Request, RequestOutcome, Task, Timer
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.traces.compare import plain, recorded_bytes, same, same_records, written
from coordinator_core.coordinator.traces.run import sorted_names
from coordinator_core.records import AnyRecord, Fields
from tests.broker.share_group import driver
from tests.core.coordinator import transcript
from tests.core.coordinator.request_shapes import SHAPES

HERE = Path(__file__).parent
Line = dict[str, Any]
_BASE64_ID = re.compile("'memberId': '([A-Za-z0-9_-]{22})'")
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class StepDifference(NamedTuple):
    """What Kafka and the model do differently: the command of the transcript, what differs, and both results."""

    command: str
    part: str
    kafka: Any
    model: Any


def kafkas_coordinator(home: Path) -> AbstractContextManager[Callable[[Line], Line]]:
    """Return a function that gives one operation to Kafka's coordinator and returns what came of it.

    Compiled classes go to the folder ``home``.
    """
    source = HERE / "CoordinatorReference.java"
    return driver(home, source, "org.apache.kafka.coordinator.group.CoordinatorReference")


def is_of_kafka(text: str) -> bool:
    """Whether the transcript shows what Kafka does, and not what only a document defines."""
    return not text.startswith(transcript.CONNECT) and "\nprofile " not in f"\n{text}"


def differences(text: str, do: Callable[[Line], Line]) -> tuple[int, list[StepDifference]]:
    """Play the transcript with the model and with Kafka's coordinator.

    Return how often both were asked something, and where they differ.
    """
    both = Both(do)
    with mock.patch.object(transcript, "coordinator", both), mock.patch.dict(ASSIGNORS):
        play = _Play(both=both)
        for block in text.strip("\n").split("\n\n"):
            lines = block.split("\n")
            if transcript.SEPARATOR not in lines:
                continue
            for command in lines[: lines.index(transcript.SEPARATOR)]:
                both.command = command
                list(play.command(command))
    return both.asked, both.differences


@dataclass
class Both:
    """Stands for the module ``coordinator``: each function asks Kafka, then the model, and compares."""

    do: Callable[[Line], Line]
    command: str = ""
    asked: int = 0
    differences: list[StepDifference] = field(default_factory=list)
    topics: TopicImage = field(default_factory=lambda: TopicImage.of([], version=0))
    ids: set[UUID] = field(default_factory=set)
    deleted: list[Line] = field(default_factory=list)
    deleted_by_model: list[AnyRecord] = field(default_factory=list)
    ErrorCode = ErrorCode
    new_state = staticmethod(coordinator.new_state)

    def begin(self, settings: Mapping[str, str]) -> None:
        self._ask("begin", 0, config=dict(settings))

    def handle(
        self, memory: CoordinatorState, request: Request, topics: TopicImage, now: int, ids: Iterator[UUID]
    ) -> RequestOutcome:
        self._publish(topics, now)
        answer = self._ask(
            "request",
            now,
            api=request.api,
            version=request.version,
            client=request.client_id,
            correlation=request.correlation,
            data=_request_json(request),
        )
        drawn = [each for each in _random_ids(str(answer)) if each not in self.ids]
        self.ids.update(drawn)
        outcome = coordinator.handle(memory, request, topics, now, iter([*drawn, *ids]))
        own = next((each for each in answer["answers"] if each["correlation"] == request.correlation), None)
        if own is None or outcome.pending:
            self._same("pending", own is None, outcome.pending)
        else:
            self._same_response(request, own.get("response", own.get("error")), outcome)
        self._same_outcome(memory, answer, outcome, request.correlation)
        return outcome

    def expire(self, memory: CoordinatorState, timer: Timer, topics: TopicImage, now: int) -> RequestOutcome:
        self._publish(topics, now)
        answer = self._ask("expire", now, key=timer.key)
        return self._done(memory, answer, coordinator.expire(memory, timer, topics, now))

    def complete(self, memory: CoordinatorState, task: Task, topics: TopicImage, now: int) -> RequestOutcome:
        self._publish(topics, now)
        return self._done(memory, self._ask("background", now), coordinator.complete(memory, task, topics, now))

    def delete_group(self, memory: CoordinatorState, topics: TopicImage, now: int, group_id: str) -> RequestOutcome:
        self._publish(topics, now)
        answer = self._ask("delete", now, group=group_id)
        outcome = RequestOutcome()
        if isinstance(memory.live.get(group_id), LiveShareGroup):
            outcome = coordinator.prepare_delete(memory, topics, now, group_id)
        if outcome.error is None:
            prepared = outcome.records
            outcome = coordinator.delete_group(memory, topics, now, group_id)
            outcome.records[:0] = prepared
        (deleted,) = answer["answers"][0]["response"]["results"]
        self._same("error", deleted["errorCode"], 0 if outcome.error is None else int(outcome.error.code))
        return self._done(memory, answer, outcome)

    def clean_up(self, memory: CoordinatorState, topics: TopicImage, now: int) -> RequestOutcome:
        self._publish(topics, now)
        answer, outcome = self._ask("clean", now), coordinator.clean_up(memory, topics, now)
        # The order of groups is that of a hash map.
        answer["records"].sort(key=lambda each: _group_of(each["key"]))
        in_order = sorted(outcome.records, key=lambda record: record.group_id)
        self._done(memory, answer, replace(outcome, records=in_order))
        return outcome

    def share_state_initialized(
        self, memory: CoordinatorState, topics: TopicImage, now: int, group_id: str, partitions: Mapping[str, list[int]]
    ) -> RequestOutcome:
        answer = self._ask("share_initialized", now, group=group_id, partitions=partitions)
        outcome = coordinator.share_state_initialized(memory, topics, now, group_id, partitions)
        return self._done(memory, answer, outcome)

    def take_over(self, memory: CoordinatorState, topics: TopicImage, now: int) -> RequestOutcome:
        self._publish(topics, now)
        return self._done(memory, self._ask("fail_over", now), coordinator.take_over(memory, topics, now))

    def describe(self, memory: CoordinatorState, topics: TopicImage, now: int) -> None:
        self._publish(topics, now)
        described = self._ask("describe", now, group=transcript.GROUP)["described"]
        for api, describe in describe_api.DESCRIBE.items():
            if api in described:
                self._same(api, described[api]["groups"], [describe(memory, transcript.GROUP, topics)])
        self._same("ListGroups", described["ListGroups"]["groups"], describe_api.list_groups(memory))

    def configure(self, settings: Mapping[str, str], now: int) -> None:
        self._ask("group_config", now, group=transcript.GROUP, settings=dict(settings))

    def end_transaction(self, memory: CoordinatorState, producer: int, *, committed: bool, now: int) -> None:
        self._ask("end_transaction", now, producer=producer, committed=committed)
        memory.log.end_transaction(producer, committed=committed)

    def phase(self, name: str, now: int) -> None:
        self._ask(name, now)

    def _ask(self, operation: str, now: int, **given: Any) -> Line:
        self.asked += operation not in ("begin", "topics")
        answer = self.do({"op": operation, "now": now, **given})
        if "failure" in answer:
            raise RuntimeError(f"{self.command}: {operation}: {answer['failure']}")
        return answer

    def delete_topics(
        self, memory: CoordinatorState, topics: TopicImage, now: int, names: Mapping[str, str]
    ) -> RequestOutcome:
        """Kafka writes for offsets and share state of deleted topics at once; both are compared together."""
        self.deleted = self._publish(topics, now)
        outcome = coordinator.delete_topics(memory, topics, now, names)
        self.deleted_by_model = list(outcome.records)
        return outcome

    def clean_up_share_state(
        self, memory: CoordinatorState, topics: TopicImage, now: int, topic_ids: Collection[str]
    ) -> RequestOutcome:
        outcome = coordinator.clean_up_share_state(memory, topics, now, topic_ids)
        self._same_records(self.deleted, [*self.deleted_by_model, *outcome.records])
        return outcome

    def publish(self, memory: CoordinatorState, topics: TopicImage, now: int) -> list[RequestOutcome]:
        """Set new topics; return what the model wrote because topics were deleted."""
        before = self.topics.by_name
        deleted = {name: topic.id for name, topic in before.items() if name not in topics.by_name}
        if not deleted:
            self._publish(topics, now)
            return []
        offsets = self.delete_topics(memory, topics, now, deleted)
        return [offsets, self.clean_up_share_state(memory, topics, now, list(deleted.values()))]

    def _publish(self, topics: TopicImage, now: int) -> list[Line]:
        before = self.topics.by_name
        if topics.version == self.topics.version:
            return []
        # A topic does not shrink: one that has fewer partitions was deleted and created again.
        shrunk = {name for name, topic in topics.by_name.items() if name in before and _shrinks(before[name], topic)}
        deleted = [topic.id for name, topic in before.items() if name not in topics.by_name or name in shrunk]
        created = [
            {
                "name": name,
                "id": topic.id,
                "partitions": topic.partitions,
                "from": before[name].partitions if name in before and name not in shrunk else 0,
            }
            for name, topic in topics.by_name.items()
            if before.get(name) != topic
        ]
        self.topics = topics
        if shrunk:
            self._ask("topics", now, created=[], deleted=deleted, version=topics.version)
            deleted = []
        answer = self._ask("topics", now, created=created, deleted=deleted, version=topics.version)
        return list(answer["records"])

    def _done(self, memory: CoordinatorState, answer: Line, outcome: RequestOutcome) -> RequestOutcome:
        self._same_outcome(memory, answer, outcome, 0)
        return outcome

    def _same_outcome(self, memory: CoordinatorState, answer: Line, outcome: RequestOutcome, own: int) -> None:
        self._same_records(answer["records"], outcome.records)
        producers = {each["producer"] for each in answer["records"]} - {-1}
        self._same("producers", sorted(producers), [outcome.producer_id] if producers else [])
        answered = {
            str(each["correlation"]): each["response"]
            for each in answer["answers"]
            if each["correlation"] not in (0, own)
        }
        completed = {str(each.request.correlation): each.response for each in outcome.completed}
        self._same("completed", answered, completed)
        if memory.phase is CoordinatorPhase.ACTIVE:
            self._same("timers", answer["timers"], {key: timer.deadline_ms for key, timer in memory.timers.items()})
        self._same("background", answer["background"] > 0, bool(memory.tasks))

    def _same_records(self, given: Sequence[Line], actual: Sequence[AnyRecord]) -> None:
        expected = [recorded_bytes({"key_hex": each["key"], "value_hex": each["value"]}) for each in given]
        model = [written(record) for record in actual]
        if not same_records(model, expected):
            self._differ("records", [tuple(each) for each in expected], [tuple(each) for each in model])

    def _same_response(self, request: Request, expected: Any, outcome: RequestOutcome) -> None:
        if outcome.error is None:
            self._same("response", expected, outcome.response)
            return
        code, message = int(outcome.error.code), outcome.error.message
        if request.api.endswith("GroupHeartbeat"):
            # Where Java itself failed, the message is Java's.
            told = expected["errorMessage"] if code == ErrorCode.UNKNOWN_SERVER_ERROR else message
            names = [sorted_names(each) for each in (expected["errorMessage"], told)]
            self._same("error", [expected["errorCode"], names[0]], [code, names[1]])
        else:
            self._same("error", sorted(_error_codes(expected)), [code])

    def _same(self, part: str, kafka: Any, model: Any) -> None:
        if not same(model, kafka):
            self._differ(part, kafka, plain(model))

    def _differ(self, part: str, kafka: Any, model: Any) -> None:
        self.differences.append(StepDifference(self.command, part, kafka, model))


@dataclass(slots=True)
class _Play(transcript.Play):
    """A play whose coordinator is both, Kafka's and the model."""

    both: Both | None = None

    def __post_init__(self) -> None:
        self._both.begin({})

    @property
    def _both(self) -> Both:
        assert self.both is not None
        return self.both

    def _config(self, words: list[str]) -> Iterator[str]:
        settings = dict(word.split("=", 1) for word in words)
        self._both.begin(settings)
        self.memory = coordinator.new_state(BrokerConfig.of(settings))
        return iter(())

    def _group(self, words: list[str]) -> Iterator[str]:
        self._both.configure(dict(word.split("=", 1) for word in words), self.now)
        return transcript.Play._group(self, words)

    def _describe(self, words: list[str]) -> Iterator[str]:
        self._both.describe(self.memory, self.topics, self.now)
        return transcript.Play._describe(self, words)

    def _transaction(self, words: list[str]) -> Iterator[str]:
        self._both.end_transaction(self.memory, int(words[0]), committed=words[1] == "commit", now=self.now)
        return iter(())

    def _loading(self, words: list[str]) -> Iterator[str]:
        self._both.phase("loading", self.now)
        return transcript.Play._loading(self, words)

    def _resigns(self, words: list[str]) -> Iterator[str]:
        self._both.phase("resign", self.now)
        return transcript.Play._resigns(self, words)


def _group_of(key_hex: str) -> str:
    key = recorded_bytes({"key_hex": key_hex, "value_hex": None}).key
    return str(key["group"] if "group" in key else key["groupId"])


def _random_ids(answer: str) -> list[UUID]:
    """The random ids in an answer: a classic member id ends with one, another member id is one in Kafka's base64."""
    texts = [UUID(text) for text in _UUID.findall(answer)]
    return [*texts, *(UUID(bytes=urlsafe_b64decode(text + "==")) for text in _BASE64_ID.findall(answer))]


def _shrinks(before: Topic, after: Topic) -> bool:
    return after.partitions < before.partitions


def _request_json(request: Request) -> Any:
    """The data as Kafka's converter reads them: every field of the version, bytes as base64."""
    shape, _ = SHAPES[request.api]
    return plain(shape.filled(request.data, request.api))


def _error_codes(response: Fields) -> set[int]:
    """The error codes that a broker's response has, wherever it has them."""
    codes = {response["errorCode"]} if response.get("errorCode") else set()
    for topic in response.get("topics", ()):
        codes.update(each["errorCode"] for each in topic["partitions"])
    codes.update(each["errorCode"] for each in response.get("members", ()) if "errorCode" in each)
    return codes
