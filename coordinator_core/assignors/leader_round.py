"""One assignment by the leader of a classic group, or by the worker that computes the target of a Connect group.

The lists of Kafka's own client are in the order of its blobs. Other clients write topics and partitions in other
orders, some in random ones: their assignments have to be compared as sets (``same_sets``).

In a Connect group on KIP-848 the target says what each worker is to run in the end. The incremental assignor stops work
in one round and assigns it again in the next one; the coordinator takes care of that order itself. So the worker that
computes the target runs rounds on their own results until nothing is left to be stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coordinator_core.assignors.client.clients import JAVA, JAVA_CLIENTS, remembered
from coordinator_core.assignors.client.leader_view import Serialised, leader_order, serialised
from coordinator_core.assignors.connect.work import (
    NO_ERROR,
    ConnectorOrTask,
    ConnectorsAndTasks,
    LeaderAssignment,
    configured,
    target,
)
from coordinator_core.assignors.inputs import Assignment, ClassicGroupSpec, ClassicMemberSpec, ConnectGroupSpec
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


@dataclass(frozen=True, slots=True)
class DeclaredTarget:
    """What each worker is to run. ``waiting`` is work that no worker gets until ``delay_ms`` have passed (0: no delay).

    ``error`` is that of the assignor; the target is then what the workers already run. ``memory`` is passed to the same
    worker's next computation, whose ``last_completed_generation`` is ``generation``.
    """

    works: Mapping[str, ConnectorsAndTasks]
    waiting: tuple[ConnectorOrTask, ...]
    delay_ms: int
    error: int
    generation: int
    memory: Any


def declare_target(protocol: str, spec: ConnectGroupSpec, profile: Profile = DEFAULT) -> DeclaredTarget:
    """Compute a target from what the workers run now. Raises what the assignor of that protocol raises."""
    while True:
        round_: Assignment[LeaderAssignment] = assign(protocol, spec, TopicImage.of(()), profile)
        works = target(spec.members, round_.members)
        of_leader = round_.members[spec.leader]
        # What was stopped is assigned in the next round only: until none stops anything, the target is not whole.
        if of_leader.error != NO_ERROR or not any(
            assignment.revoked_connectors or assignment.revoked_tasks for assignment in round_.members.values()
        ):
            break
        spec = replace(
            spec,
            members={
                worker: replace(spec.members[worker], connectors=list(work.connectors), tasks=list(work.tasks))
                for worker, work in works.items()
            },
            generation=spec.generation + 1,
            last_completed_generation=spec.generation,
            memory=round_.memory,
        )
    assigned = {unit for work in works.values() for unit in work.units()}
    waiting = tuple(unit for unit in configured(spec).units() if unit not in assigned) if of_leader.delay_ms else ()
    return DeclaredTarget(works, waiting, of_leader.delay_ms, of_leader.error, spec.generation, round_.memory)
