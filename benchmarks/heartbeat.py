"""How long the coordinator model takes for a heartbeat that changes nothing; the goal is under 20 microseconds.

python -m benchmarks.heartbeat
"""

import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState, as_fields
from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.coordinator.protocol import Request, RequestOutcome
from coordinator_core.coordinator.share.partitions import INITIALIZE_EFFECT

MEMBERS = 100
TOPIC = Topic("orders", "orders".ljust(22, "A"), 10 * MEMBERS)
GOAL_US = 20.0
RUNS = 20_000
NOW = 1_000_000
ROLES = ("activeTasks", "standbyTasks", "warmupTasks")
OWNED = {"topicPartitions", "connectorsAndTasks", *ROLES}
"""The fields in which members report what they own."""
ASSIGNOR = {"name": "sessioned", "minimumVersion": 0, "maximumVersion": 2, "reason": 0, "version": 0, "metadata": b""}


@dataclass(slots=True)
class Bench:
    """A coordinator with one topic and one group; ``heartbeat`` is the request of a member that has settled."""

    memory: CoordinatorState = field(default_factory=coordinator.new_state)
    topics: TopicImage = field(default_factory=lambda: TopicImage.of([TOPIC], version=1))
    heartbeat: Request | None = None

    def __post_init__(self) -> None:
        self.memory.publish(1, created=["orders"])

    def send(self, api: str, version: int, data: dict[str, Any]) -> RequestOutcome:
        """One request; what share coordinators are asked for is done at once."""
        self.heartbeat = Request(api, version, "client", {"groupId": "g", **data})
        outcome = coordinator.handle(self.memory, self.heartbeat, self.topics, NOW, iter([UUID(int=1)]))
        for asked in outcome.effects.get(INITIALIZE_EFFECT, ()):
            partitions = {asked["topic_id"]: [each["partition"] for each in asked["partitions"]]}
            coordinator.share_state_initialized(self.memory, self.topics, NOW, "g", partitions)
        return outcome

    def again(self) -> RequestOutcome:
        """The last request once more."""
        assert self.heartbeat is not None
        return coordinator.handle(self.memory, self.heartbeat, self.topics, NOW, iter(()))

    def leave_out_owned(self) -> None:
        """The last request without what the member owns, as clients send it where that did not change."""
        assert self.heartbeat is not None
        owned = dict.fromkeys(OWNED & self.heartbeat.data.keys())
        self.heartbeat = replace(self.heartbeat, data={**self.heartbeat.data, **owned})

    def settle(self, api: str, version: int, joins: dict[str, Any], beats: dict[str, Any], has: "Owned") -> None:
        """Heartbeats of all members until nothing changes; the first member's come last."""
        self.memory.configure_group(
            "g",
            {
                **{f"{kind}.assignment.interval.ms": 0 for kind in ("consumer", "share", "streams")},
                "streams.initial.rebalance.delay.ms": 0,
            },
        )
        epochs: dict[str, int] = {}
        owned: dict[str, dict[str, Any]] = {}
        for _ in range(4):
            for member_id in reversed([f"member-{number}" for number in range(MEMBERS)]):
                who = {"memberId": member_id, "memberEpoch": epochs.get(member_id, 0)}
                data = who | ({**beats, **owned[member_id]} if who["memberEpoch"] else joins)
                response = self.send(api, version, data).response
                assert response is not None, self.again().error
                epochs[member_id] = response["memberEpoch"]
                owned[member_id] = has(response) or owned[member_id]


Owned = Callable[[dict[str, Any]], dict[str, Any]]
"""What a response says of the member's assignment, as fields of the next request; empty if it has none."""


def consumer() -> Bench:
    """A consumer that owns ten partitions and reports them, as one does that keeps everything in its requests."""
    bench = Bench()
    beats = dict.fromkeys(("instanceId", "rackId", "serverAssignor", "subscribedTopicNames", "subscribedTopicRegex"))
    joins = beats | {"rebalanceTimeoutMs": 60_000, "subscribedTopicNames": ["orders"], "topicPartitions": []}
    bench.settle("ConsumerGroupHeartbeat", 1, joins, beats | {"rebalanceTimeoutMs": -1}, _partitions)
    return bench


def _partitions(response: dict[str, Any]) -> dict[str, Any]:
    assignment = response["assignment"]
    return {} if assignment is None else {"topicPartitions": assignment["topicPartitions"]}


def share() -> Bench:
    """A share consumer."""
    bench = Bench()
    joins = {"rackId": None, "subscribedTopicNames": ["orders"]}
    beats = {"rackId": None, "subscribedTopicNames": None}
    bench.settle("ShareGroupHeartbeat", 1, joins, beats, lambda _: {"rackId": None})
    return bench


