"""Kafka's ``simple`` assignor for share groups (KIP-932): enough members to each partition to busy them all."""

from __future__ import annotations

from coordinator_core.assignors.inputs import Assignment, GroupSpec, Partitions
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.simple_differing import assign_differing
from coordinator_core.assignors.server.simple_equal import assign_equal
from coordinator_core.cluster.image import TopicImage


def assign(spec: GroupSpec, image: TopicImage, profile: Profile) -> Assignment[Partitions]:
    """Share the assignable partitions of subscribed topics among the members.

    Raises AssignorError: PartitionAssignorException for a subscribed topic that does not exist, NoSuchElementException
    where Kafka's class fails (see ``sharing``).
    """
    if not spec.members:
        return Assignment({})
    builder = assign_equal if spec.homogeneous else assign_differing
    return Assignment(builder(spec, image, profile))
