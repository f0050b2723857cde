"""What holds of every assignment, whichever client made it; the texts name what is broken."""

from dataclasses import replace

from coordinator_core.assignors.client.claimed_partitions import owned_data
from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.audit.targets.soundness import breaks_stickiness, breaks_subscriptions, given_to_nobody
from coordinator_core.cluster.image import Topic, TopicImage

IMAGE = TopicImage.of([Topic("a", "", 4)])


def owner(*numbers: int, topics: tuple[str, ...] = ("a",)) -> ClassicMemberSpec:
    return ClassicMemberSpec(topics, owned=[("a", number) for number in numbers], generation=1)


def broken(members: dict[str, ClassicMemberSpec], **given: list[int]) -> list[str]:
    work = {member: {"a": numbers} for member, numbers in given.items()}
    return list(breaks_stickiness("cooperative-sticky", members, work, owned_data))


def test_a_partition_for_a_member_that_does_not_subscribe_to_it() -> None:
    members = {"m": ClassicMemberSpec(("b",))}
    assert breaks_subscriptions(members, {"m": {"a": [1]}}) == ["p1 of a: given to m, which does not subscribe to it"]


def test_a_member_may_keep_what_it_owned_of_a_topic_that_it_left() -> None:
    assert not breaks_subscriptions({"m": owner(1, topics=("b",))}, {"m": {"a": [1]}})


def test_a_partition_for_two() -> None:
    assert breaks_subscriptions({"m": owner(), "n": owner()}, {"m": {"a": [1]}, "n": {"a": [1]}}) == [
        "p1 of a: given to m and to n"
    ]


def test_a_partition_for_nobody() -> None:
    texts = ["p3 of a: given to no member, though m subscribes to it"]
    assert given_to_nobody("custom", {"m": owner(0)}, {"m": {"a": [0, 1, 2]}}, IMAGE) == texts
    assert not given_to_nobody("custom", {"m": owner(3)}, {"m": {"a": [0, 1, 2]}}, IMAGE), "it is withheld"
    assert given_to_nobody("range", {"m": owner(3)}, {"m": {"a": [0, 1, 2]}}, IMAGE) == texts, "range withholds nothing"


def test_a_leader_that_heeds_racks_may_take_more_and_has_to_be_as_even() -> None:
    """franz-go with BalanceRacks: to be in the rack of the partition's leader outranks stickiness."""
    members = {"m": owner(0, 1), "n": owner(2, 3)}
    swapped = {"m": {"a": [2, 3]}, "n": {"a": [0, 1]}}
    assert list(breaks_stickiness("sticky", members, swapped, owned_data))
    assert not list(breaks_stickiness("sticky", members, swapped, owned_data, racks_first=True))
    uneven = {"m": {"a": [0, 1, 2]}, "n": {"a": [3]}}
    assert list(breaks_stickiness("sticky", members, uneven, owned_data, racks_first=True))


def test_what_moves_is_withheld_and_no_more_is_taken_than_evenness_needs() -> None:
    members = {"m": owner(0, 1, 2, 3), "n": owner()}
    assert not broken(members, m=[0, 3], n=[])
    assert broken(members, m=[0], n=[]) == [
        "3 partitions are taken from members, 2 have to be: p1 of a from m, p2 of a from m, p3 of a from m"
    ]
    assert broken(members, m=[0, 1], n=[2, 3]) == [
        "p2 of a: given to n while m still owns it",
        "p3 of a: given to n while m still owns it",
    ]


def test_shares_that_differ_by_more_than_one() -> None:
    assert broken({"m": owner(), "n": owner()}, m=[0, 1, 2], n=[3]) == ["4 partitions for 2 members: one has 3, one 1"]


def test_of_different_subscriptions_evenness_shows_nothing() -> None:
    assert not broken({"m": owner(), "n": owner(topics=("a", "b"))}, m=[0, 1, 2], n=[3])


def test_what_members_own_of_topics_that_nobody_reads_any_more_is_no_part_of_the_shares() -> None:
    left = ClassicMemberSpec(("a",), owned=[("old", number) for number in range(3)], generation=1)
    assert not broken({"m": left, "n": owner(0, 1, 2, 3)}, m=[], n=[0, 1]), "n gives up two, and m what it left"
    gone = [*breaks_stickiness("cooperative-sticky", {"m": left}, {"m": {}}, owned_data, gone={"a"})]
    assert not gone
    both = ("a", "old")
    members = {"m": replace(left, topics=both), "n": owner(0, 1, 2, 3, topics=both)}
    given = {"m": {}, "n": {"a": [0, 1]}}
    assert [*breaks_stickiness("cooperative-sticky", members, given, owned_data)], "old is thought to be there"
    assert not [*breaks_stickiness("cooperative-sticky", members, given, owned_data, gone={"old"})]
