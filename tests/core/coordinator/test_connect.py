"""The coordinator of Connect groups: what holds of any requests. Its case studies are transcripts."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState, as_fields
from coordinator_core.coordinator.protocol import ErrorCode, Request, RequestOutcome
from coordinator_core.groups.connect.state import units
from coordinator_core.groups.group import Group
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import ConnectRecordType, CoordinatorRecord, Family, Fields
from coordinator_core.wire.record_codec import encode_key, encode_value
from tests.core.coordinator.transcript_connect import ConnectPlay, played
from tests.core.whole_log import judge
from tests.shared_data import ROOT

GROUP = "connect"
A = ["A", ("A", 1), ("A", 2)]
B = ["B", ("B", 1)]
NO_TOPICS = TopicImage.of(())


@dataclass
class Cluster:
    """A Connect coordinator with its clock and log."""

    memory: ConnectCoordinatorState = field(default_factory=ConnectCoordinatorState)
    now: int = 1_000
    log: list[CoordinatorRecord] = field(default_factory=list)

    def send(self, api: str, data: Any) -> RequestOutcome:
        request = Request(f"ConnectGroup{api}", 0, "client", data)
        return self.append(coordinator.handle(self.memory, request, NO_TOPICS, self.now, iter(())))

    def append(self, outcome: RequestOutcome) -> RequestOutcome:
        self.log += outcome.records
        return outcome

    def configure(self, *work: ConnectorOrTask) -> None:
        self.append(coordinator.set_connect_work(self.memory, NO_TOPICS, self.now, GROUP, work))

    def fail_over(self) -> None:
        """Another coordinator reads the log and takes over."""
        loaded = ConnectCoordinatorState(end_offset=self.memory.end_offset)
        for record in self.log:
            loaded.follow(record)
        self.memory = loaded
        self.append(coordinator.take_over(loaded, NO_TOPICS, self.now))

    def pass_time(self, ms: int) -> None:
        until = self.now + ms
        while due := [timer for timer in self.memory.timers.values() if timer.deadline_ms <= until]:
            timer = min(due, key=lambda each: (each.deadline_ms, each.key))
            self.now = timer.deadline_ms
            self.append(coordinator.expire(self.memory, timer, NO_TOPICS, self.now))
        self.now = until

    def state(self) -> tuple[int, int, dict[str, tuple[int, list[ConnectorOrTask]]]]:
        """Group epoch, assignment epoch; the epoch and the work of each worker."""
        group = self.memory.group(GROUP)
        assert group is not None
        workers = {
            name: (member.member_epoch or 0, list(units(member.current.work)) if member.current else [])
            for name, member in group.members.items()
        }
        return group.group_epoch or 0, group.assignment_epoch or 0, workers


@dataclass
class Worker:
    """A worker that behaves: runs what it was last given."""

    cluster: Cluster
    name: str
    versions: tuple[int, int] = (0, 2)
    epoch: int = 0
    runs: list[Fields] = field(default_factory=list)

    def beat(self, **overrides: object) -> RequestOutcome:
        joins = self.epoch == 0
        low, high = self.versions
        assignor = {"name": "sessioned", "minimumVersion": low, "maximumVersion": high, "version": low}
        data = {
            "groupId": GROUP,
            "memberId": self.name,
            "memberEpoch": self.epoch,
            "rebalanceTimeoutMs": 60_000 if joins else -1,
            "clientAssignors": [assignor] if joins else None,
            "connectorsAndTasks": self.runs,
        }
        outcome = self.cluster.send("Heartbeat", data | overrides)
        if outcome.response is not None:
            self.epoch = max(outcome.response["memberEpoch"], 0)
            if outcome.response["assignment"] is not None:
                self.runs = outcome.response["assignment"]["connectorsAndTasks"]
        return outcome

    def is_to_compute(self) -> bool:
        response = self.beat().response
        return response is not None and response["errorCode"] == ErrorCode.COMPUTE_ASSIGNMENT

    def install(self, **target: list[ConnectorOrTask]) -> RequestOutcome:
        member = {"groupId": GROUP, "memberId": self.name, "memberEpoch": self.epoch}
        prepared = self.cluster.send("PrepareAssignment", member).response
        assert prepared is not None
        members = [{"memberId": name, "connectorsAndTasks": as_fields(work)} for name, work in target.items()]
        answer = member | {"groupEpoch": prepared["groupEpoch"], "members": members}
        return self.cluster.send("InstallAssignment", answer)


def first_worker() -> tuple[Cluster, Worker]:
    cluster = Cluster()
    cluster.configure(*A, *B)
    one = Worker(cluster, "W1")
    one.beat()
    return cluster, one


@pytest.mark.parametrize(
    "target", [{"W1": A}, {"W1": [*A, *B], "W2": []}, {"W1": [*A, *B, "B"]}, {"W1": [*A, *B, "C"]}]
)
def test_assignments_that_break_an_invariant_are_refused(target: dict[str, list[ConnectorOrTask]]) -> None:
    _, one = first_worker()
    assert one.is_to_compute()
    refused = one.install(**target).error
    assert refused is not None
    assert refused.code is ErrorCode.INVALID_ASSIGNMENT


def test_partitions_beside_connectors_are_invalid() -> None:
    cluster, one = first_worker()
    assert one.is_to_compute()
    member = {
        "memberId": "W1",
        "connectorsAndTasks": as_fields([*A, *B]),
        "partitions": [{"topicId": "t", "partitions": [0]}],
    }
    request = {"groupId": GROUP, "memberId": "W1", "memberEpoch": one.epoch, "groupEpoch": 1}
    refused = cluster.send("InstallAssignment", request | {"members": [member]}).error
    assert refused is not None
    assert refused.code is ErrorCode.INVALID_REQUEST


apis = st.sampled_from(["Heartbeat", "PrepareAssignment", "InstallAssignment"])
anything = st.sampled_from([None, -1, 0, 1, 2, 3, "", "W1", "W2", GROUP, [], [{}], as_fields(A), b"x", {"a": 1}])
data = st.fixed_dictionaries(
    {"groupId": st.just(GROUP), "memberId": st.sampled_from(["W1", "W2"]), "memberEpoch": st.integers(-2, 4)},
    optional={
        "rebalanceTimeoutMs": st.sampled_from([-1, 1_000]),
        "clientAssignors": st.sampled_from(
            [None, [], [{"name": "sessioned", "minimumVersion": 0, "maximumVersion": 1, "version": 1}]]
        ),
        "connectorsAndTasks": st.one_of(anything, st.just(as_fields(B))),
        "groupEpoch": st.integers(0, 4),
        "error": st.integers(0, 1),
        "members": st.sampled_from([[], [{"memberId": "W1", "connectorsAndTasks": as_fields([*A, *B])}], 3]),
        "instanceId": anything,
    },
)


@given(
    st.lists(
        st.one_of(
            st.tuples(apis, st.one_of(data, anything)),
            st.sampled_from(["time", "beat", "work", "less work", "fail over"]),
        ),
        max_size=20,
    )
)
def test_any_request_is_answered_and_replays(script: list[Any]) -> None:
    cluster, one = first_worker()
    for step in script:
        group = cluster.memory.group(GROUP)
        assert group is not None
        epochs = group.group_epoch or 0, group.assignment_epoch or 0
        if step == "time":
            cluster.pass_time(20_000)
        elif step == "beat":
            one.beat()
        elif step == "work":
            cluster.configure(*A, *B)
        elif step == "less work":
            cluster.configure(*B)
        elif step == "fail over":
            cluster.fail_over()
        else:
            before = deepcopy(cluster.memory.log)
            outcome = cluster.send(*step)
            assert (outcome.response is None) == (outcome.error is not None)
            assert outcome.error is None or cluster.memory.log == before
        group = cluster.memory.group(GROUP)
        assert group is not None
        assert epochs <= (group.group_epoch or 0, group.assignment_epoch or 0)
        assert (group.assignment_epoch or 0) <= (group.group_epoch or 0)
        held = [unit for member in group.members.values() if member.current for unit in units(member.current.work)]
        assert len(held) == len(set(held))
    replayed = CoordinatorShard(family=Family.CONNECT)
    for record in cluster.log:
        encode_key(record.type, record.key, Family.CONNECT)
        if record.value is not None:
            encode_value(record.type, 0, record.value, Family.CONNECT)
        replayed.apply(record)
    assert replayed == cluster.memory.log
    loaded = CoordinatorShard(family=Family.CONNECT)
    last = {encode_key(record.type, record.key, Family.CONNECT): record for record in cluster.log}
    for record in sorted(last.values(), key=lambda each: each.at):
        if record.value is not None:
            loaded.apply(record)
    assert loaded.groups[GROUP].state == cluster.memory.log.groups[GROUP].state
    everything = Coverage({0: [(0, len(cluster.log))]})
    assert list(judge(cluster.log, Group(GROUP, from_start=True, family=Family.CONNECT), everything)) == []


# --- migration -------------------------------------------------------------------------------------------------------


def migration() -> ConnectPlay:
    return played(ROOT / "tests" / "data" / "transcripts" / "connect_migration.txt")


def test_a_conversion_goes_on_from_the_generation_and_back() -> None:
    """The group's own epochs are in two logs: generations 0 to 2, epochs 2 to 5, and generations from 4 again."""
    play = migration()
    generations = [None if each.value is None else each.value["generation"] for each in play.brokers.log]
    assert generations == [0, 1, 2, None, 4, 5]
    epochs = [
        None if each.value is None else each.value["epoch"]
        for each in play.log
        if each.type == ConnectRecordType.GROUP_METADATA
    ]
    assert epochs == [0, 2, 3, 4, 5, None]
    assert play.memory.group(GROUP) is None


