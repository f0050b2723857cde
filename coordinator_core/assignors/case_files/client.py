"""Cases of classic groups' assignors: each step is one round, assigned by the member that leads the group in it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, groupby

from coordinator_core.assignors.case_files.case_forms import CaseMember, ClassicCase, LeaderTopic
from coordinator_core.assignors.client.clients import CLIENTS, JAVA, JAVA_CLIENTS, remembered
from coordinator_core.assignors.client.leader_view import leader_order
from coordinator_core.assignors.inputs import ClassicGroupSpec, ClassicMemberSpec
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.registry import Assign
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.errors import AssignorError, InputError

NAMES = tuple(dict.fromkeys(chain(*CLIENTS.values())))
"""The names of the assignors of all clients."""


def runner(name: str) -> Callable[[ClassicCase, Profile, Assign], dict[str, object]]:
    """Return the function that runs cases of this assignor. The assignor's memory lives while its member is in
    the group.
    """

    def run(case: ClassicCase, profile: Profile, assign: Assign) -> dict[str, object]:
        client = case.get("client", JAVA)
        broker_racks = {broker["id"]: broker.get("rack") for broker in case["brokers"]}
        memories: dict[str, object] = {}
        results: list[dict[str, object]] = []
        for step in case["steps"]:
            joined = _members(step["members"])
            members = leader_order(joined) if client in JAVA_CLIENTS else joined
            memories = {member: memory for member, memory in memories.items() if member in members}
            leader = step["leader"]
            order = [topic["name"] for topic in step["topics"]]
            spec = ClassicGroupSpec(members, memories.get(leader), client, leader, order)
            try:
                assigned = assign(name, spec, _image(step["topics"], broker_racks), profile)
                results.append({"assignment": {member: _runs(work) for member, work in assigned.members.items()}})
            except AssignorError as error:
                results.append({"error": error.kind, "message": error.message})
            memories[leader] = remembered(client, name, spec)
        return {"steps": results}

    return run


def _members(members: Iterable[CaseMember]) -> dict[str, ClassicMemberSpec]:
    specs: dict[str, ClassicMemberSpec] = {}
    for member in members:
        if member["id"] in specs:
            raise InputError(f"member {member['id']!r} is in the group twice")
        owned, user_data = member.get("owned"), member.get("user_data")
        specs[member["id"]] = ClassicMemberSpec(
            topics=member["topics"],
            owned=None if owned is None else [(topic, number) for topic, numbers in owned for number in numbers],
            generation=member.get("generation"),
            user_data=None if user_data is None else b64decode(user_data),
            instance_id=member.get("instance"),
            rack_id=member.get("rack"),
        )
    return specs


def _image(topics: Iterable[LeaderTopic], broker_racks: Mapping[int, str | None]) -> TopicImage:
    image = []
    for topic in topics:
        if topic["partitions"] < 0:
            raise InputError(f"topic {topic['name']!r} has {topic['partitions']} partitions")
        replicas = tuple(map(tuple, topic.get("replicas", ())))
        racks = tuple(
            tuple(rack for rack in map(broker_racks.get, brokers) if rack is not None) for brokers in replicas
        )
        image.append(Topic(topic["name"], "", topic["partitions"], racks, replicas))
    return TopicImage.of(image, broker_racks)


def _runs(work: Sequence[tuple[str, int]]) -> list[list[object]]:
    """Partitions as runs of one topic."""
    return [[topic, [number for _, number in run]] for topic, run in groupby(work, key=lambda partition: partition[0])]
