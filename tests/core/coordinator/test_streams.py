"""The coordinator of streams groups: Kafka 4.3.1, and what KIP-1071 defines beyond it."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assignors.profiles import KIP_1071, profile
from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.config import REBALANCE_PROTOCOLS, BrokerConfig
from coordinator_core.coordinator.describe_api import DESCRIBE
from coordinator_core.coordinator.protocol import ErrorCode, Request, RequestOutcome
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.coordinator.streams.task_offsets import TaskOffsets
from coordinator_core.errors import InputError
from tests.core.coordinator.clients import GROUP, Cluster
from tests.core.coordinator.newer_clients import ROLES, StreamsThread, topology
from tests.core.coordinator.test_coordinator_properties import check_compacted, check_replay, in_bytes

AT_ONCE = {"group.streams.initial.rebalance.delay.ms": 0, "group.streams.assignment.interval.ms": 0}


def streams_group(cluster: Cluster) -> LiveStreamsGroup:
    group = cluster.memory.live[GROUP]
    assert isinstance(group, LiveStreamsGroup)
    return group


def statuses(outcome: RequestOutcome) -> list[int]:
    assert outcome.response is not None
    return [each["statusCode"] for each in outcome.response["status"]]


def settle(*members: StreamsThread) -> None:
    for _ in range(4):
        for member in members:
            member.beat()


def test_internal_topics_are_to_be_created_before_tasks_are_assigned() -> None:
    cluster = Cluster.of({"in": 3}, **AT_ONCE)
    one = StreamsThread(cluster, "A", topology(0, "in", stateful=True))
    joined = one.beat()
    assert statuses(joined) == [3]
    assert [(each["name"], each["numPartitions"]) for each in joined.effects["creatable_topics"]] == [("changelog", 3)]
    assert one.active == set()
    cluster.set_topics({"in": 3, "changelog": 3})
    one.beat()
    assert one.active == {0, 1, 2}


def test_a_group_is_not_ready_where_its_record_names_no_validated_topology() -> None:
    """Records of Kafka 4.1 have no such field: the coordinator takes it as -1."""
    cluster = Cluster.of({"in": 2}, **AT_ONCE)
    settle(StreamsThread(cluster, "A", topology(0, "in")))
    describe = DESCRIBE["StreamsGroupDescribe"]
    image = TopicImage.of(())
    assert describe(cluster.memory, GROUP, image)["groupState"] == "Stable"
    streams_group(cluster).log.validated_topology_epoch = None
    assert describe(cluster.memory, GROUP, image)["groupState"] == "NotReady"


def test_what_was_written_between_two_reports_is_no_lag() -> None:
    """B's copy was 5 records behind when B reported; A reported 60,000 records later. C has the state on disk only."""
    task, reported = ("0", 0), TaskOffsets()
    reported.report("B", "b", {task: 9_995}, {task: 10_000})
    reported.report("A", "a", {task: 70_000}, {task: 70_000})
    reported.report("C", "c", {task: 9_995}, {})
    assert [reported.lag(process, task) for process in "abcd"] == [0, 5, 60_005, None]
    assert reported.of_process("b") == {task: 69_995}
    assert reported.ends_of_member("B") == {task: 70_000}
    assert reported.of_member("B") == ({task: 9_995}, {task: 10_000}), "Describe shows what the member said"


def test_the_empty_group_id_is_invalid() -> None:
    memory = Cluster.of({}).memory
    for api in ("StreamsGroupDescribe", "ConsumerGroupDescribe", "ShareGroupDescribe", "ConnectGroupDescribe"):
        assert DESCRIBE[api](memory, "", TopicImage.of(()))["errorCode"] == ErrorCode.INVALID_GROUP_ID
        assert DESCRIBE[api](memory, "g", TopicImage.of(()))["errorCode"] == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_first_assignment_waits_for_more_members() -> None:
    cluster = Cluster.of({"in": 4})
    one, two = (StreamsThread(cluster, name, topology(0, "in")) for name in "AB")
    assert statuses(one.beat()) == statuses(two.beat()) == [5]
    assert (one.epoch, streams_group(cluster).assignment_epoch) == (1, 1)
    cluster.pass_time(3_000)
    settle(one, two)
    assert len(one.active) == len(two.active) == 2


