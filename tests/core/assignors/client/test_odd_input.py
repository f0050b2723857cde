"""Input that no healthy group sends: the outcome of Kafka's classes, or an error that names what is wrong."""

import pytest

from coordinator_core.assignors.case_files.case_types import run_case
from coordinator_core.assignors.inputs import ClassicGroupSpec, ClassicMemberSpec
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.errors import AssignorError, InputError
from tests.core.assignors.client.groups import owning, run

NAMES = ["range", "roundrobin", "sticky", "cooperative-sticky"]
ALL = pytest.mark.parametrize("name", NAMES)
IMAGE = TopicImage.of([Topic("t", "", 2)])


def case(name: str, **step: object) -> dict:
    whole = {"topics": [{"name": "t", "partitions": 2}], "leader": "m", "members": [{"id": "m", "topics": ["t"]}]}
    return {"id": "c", "assignor": f"client-{name}", "input": {"brokers": [], "steps": [whole | step]}}


def test_an_unknown_assignor_is_named() -> None:
    with pytest.raises(InputError, match="no assignor 'fair' for classic groups; there are RoundRobin"):
        assign("fair", ClassicGroupSpec({}), IMAGE)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("roundrobin", "IllegalArgumentException"),
        ("sticky", "ArithmeticException"),
        ("cooperative-sticky", "ArithmeticException"),
    ],
)
def test_an_empty_group_fails_as_in_kafka(name: str, kind: str) -> None:
    with pytest.raises(AssignorError) as failure:
        assign(name, ClassicGroupSpec({}), IMAGE)
    assert failure.value.kind == kind


def test_range_of_an_empty_group_is_empty() -> None:
    assert assign("range", ClassicGroupSpec({}), IMAGE).members == {}


@ALL
@pytest.mark.parametrize("topics", [[], ["absent"]])
def test_a_subscription_of_nothing_gets_nothing(name: str, topics: list[str]) -> None:
    assert run(name, {"m": ClassicMemberSpec(topics)}, IMAGE).members == {"m": []}


@ALL
def test_no_topics_means_no_work(name: str) -> None:
    members = {"m1": ClassicMemberSpec(["t"]), "m2": ClassicMemberSpec([])}
    assert run(name, members, TopicImage.of([])).members == {"m1": [], "m2": []}


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_a_claim_to_an_unknown_topic_is_ignored(name: str) -> None:
    members = {"m": owning(ClassicMemberSpec(["t"]), [("gone", 0), ("t", 1)], 1)}
    assert run(name, members, IMAGE).members == {"m": [("t", 1), ("t", 0)]}


def test_a_claim_to_a_partition_that_is_no_more_is_kept_as_in_kafka() -> None:
    """AbstractStickyAssignor checks topics only: a deleted partition stays assigned and hides what comes after it."""
    members = {"m": owning(ClassicMemberSpec(["t"]), [("t", 5)], 1)}
    assert run("sticky", members, IMAGE).members == {"m": [("t", 5), ("t", 0), ("t", 1)]}


def test_claims_to_partitions_that_are_no_more_can_leave_no_room_as_in_kafka() -> None:
    members = {name: owning(ClassicMemberSpec(["t"]), [("t", gone)], 1) for name, gone in (("m1", 5), ("m2", 6))}
    with pytest.raises(AssignorError, match=r"IllegalStateException: No more unfilled consumers to be assigned\."):
        run("sticky", members, IMAGE)


@ALL
def test_a_member_twice_is_refused(name: str) -> None:
    member = {"id": "m", "topics": ["t"]}
    with pytest.raises(InputError, match="member 'm' is in the group twice"):
        run_case(case(name, members=[member, member]))


@ALL
def test_a_negative_partition_count_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="topic 't' has -1 partitions"):
        run_case(case(name, topics=[{"name": "t", "partitions": -1}]))
