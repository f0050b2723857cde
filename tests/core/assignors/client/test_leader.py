"""From the blobs of a group's record to the assignment that its leader should have written."""

from coordinator_core.assignors.client.leader_view import recorded, same_sets, subscribed_member
from coordinator_core.assignors.leader_round import leader_round
from coordinator_core.cluster.image import Topic, TopicImage

IMAGE = TopicImage.of([Topic("t", "", 3), Topic("u", "", 1)])


def test_a_subscription_of_version_0_says_topics_only() -> None:
    member = subscribed_member({"topics": ["t"], "userData": None})
    assert (member.topics, member.owned, member.generation, member.user_data, member.rack_id) == (
        ["t"],
        [],
        None,
        None,
        None,
    )


def test_a_subscription_of_version_3_says_all() -> None:
    member = subscribed_member(
        {
            "topics": ["t"],
            "userData": b"\0",
            "ownedPartitions": [{"topic": "t", "partitions": [2, 0]}],
            "generationId": 4,
            "rackId": "a",
        },
        "i",
    )
    assert member.owned == [("t", 2), ("t", 0)]
    assert (member.generation, member.user_data, member.instance_id, member.rack_id) == (4, b"\0", "i", "a")


def test_the_leader_s_assignment_is_compared_as_it_is_serialised() -> None:
    members = {name: subscribed_member({"topics": ["t", "u"], "userData": None}) for name in ("m1", "m2")}
    told = leader_round("roundrobin", members, IMAGE)
    assert told.error is None
    assert told.assignments == {"m1": {"t": [0, 2]}, "m2": {"t": [1], "u": [0]}}
    log = recorded({"assignedPartitions": [{"topic": "t", "partitions": [0]}, {"topic": "t", "partitions": [2]}]})
    assert list(told.assignments["m1"].items()) == list(log.items())


def test_other_clients_are_compared_as_sets() -> None:
    ours, theirs = {"t": [0, 1], "u": [0]}, {"u": [0], "t": [1, 0], "v": []}
    assert ours != theirs
    assert same_sets(ours, theirs)
    assert not same_sets(ours, {"t": [0, 1]})


def test_an_assignor_that_throws_leaves_its_error_and_its_memory() -> None:
    members = {
        name: subscribed_member(
            {
                "topics": ["u"],
                "userData": None,
                "ownedPartitions": [{"topic": "u", "partitions": [gone]}],
                "generationId": 2,
            }
        )
        for name, gone in (("m1", 7), ("m2", 8), ("m3", 0))
    }
    told = leader_round("cooperative-sticky", members, TopicImage.of([Topic("u", "", 2)]))
    assert told.error is not None
    assert told.error.kind == "IllegalStateException"
    assert told.assignments == {}
    assert told.memory == 2
