"""One assignment by the leader of a classic group, from the members that the broker shows it to the members' blobs.

The lists of Kafka's own client are in the order of its blobs. Other clients write topics and partitions in other
orders, some in random ones: their assignments have to be compared as sets (``same_sets``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator_core.assignors.client.clients import JAVA, JAVA_CLIENTS, remembered
from coordinator_core.assignors.client.leader import Serialised, leader_order, serialised
from coordinator_core.assignors.inputs import ClassicGroupSpec, ClassicMemberSpec
from coordinator_core.assignors.profiles import DEFAULT, Profile
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError


@dataclass(frozen=True, slots=True)
class LeaderRound:
    """What the leader's assignor returned: assignments by member, or the error that it threw, and its memory."""

    assignments: Mapping[str, Serialised]
    error: AssignorError | None
    memory: Any


def leader_round(
    protocol: str,
    members: Mapping[str, ClassicMemberSpec],
    image: TopicImage,
    memory: object = None,
    profile: Profile = DEFAULT,
    *,
    client: str = JAVA,
    leader: str = "",
    topic_order: Sequence[str] = (),
) -> LeaderRound:
    """Run one assignment of a classic group of consumers by the assignor of that name, as the leader's client has it.

    ``members`` are in the order of the JoinGroup response, which is that of the group's record. ``memory`` is that of
    the same leader's last round. ``topic_order``: the topics in the order of the leader's metadata, where it is known.

    Raises:
        InputError: the client has no such assignor, or its results depend on chance.
    """
    in_order = leader_order(members) if client in JAVA_CLIENTS else members
    spec = ClassicGroupSpec(in_order, memory, client, leader, topic_order)
    assignments: dict[str, Serialised] = {}
    failure = None
    try:
        work = assign(protocol, spec, image, profile).members
        assignments = {member: serialised(assignment) for member, assignment in work.items()}
    except AssignorError as error:
        failure = error
    return LeaderRound(assignments, failure, remembered(client, protocol, spec))
