"""What the coordinator presents: judged from records, in the order of its maps. Recorded cases check the orders too."""

import pytest

from coordinator_core.assignors.coordinator_view import (
    Process,
    StreamsView,
    Subscriber,
    SubscriptionView,
    presented_members,
)
from coordinator_core.assignors.inputs import AssignedGroupType, StreamsConfigs, SubtopologyTasks, Tasks
from coordinator_core.cluster.image import Topic, TopicImage
from tests.core.assignors.server.groups import topic_id

A, B = topic_id(1), topic_id(2)
IMAGE = TopicImage.of([Topic("a", A, 2), Topic("b", B, 2)])


def view_of(**members: Subscriber) -> SubscriptionView:
    view = SubscriptionView()
    for member, subscriber in members.items():
        view.put_member(member, subscriber)
    return view


def test_a_group_is_homogeneous_while_all_subscribe_to_the_same_names():
    view = view_of(m1=Subscriber(("a", "b")), m2=Subscriber(("b", "a")))
    assert view.homogeneous
    view.put_member("m2", Subscriber(("a",)))
    assert not view.homogeneous
    view.remove_member("m2")
    assert view.homogeneous


def test_a_joining_member_is_judged_before_it_is_in_the_group():
    view = view_of(m1=Subscriber(("a",)))
    assert view.judge("m2", Subscriber(("a",)))
    assert not view.judge("m2", Subscriber(("b",)))
    assert view.homogeneous
    assert list(view.members) == ["m1"]


def test_one_regular_expression_for_all_is_homogeneous_and_names_beside_it_are_not():
    view = SubscriptionView()
    view.resolve("x.*", ["a", "b"])
    view.put_member("m1", Subscriber(regex="x.*"))
    assert view.homogeneous
    assert not view.judge("m2", Subscriber(("a",), regex="x.*"))
    assert not view.judge("m2", Subscriber(regex="y.*"))
    assert view.judge("m2", Subscriber(regex="x.*"))


def test_the_stored_judgement_can_be_stale():
    """Kafka judges when a member's record is replayed, not when a regular expression is resolved anew."""
    view = SubscriptionView()
    view.resolve("x.*", ["a"])
    view.put_member("m1", Subscriber(regex="x.*"))
    view.resolve("z.*", ["a"])
    assert view.homogeneous
    view.put_member("m1", Subscriber(regex="x.*"))
    assert not view.homogeneous


def test_unresolved_names_count_but_have_no_id():
    member = view_of(m1=Subscriber(("a", "missing"))).spec(IMAGE).members["m1"]
    assert (member.topics, member.subscribed) == ((A,), 2)


@pytest.mark.parametrize(("names", "matched", "first"), [(("a",), ["b"], B), (("a", "c"), ["b"], A)])
def test_of_names_and_matches_the_larger_set_comes_first_and_matches_on_a_tie(names, matched, first):
    view = SubscriptionView()
    view.resolve("x.*", matched)
    view.put_member("m1", Subscriber(names, regex="x.*"))
    assert view.spec(IMAGE).members["m1"].topics[0] == first


def test_a_static_replacement_starts_from_the_target_of_the_one_it_replaces():
    view = view_of(old=Subscriber(("a",), instance_id="i"))
    view.put_target("old", [(A, [0, 1])])
    spec = view.spec(IMAGE, {"new": Subscriber(("a",), instance_id="i"), "old": None})
    assert list(spec.members) == ["new"]
    assert spec.members["new"].previous == {A: [0, 1]}
    assert set(spec.assigned or {}) == {A}


def test_a_tombstone_of_a_replaced_member_leaves_its_instance_id_to_the_next_one():
    view = SubscriptionView()
    for name in ("old", "new"):
        view.put_member(name, Subscriber(("t",), instance_id="i"))
    view.remove_member("old")
    assert view.static == {"i": "new"}


def test_share_groups_have_no_static_members():
    view = SubscriptionView(AssignedGroupType.SHARE)
    view.put_member("old", Subscriber(("a",), instance_id="i"))
    view.put_target("old", [(A, [0])])
    spec = view.spec(IMAGE, {"new": Subscriber(("a",), instance_id="i")})
    assert spec.members["new"].previous == {}


def test_the_newest_holder_of_a_partition_counts_until_it_gives_it_up():
    view = view_of(m1=Subscriber(("a",)), m2=Subscriber(("a",)))
    view.put_target("m1", [(A, [0, 1])])
    view.put_target("m2", [(A, [1])])
    view.put_target("m1", [(A, [0])])
    assert view.assigned == {A: {0: "m1", 1: "m2"}}
    view.remove_target("m2")
    assert view.assigned == {A: {0: "m1"}}
    view.remove_target("m1")
    assert view.assigned == {}


def test_former_targets_come_in_the_order_of_java_sets():
    view = view_of(m1=Subscriber(("a",)))
    view.put_target("m1", [(A, [3, 40, 17, 1])])
    assert view.spec(IMAGE).members["m1"].previous == {A: [17, 1, 3, 40]}


def test_updates_of_members_that_are_there_keep_their_place():
    members = [f"m{number}" for number in range(13)]
    assert presented_members(members, {"m3": object()}) == presented_members(members, {})
    assert set(presented_members(members, {"m3": None, "x": object()})) == {*members, "x"} - {"m3"}


def test_streams_members_bring_their_process_and_their_former_tasks():
    view = StreamsView()
    view.put_member("m1", Process("p1", instance_id="i"))
    view.put_target("m1", Tasks({"1": [0], "0": [2, 1]}, {"1": [1]}))
    spec = view.spec(
        [SubtopologyTasks("0", 3, True)], StreamsConfigs(), {"m2": Process("p1", instance_id="i"), "m1": None}
    )
    assert list(spec.members) == ["m2"]
    assert spec.members["m2"].process_id == "p1"
    assert spec.members["m2"].previous == Tasks({"0": [1, 2], "1": [0]}, {"1": [1]}, {})
    view.remove_target("m1")
    view.remove_member("m1")
    assert view.spec([], StreamsConfigs()).members == {}