def test_the_shutdown_of_the_application_is_told_to_all_until_the_group_is_empty() -> None:
    cluster = Cluster.of({"in": 2}, **AT_ONCE)
    one, two = (StreamsThread(cluster, name, topology(0, "in")) for name in "AB")
    settle(one, two)
    assert statuses(one.beat(shutdownApplication=True)) == statuses(two.beat()) == [4]
    one.leave()
    two.leave()
    assert statuses(one.beat()) == []


def test_endpoints_tell_where_partitions_can_be_asked() -> None:
    cluster = Cluster.of({"in": 2}, **AT_ONCE)
    one = StreamsThread(cluster, "A", topology(0, "in"), endpoint={"host": "h", "port": 1})
    settle(one)
    response = one.beat(endpointInformationEpoch=-1).response
    assert response is not None
    assert response["partitionsByUserEndpoint"] == [
        {
            "userEndpoint": {"host": "h", "port": 1},
            "activePartitions": [{"topic": "in", "partitions": [0, 1]}],
            "standbyPartitions": [],
        }
    ]


def test_kafka_allows_no_other_topology() -> None:
    cluster = Cluster.of({"in": 2, "more": 2}, **AT_ONCE)
    settle(StreamsThread(cluster, "A", topology(1, "in")))
    refused = StreamsThread(cluster, "B", topology(2, "in", "more")).beat()
    assert refused.error is not None
    assert refused.error.code is ErrorCode.INVALID_REQUEST
    assert statuses(StreamsThread(cluster, "C", topology(0, "more")).beat()) == [0]


def of_the_document(**topics: int) -> Cluster:
    cluster = Cluster.of(topics, **AT_ONCE)
    cluster.memory.profile = profile(KIP_1071)
    return cluster


@pytest.mark.parametrize("in_document", [True, False])
def test_tasks_are_sent_until_a_member_reports_them(in_document: bool) -> None:
    """KIP-1071, Response Schema: the answer that had them may be lost. Releases send them once."""
    cluster = of_the_document(**{"in": 2}) if in_document else Cluster.of({"in": 2}, **AT_ONCE)
    one = StreamsThread(cluster, "A", topology(0, "in"))
    one.beat()
    held, unchanged = one.tasks, dict.fromkeys(ROLES)
    assert one.active == {0, 1}
    for _ in range(2):
        again = one.beat(**unchanged).response
        assert again is not None
        assert again["activeTasks"] == (held["activeTasks"] if in_document else None)
    assert [one.beat(**each).response["activeTasks"] for each in (held, unchanged)] == [None, None]


@pytest.mark.parametrize("in_document", [True, False])
def test_a_request_to_revoke_is_sent_until_it_is_heard(in_document: bool) -> None:
    """KIP-1071, Response Schema. In releases a member that did not hear it keeps its tasks until it is removed."""
    cluster = of_the_document(**{"in": 2}) if in_document else Cluster.of({"in": 2}, **AT_ONCE)
    one, other = (StreamsThread(cluster, name, topology(0, "in")) for name in "AB")
    settle(one)
    other.beat()
    unchanged = dict.fromkeys(ROLES)
    asked, again = (one.beat(**unchanged).response for _ in range(2))
    assert [len(tasks["partitions"]) for tasks in asked["activeTasks"]] == [1]
    assert again["activeTasks"] == (asked["activeTasks"] if in_document else None)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (topology(0, "in"), ErrorCode.STREAMS_TOPOLOGY_FENCED),
        (topology(1, "more"), ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH),
        (topology(3, "more"), ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH),
    ],
)
def test_rules_of_topology_epochs(given: dict[str, Any], code: ErrorCode) -> None:
    cluster = of_the_document(**{"in": 2, "more": 2})
    settle(StreamsThread(cluster, "A", topology(1, "in")))
    refused = StreamsThread(cluster, "B", given).beat()
    assert refused.error is not None
    assert refused.error.code is code
    assert refused.records == []


