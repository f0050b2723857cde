"""``simple`` for share groups: everybody busy, partitions shared evenly, and the failure that Kafka's class has."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assignors.inputs import AssignedGroupType, GroupSpec, MemberSpec
from coordinator_core.errors import AssignorError
from tests.core.assignors.server.groups import groups, held, image_of, loads, run, settled, subscribed, topic_id


@given(groups("simple", equal=True, previous=False))
def test_from_nothing_all_partitions_are_shared_by_as_many_and_all_members_are_busy(group):
    spec, _ = group
    assignment = run("simple", group)
    sharers = Counter(unit for work in assignment.members.values() for unit in held(work))
    units = subscribed(group)
    assert set(sharers) == units
    if units:
        assert set(sharers.values()) == {-(-len(spec.members) // len(units))}
        counts = loads(assignment, spec)
        assert min(counts) >= 1
        assert max(counts) - min(counts) <= 1


@given(groups("simple", equal=False, previous=False))
def test_differing_subscriptions_are_balanced_topic_by_topic(group):
    spec, image = group
    assignment = run("simple", group)
    for topic in {topic for member in spec.members.values() for topic in member.topics}:
        takers = [member for member, had in spec.members.items() if topic in had.topics]
        counts = [len(assignment.members[member].get(topic, ())) for member in takers]
        if image.by_id[topic].partitions:
            assert min(counts) >= 1
            assert max(counts) - min(counts) <= 1
    for member, had in spec.members.items():
        assert set(assignment.members.get(member, {})) <= set(had.topics)


@given(groups("simple", equal=True, previous=False), st.data())
def test_only_assignable_partitions_are_handed_out(group, data):
    spec, image = group
    units = sorted(subscribed(group))
    allowed: dict[str, set[int]] = {}
    for topic, number in data.draw(st.lists(st.sampled_from(units), unique=True)) if units else ():
        allowed.setdefault(topic, set()).add(number)
    assignment = run("simple", (replace(spec, assignable=allowed), image))
    handed_out = {unit for work in assignment.members.values() for unit in held(work)}
    assert handed_out == {(topic, number) for topic, numbers in allowed.items() for number in numbers}


@given(groups("simple", equal=True, previous=False))
def test_what_is_shared_out_stays(group):
    spec, image = settled("simple", group)
    again = run("simple", (spec, image))
    for member, had in spec.members.items():
        assert set(held(again.members.get(member, {}))) == set(held(had.previous))


FIRST, SECOND = topic_id(1), topic_id(2)


@pytest.mark.parametrize(
    ("homogeneous", "counts", "busy_with"),
    [(True, {FIRST: 1, SECOND: 1}, {SECOND: [0]}), (False, {FIRST: 2, SECOND: 1}, {FIRST: [1]})],
)
def test_fails_where_all_members_are_busy_before_a_partition_has_enough(homogeneous, counts, busy_with):
    """Both are to share a partition, and b is busy with another one that is no longer assignable."""
    members = {"a": MemberSpec((FIRST, SECOND)), "b": MemberSpec((FIRST, SECOND), busy_with)}
    spec = GroupSpec(members, homogeneous, assignable={FIRST: {0}}, type=AssignedGroupType.SHARE)
    with pytest.raises(AssignorError, match="NoSuchElementException"):
        run("simple", (spec, image_of(counts)))
