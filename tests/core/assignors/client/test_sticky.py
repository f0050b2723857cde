"""The sticky assignors: balance, what stays where it was, and what is withheld until it is given up."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assignors.client.clients import JAVA, remembered
from coordinator_core.assignors.inputs import ClassicGroupSpec, ClassicMemberSpec
from coordinator_core.cluster.image import Topic, TopicImage
from tests.core.assignors.client.groups import (
    Work,
    assigned,
    check_sound,
    everything,
    images,
    owning,
    run,
    sizes,
    subscribers,
)

BOTH = pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])


def joining_again(
    members: Mapping[str, ClassicMemberSpec], work: Work, generation: int
) -> dict[str, ClassicMemberSpec]:
    return {
        name: owning(member, list(work[name]), generation) if name in work else member
        for name, member in members.items()
    }


def converged(
    name: str, members: Mapping[str, ClassicMemberSpec], image: TopicImage, work: Work, generation: int
) -> Work:
    """The work once all have joined again with what they have; the cooperative assignor takes a second round."""
    for _ in range(2):
        work = run(name, joining_again(members, work, generation), image, generation).members
        generation += 1
    return work


@BOTH
@given(members=subscribers(), image=images())
def test_a_first_assignment_is_complete_and_as_even_as_can_be(
    name: str, members: dict[str, ClassicMemberSpec], image: TopicImage
) -> None:
    work = run(name, members, image).members
    check_sound(members, work)
    assert assigned(work) == everything(members, image)
    for owner, mine in work.items():
        for topic, number in mine:
            for other, theirs in work.items():
                if topic in members[other].topics:
                    assert len(mine) <= len(theirs) + 1, f"{topic}-{number} could go from {owner} to {other}"


@BOTH
@given(members=subscribers(equal=True), image=images())
def test_shares_differ_by_at_most_one_when_all_subscribe_to_the_same(
    name: str, members: dict[str, ClassicMemberSpec], image: TopicImage
) -> None:
    loads = sizes(run(name, members, image).members)
    assert max(loads) - min(loads) <= 1


@BOTH
@given(members=subscribers(racks=False), image=images(racks=False))
def test_the_same_group_again_changes_nothing(
    name: str, members: dict[str, ClassicMemberSpec], image: TopicImage
) -> None:
    settled = converged(name, members, image, run(name, members, image).members, 1)
    again = run(name, joining_again(members, settled, 3), image, 3).members
    assert {member: set(mine) for member, mine in again.items()} == {
        member: set(mine) for member, mine in settled.items()
    }


@BOTH
@given(members=subscribers(equal=True, racks=False, least=2), image=images(racks=False), data=st.data())
def test_when_one_leaves_the_others_keep_all_they_have(
    name: str, members: dict[str, ClassicMemberSpec], image: TopicImage, data: st.DataObject
) -> None:
    before = run(name, members, image).members
    gone = data.draw(st.sampled_from(sorted(members)))
    rest = {member: spec for member, spec in members.items() if member != gone}
    after = run(name, joining_again(rest, before, 1), image, 1).members
    check_sound(rest, after)
    assert assigned(after) == everything(rest, image)
    for member in rest:
        assert set(before[member]) <= set(after[member])


@BOTH
@given(members=subscribers(equal=True, racks=False, least=2), image=images(racks=False), data=st.data())
def test_when_one_joins_only_its_share_moves(
    name: str, members: dict[str, ClassicMemberSpec], image: TopicImage, data: st.DataObject
) -> None:
    new = data.draw(st.sampled_from(sorted(members)))
    old = {member: spec for member, spec in members.items() if member != new}
    before = run(name, old, image).members
    after = converged(name, members, image, before, 1)
    check_sound(members, after)
    assert assigned(after) == everything(members, image)
    for member in old:
        assert set(after[member]) <= set(before[member])


@given(members=subscribers(least=2), image=images(), data=st.data())
def test_the_cooperative_assignor_gives_nothing_that_another_still_owns(
    members: dict[str, ClassicMemberSpec], image: TopicImage, data: st.DataObject
) -> None:
    """Unless a topic has lost partitions: Kafka's class may then assign a partition to two."""
    present = data.draw(st.lists(st.sampled_from(sorted(members)), unique=True, min_size=1))
    before = run("cooperative-sticky", {name: members[name] for name in present}, image).members
    later = TopicImage.of(
        replace(topic, partitions=topic.partitions + data.draw(st.integers(0, 3)))
        for topic in image.by_name.values()
        if data.draw(st.booleans()) or data.draw(st.booleans())
    )
    after = run("cooperative-sticky", joining_again(members, before, 1), later, 1).members
    for member, mine in after.items():
        for other in before.keys() - {member}:
            assert not set(mine) & set(before[other])


def test_the_cooperative_assignor_withholds_what_moves() -> None:
    image = TopicImage.of([Topic("t", "", 4)])
    members = {"m1": owning(ClassicMemberSpec(["t"]), [("t", n) for n in range(4)], 3), "m2": ClassicMemberSpec(["t"])}
    first = run("cooperative-sticky", members, image).members
    assert first == {"m1": [("t", 0), ("t", 1)], "m2": []}
    second = run("cooperative-sticky", joining_again(members, first, 4), image).members
    assert second == {"m1": [("t", 0), ("t", 1)], "m2": [("t", 2), ("t", 3)]}


def test_of_two_claims_the_one_of_the_later_generation_stands() -> None:
    image = TopicImage.of([Topic("t", "", 2)])
    claim = [("t", 0), ("t", 1)]
    members = {"m1": owning(ClassicMemberSpec(["t"]), claim, 4), "m2": owning(ClassicMemberSpec(["t"]), claim[1:], 5)}
    assert run("sticky", members, image).members == {"m1": [("t", 0)], "m2": [("t", 1)]}


def test_a_claim_of_two_in_one_generation_is_nobody_s() -> None:
    image = TopicImage.of([Topic("t", "", 2)])
    members = {name: owning(ClassicMemberSpec(["t"]), [("t", 1)], 5) for name in ("m1", "m2")}
    assert run("sticky", members, image).members == {"m1": [("t", 0)], "m2": [("t", 1)]}


def test_an_old_user_data_without_generation_counts_while_no_generation_is_known() -> None:
    image = TopicImage.of([Topic("t", "", 2), Topic("u", "", 2)])
    old = owning(ClassicMemberSpec(["t"]), [("t", 1)], 0)
    members = {"m1": ClassicMemberSpec(["t"]), "m2": ClassicMemberSpec(["t"], user_data=old.user_data[:-4])}
    work = run("sticky", members, image)
    assert work.members == {"m1": [("t", 0)], "m2": [("t", 1)]}
    assert work.memory == -1


def test_unreadable_user_data_counts_as_nothing_owned() -> None:
    image = TopicImage.of([Topic("t", "", 2)])
    members = {"m1": ClassicMemberSpec(["t"], user_data=b"\x7f\xff\xff\xff"), "m2": ClassicMemberSpec(["t"])}
    assert run("sticky", members, image).members == {"m1": [("t", 0)], "m2": [("t", 1)]}


@pytest.mark.parametrize(("memory", "expected"), [(None, 7), (3, 7), (9, 9)])
def test_the_leader_remembers_the_largest_generation(memory: int | None, expected: int) -> None:
    image = TopicImage.of([Topic("t", "", 1)])
    members = {"m1": owning(ClassicMemberSpec(["t"]), [("t", 0)], 7)}
    assert run("sticky", members, image, memory).memory == expected
    assert remembered(JAVA, "sticky", ClassicGroupSpec(members, memory)) == expected
