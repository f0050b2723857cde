"""What the leader of a classic group makes of the members that the broker shows it, from and to their blobs.

The results are those of Kafka's Java client. librdkafka and kafka-python have assignors of the same names: their range
and round robin give the same sets of partitions, but write topics and partitions in orders of their own; their sticky
assignors follow the general algorithm of older Java clients, and can differ where several results are as good. So
their assignments are to be compared as sets (``same_sets``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from coordinator_core.assignors.client.leader_view import TopicPartition
from coordinator_core.assignors.client.sticky import MEMBER_DATA, remembered
from coordinator_core.assignors.inputs import ClassicGroupSpec, ClassicMemberSpec
from coordinator_core.assignors.java_hash import STRING
from coordinator_core.assignors.java_order import hash_order
from coordinator_core.assignors.profiles import DEFAULT, Profile
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from coordinator_core.records import Fields

M = TypeVar("M")

Serialised = Mapping[str, Sequence[int]]
"""A member's partitions as its assignment blob holds them: topics as they first occur, partitions in order."""


@dataclass(frozen=True, slots=True)
class LeaderRound:
    """What the leader's assignor returned: assignments by member, or the error that it threw, and what it keeps."""

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
    """One assignment of a classic group of consumers by the assignor of that name.

    ``members`` are in the order of the JoinGroup response, which is that of the group's record. ``memory`` is that of
    the same leader's last round. Raises InputError for an assignor that is not Kafka's.
    """
    spec = ClassicGroupSpec(leader_order(members), memory)
    assignments: dict[str, Serialised] = {}
    failure = None
    try:
        work = assign(protocol, spec, image, profile).members
        assignments = {member: serialised(mine) for member, mine in work.items()}
    except AssignorError as error:
        failure = error
    return LeaderRound(assignments, failure, remembered(protocol, spec) if protocol in MEMBER_DATA else None)


def leader_order(joined: Mapping[str, M]) -> dict[str, M]:
    """Members of a JoinGroup response in the order in which a Java leader iterates over them."""
    return {member: joined[member] for member in hash_order(STRING, list(joined))}


def subscribed_member(subscription: Fields, instance_id: str | None = None) -> ClassicMemberSpec:
    """A member by the decoded ``ConsumerProtocolSubscription`` in its group's record."""
    generation = subscription.get("generationId", -1)
    return ClassicMemberSpec(
        topics=subscription["topics"],
        owned=[
            (topic["topic"], number)
            for topic in subscription.get("ownedPartitions") or ()
            for number in topic["partitions"]
        ],
        generation=generation if generation >= 0 else None,
        user_data=subscription.get("userData"),
        instance_id=instance_id,
        rack_id=subscription.get("rackId") or None,
    )


def serialised(work: Sequence[TopicPartition]) -> Serialised:
    """Partitions in the order of the leader's list, as its member will read them."""
    topics: dict[str, list[int]] = {}
    for topic, number in work:
        topics.setdefault(topic, []).append(number)
    return topics


def recorded(assignment: Fields) -> Serialised:
    """The decoded ``ConsumerProtocolAssignment`` of a member, in the same form (some clients repeat topics)."""
    return serialised(
        [(topic["topic"], number) for topic in assignment["assignedPartitions"] for number in topic["partitions"]]
    )


def same_sets(ours: Serialised, theirs: Serialised) -> bool:
    """Whether both hold the same partitions, each once."""
    return {(topic, *sorted(numbers)) for topic, numbers in ours.items() if numbers} == {
        (topic, *sorted(numbers)) for topic, numbers in theirs.items() if numbers
    }
