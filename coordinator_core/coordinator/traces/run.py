"""Runs recorded traces of a coordinator against the model, and says step by step whether the results are the same.

A trace is one ``header`` line, ``step`` lines and one ``end`` line, all JSON: requests, time steps, topic changes,
background work and administration, each with the records, responses, timers and snapshots of the real coordinator.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from coordinator_core.assignors.profiles import DEFAULT, Profile, profile
from coordinator_core.cluster.image import MOST_PARTITIONS, Topic, TopicImage
from coordinator_core.coordinator import coordinator, describe_api
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.describe_api import group_state, kafka_name
from coordinator_core.coordinator.epoch_group import LiveEpochGroup
from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.coordinator.protocol import Request, RequestOutcome, Timer
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.coordinator.traces.compare import (
    Difference,
    plain,
    recorded,
    recorded_bytes,
    same,
    same_records,
    written,
)
from coordinator_core.errors import INVALID, DecodeError, InputError
from coordinator_core.java.hash_codes import utf16
from coordinator_core.records import CoordinatorRecord, Fields

Step = dict[str, Any]

JAVA_FAILURES = frozenset(("NullPointerException", "ClassCastException"))

SUPPORTED = "Supported assignors: "
"""What comes before the names of assignors in an error of a coordinator."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step: its trace (by seed) and number, what was done, and where the model differs."""

    seed: int
    number: int
    operation: str
    differences: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        """Whether the model gave the same result."""
        return not self.differences


def run_traces(lines: Iterable[Fields], behaviour: Profile = DEFAULT) -> Iterator[StepResult]:
    """Run a sequence of traces with a model of this behaviour, unless the header of a trace names another profile.

    Raises InputError for lines that are not traces, UsageError for a profile that there is not.
    """
    trace: _Trace | None = None
    for line in lines:
        kind = line.get("kind")
        try:
            if kind == "header":
                trace = _Trace.begin(line, profile(line["profile"]) if "profile" in line else behaviour)
            elif kind == "step" and trace is not None:
                yield trace.run(line)
            elif kind != "end" or trace is None:
                raise InputError(f"a trace has header, step and end lines, in this order; there is {kind!r}")
        except (*INVALID, DecodeError) as cause:
            where = "header of a trace" if kind == "header" else f"{kind} {line.get('i')} of a trace"
            raise InputError(f"{where}: {type(cause).__name__}: {cause}") from cause


