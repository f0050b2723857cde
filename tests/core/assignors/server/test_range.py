"""Server-side ``range`` against the obvious way to write it."""

from hypothesis import given

from coordinator_core.assignors.inputs import GroupSpec, MemberSpec
from tests.core.assignors.server.groups import Group, check_exclusive, groups, image_of, run, topic_id


def reference(group: Group) -> dict[str, dict[str, list[int]]]:
    """Topic by topic: consecutive partitions to subscribers, static ones first by instance id, then by member id."""
    spec, image = group
    order = sorted(
        spec.members, key=lambda each: (spec.members[each].instance_id is None, spec.members[each].instance_id or each)
    )
    result: dict[str, dict[str, list[int]]] = {member: {} for member in spec.members}
    for topic in {topic for member in spec.members.values() for topic in member.topics}:
        takers = [member for member in order if topic in spec.members[member].topics]
        partitions = list(range(image.by_id[topic].partitions))
        for position, member in enumerate(takers):
            size = len(partitions) // (len(takers) - position) + (len(partitions) % (len(takers) - position) > 0)
            mine, partitions = partitions[:size], partitions[size:]
            if mine:
                result[member][topic] = mine
    return result


@given(groups("range"))
def test_equals_the_reference(group):
    assignment = check_exclusive("range", group)
    assert {
        member: {topic: list(numbers) for topic, numbers in work.items()} for member, work in assignment.members.items()
    } == reference(group)


def test_members_sort_as_java_sorts_strings():
    """By UTF-16 code units: a supplementary character (U+1F600) before U+FF5E, though its code point is larger."""
    t = topic_id(1)
    spec = GroupSpec({"\uff5e": MemberSpec((t,)), "\U0001f600": MemberSpec((t,))})
    assert list(run("range", (spec, image_of({t: 1}))).members["\U0001f600"][t]) == [0]
