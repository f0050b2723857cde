"""One assignment by the leader of a classic group, from the members that the broker shows it to the members' blobs.

The results are those of Kafka's Java client. librdkafka and kafka-python have assignors with the same names: their
range and round robin give the same sets of partitions, but write topics and partitions in other orders; their sticky
assignors follow the general algorithm of older Java clients, and can differ where several results are equally good. So
their assignments have to be compared as sets (``same_sets``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator_core.assignors.client.leader import Serialised, leader_order, serialised
from coordinator_core.assignors.client.sticky import MEMBER_DATA, remembered
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
    memory: Any = None,
    profile: Profile = DEFAULT,
) -> LeaderRound:
    """Run one assignment of a classic group of consumers by the assignor of that name.

    ``members`` are in the order of the JoinGroup response, which is that of the group's record. ``memory`` is that of
    the same leader's last round.

    Raises:
        InputError: the assignor is not one of Kafka's.
    """
    spec = ClassicGroupSpec(leader_order(members), memory)
    assignments: dict[str, Serialised] = {}
    failure = None
    try:
        work = assign(protocol, spec, image, profile).members
        assignments = {member: serialised(assignment) for member, assignment in work.items()}
    except AssignorError as error:
        failure = error
    return LeaderRound(assignments, failure, remembered(protocol, spec) if protocol in MEMBER_DATA else None)
