"""Every assignor by type of group and by the name that a group's records carry."""

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

from coordinator_core.assignors.client.clients import CLIENTS, client_assignor
from coordinator_core.assignors.connect.eager_and_incremental import assign_eager, assign_incremental
from coordinator_core.assignors.inputs import (
    AssignedGroupType,
    Assignment,
    ClassicGroupSpec,
    GroupSpecs,
    StreamsGroupSpec,
    Tasks,
)
from coordinator_core.assignors.profiles import DEFAULT, Profile
from coordinator_core.assignors.server import range as server_range
from coordinator_core.assignors.server import simple, uniform
from coordinator_core.assignors.streams import highly_available
from coordinator_core.assignors.streams import sticky as streams_sticky
from coordinator_core.assignors.streams.topology import retain_only
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import InputError

Assignor = Callable[[Any, TopicImage, Profile], Assignment[Any]]
"""Spec of the group type it serves, topics, profile -> assignment; raises AssignorError where Kafka throws."""

Assign = Callable[[str, GroupSpecs, TopicImage, Profile], Assignment[Any]]
"""The signature of ``assign``: all assignors, chosen by name."""


def _as_client(spec: ClassicGroupSpec, image: TopicImage, profile: Profile, *, name: str) -> Assignment[Any]:
    """Assign as the client that leads the group does by its assignor of that name."""
    return client_assignor(spec.client, name)(spec, image)


ASSIGNORS: dict[tuple[AssignedGroupType, str], Assignor] = {
    **{(AssignedGroupType.CLASSIC, name): partial(_as_client, name=name) for name in chain(*CLIENTS.values())},
    (AssignedGroupType.CONNECT, "default"): assign_eager,
    (AssignedGroupType.CONNECT, "compatible"): assign_incremental,
    (AssignedGroupType.CONNECT, "sessioned"): assign_incremental,
    (AssignedGroupType.CONSUMER, "uniform"): uniform.assign,
    (AssignedGroupType.CONSUMER, "range"): server_range.assign,
    (AssignedGroupType.SHARE, "simple"): simple.assign,
    (AssignedGroupType.STREAMS, "sticky"): streams_sticky.assign,
    (AssignedGroupType.STREAMS, "highly_available"): highly_available.assign,
}


def assignor(group_type: AssignedGroupType, name: str) -> Assignor:
    """Return the assignor of this name for groups of this type; raises InputError if there is none."""
    try:
        return ASSIGNORS[group_type, name]
    except KeyError:
        known = ", ".join(sorted(known for type_, known in ASSIGNORS if type_ is group_type))
        raise InputError(f"no assignor {name!r} for {group_type} groups; there are {known or 'none'}") from None


def is_reproduced(group_type: AssignedGroupType, name: str) -> bool:
    """Return whether there is an assignor of this name for groups of this type."""
    return (group_type, name) in ASSIGNORS


def assign(name: str, spec: GroupSpecs, image: TopicImage, profile: Profile = DEFAULT) -> Assignment[Any]:
    """Assign the group's topics or tasks to its members.

    Stale members of a streams group get no new tasks, whatever the assignor. Raises InputError for an unknown assignor
    and AssignorError where Kafka's own class throws.
    """
    assignment = assignor(spec.type, name)(spec, image, profile)
    if isinstance(spec, StreamsGroupSpec) and spec.stale:
        before = {member_id: member.previous for member_id, member in spec.members.items()}
        processes = {member_id: member.process_id for member_id, member in spec.members.items()}
        targets = {member_id: assignment.members.get(member_id, Tasks()) for member_id in spec.members}
        return Assignment(retain_only(targets, spec.stale, before, processes))
    return assignment
