"""Whatever clients do, what the coordinator writes is right: every target identical, no rule broken."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.audit.rows import Basis, Verdict
from coordinator_core.groups.group import Group
from tests.core.audit.coordinated import EVERYTHING, RecordedCluster, churn
from tests.core.coordinator.clients import GROUP
from tests.core.coordinator.requests import classic_request, consumer_request, offset_request
from tests.core.coordinator.test_coordinator_properties import makes_the_broker_forget
from tests.core.whole_log import judge

TOPICS = {"a": 4, "b": 3, "ab": 1}
INSTANCES = {"m1": None, "m2": "i1", "m3": "i1"}
"""A client has one instance id or none all its life."""
SENDERS = {"consumer": consumer_request, "classic": classic_request, "offsets": offset_request}
ACTIONS = ("consumer", "consumer", "consumer", "classic", "classic", "offsets", "time", "work", "topics", "fail over")


@given(st.data())
def test_a_script_of_any_requests_is_audited_without_alarm(data: st.DataObject) -> None:
    settings = {"group.consumer.assignment.interval.ms": data.draw(st.sampled_from([0, 1000]))}
    recorded = RecordedCluster.of(TOPICS, **settings)
    cluster = recorded.cluster
    for _ in range(data.draw(st.integers(1, 60))):
        action = data.draw(st.sampled_from(ACTIONS))
        recorded.next_batch()
        if action == "time":
            cluster.pass_time(data.draw(st.sampled_from([100, 3_000, 10_000, 46_000])))
        elif action == "work":
            cluster.do_background_work()
        elif action == "topics":
            recorded.set_topics(data.draw(st.sampled_from([TOPICS, {"a": 4, "b": 3}, {"a": 4, "c": 2}])))
        elif action == "fail over":
            recorded.fail_over(data.draw(st.integers(0, len(recorded.log))))
        else:
            api, version, request = data.draw(SENDERS[action])
            _stay_yourself(request)
            if not makes_the_broker_forget(cluster, api, request):
                cluster.send(api, version, request)
    for row in recorded.audited():
        assert row.verdict is Verdict.IDENTICAL or row.basis in (Basis.LEADER, Basis.KEPT), row
    broken = list(judge(recorded.log, Group(GROUP, from_start=True), EVERYTHING))
    assert not broken, broken


@pytest.mark.parametrize("partitions", [{"a": 7, "b": 5, "c": 17}, {"a": 7, "b": 5}])
def test_a_wrong_topic_history_is_told_by_the_hash(partitions: dict[str, int]) -> None:
    """Topics with another count of partitions, or without one of them, are none that the coordinator had."""
    recorded, wrong = churn(random.Random(0), 40), RecordedCluster.of(partitions)
    recorded.topics = wrong.topics
    rows = recorded.audited()
    odd = [row for row in rows if row.verdict is not Verdict.IDENTICAL]
    assert len(odd) > len(rows) / 2
    assert {row.verdict for row in odd} == {Verdict.UNKNOWN}
    assert all("supply the cluster metadata log" in (row.missing or "") for row in odd)


def _stay_yourself(request: dict[str, Any]) -> None:
    if request.get("memberId") in INSTANCES:
        for name in ("instanceId", "groupInstanceId"):
            if name in request:
                request[name] = INSTANCES[request["memberId"]]