def test_rolling_bounce_to_a_new_topology() -> None:
    """KIP-1071, topology updates: members of the older topology keep what they have, and get nothing new."""
    cluster = of_the_document(**{"in": 9})
    a, b, c = (StreamsThread(cluster, name, topology(0, "in")) for name in "ABC")
    settle(a, b, c)
    assert [len(each.active) for each in (a, b, c)] == [3, 3, 3]
    c.leave()
    settle(a, b)
    assert sorted(map(len, (a.active, b.active))) == [4, 5]
    had_a, had_b = a.active, b.active

    c.topology = topology(1, "in")
    c.beat()
    assert 0 in statuses(a.beat())
    settle(a, b, c)
    assert [len(each.active) for each in (a, b, c)] == [3, 3, 3]
    assert a.active < had_a
    assert b.active < had_b
    had_a, lost = a.active, b.active

    b.leave()
    settle(a, c)
    assert a.active == had_a
    assert lost < c.active
    assert len(c.active) == 6

    b.topology = topology(1, "in")
    settle(a, b, c)
    assert a.active == had_a
    assert len(b.active) == len(c.active) == 3


tasks = st.sampled_from([None, [], [{"subtopologyId": "0", "partitions": [0, 1]}], [{"subtopologyId": "9"}]])
OFFSETS = st.sampled_from(
    [None, None, [], [{"subtopologyId": "0", "partition": number, "offset": 5} for number in range(3)], [{}], "x"]
)
WITH_STATE, WITH_REGEX = topology(0, "in", stateful=True), topology(1)
WITH_REGEX["subtopologies"][0]["sourceTopicRegex"] = ["m.*", "in"]
PROCESSES = {"A": "p", "B": "p", "C": "q"}
"""The process of each member, which is always the same."""


def check_processes(group: LiveStreamsGroup) -> None:
    """No process has a task in two hands or two roles, also while it has still to give one up."""
    held = [
        (member.process_id, key, partition)
        for member in group.log.members.values()
        for tasks in (member.assigned, member.pending_revocation)
        for of_role in (tasks.active, tasks.standby, tasks.warmup)
        for key, partitions in of_role.items()
        for partition in partitions
    ]
    assert len(held) == len(set(held))


heartbeat = st.fixed_dictionaries(
    {
        "groupId": st.sampled_from([GROUP, "other"]),
        "memberId": st.sampled_from(["A", "B", "C"]),
        "memberEpoch": st.integers(-3, 6),
        "rebalanceTimeoutMs": st.sampled_from([-1, 5_000]),
        "processId": st.none(),
        "topology": st.sampled_from(
            [None, topology(0, "in"), topology(1, "in", "more"), topology(-1), {"epoch": "x"}, WITH_REGEX]
        ),
        "userEndpoint": st.sampled_from([None, {"host": "h", "port": 1}, {"host": "h", "port": -1}]),
        "instanceId": st.sampled_from([None, None, None, "i", ""]),
        "taskOffsets": OFFSETS,
        "taskEndOffsets": OFFSETS,
        "shutdownApplication": st.booleans(),
        **dict.fromkeys(ROLES, tasks),
    }
)
join = heartbeat.map(
    lambda data: (
        data | {"memberEpoch": 0, "rebalanceTimeoutMs": 5_000, "topology": WITH_STATE, **{role: [] for role in ROLES}}
    )
)


