"""What the leader of a classic group makes of the members that the broker shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from coordinator_core.assignors.client.view import TopicPartition
from coordinator_core.assignors.java_hash import STRING
from coordinator_core.assignors.java_order import hash_order

M = TypeVar("M")


def leader_order(joined: Mapping[str, M]) -> dict[str, M]:
    """Members of a JoinGroup response in the order in which a Java leader iterates over them."""
    return {member: joined[member] for member in hash_order(STRING, list(joined))}


def serialised(work: Sequence[TopicPartition]) -> dict[str, list[int]]:
    """A member's partitions as its assignment blob holds them: topics as they first occur, partitions in order."""
    topics: dict[str, list[int]] = {}
    for topic, number in work:
        topics.setdefault(topic, []).append(number)
    return topics
