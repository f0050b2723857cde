"""Any value of any field of any request is answered: with a response, or with an error code of the protocol."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assignors.profiles import PROFILES
from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState
from coordinator_core.coordinator.protocol import ErrorCode, Request
from coordinator_core.records import CoordinatorRecord, Family
from coordinator_core.wire.record_codec import encode_key, encode_value
from coordinator_core.wire.schema import coordinator_requests
from tests.core.coordinator.clients import Cluster
from tests.core.coordinator.newer_clients import topology
from tests.core.coordinator.request_shapes import SHAPES, requests
from tests.core.coordinator.requests import metadata
from tests.core.coordinator.transcript_connect import ConnectPlay

TOPICS = {"in": 3, "store": 3, "other": 1}


def populated(profile: str) -> Cluster:
    """A coordinator with a group of every type that the main log holds, with a member each."""
    cluster = Cluster.of(TOPICS, **{"group.streams.initial.rebalance.delay.ms": 0})
    cluster.memory.profile = PROFILES[profile]
    member = {"memberId": "m1", "memberEpoch": 0, "rebalanceTimeoutMs": 5_000}
    consumer = {"groupId": "consumers", "subscribedTopicNames": ["in"], "topicPartitions": []}
    cluster.send("ConsumerGroupHeartbeat", 1, member | consumer)
    cluster.send("ShareGroupHeartbeat", 1, {**member, "groupId": "shares", "subscribedTopicNames": ["in"]})
    tasks: dict[str, Any] = {"activeTasks": [], "standbyTasks": [], "warmupTasks": [], "processId": "p"}
    thread = member | tasks | {"groupId": "threads", "topology": topology(0, "in")}
    cluster.send("StreamsGroupHeartbeat", 0, thread)
    for group_id, name in (("classics", "range"), ("streams", "stream")):
        protocols = [{"name": name, "metadata": metadata(["in"])}]
        timeouts = {"sessionTimeoutMs": 45_000, "rebalanceTimeoutMs": 5_000}
        joins = {"groupId": group_id, "memberId": "", "protocolType": "consumer", "protocols": protocols}
        cluster.send("JoinGroup", 3, joins | timeouts)
    return cluster


def check(record: CoordinatorRecord, family: Family) -> None:
    """The record can go into the log."""
    encode_key(record.type, record.key, family)
    if record.value is not None:
        encode_value(record.type, record.value_version or 0, record.value, family)


@pytest.mark.parametrize("profile", ["kafka-4.3.1", "kip-1071"])
@given(st.lists(requests(), min_size=1, max_size=6))
def test_any_field_of_any_request(profile: str, drawn: list[tuple[str, int, Any]]) -> None:
    cluster = populated(profile)
    for api, version, data in drawn:
        outcome = cluster.send(api, version, data)
        assert (outcome.response is None) == (outcome.error is not None or outcome.pending)
        if outcome.error is not None:
            assert isinstance(outcome.error.code, ErrorCode)
            assert not outcome.records
        for record in outcome.records:
            check(record, Family.GROUP)
        cluster.pass_time(1_000)
        cluster.do_background_work()
    cluster.pass_time(100_000)


@given(st.lists(requests("Connect"), min_size=1, max_size=6))
def test_any_field_of_any_request_to_connect_groups(drawn: list[tuple[str, int, Any]]) -> None:
    play = ConnectPlay()
    for line in ("work AC0 AT1", "worker m1 join", "worker m1 beat"):
        list(play.command(line))
    for api, version, data in drawn:
        given_data = {**data, "groupId": "connect"} if len(data) > 2 else data
        request = Request(api, version, "client", given_data)
        outcome = coordinator.handle(play.memory, request, TOPICS_OF_CONNECT, play.now, iter(()))
        assert (outcome.response is None) == (outcome.error is not None)
        for record in outcome.records:
            check(record, Family.CONNECT)
        list(play.command("wait 10"))
    assert isinstance(play.memory, ConnectCoordinatorState)


TOPICS_OF_CONNECT = Cluster.of({}).topics


def test_every_api_has_a_shape() -> None:
    apis: dict[str, Callable[..., object]] = coordinator.REQUESTS
    assert apis.keys() == SHAPES.keys()


def test_each_request_that_is_served_has_a_schema() -> None:
    served = {request.api for request in coordinator_requests().values()}
    assert served == set(coordinator.CONNECT_REQUESTS) == set(SHAPES)