def streams() -> Bench:
    """A thread of a Streams application that reports its ten tasks."""
    bench = Bench()
    nulls = ("instanceId", "rackId", "topology", "processId", "userEndpoint", "clientTags")
    unset: dict[str, Any] = {
        **dict.fromkeys((*nulls, "taskOffsets", "taskEndOffsets", *ROLES)),
        "endpointInformationEpoch": 0,
        "shutdownApplication": False,
    }
    subtopology = {"subtopologyId": "0", "sourceTopics": ["orders"]}
    joins = unset | {
        **{role: [] for role in ROLES},
        "rebalanceTimeoutMs": 60_000,
        "processId": "p",
        "topology": {"epoch": 0, "subtopologies": [subtopology]},
    }
    bench.settle("StreamsGroupHeartbeat", 0, joins, unset | {"rebalanceTimeoutMs": -1}, _tasks)
    return bench


def _tasks(response: dict[str, Any]) -> dict[str, Any]:
    return {} if response["activeTasks"] is None else {role: response[role] for role in ROLES}


def classic() -> Bench:
    """The member of a classic group with one member: its heartbeat looks at no other member."""
    bench = Bench()
    joins = {
        "sessionTimeoutMs": 45_000,
        "rebalanceTimeoutMs": 60_000,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    bench.send("JoinGroup", 3, joins)
    delay = min(bench.memory.timers.values(), key=lambda timer: timer.deadline_ms)
    answer = coordinator.expire(bench.memory, delay, bench.topics, delay.deadline_ms).completed[0].response
    member = {name: answer[name] for name in ("memberId", "generationId")}
    assignments = [{"memberId": member["memberId"], "assignment": b""}]
    bench.send("SyncGroup", 3, member | {"assignments": assignments})
    bench.send("Heartbeat", 3, member | {"groupInstanceId": None})
    return bench


def connect() -> Bench:
    """A Connect worker that reports its ten tasks."""
    memory = ConnectCoordinatorState()
    bench = Bench(memory)
    connectors = [f"connector-{number}" for number in range(MEMBERS)]
    tasks = [(connector, number) for connector in connectors for number in range(10)]
    coordinator.set_connect_work(memory, coordinator.NO_TOPICS, NOW, "g", [*connectors, *tasks])
    beats = {"instanceId": None, "rebalanceTimeoutMs": -1, "clientAssignors": None}
    joins = beats | {"rebalanceTimeoutMs": 60_000, "clientAssignors": [ASSIGNOR], "connectorsAndTasks": []}
    workers = [f"member-{number}" for number in range(MEMBERS)]
    for worker in (*workers, workers[0]):
        bench.send("ConnectGroupHeartbeat", 0, {**joins, "memberId": worker, "memberEpoch": 0})
    chosen = {"memberId": memory.computations["g"].worker, "memberEpoch": 0}
    prepared = bench.send("ConnectGroupPrepareAssignment", 0, chosen).response
    assert prepared is not None
    members = [
        {"memberId": worker, "connectorsAndTasks": as_fields([connector, *tasks[10 * at : 10 * at + 10]])}
        for at, (worker, connector) in enumerate(zip(workers, connectors, strict=True))
    ]
    bench.send("ConnectGroupInstallAssignment", 0, chosen | {"groupEpoch": prepared["groupEpoch"], "members": members})
    who = {"memberId": "member-1", "memberEpoch": 0}
    answer = bench.send("ConnectGroupHeartbeat", 0, {**joins, **who}).response
    assert answer is not None
    runs = {"memberEpoch": answer["memberEpoch"], "connectorsAndTasks": answer["assignment"]["connectorsAndTasks"]}
    bench.send("ConnectGroupHeartbeat", 0, {**beats, **who, **runs})
    return bench


def measure(bench: Bench) -> float:
    """The best of several runs in microseconds of processor time; raises if the heartbeat changes anything."""
    outcome = bench.again()
    assert outcome.response is not None, outcome.error
    assert not outcome.records
    return min(timeit.repeat(bench.again, timer=time.process_time, number=RUNS, repeat=5)) / RUNS * 1e6


def main() -> None:
    """Print the figures of each type of group."""
    for make in (classic, consumer, share, streams, connect):
        bench = make()
        members = 1 if make is classic else MEMBERS
        full = measure(bench)
        bench.leave_out_owned()
        print(
            f"{make.__name__}: heartbeat without change, {members} members: {measure(bench):.1f} us, "
            f"{full:.1f} us where it reports what it owns (goal {GOAL_US:.0f})"
        )


if __name__ == "__main__":
    main()
