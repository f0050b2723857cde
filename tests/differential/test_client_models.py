"""The assignors of other clients, against small models that were written and proven apart from this code."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.assignors.leader_round import leader_round
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.wire.embedded import encode_blob
from tests.shared_data import SHARED

MODELS = SHARED / "clients"
NAMES = {
    "aio": "aiokafka",
    "franz": "franz-go",
    "java": "java",
    "kafkajs": "kafkajs",
    "kp": "kafka-python",
    "platformatic": "platformatic",
    "rd": "librdkafka",
    "sarama": "sarama",
    "segmentio": "kafka-go",
}
COUNTS = {"a": 5, "b": 11, "b-1": 3}
IMAGE = TopicImage.of([Topic(name, name, count) for name, count in COUNTS.items()])
Model = Mapping[str, Any]
"""A member as the models have it: id, topics, instance, owned partitions and their generation."""
FAILS = "fails"


@pytest.fixture(scope="module")
def models() -> Iterator[Callable[[str], ModuleType]]:
    sys.path.insert(0, str(MODELS))
    yield pytest.importorskip
    sys.path.remove(str(MODELS))


@st.composite
def groups(draw: st.DrawFn, owners: int = 2) -> list[dict[str, Any]]:
    """Members in the order of the JoinGroup response. They claim what is gone, too, and what another one has by now.

    ``owners``: at most so many claim a partition. The model of librdkafka was not proven for several.
    """
    names = draw(st.lists(st.sampled_from([f"m{i}-{j}" for i in range(3) for j in range(3)]), unique=True, min_size=1))
    topics = st.lists(st.sampled_from(sorted(COUNTS)), unique=True, min_size=1)
    same = draw(st.none() | topics)
    partitions = [(topic, number) for topic in (*COUNTS, "gone") for number in range(COUNTS.get(topic, 1) + 1)]
    claims = st.sets(st.sampled_from(names), max_size=owners)
    claimed = draw(st.lists(claims, min_size=len(partitions), max_size=len(partitions)))
    members = []
    for name in names:
        instance = draw(st.none() | st.just(f"{name}"))
        owned = [partition for partition, owner in zip(partitions, claimed, strict=True) if name in owner]
        members.append(
            {"id": name, "topics": draw(topics) if same is None else same, "instance": instance}
            | {"owned": owned, "gen": draw(st.sampled_from((4, 5)))}
        )
    return members


def joined(members: Sequence[Model], blob: str | None = None) -> dict[str, ClassicMemberSpec]:
    """The members as a leader sees them; ``blob`` has what they owned, else their subscriptions do."""
    specs = {}
    for each in members:
        data = None
        if blob is not None:
            numbers: dict[str, list[int]] = {}
            for topic, number in each["owned"]:
                numbers.setdefault(topic, []).append(number)
            previous = [{"topic": topic, "partitions": of_topic} for topic, of_topic in numbers.items()]
            data = encode_blob(blob, 1, {"previousAssignment": previous, "generation": each["gen"]})
        owned, generation = (each["owned"], each["gen"]) if blob is None else ((), None)
        specs[each["id"]] = ClassicMemberSpec(each["topics"], owned, generation, data, each["instance"])
    return specs


def made(client: str, name: str, members: Mapping[str, ClassicMemberSpec], order: Sequence[str] = tuple(COUNTS)) -> Any:
    result = leader_round(name, members, IMAGE, client=client, leader=next(iter(members)), topic_order=order)
    if result.error is not None:
        return FAILS
    given = result.assignments.items()
    return {member: {(topic, n) for topic, numbers in work.items() for n in numbers} for member, work in given}


def counts(members: Sequence[Model]) -> dict[str, int]:
    return {topic: COUNTS[topic] for topic in COUNTS if any(topic in each["topics"] for each in members)}


@given(members=groups())
def test_range_and_round_robin(models: Callable[[str], ModuleType], members: list[dict[str, Any]]) -> None:
    for (short, name), model in models("refs").OWN.items():
        if short not in NAMES:
            continue
        try:
            expected = model(members, counts(members), members[0]["id"])
        except LookupError:
            expected = FAILS
        assert made(NAMES[short], name, joined(members)) == expected, (short, name)


@given(members=groups(owners=1))
def test_cooperative_sticky_of_librdkafka(models: Callable[[str], ModuleType], members: list[dict[str, Any]]) -> None:
    model = models("rdsticky")
    copies = [each | {"owned": list(each["owned"]), "topics": sorted(each["topics"])} for each in members]
    plan = model.sticky(copies, list(counts(members)), counts(members))
    expected = {member: set(work) for member, work in model.cooperative(members, plan).items()}
    assert made("librdkafka", "cooperative-sticky", joined(members)) == expected


@pytest.mark.parametrize(
    ("client", "name", "blob"),
    [
        ("aiokafka", "sticky", "StickyAssignorUserData"),
        ("kafka-python", "sticky", "KafkaPythonStickyUserData"),
        ("kafka-python", "cooperative-sticky", None),
    ],
)
@given(members=groups())
def test_sticky_in_python(
    models: Callable[[str], ModuleType], client: str, name: str, blob: str | None, members: list[dict[str, Any]]
) -> None:
    model = models("pysticky")
    claiming = [each | {"claims": each["owned"]} for each in members]
    # A leader may know the topics of its group alone, or others, too.
    for known in (counts(members), COUNTS):
        copies = [each | {"claims": list(each["owned"])} for each in members]
        expected = model.sticky(copies, known, client == "kafka-python")
        if name == "cooperative-sticky":
            expected = model.withhold(claiming, expected)
        assert made(client, name, joined(members, blob), tuple(known)) == expected
