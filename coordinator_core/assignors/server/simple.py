"""Kafka's ``simple`` assignor for share groups (KIP-932): each partition gets enough members that all members
have work.
"""

from __future__ import annotations

from coordinator_core.assignors.inputs import Assignment, GroupSpec, Partitions
from coordinator_core.assignors.profiles import Profile, require_reproduced
from coordinator_core.assignors.server.simple_differing import assign_differing
from coordinator_core.assignors.server.simple_equal import assign_equal
from coordinator_core.cluster.image import TopicImage


def assign(spec: GroupSpec, image: TopicImage, profile: Profile) -> Assignment[Partitions]:
    """Share the assignable partitions of subscribed topics among the members.

    Raises:
        AssignorError: a subscribed topic does not exist (PartitionAssignorException), or Kafka's class fails too
            (NoSuchElementException, see ``quotas``).
        InputError: the release has another algorithm.
    """
    require_reproduced(profile, "simple")
    if not spec.members:
        return Assignment({})
    builder = assign_equal if spec.homogeneous else assign_differing
    return Assignment(builder(spec, image, profile))