GENERATION_1 = ("old W1 join", "old W1 join", "wait 3", "old W1 sync W1=AC0")


@pytest.mark.parametrize(
    ("commands", "epochs", "targets"),
    [
        ((*GENERATION_1, "old W1 leave", "worker W3 join"), [2, 3], []),
        (
            (
                *("work AC0", "worker W3 join", "worker W3 beat", "compute W3 W3=AC0", "worker W3 beat"),
                *("worker W3 leave", *GENERATION_1, "worker W3 join"),
            ),
            [0, 1, 2, 3, 4],
            [1, 3],
        ),
    ],
    ids=["a generation without workers", "a group that was on KIP-848 before"],
)
def test_a_converted_group_goes_on_from_the_higher_of_generation_and_epoch(
    commands: tuple[str, ...], epochs: list[int], targets: list[int]
) -> None:
    """The target of the conversion is what the workers run: without workers there is none."""
    play = ConnectPlay()
    for command in commands:
        list(play.command(command))
    values = [(each.type, each.value) for each in play.log if each.value is not None]
    assert [value["epoch"] for kind, value in values if kind == ConnectRecordType.GROUP_METADATA] == epochs
    of_targets = [value["assignmentEpoch"] for kind, value in values if kind == ConnectRecordType.TARGET_ASSIGNMENT]
    assert of_targets == targets
    assert [kind for kind, _ in values].count(ConnectRecordType.CONNECTORS_TASKS_METADATA) == 1, "told once"


