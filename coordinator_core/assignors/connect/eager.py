"""Connect's eager assignor: connectors, then tasks, one each in turn.

Source: Kafka 4.3.1 ``EagerAssignor``, protocol ``default``.
"""

from __future__ import annotations

from itertools import cycle

from coordinator_core.assignors.connect.work import (
    CONFIG_MISMATCH,
    ConnectorsAndTasks,
    LeaderAssignment,
    Share,
    config_offset,
    configured,
    written,
)
from coordinator_core.assignors.inputs import Assignment, ConnectGroupSpec
from coordinator_core.assignors.profiles import Profile
from coordinator_core.cluster.image import TopicImage
from coordinator_core.java.hash_codes import utf16


def assign_eager(spec: ConnectGroupSpec, image: TopicImage, profile: Profile) -> Assignment[LeaderAssignment]:
    """Assign a Connect group eagerly; topics are not used."""
    if spec.config_offset < config_offset(spec):
        return Assignment(written(spec, profile.jdk, {}, error=CONFIG_MISMATCH))
    shares = {worker: Share(ConnectorsAndTasks.of(), ConnectorsAndTasks.of()) for worker in spec.members}
    turns = cycle(sorted(spec.members, key=utf16))
    everything = configured(spec)
    for connector in everything.connectors:
        shares[next(turns)].start.connectors[connector] = None
    for task in everything.tasks:
        shares[next(turns)].start.tasks[task] = None
    return Assignment(written(spec, profile.jdk, shares))