@given(
    st.lists(st.one_of(heartbeat, join, st.sampled_from(["time", "topics"])), max_size=25),
    st.sampled_from(["kafka-4.3.1", KIP_1071]),
    st.integers(0, 1),
)
def test_any_script_is_answered_and_replays(script: list[object], name: str, standbys: int) -> None:
    cluster = Cluster.of(
        {"in": 3, "more": 2, "changelog": 3}, **AT_ONCE, **{"group.streams.num.standby.replicas": standbys}
    )
    cluster.memory.profile = profile(name)
    epoch = 0
    for step in script:
        if step == "time":
            cluster.pass_time(20_000)
        elif step == "topics":
            cluster.set_topics({"in": 5, "changelog": 5} if "more" in cluster.topics.by_name else {"in": 5, "more": 1})
        elif isinstance(step, dict):
            step["processId"] = PROCESSES[step["memberId"]] if step["topology"] else None
            before = deepcopy(cluster.memory.log)
            outcome = cluster.send("StreamsGroupHeartbeat", 0, step)
            assert (outcome.response is None) == (outcome.error is not None)
            assert outcome.error is None or cluster.memory.log == before
            for record in outcome.records:
                in_bytes(record)
        group = cluster.memory.live.get(GROUP)
        if isinstance(group, LiveStreamsGroup):
            assert epoch <= group.group_epoch
            assert group.assignment_epoch <= (epoch := group.group_epoch)
            held = [
                (key, partition)
                for member in group.log.members.values()
                for of_role in (member.assigned.active, member.pending_revocation.active)
                for key, partitions in of_role.items()
                for partition in partitions
            ]
            assert len(held) == len(set(held))
            check_processes(group)
    check_replay(cluster)
    check_compacted(cluster)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 2), st.data())
def test_threads_converge(threads: int, partitions: int, standbys: int, data: st.DataObject) -> None:
    """All tasks run, each once, and no process holds a task twice, after a bounded number of heartbeats each."""
    settings = {"group.streams.num.standby.replicas": standbys}
    cluster = Cluster.of({"in": partitions, "changelog": partitions}, **settings)
    given_topology = topology(0, "in", stateful=True)
    processes = [data.draw(st.sampled_from("pqr")) for _ in range(threads)]
    members = [StreamsThread(cluster, f"m{n}", given_topology, process) for n, process in enumerate(processes)]
    for _ in range(10):
        for member in members:
            member.beat()
        cluster.pass_time(1_000)
    group = streams_group(cluster)
    assert {member.epoch for member in members} == {group.group_epoch}
    assert all(member.state == 1 for member in group.log.members.values())
    assert sorted(number for member in members for number in member.active) == list(range(partitions))
    held = [
        (member.process_id, number)
        for member in members
        for role in ROLES
        for each in member.tasks[role]
        for number in each["partitions"]
    ]
    assert len(held) == len(set(held))


@pytest.mark.parametrize(
    ("api", "protocol"),
    [
        ("StreamsGroupHeartbeat", "streams"),
        ("ConsumerGroupHeartbeat", "consumer"),
        ("ShareGroupHeartbeat", "share"),
        ("ConnectGroupHeartbeat", "connect"),
    ],
)
def test_a_protocol_that_is_not_enabled(api: str, protocol: str) -> None:
    others = [each for each in REBALANCE_PROTOCOLS if each != protocol]
    memory = coordinator.new_state(BrokerConfig.of({"group.coordinator.rebalance.protocols": ",".join(others)}))
    request = Request(api, 1, "c", {"groupId": "g", "memberId": "m", "memberEpoch": 0}, "/h", 1)
    outcome = coordinator.handle(memory, request, TopicImage.of([]), 5, iter(()))
    assert outcome.error is not None
    assert outcome.error.code is ErrorCode.UNSUPPORTED_VERSION
    assert outcome.records == []


@pytest.mark.parametrize("value", ["consumer,streams", "classic,other"])
def test_protocols_that_a_broker_does_not_start_with(value: str) -> None:
    with pytest.raises(InputError, match=r"group\.coordinator\.rebalance\.protocols"):
        BrokerConfig.of({"group.coordinator.rebalance.protocols": value})
