"""``uniform``: balance, stickiness and, where the result is unique, a slow reference."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assignors.inputs import GroupSpec, MemberSpec
from coordinator_core.assignors.profiles import profile
from coordinator_core.assignors.registry import assign
from tests.core.assignors.server.groups import check_exclusive, groups, held, image_of, loads, run, settled, topic_id

T = topic_id(1)


@given(groups("uniform", equal=True))
def test_equal_subscriptions_are_balanced_within_one(group):
    assignment = check_exclusive("uniform", group)
    counts = loads(assignment, group[0])
    assert max(counts) - min(counts) <= 1


@given(groups("uniform", equal=True))
def test_equal_subscriptions_keep_as_much_as_balance_allows(group):
    """The slow reference: everybody keeps up to the quota, and as many as there are extras keep one more."""
    spec, _ = group
    assignment = check_exclusive("uniform", group)
    kept = sum(
        len(set(held(assignment.members[member])) & set(held(had.previous))) for member, had in spec.members.items()
    )
    quota, extras = divmod(sum(loads(assignment, spec)), len(spec.members))
    topics = set(next(iter(spec.members.values())).topics)
    had = [
        sum(len(numbers) for topic, numbers in each.previous.items() if topic in topics)
        for each in spec.members.values()
    ]
    assert kept == sum(min(count, quota) for count in had) + min(extras, sum(count > quota for count in had))


@given(groups("uniform", equal=False))
def test_differing_subscriptions_leave_nothing_to_improve(group):
    spec, _ = group
    assignment = check_exclusive("uniform", group)
    count = dict(zip(spec.members, loads(assignment, spec), strict=True))
    for member, work in assignment.members.items():
        for topic in work:
            others = [other for other, had in spec.members.items() if topic in had.topics]
            assert all(count[member] - count[other] <= 1 for other in others)


@given(groups("uniform", equal=True), st.data())
def test_when_a_member_leaves_nobody_else_loses_anything(group, data):
    spec, image = settled("uniform", group)
    gone = data.draw(st.sampled_from(sorted(spec.members)))
    left = {member: had for member, had in spec.members.items() if member != gone}
    if left:
        after = run("uniform", (replace(spec, members=left), image))
        for member, had in left.items():
            assert set(held(had.previous)) <= set(held(after.members.get(member, {})))


@given(groups("uniform", equal=True))
def test_when_a_member_joins_partitions_go_to_it_alone(group):
    spec, image = settled("uniform", group)
    newcomer = MemberSpec(next(iter(spec.members.values())).topics)
    after = run("uniform", (replace(spec, members={**spec.members, "new": newcomer}), image))
    for member, had in spec.members.items():
        assert set(held(after.members.get(member, {}))) <= set(held(had.previous))


@given(groups("uniform"))
def test_what_is_balanced_stays(group):
    spec, image = settled("uniform", group)
    again = run("uniform", (spec, image))
    for member, had in spec.members.items():
        assert set(held(again.members.get(member, {}))) == set(held(had.previous))


@pytest.mark.parametrize(("release", "owner_of_three"), [("kafka-4.3.1", "b"), ("kafka-4.0", "a")])
def test_since_4_1_the_larger_share_stays_with_who_has_it(release, owner_of_three):
    previous = {"a": [0, 1], "b": [2, 3, 4]}
    spec = GroupSpec({member: MemberSpec((T,), {T: numbers}) for member, numbers in previous.items()})
    after = assign("uniform", spec, image_of({T: 5}), profile(release))
    assert len(after.members[owner_of_three][T]) == 3


def test_3_9_differs_where_subscriptions_do():
    other = topic_id(2)
    spec = GroupSpec({"a": MemberSpec((T, other)), "b": MemberSpec((T,)), "c": MemberSpec((other,))}, homogeneous=False)
    for release in ("kafka-3.9", "kafka-4.3.1"):
        after = assign("uniform", spec, image_of({T: 4, other: 4}), profile(release))
        assert sorted(loads(after, spec)) == [2, 3, 3]
    old = assign("uniform", spec, image_of({T: 4, other: 4}), profile("kafka-3.9"))
    assert sorted(unit for work in old.members.values() for unit in held(work)) == sorted(
        (topic, number) for topic in (T, other) for number in range(4)
    )
