"""Kafka's ``uniform`` assignor (KIP-848): loads differ by at most one partition, and as few partitions as
possible move.
"""

from __future__ import annotations

from coordinator_core.assignors.inputs import Assignment, GroupSpec, Partitions
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.uniform_3_9 import assign_differing_3_9
from coordinator_core.assignors.server.uniform_differing import assign_differing
from coordinator_core.assignors.server.uniform_equal import assign_equal
from coordinator_core.cluster.image import TopicImage

DIFFERING_REPLACED = (4, 0)
"""The release that brought another builder for groups whose subscriptions differ."""


def assign(spec: GroupSpec, image: TopicImage, profile: Profile) -> Assignment[Partitions]:
    """Spread all subscribed partitions evenly.

    Raises AssignorError (PartitionAssignorException) for a subscribed topic that does not exist.
    """
    if not spec.members:
        return Assignment({})
    if spec.homogeneous:
        return Assignment(assign_equal(spec, image, profile))
    if profile.release < DIFFERING_REPLACED:
        return Assignment(assign_differing_3_9(spec, image))
    return Assignment(assign_differing(spec, image, profile))
