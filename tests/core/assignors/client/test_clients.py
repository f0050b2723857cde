"""What the assignors of each client do, as the facts of its own code say it in words."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assignors.client.clients import CLIENTS, JAVA, JAVA_CLIENTS
from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.assignors.leader_round import leader_round
from coordinator_core.clients.known_clients import KnownClient
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.errors import InputError
from tests.core.assignors.client.groups import assigned, check_sound, everything, images, sizes, subscribers

SUBSCRIBED = st.dictionaries(
    st.sampled_from(["c-1", "c-10", "c-2", "d-1"]),
    st.lists(st.sampled_from(["a", "b", "b-1"]), unique=True, min_size=1),
    min_size=1,
)
IMAGE = TopicImage.of([Topic("a", "", 7), Topic("b", "", 12), Topic("b-1", "", 3)])
EVEN = [
    (client, name)
    for client, assignors in CLIENTS.items()
    for name in assignors
    if client.partition("-")[0] not in ("kafkajs", "platformatic")
    and client not in ("kafka-python", "kafka-python-2.3")
]
"""Assignors that give each member what it subscribes to, whatever that is."""


def run(
    client: str,
    name: str,
    members: Mapping[str, ClassicMemberSpec],
    image: TopicImage = IMAGE,
    order: Sequence[str] = (),
) -> dict[str, list[tuple[str, int]]]:
    leader = next(iter(members))
    made = leader_round(name, members, image, client=client, leader=leader, topic_order=order)
    assert made.error is None, made.error
    return {
        member: [(t, n) for t, numbers in work.items() for n in numbers] for member, work in made.assignments.items()
    }


def plain(subscribed: Mapping[str, Sequence[str]]) -> dict[str, ClassicMemberSpec]:
    return {member: ClassicMemberSpec(topics) for member, topics in subscribed.items()}


def test_every_client_is_one_whose_blobs_are_told() -> None:
    """Under its own name as it is today, and with a release behind the name as it was."""
    assert {client for client in CLIENTS if client in {*KnownClient}} == {*KnownClient}
    assert {client.rpartition("-")[0] for client in CLIENTS if client not in {*KnownClient}} <= {*KnownClient}


@pytest.mark.parametrize(("client", "name"), EVEN)
@given(members=subscribers(racks=False), image=images(racks=False))
def test_a_first_assignment_is_complete_whichever_client_makes_it(
    client: str, name: str, members: dict[str, ClassicMemberSpec], image: TopicImage
) -> None:
    work = run(client, name, members, image)
    check_sound(members, work)
    assert assigned(work) == everything(members, image)


@pytest.mark.parametrize("client", ["librdkafka", "aiokafka", "kafka-python", "kafka-python-1.0", *JAVA_CLIENTS])
@given(members=subscribers(equal=True, racks=False), image=images(racks=False))
def test_sticky_shares_differ_by_at_most_one(
    client: str, members: dict[str, ClassicMemberSpec], image: TopicImage
) -> None:
    for name in {"sticky", "cooperative-sticky"} & CLIENTS[client].keys():
        loads = sizes(run(client, name, members, image))
        assert max(loads) - min(loads) <= 1


@given(SUBSCRIBED)
def test_kafka_go_gives_the_last_members_one_more(subscribed: dict[str, list[str]]) -> None:
    work = run("kafka-go", "range", plain(subscribed))
    for topic in IMAGE.by_name.values():
        members = sorted(member for member, topics in subscribed.items() if topic.name in topics)
        for i, member in enumerate(members):
            begin, end = (at * topic.partitions // len(members) for at in (i, i + 1))
            assert [n for name, n in work[member] if name == topic.name] == list(range(begin, end))


@given(SUBSCRIBED)
def test_kafka_go_deals_each_topic_from_the_first_member_on(subscribed: dict[str, list[str]]) -> None:
    work = run("kafka-go", "roundrobin", plain(subscribed))
    for topic in IMAGE.by_name.values():
        members = sorted(member for member, topics in subscribed.items() if topic.name in topics)
        for number in range(topic.partitions if members else 0):
            assert (topic.name, number) in work[members[number % len(members)]]


@given(SUBSCRIBED)
def test_platformatic_and_kafkajs_deal_the_leader_s_topics_to_anyone(subscribed: dict[str, list[str]]) -> None:
    dealt = [(topic, n) for topic in subscribed[next(iter(subscribed))] for n in range(IMAGE.by_name[topic].partitions)]
    orders = {"platformatic": ("roundrobin", list(subscribed)), "kafkajs": ("RoundRobinAssigner", sorted(subscribed))}
    for client, (name, members) in orders.items():
        work = run(client, name, plain(subscribed))
        for place, partition in enumerate(dealt):
            assert partition in work[members[place % len(members)]]


def test_sarama_deals_partitions_in_the_order_of_their_text() -> None:
    work = run("sarama", "roundrobin", plain({"m1": ["b", "b-1"], "m2": ["b", "b-1"]}))
    dealt = [("b", n) for n in range(12)] + [("b-1", n) for n in range(3)]
    dealt.sort(key=lambda partition: f"{partition[0]}-{partition[1]}")
    assert [name for name in dealt if name[0] == "b"][:3] == [("b", 0), ("b", 1), ("b", 10)]
    assert set(work["m1"]) == set(dealt[::2])


def test_of_static_and_dynamic_members_librdkafka_sorts_two_static_ones_by_instance() -> None:
    members = {
        "z-1": ClassicMemberSpec(["b-1"], instance_id="a"),
        "m-2": ClassicMemberSpec(["b-1"]),
        "y-3": ClassicMemberSpec(["b-1"], instance_id="b"),
    }
    assert run("librdkafka", "range", members) == {"z-1": [("b-1", 1)], "m-2": [("b-1", 0)], "y-3": [("b-1", 2)]}
    assert run(JAVA, "range", members) == {"z-1": [("b-1", 0)], "y-3": [("b-1", 1)], "m-2": [("b-1", 2)]}
    assert run("sarama", "range", members) == {"m-2": [("b-1", 0)], "y-3": [("b-1", 1)], "z-1": [("b-1", 2)]}


def test_librdkafka_sorts_members_that_have_no_order_as_the_c_library_does() -> None:
    """By member id d is between the static ones, and by instance id they are the other way round."""
    static = {"b": ClassicMemberSpec(["b-1"], instance_id="2"), "e": ClassicMemberSpec(["b-1"], instance_id="1")}
    members = static | {"d": ClassicMemberSpec(["b-1"])}
    orders = {joined: {joined[at]: [("b-1", at)] for at in range(3)} for joined in ("bde", "ebd", "deb")}
    for joined, expected in orders.items():
        assert run("librdkafka", "range", {name: members[name] for name in joined}) == expected
    assert run("librdkafka", "range", {name: members[name] for name in "bed"}) == orders["bde"]


def test_kafka_python_loses_all_but_the_last_runs_of_static_and_dynamic_members() -> None:
    members = {
        "d1": ClassicMemberSpec(["b-1"]),
        "s1": ClassicMemberSpec(["b-1"], instance_id="s1"),
        "d2": ClassicMemberSpec(["b-1"]),
        "d3": ClassicMemberSpec(["b-1"]),
    }
    for name in ("range", "roundrobin"):
        assert sizes(run("kafka-python", name, members)) == [0, 1, 1, 1]


def test_kafka_python_fails_where_a_member_would_have_to_be_skipped() -> None:
    made = leader_round("roundrobin", plain({"m1": ["a"], "m2": ["b"]}), IMAGE, client="kafka-python")
    assert made.error is not None
    assert made.error.kind == "KeyError"


def owner(topics: Sequence[str], *owned: tuple[str, int]) -> ClassicMemberSpec:
    return ClassicMemberSpec(topics, owned=owned, generation=3)


def test_librdkafka_takes_the_last_partitions_of_the_last_topic_first() -> None:
    image = TopicImage.of([Topic("a", "", 2), Topic("b", "", 2)])
    members = {"m1": owner(["a", "b"], ("b", 0)), "m2": owner(["a", "b"])}
    assert run("librdkafka", "cooperative-sticky", members, image, order=("a", "b"))["m2"] == [("b", 1), ("a", 0)]
    assert run("librdkafka", "cooperative-sticky", members, image, order=("b", "a"))["m2"] == [("a", 1), ("b", 1)]


def test_librdkafka_gives_back_what_is_owned_and_no_longer_there() -> None:
    members = {"m1": owner(["a"], ("gone", 0)), "m2": owner(["a"])}
    assert ("gone", 0) in run("librdkafka", "cooperative-sticky", members)["m1"]


def in_racks(**racks: str) -> dict[str, ClassicMemberSpec]:
    return {member: ClassicMemberSpec(["t", "u"], rack_id=rack) for member, rack in racks.items()}


def everywhere(*counts: int, racks: tuple[str, ...] = ("a", "b")) -> TopicImage:
    return TopicImage.of([Topic(name, name, n, (racks,) * n) for name, n in zip("tu", counts, strict=False)])


def test_librdkafka_gives_topics_of_as_many_partitions_to_members_in_racks_first() -> None:
    """Even where each partition is in each rack, so that racks make no difference."""
    members = in_racks(m1="", m2="a")
    assert run("librdkafka", "range", members, everywhere(2, 2)) == {
        "m1": [("t", 1), ("u", 1)],
        "m2": [("t", 0), ("u", 0)],
    }
    assert run("librdkafka", "range", members, everywhere(2, 3))["m1"] == [("t", 0), ("u", 0), ("u", 1)]
    assert run(JAVA, "range", members, everywhere(2, 2))["m1"] == [("t", 0), ("u", 0)]
    old_leader = members | {"m1": ClassicMemberSpec(["t", "u"])}
    assert run("librdkafka", "range", old_leader, everywhere(2, 2))["m1"] == [("t", 0), ("u", 0)]


def test_a_member_without_a_rack_is_in_none_for_the_sticky_assignor_of_librdkafka() -> None:
    """It loses what it owns. For Kafka's own, and if it wrote no rack at all, it is in every rack."""
    image = TopicImage.of([Topic("t", "t", 3, (("a",), ("a",), ("b",)))])

    def given_to_m1(client: str, rack: str | None) -> list[tuple[str, int]]:
        m1, m2 = (
            ClassicMemberSpec(["t"], owned=[("t", number)], generation=3, rack_id=rack)
            for number, rack in enumerate((rack, "a"))
        )
        return run(client, "cooperative-sticky", {"m1": m1, "m2": m2}, image, order=("t",))["m1"]

    assert given_to_m1("librdkafka", "") == [("t", 2)]
    assert given_to_m1("librdkafka", None) == given_to_m1(JAVA, "") == [("t", 0), ("t", 2)]


