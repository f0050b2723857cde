"""Range and round robin: invariants on any group, and the textbook definition on small ones."""

from collections import Counter
from collections.abc import Mapping
from itertools import cycle

import pytest
from hypothesis import given

from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.cluster.image import Topic, TopicImage
from tests.core.assignors.client.groups import assigned, check_sound, everything, images, run, sizes, subscribers


def in_order(members: Mapping[str, ClassicMemberSpec]) -> list[str]:
    """Static members by instance id, then the others by member id, as Java compares strings."""
    units = {name: name.encode("utf-16-be") for name in members}
    static = [name for name in members if members[name].instance_id]
    return sorted(static, key=lambda name: members[name].instance_id.encode("utf-16-be")) + sorted(
        set(members) - set(static), key=units.get
    )


@given(members=subscribers(), image=images())
@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_every_partition_once_to_a_subscriber(
    name: str, members: dict[str, ClassicMemberSpec], image: TopicImage
) -> None:
    work = run(name, members, image).members
    check_sound(members, work)
    assert assigned(work) == everything(members, image)


@given(members=subscribers(), image=images())
def test_range_shares_each_topic_evenly(members: dict[str, ClassicMemberSpec], image: TopicImage) -> None:
    work = run("range", members, image).members
    for topic in {topic for topic, _ in assigned(work)}:
        taken = Counter(member for member, mine in work.items() for partition in mine if partition[0] == topic)
        counts = [taken[member] for member in members if topic in members[member].topics]
        assert max(counts) - min(counts) <= 1


@given(members=subscribers(racks=False), image=images(racks=False))
def test_range_without_racks_is_the_textbook_one(members: dict[str, ClassicMemberSpec], image: TopicImage) -> None:
    expected: dict[str, set[tuple[str, int]]] = {member: set() for member in members}
    for topic in image.by_name.values():
        mine = [member for member in in_order(members) if topic.name in members[member].topics]
        numbers = iter(range(topic.partitions))
        for place, member in enumerate(mine):
            share = topic.partitions // len(mine) + (place < topic.partitions % len(mine))
            expected[member] |= {(topic.name, next(numbers)) for _ in range(share)}
    work = run("range", members, image).members
    assert {member: set(partitions) for member, partitions in work.items()} == expected


def test_range_takes_partitions_in_the_member_s_rack_first() -> None:
    members = {name: ClassicMemberSpec(["t"], rack_id=rack) for name, rack in [("m1", "b"), ("m2", "a")]}
    image = TopicImage.of([Topic("t", "", 4, (("a",), ("a",), ("b",), ("b",)))])
    work = run("range", members, image).members
    assert work == {"m1": [("t", 2), ("t", 3)], "m2": [("t", 0), ("t", 1)]}


def test_range_keeps_copartitioned_topics_together_rather_than_in_racks() -> None:
    members = {name: ClassicMemberSpec(["t", "u"], rack_id=rack) for name, rack in [("m1", "b"), ("m2", "a")]}
    image = TopicImage.of([Topic("t", "", 2, (("a",), ("b",))), Topic("u", "", 2, (("b",), ("a",)))])
    work = run("range", members, image).members
    assert work == {"m1": [("t", 0), ("u", 0)], "m2": [("t", 1), ("u", 1)]}


@given(members=subscribers(), image=images())
def test_round_robin_is_the_textbook_one(members: dict[str, ClassicMemberSpec], image: TopicImage) -> None:
    expected: dict[str, list[tuple[str, int]]] = {member: [] for member in members}
    turns = cycle(in_order(members))
    for topic, number in sorted(everything(members, image)):
        while topic not in members[member := next(turns)].topics:
            pass
        expected[member].append((topic, number))
    assert run("roundrobin", members, image).members == expected


@given(members=subscribers(equal=True), image=images())
def test_round_robin_is_even_when_all_subscribe_to_the_same(
    members: dict[str, ClassicMemberSpec], image: TopicImage
) -> None:
    loads = sizes(run("roundrobin", members, image).members)
    assert max(loads) - min(loads) <= 1