@pytest.mark.parametrize("beats", [False, True])
def test_a_heartbeat_of_a_worker_of_the_classic_protocol_is_a_sign_of_life(beats: bool) -> None:
    """Its session is 10 s: after a conversion the worker is there 12 s later only if it has sent one meanwhile."""
    play = ConnectPlay()
    for command in (*GENERATION_1, "worker W3 join", "wait 6", "worker W3 beat", *(("old W1 beat",) * beats), "wait 6"):
        list(play.command(command))
    group = play.memory.group(GROUP)
    assert group is not None
    assert any(member_id.startswith("W1") for member_id in group.members) is beats


def test_workers_of_the_classic_protocol_never_lead_a_group_on_kip_848() -> None:
    play = migration()
    list(play.command("worker W3 join"))
    assert coordinator.serves_classic_workers(play.memory, GROUP)
    for name in ("W1", "W2", "W4"):
        list(play.command(f"old {name} join"))
        assert not play.old_workers[name].leads
    list(play.command("worker W3 beat"))
    assert play.memory.computations[GROUP].worker == "W3"


def test_a_coordinator_that_took_over_asks_again_what_a_worker_runs() -> None:
    play = migration()
    list(play.command("worker W3 join"))
    list(play.command("old W1 join"))
    list(play.command("takeover"))
    assert list(play.command("old W1 sync")) == ["W1 <- REBALANCE_IN_PROGRESS"]
    list(play.command("old W1 join"))
    assert list(play.command("old W1 sync")) == ["W1 <- nothing to do"]


def test_a_worker_without_a_common_assignor_converts_nothing() -> None:
    play = migration()
    before = len(play.log), len(play.brokers.log)
    (refused,) = play.command("worker W9 join assignor=ours")
    assert refused.startswith("W9 <- UNSUPPORTED_ASSIGNOR")
    assert (len(play.log), len(play.brokers.log)) == before
    assert not coordinator.serves_classic_workers(play.memory, GROUP)
