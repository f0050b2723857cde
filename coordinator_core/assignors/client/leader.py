"""The members of a classic group in the order in which its Java leader sees them, and assignments as in their blobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from coordinator_core.assignors.client.leader_view import TopicPartition
from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.java.hash_codes import STRING
from coordinator_core.java.order import hash_order
from coordinator_core.record_fields.embedded import ConsumerProtocolAssignment, ConsumerProtocolSubscription

M = TypeVar("M")

ASSIGNS_ALL = frozenset(("range", "roundrobin", "sticky"))
"""Assignors that assign each partition of a subscribed topic in every rebalance."""

Serialised = Mapping[str, Sequence[int]]
"""A member's partitions as its assignment blob holds them: topics as they first occur, partitions in order."""


def leader_order(joined: Mapping[str, M]) -> dict[str, M]:
    """Return members of a JoinGroup response in the order in which a Java leader iterates over them."""
    return {member: joined[member] for member in hash_order(STRING, list(joined))}


def subscribed_member(subscription: ConsumerProtocolSubscription, instance_id: str | None = None) -> ClassicMemberSpec:
    """Return a member from the decoded ``ConsumerProtocolSubscription`` in its group's record."""
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
        rack_id=subscription.get("rackId"),
    )


def serialised(work: Sequence[TopicPartition]) -> Serialised:
    """Return partitions by topic in the order of the leader's list, as its member will read them."""
    topics: dict[str, list[int]] = {}
    for topic, number in work:
        topics.setdefault(topic, []).append(number)
    return topics


def recorded(assignment: ConsumerProtocolAssignment) -> Serialised:
    """Return the decoded ``ConsumerProtocolAssignment`` of a member, in the same form (some clients repeat topics)."""
    return serialised(
        [(topic["topic"], number) for topic in assignment["assignedPartitions"] for number in topic["partitions"]]
    )


def same_sets(one: Serialised, other: Serialised) -> bool:
    """Whether both hold the same partitions, each once."""
    return {(topic, *sorted(numbers)) for topic, numbers in one.items() if numbers} == {
        (topic, *sorted(numbers)) for topic, numbers in other.items() if numbers
    }
