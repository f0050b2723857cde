"""Consumer and share groups for hypothesis, and what must hold of any assignment of one."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace

from hypothesis import strategies as st

from coordinator_core.assignors.inputs import AssignedGroupType, Assignment, GroupSpec, MemberSpec, Partitions
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import Topic, TopicImage

Group = tuple[GroupSpec, TopicImage]
TYPES = {"uniform": AssignedGroupType.CONSUMER, "range": AssignedGroupType.CONSUMER, "simple": AssignedGroupType.SHARE}


def topic_id(number: int) -> str:
    """An id that no rule of hashing makes special."""
    return urlsafe_b64encode((number * 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835 % (1 << 128)).to_bytes(16)).decode()[
        :22
    ]


def image_of(counts: Mapping[str, int]) -> TopicImage:
    return TopicImage.of(Topic(f"topic-{topic}", topic, count) for topic, count in counts.items())


@st.composite
def groups(draw: st.DrawFn, name: str, *, equal: bool | None = None, previous: bool = True) -> Group:
    """Any group: members with the same or with different subscriptions, some static, partitions held before or not."""
    counts = {topic_id(number): draw(st.integers(0, 7)) for number in range(draw(st.integers(1, 5)))}
    topics = list(counts)
    same = draw(st.booleans()) if equal is None else equal
    common = tuple(draw(st.permutations(topics))[: draw(st.integers(1, len(topics)))])
    held = {(topic, number) for topic, count in counts.items() for number in range(count)}
    size = draw(st.integers(1, 6))
    owners = {unit: draw(st.integers(0, 2 * size)) for unit in sorted(held)} if previous and draw(st.booleans()) else {}
    members = {}
    for number in range(size):
        mine: dict[str, list[int]] = {}
        for (topic, partition), owner in owners.items():
            if owner == number:
                mine.setdefault(topic, []).append(partition)
        subscription = common if same else tuple(draw(st.lists(st.sampled_from(topics), unique=True)))
        instance = f"i{size - number}" if draw(st.booleans()) else None
        members[f"member-{draw(st.integers(0, 9))}-{number}"] = MemberSpec(subscription, mine, instance)
    return GroupSpec(members, same, type=TYPES[name]), image_of(counts)


def held(work: Partitions) -> Iterator[tuple[str, int]]:
    return ((topic, partition) for topic, partitions in work.items() for partition in partitions)


def loads(assignment: Assignment[Partitions], spec: GroupSpec) -> list[int]:
    return [sum(map(len, assignment.members.get(member, {}).values())) for member in spec.members]


def run(name: str, group: Group) -> Assignment[Partitions]:
    return assign(name, *group)


def subscribed(group: Group) -> set[tuple[str, int]]:
    """Every partition that some member subscribes to."""
    spec, image = group
    topics = {topic for member in spec.members.values() for topic in member.topics}
    return {(topic, number) for topic in topics for number in range(image.by_id[topic].partitions)}


def settled(name: str, group: Group) -> Group:
    """The group once everybody has what is assigned."""
    spec, image = group
    assignment = run(name, group)
    members = {
        member: replace(had, previous=assignment.members.get(member, {})) for member, had in spec.members.items()
    }
    return replace(spec, members=members), image


def check_exclusive(name: str, group: Group) -> Assignment[Partitions]:
    """Each subscribed partition exactly once, and only to subscribers."""
    spec, _ = group
    assignment = run(name, group)
    taken = [unit for work in assignment.members.values() for unit in held(work)]
    assert sorted(taken) == sorted(subscribed(group))
    for member, work in assignment.members.items():
        assert set(work) <= set(spec.members[member].topics)
    return assignment
