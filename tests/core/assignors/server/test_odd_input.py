"""Groups that are odd or wrong: what Kafka's classes do with them, or else an error that names the cause."""

import pytest

from coordinator_core.assignors.inputs import AssignedGroupType, GroupSpec, MemberSpec
from coordinator_core.assignors.profiles import profile
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.errors import AssignorError, InputError
from tests.core.assignors.server.groups import TYPES, image_of, topic_id

T, GONE = topic_id(1), topic_id(2)
NAMES = list(TYPES)
DIFFERING = [True, False]


def spec_of(name: str, members: dict[str, MemberSpec], homogeneous: bool = True) -> GroupSpec:
    return GroupSpec(members, homogeneous, type=TYPES[name])


def test_an_unknown_assignor_is_named_with_the_known_ones():
    with pytest.raises(InputError, match=r"no assignor 'round' for consumer groups; there are range, uniform"):
        assign("round", GroupSpec({}), image_of({}))


@pytest.mark.parametrize(("name", "jdk"), [("kafka-2.0", 17), ("kafka-4.3.1", 1)])
def test_an_unknown_profile_is_an_error(name, jdk):
    with pytest.raises(InputError):
        profile(name, jdk)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("homogeneous", DIFFERING)
def test_an_empty_group_gets_nothing(name, homogeneous):
    assert assign(name, spec_of(name, {}, homogeneous), image_of({T: 3})).members == {}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("homogeneous", DIFFERING)
def test_a_subscription_of_nothing_gets_nothing(name, homogeneous):
    members = {"a": MemberSpec((), {T: [0]}), "b": MemberSpec(())}
    got = assign(name, spec_of(name, members, homogeneous), image_of({T: 3})).members
    assert all(not got.get(member) for member in members)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("homogeneous", DIFFERING)
def test_a_subscribed_topic_that_is_not_there_is_refused_as_kafka_does(name, homogeneous):
    with pytest.raises(AssignorError) as refused:
        assign(name, spec_of(name, {"a": MemberSpec((GONE,))}, homogeneous), image_of({T: 3}))
    assert refused.value.kind == "PartitionAssignorException"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("homogeneous", DIFFERING)
def test_a_negative_partition_count_is_an_error(name, homogeneous):
    image = TopicImage.of([Topic("t", T, -2)])
    with pytest.raises(InputError, match="topic t has -2 partitions"):
        assign(name, spec_of(name, {"a": MemberSpec((T,))}, homogeneous), image)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("homogeneous", DIFFERING)
def test_topics_of_the_past_are_given_up(name, homogeneous):
    """Except by ``simple`` with differing subscriptions, which keeps what nobody subscribes to any more."""
    members = {"a": MemberSpec((T,), {GONE: [0], T: [0]}), "b": MemberSpec((T,), {GONE: [1]})}
    got = assign(name, spec_of(name, members, homogeneous), image_of({T: 2})).members
    kept = name == "simple" and not homogeneous
    assert [GONE in got[member] for member in members] == [kept, kept]
    assert sorted(number for work in got.values() for number in work.get(T, ())) == [0, 1]


def test_a_former_partition_beyond_the_topic_fails_as_in_kafka():
    spec = spec_of("uniform", {"a": MemberSpec((T,), {T: [7]})}, homogeneous=False)
    with pytest.raises(AssignorError, match="ArrayIndexOutOfBoundsException: Index 7 out of bounds for length 3"):
        assign("uniform", spec, image_of({T: 3}))


def test_partitions_held_by_nobody_present_are_lost():
    """The inverted target assignment can know partitions of members that are not there; Kafka leaves them out."""
    spec = GroupSpec({"a": MemberSpec((T,))}, assigned={T: {0, 1}}, type=AssignedGroupType.CONSUMER)
    assert assign("uniform", spec, image_of({T: 3})).members["a"] == {T: [2]}


def test_more_kept_than_there_is_room_for_fails_as_in_kafka():
    spec = GroupSpec({"a": MemberSpec((T,), {T: [0, 1]}), "b": MemberSpec((T,), {T: [0, 1]})})
    with pytest.raises(AssignorError, match="Partitions were left unassigned"):
        assign("uniform", spec, image_of({T: 3}))


def test_an_id_that_is_no_uuid_is_an_error():
    with pytest.raises(InputError, match="is not a Uuid"):
        assign("range", GroupSpec({"a": MemberSpec(("short", T))}), image_of({"short": 1, T: 1}))
