"""Streams topologies on the topics of the moment."""

from typing import Any

import pytest

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.groups.streams.readiness import check_topology
from coordinator_core.groups.streams.state import StreamsGroup, Topology
from coordinator_core.groups.streams.topology import TopologyProblem, configure
from tests.core.builders import GroupLog, internal_topic, subtopology
from tests.core.groups.applied import apply


def topics(**partitions: int) -> TopicImage:
    return TopicImage.of(Topic(name.replace("_", "-"), f"id-of-{name}", count) for name, count in partitions.items())


def topology(*subtopologies: dict[str, Any]) -> Topology:
    group = StreamsGroup()
    apply(group, GroupLog().topology(list(subtopologies)))
    assert group.topology is not None
    return group.topology


COUNTING = topology(
    subtopology("0", ["orders"], repartitionSinkTopics=["by-customer"]),
    subtopology(
        "1",
        [],
        repartitionSourceTopics=[internal_topic("by-customer")],
        stateChangelogTopics=[internal_topic("counts")],
    ),
)


def test_counts_flow_from_sources_to_internal_topics() -> None:
    configured = configure(COUNTING, topics(orders=6, by_customer=6, counts=6))
    assert configured.problem is None
    assert {name: each.tasks for name, each in configured.subtopologies.items()} == {"0": 6, "1": 6}
    assert configured.subtopologies["1"].repartition_source_topics["by-customer"].partitions == 6
    assert configured.subtopologies["1"].state_changelog_topics["counts"].partitions == 6


def test_internal_topics_that_are_missing_are_to_be_created() -> None:
    configured = configure(COUNTING, topics(orders=6))
    assert configured.problem is TopologyProblem.MISSING_INTERNAL_TOPICS
    assert {name: topic.partitions for name, topic in configured.missing_internal_topics.items()} == {
        "by-customer": 6,
        "counts": 6,
    }
    assert configured.detail == "Internal topics are missing: counts, by-customer"


def test_missing_source_topics() -> None:
    many = topology(subtopology("0", ["d", "c", "b", "a"]))
    configured = configure(many, topics())
    assert configured.problem is TopologyProblem.MISSING_SOURCE_TOPICS
    assert configured.detail == "Source topics a, b, c and 1 additional topics are missing."
    assert configured.subtopologies == {}


def test_an_internal_topic_of_another_size() -> None:
    configured = configure(COUNTING, topics(orders=6, by_customer=6, counts=5))
    assert configured.problem is TopologyProblem.INCORRECTLY_PARTITIONED_TOPICS
    assert configured.detail == "Existing topic counts has different number of partitions: expected 6, found 5"


@pytest.mark.parametrize(("is_complete", "status"), [(True, "INCORRECTLY_PARTITIONED_TOPICS"), (False, None)])
def test_a_topic_that_is_not_surely_there_proves_no_problem(is_complete: bool, status: str | None) -> None:
    """It may be gone, and another one of its name may have been created since."""
    group = StreamsGroup(topology=COUNTING)
    found = check_topology(group, topics(orders=6, by_customer=6, counts=5), complete=is_complete)
    assert found.status == status
    assert found.detail is not None
    assert found.detail.endswith("Existing topic counts has different number of partitions: expected 6, found 5")


def joined(fixed: int = 0, **more: Any) -> Topology:
    copartitioned = {"sourceTopics": [0], "sourceTopicRegex": [], "repartitionSourceTopics": [0]} | more
    return topology(
        subtopology("0", ["clicks"], repartitionSinkTopics=["keyed"]),
        subtopology(
            "1", ["orders"], repartitionSourceTopics=[internal_topic("keyed", fixed)], copartitionGroups=[copartitioned]
        ),
    )


def test_copartitioned_repartition_topic_takes_the_count_of_the_source() -> None:
    configured = configure(joined(), topics(clicks=2, orders=6))
    assert configured.missing_internal_topics["keyed"].partitions == 6


def test_copartitioned_repartition_topic_with_a_count_of_its_own() -> None:
    configured = configure(joined(fixed=4), topics(clicks=2, orders=6))
    assert configured.problem is TopologyProblem.INCORRECTLY_PARTITIONED_TOPICS
    assert "[4] of repartition topic [keyed] doesn't match number of partitions [6]" in configured.detail


def test_copartitioned_sources_must_agree() -> None:
    group = {"sourceTopics": [0, 1], "sourceTopicRegex": [], "repartitionSourceTopics": []}
    both = topology(subtopology("0", ["a", "b"], copartitionGroups=[group]))
    configured = configure(both, topics(a=1, b=2))
    assert configured.problem is TopologyProblem.INCORRECTLY_PARTITIONED_TOPICS
    assert configured.detail == "Following topics do not have the same number of partitions: [{a=1, b=2}]"


def test_only_repartition_topics_are_copartitioned() -> None:
    group = {"sourceTopics": [], "sourceTopicRegex": [], "repartitionSourceTopics": [0, 1]}
    sources = [internal_topic("left"), internal_topic("right")]
    both = topology(
        subtopology("0", ["a"], repartitionSinkTopics=["left"]),
        subtopology("1", ["b"], repartitionSinkTopics=["right"]),
        subtopology("2", [], repartitionSourceTopics=sources, copartitionGroups=[group]),
    )
    configured = configure(both, topics(a=2, b=5))
    assert {name: topic.partitions for name, topic in configured.missing_internal_topics.items()} == {
        "left": 5,
        "right": 5,
    }


@pytest.mark.parametrize(
    ("broken", "detail"),
    [
        (topology(subtopology("0", [])), "No source topics found for subtopology 0"),
        (
            topology(subtopology("0", ["a"], repartitionSourceTopics=[internal_topic("r")])),
            "a repartition source topic is never used as a sink topic",
        ),
        (
            topology(subtopology("0", [], repartitionSourceTopics=[internal_topic("r")], repartitionSinkTopics=["r"])),
            "There may be loops in the topology",
        ),
        (joined(sourceTopics=[7]), "a topic that its subtopology does not have"),
    ],
)
def test_topologies_that_cannot_be(broken: Topology, detail: str) -> None:
    configured = configure(broken, topics(a=1, clicks=1, orders=1))
    assert configured.problem is TopologyProblem.INVALID_TOPOLOGY
    assert detail in configured.detail