@pytest.mark.parametrize("client", ["librdkafka", "kafka-python", *JAVA_CLIENTS])
def test_what_another_member_owns_is_withheld(client: str) -> None:
    members = {"m1": owner(["b-1"], *(("b-1", n) for n in range(3))), "m2": owner(["b-1"])}
    work = run(client, "cooperative-sticky", members)
    assert (len(work["m1"]), work["m2"]) == (2, [])


@pytest.mark.parametrize(("client", "name"), [("sarama", "sticky"), ("franz-go", "cooperative-sticky")])
def test_what_depends_on_chance_cannot_be_computed(client: str, name: str) -> None:
    with pytest.raises(InputError, match=f"no assignor '{name}' of {client}; there are range, roundrobin"):
        leader_round(name, plain({"m": ["a"]}), IMAGE, client=client)


def test_platformatic_2_12_takes_from_nobody_who_has_no_more_than_the_larger_share() -> None:
    owned = {"m1": [0, 1, 2, 3], "m2": [4, 5, 6], "m3": []}
    members = {
        member: ClassicMemberSpec(["a"], [("a", n) for n in numbers], generation=3, rack_id=None)
        for member, numbers in owned.items()
    }
    work = run("platformatic-2.12", "cooperative-sticky", members)
    assert sizes(work) == [3, 3, 0], "one is withheld from its owner for the third member, which has to wait"


def test_platformatic_2_12_gives_what_two_claim_to_neither_of_them_at_once() -> None:
    members = {
        member: ClassicMemberSpec(["a"], [("a", n) for n in numbers], generation=3)
        for member, numbers in {"m1": [0, 1, 2], "m2": [2, 3, 4]}.items()
    }
    work = run("platformatic-2.12", "cooperative-sticky", members)
    assert ("a", 2) not in [partition for partitions in work.values() for partition in partitions]
    assert sorted(n for _, n in work["m1"]) in ([0, 1, 5], [0, 1, 5, 6], [0, 1, 6])


def test_platformatic_2_12_deals_topics_in_the_order_of_its_application() -> None:
    members = plain({"m1": ["a", "b-1"], "m2": ["a", "b-1"]})
    dealt = [("b-1", n) for n in range(3)] + [("a", n) for n in range(7)]
    work = run("platformatic-2.12", "roundrobin", members, order=("b-1", "a"))
    assert work["m1"] == dealt[::2]
    assert run("platformatic-2.12", "roundrobin", members) == run("platformatic", "roundrobin", members)