@dataclass(slots=True)
class _Trace:
    seed: int
    group_id: str
    client_host: str
    memory: CoordinatorState
    topics: TopicImage
    log: list[tuple[CoordinatorRecord, int | None]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    @classmethod
    def begin(cls, header: Fields, behaviour: Profile) -> "_Trace":
        memory = coordinator.new_state(BrokerConfig.of(header["config"]), profile=behaviour)
        memory.configure_group(header["group_id"], header["group_config"])
        version = header["image_version"]
        memory.publish(version)
        topics = TopicImage.of(map(_topic, header["topics"]), _brokers(header["brokers"]), version)
        return cls(header["seed"], header["group_id"], header["client_host"], memory, topics)

    def run(self, step: Step) -> StepResult:
        self.differences = []
        operation = step["op"]
        if operation not in _STEPS:
            raise InputError(f"step {step['i']} of trace {self.seed}: no operation {operation!r}")
        _STEPS[operation](self, step)
        if "after" in step:
            self.compare("after", summary(self.memory, self.group_id), step["after"])
        name = step["request"]["api"] if operation == "request" else operation
        return StepResult(self.seed, step["i"], name, tuple(self.differences))

    def compare(self, part: str, actual: object, expected: object) -> None:
        if not same(actual, expected):
            self.differences.append(Difference(part, expected, plain(actual)))

    def compare_outcome(self, outcome: RequestOutcome, expected: Fields, part: str = "") -> None:
        self.log += [(record, outcome.producer_id) for record in outcome.records]
        actual = [written(record) for record in outcome.records]
        wanted = [recorded(record) for record in expected["records"]]
        in_bytes = [recorded_bytes(record) for record in expected["records"]]
        if not same_records(actual, wanted) or not same_records(actual, in_bytes):
            self.differences.append(
                Difference(
                    f"{part}records", [record._asdict() for record in wanted], [record._asdict() for record in actual]
                )
            )
        error = _expected_error(expected)
        self.compare(f"{part}error", _error(outcome, error), error)
        completed = [
            {"step": answer.request.correlation, "api": answer.request.api, "response": answer.response}
            for answer in outcome.completed
        ]
        self.compare(f"{part}completed", completed, expected.get("completed", []))

    def request(self, step: Step) -> None:
        given = step["request"]
        request = Request(
            given["api"], given["version"], given["client_id"], _request_data(given), self.client_host, step["i"]
        )
        ids = iter([UUID(text) for text in step.get("uuids", ())])
        outcome = coordinator.handle(self.memory, request, self.topics, step["t_ms"], ids)
        self.compare_outcome(outcome, step)
        self.compare("response", outcome.response, step.get("response"))
        self.compare("pending", outcome.pending, step.get("pending", False))
        for effect in ("initialize_share_group_state", "delete_share_group_state", "creatable_topics"):
            self.compare(effect, outcome.effects.get(effect), step.get(effect))

    def advance(self, step: Step) -> None:
        fired = list(self._expire(step["t_end_ms"]))
        wanted = [[line["key"], line["deadline_ms"]] for line in step["timers"]]
        self.compare("timers", [[timer.key, timer.deadline_ms] for timer, _ in fired], wanted)
        for (timer, outcome), line in zip(fired, step["timers"], strict=False):
            self.compare_outcome(outcome, line, f"timer {timer.key} ")

    def _expire(self, until: int) -> Iterator[tuple[Timer, RequestOutcome]]:
        while True:
            # Looked for again after each one: what it does may arm other timers, or cancel them.
            due = [timer for timer in self.memory.timers.values() if timer.deadline_ms <= until]
            if not due:
                return
            timer = min(due, key=lambda each: (each.deadline_ms, utf16(each.key)))
            yield timer, coordinator.expire(self.memory, timer, self.topics, timer.deadline_ms)

    def metadata(self, step: Step) -> None:
        change = step["metadata"]
        names = dict(self.topics.by_name)
        for topic in change["deleted"]:
            names.pop(topic["name"], None)
        for topic in (*change["created"], *change["changed"], *change.get("topics_after", ())):
            names[topic["name"]] = _topic(topic)
        version = change["image_version"]
        racks = _brokers(change["brokers"]) if "brokers" in change else self.topics.broker_racks
        self.topics = TopicImage.of(names.values(), racks, version)
        created, changed, deleted = (
            [topic["name"] for topic in change[kind]] for kind in ("created", "changed", "deleted")
        )
        self.memory.publish(version, created, changed, deleted)

    def executor(self, step: Step) -> None:
        tasks = list(self.memory.tasks.values())
        self.compare("tasks", [task.key for task in tasks], [task["key"] for task in step["tasks"]])
        for task, expected in zip(tasks, step["tasks"], strict=False):
            outcome = coordinator.complete(self.memory, task, self.topics, step["t_ms"])
            self.compare_outcome(outcome, expected, f"task {task.key} ")

    def group_config(self, step: Step) -> None:
        failed = False
        try:
            self.memory.configure_group(self.group_id, step["group_config"])
        except InputError:
            failed = True
        self.compare("error", failed, "error" in step)

    def fail_over(self, step: Step) -> None:
        """A new coordinator loads the log, compacted or not: nothing else of the old one's memory is left."""
        kept = self.log
        if step.get("compacted"):
            newest = {(record.type, repr(record.key)): at for at, (record, _) in enumerate(kept)}
            kept = [kept[at] for at in sorted(newest.values()) if kept[at][0].value is not None]
        former = self.memory
        memory = coordinator.new_state(former.config, end_offset=former.end_offset, profile=former.profile)
        # Settings of groups are in the metadata log, which a new coordinator has, too.
        memory.group_configs = self.memory.group_configs
        for record, producer_id in kept:
            memory.follow(record, producer_id)
        memory.publish(self.topics.version)
        self.memory = memory
        coordinator.take_over(memory, self.topics, step["t_ms"])

    def administer(self, step: Step) -> None:
        operation, arguments = _OPERATIONS[step["op"]]
        outcome = operation(self.memory, self.topics, step["t_ms"], *arguments(self, step))
        self.compare_outcome(outcome, step)
        self.compare("response", outcome.response, step.get("response"))
        effect = "delete_share_group_state"
        self.compare(effect, outcome.effects.get(effect), step.get(effect))

    def describe(self, step: Step) -> None:
        api = step["api"]
        if api not in describe_api.DESCRIBE:
            raise InputError(f"step {step['i']} of trace {self.seed}: cannot describe by {api!r}")
        group = describe_api.DESCRIBE[api](self.memory, self.group_id, self.topics)
        self.compare("response", {"throttleTimeMs": 0, "groups": [group]}, step["response"])
        listed = [
            {
                "group_id": shown["groupId"],
                "protocol_type": shown["protocolType"],
                "state": shown["groupState"],
                "type": shown["groupType"],
            }
            for shown in describe_api.list_groups(self.memory)
        ]
        self.compare("list_groups", listed, step["list_groups"])
        armed = {timer.key: timer.deadline_ms for timer in self.memory.timers.values()}
        self.compare("timers_armed", armed, step["timers_armed"])


def _partitions(step: Step) -> dict[str, Any]:
    return {partition["topic_id"]: partition["partitions"] for partition in step["topic_partitions"]}


_OPERATIONS: dict[str, tuple[Callable[..., RequestOutcome], Callable[[_Trace, Step], tuple[Any, ...]]]] = {
    "delete_group": (coordinator.delete_group, lambda trace, step: (step["group_id"],)),
    "prepare_delete_group": (coordinator.prepare_delete, lambda trace, step: (trace.group_id,)),
    "share_offsets_deleted": (coordinator.share_offsets_deleted, lambda trace, step: (trace.group_id, step["topics"])),
    "initialize_share_group_state": (
        coordinator.share_state_initialized,
        lambda trace, step: (trace.group_id, _partitions(step)),
    ),
    "uninitialize_share_group_state": (
        coordinator.share_state_not_initialized,
        lambda trace, step: (trace.group_id, _partitions(step)),
    ),
    "share_cleanup": (coordinator.clean_up_share_state, lambda trace, step: (step["deleted_topic_ids"],)),
}
"""Operations that are no requests of members, with their arguments."""

_STEPS: dict[str, Callable[[_Trace, Step], None]] = {
    "request": _Trace.request,
    "advance": _Trace.advance,
    "metadata": _Trace.metadata,
    "executor": _Trace.executor,
    "group_config": _Trace.group_config,
    **dict.fromkeys(_OPERATIONS, _Trace.administer),
    "describe": _Trace.describe,
    "fail_over": _Trace.fail_over,
}


def _topic(line: Fields) -> Topic:
    partitions = line["partitions"]
    if not isinstance(partitions, int) or not 0 <= partitions <= MOST_PARTITIONS:
        raise InputError(f"topic {line['name']!r} has {partitions!r} partitions, not 0 to {MOST_PARTITIONS}")
    return Topic(
        line["name"],
        line["id"],
        partitions,
        tuple(tuple(racks) for racks in line["racks"]),
        tuple(tuple(replicas) for replicas in line["replicas"]),
    )


def _brokers(racks: dict[str, str | None]) -> dict[int, str | None]:
    return {int(broker): rack for broker, rack in racks.items()}


_BYTES = {"JoinGroup": ("protocols", "metadata"), "SyncGroup": ("assignments", "assignment")}
"""Where a request's JSON has base64: the list, and the field of its elements."""


def _request_data(given: Fields) -> Fields:
    data: Fields = given["data"]
    if given["api"] in _BYTES:
        name, element = _BYTES[given["api"]]
        data = {**data, name: [{**struct, element: b64decode(struct[element])} for struct in data.get(name, ())]}
    return data


def _error(outcome: RequestOutcome, expected: Fields | None) -> object:
    error = outcome.error
    if error is None:
        return None
    answer = {"code": error.code.name, "code_id": int(error.code), "message": sorted_names(error.message)}
    return {name: answer[name] for name in expected or answer}


def _expected_error(step: Fields) -> Fields | None:
    """Return the coordinator's answer. Where Java itself failed, the message is Java's and is left out."""
    error = step.get("error")
    if error is None:
        return None
    names = ("code", "code_id") if error.get("kind") in JAVA_FAILURES else ("code", "code_id", "message")
    return {name: sorted_names(error[name]) if name == "message" else error[name] for name in names}


def sorted_names(message: object) -> object:
    """A broker lists the assignors that it supports in the order of a Java set, which differs between processes."""
    begin, listed, names = str(message).partition(SUPPORTED)
    return message if not listed else begin + listed + ", ".join(sorted(names.rstrip(".").split(", "))) + "."


def summary(memory: CoordinatorState, group_id: str) -> Fields | None:
    """Return what a trace has of a group after each step: type, state, epochs and sizes; None: there is none."""
    group = memory.live.get(group_id)
    if group is None:
        return None
    figures: Fields = {"type": str(group.type).lower(), "state": kafka_name(group_state(group))}
    if isinstance(group, LiveEpochGroup):
        figures |= {
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            "metadata_hash": group.metadata_hash,
            "members": len(group.log.members),
        }
        if isinstance(group, LiveStreamsGroup):
            figures["validated_topology_epoch"] = group.validated_topology_epoch
            figures["endpoint_information_epoch"] = group.endpoint_epoch
    elif isinstance(group, LiveClassicGroup):
        figures |= {
            "generation": group.generation,
            "protocol_type": group.protocol_type,
            "protocol": group.protocol,
            "leader": group.leader,
            "members": len(group.members),
            "pending_members": len(group.pending_join),
            "awaiting_join": group.awaiting_join,
        }
    return figures
