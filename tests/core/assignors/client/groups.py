"""Groups of consumers for properties: hypothesis strategies, rounds that follow each other, and plain references."""

from collections import Counter
from collections.abc import Mapping
from struct import pack

from hypothesis import strategies as st

from coordinator_core.assignors.client.leader_view import leader_order
from coordinator_core.assignors.inputs import Assignment, ClassicGroupSpec, ClassicMemberSpec
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import Topic, TopicImage

Work = Mapping[str, list[tuple[str, int]]]

TOPICS = ["AaAa", "AaBB", "BBAa", "orders", "t"]
MEMBERS = ["AaAa", "BBBB", "c-1", "c-10", "c-2", "c-\u4e2d", "c-\uff01", "c-\U0001f600"]
RACKS = ["a", "b", "c"]


@st.composite
def images(draw: st.DrawFn, racks: bool = True) -> TopicImage:
    topics = []
    for name in draw(st.lists(st.sampled_from(TOPICS), unique=True, max_size=4)):
        count = draw(st.integers(1, 6))
        rack_lists = st.lists(st.sampled_from(RACKS), max_size=2, unique=True).map(tuple)
        known = racks and draw(st.booleans())
        topics.append(Topic(name, name, count, tuple(draw(rack_lists) for _ in range(count)) if known else ()))
    return TopicImage.of(topics)


@st.composite
def subscribers(
    draw: st.DrawFn, *, equal: bool = False, racks: bool = True, least: int = 1
) -> dict[str, ClassicMemberSpec]:
    names = draw(st.lists(st.sampled_from(MEMBERS), unique=True, min_size=least, max_size=6))
    topics = st.lists(st.sampled_from([*TOPICS, "absent"]), unique=True, min_size=1).map(sorted)
    shared = draw(topics)
    return leader_order(
        {
            name: ClassicMemberSpec(
                topics=shared if equal else draw(topics),
                instance_id=draw(st.none() | st.sampled_from(["i1", "i2"]).map(lambda i, name=name: i + name)),
                rack_id=draw(st.none() | st.sampled_from(RACKS)) if racks else None,
            )
            for name in names
        }
    )


def run(
    name: str, members: Mapping[str, ClassicMemberSpec], image: TopicImage, memory: int | None = None
) -> Assignment:
    return assign(name, ClassicGroupSpec(leader_order(members), memory), image)


def owning(member: ClassicMemberSpec, work: list[tuple[str, int]], generation: int) -> ClassicMemberSpec:
    """The member joining again with what it has, told as both sticky assignors read it."""
    data = pack(">i", len(work))
    for topic, number in work:
        data += pack(">h", len(topic.encode())) + topic.encode() + pack(">ii", 1, number)
    return ClassicMemberSpec(
        member.topics,
        owned=work,
        generation=generation,
        user_data=data + pack(">i", generation),
        instance_id=member.instance_id,
        rack_id=member.rack_id,
    )


def everything(members: Mapping[str, ClassicMemberSpec], image: TopicImage) -> set[tuple[str, int]]:
    """Every partition of a subscribed topic that exists."""
    topics = {topic for member in members.values() for topic in member.topics if topic in image.by_name}
    return {(topic, number) for topic in topics for number in range(image.by_name[topic].partitions)}


def check_sound(members: Mapping[str, ClassicMemberSpec], work: Work) -> None:
    """Each partition once, and only to subscribers."""
    assert list(work) == list(leader_order(members))
    counts = Counter(partition for mine in work.values() for partition in mine)
    assert not [partition for partition, count in counts.items() if count > 1]
    for member, mine in work.items():
        assert {topic for topic, _ in mine} <= set(members[member].topics)


def assigned(work: Work) -> set[tuple[str, int]]:
    return {partition for mine in work.values() for partition in mine}


def sizes(work: Work) -> list[int]:
    return [len(mine) for mine in work.values()]
