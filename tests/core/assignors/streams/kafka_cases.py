"""Cases of ``highly_available`` with what Kafka Streams' own assignor gives to each process, and how they compare.

A case: ``id``, ``input`` (subtopologies, configurations, members with what they had and report), ``expected`` as
``HighlyAvailableReference`` writes it (``processes``: active, standby and warm-up tasks by process id, and those of the
standby tasks that are ``waiting`` where the active task is to be in the end; ``followup``: whether the client would
compute another assignment after a while). A case that KIP-1071 and Kafka's client read in different ways is there
twice: as it is, and in other numbers that Kafka's client reads as KIP-1071 reads the first ones.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from coordinator_core.assignors.inputs import (
    Assignment,
    StreamsConfigs,
    StreamsGroupSpec,
    StreamsMemberSpec,
    SubtopologyTasks,
    TaskId,
    Tasks,
)
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import TopicImage

ROLES = ("active", "standby", "warmup")
DOCUMENTED = ", documented"
"""Ends the id of a case that gives Kafka's client what KIP-1071 reads in another case."""
END = 100_000
UNBOUNDED = 2**63 - 1
BEYOND_ALL = 2**40
"""An acceptable lag above all real ones that is not the largest number there is."""

Case = dict[str, Any]
ByProcess = dict[str, dict[str, set[TaskId]]]
"""Process id -> role -> tasks."""


def spec_of(given: Mapping[str, Any]) -> StreamsGroupSpec:
    """The ``input`` of a case as the assignor takes it."""
    return StreamsGroupSpec(
        {member["id"]: _member(member) for member in given["members"]},
        [SubtopologyTasks(each["id"], each["tasks"], each["stateful"]) for each in given["subtopologies"]],
        StreamsConfigs(
            given["num_standby_replicas"],
            given["num_warmup_replicas"],
            given["acceptable_recovery_lag"],
            given["rack_aware_tags"],
        ),
    )


def _member(member: Mapping[str, Any]) -> StreamsMemberSpec:
    return StreamsMemberSpec(
        member["process_id"],
        Tasks(*(member.get(role, {}) for role in ROLES)),
        client_tags=member.get("tags", {}),
        task_offsets={task_id(key): value for key, value in member.get("offsets", {}).items()},
        task_end_offsets={task_id(key): value for key, value in member.get("end_offsets", {}).items()},
    )


def task_id(text: str) -> TaskId:
    """``0_3`` as subtopology id and partition."""
    subtopology, partition = text.rsplit("_", 1)
    return subtopology, int(partition)


def recorded(expected: Mapping[str, Any]) -> ByProcess:
    """The ``processes`` of a case as sets."""
    return {
        process: {role: tasks(roles.get(role, {})) for role in (*ROLES, "waiting")}
        for process, roles in expected["processes"].items()
    }


def by_process(spec: StreamsGroupSpec, assignment: Assignment[Tasks]) -> ByProcess:
    """What was assigned to the members of each process together."""
    found: ByProcess = {had.process_id: {role: set() for role in ROLES} for had in spec.members.values()}
    for member, given in assignment.members.items():
        for role in ROLES:
            found[spec.members[member].process_id][role] |= tasks(getattr(given, role))
    return found


def assigned(given: Mapping[str, Any]) -> ByProcess:
    """What ``highly_available`` gives to each process, for the ``input`` of a case."""
    spec = spec_of(given)
    return by_process(spec, assign("highly_available", spec, TopicImage.of(())))


def tasks(role: Mapping[str, Any]) -> set[TaskId]:
    """The tasks of one role."""
    return {(subtopology, number) for subtopology, numbers in role.items() for number in numbers}


def documented(given: Mapping[str, Any]) -> dict[str, Any]:
    """The ``input`` in numbers that Kafka's client reads as KIP-1071 reads the given ones.

    An offset beyond the end that is known is at the end. Without a known end nobody is caught up, whatever lag is
    acceptable.
    """
    ends: dict[str, int] = {}
    for member in given["members"]:
        for key, end in member.get("end_offsets", {}).items():
            ends[key] = max(end, ends.get(key, end))
    members = [_up_to_ends(member, ends) for member in given["members"]]
    stateful = {
        f"{each['id']}_{number}"
        for each in given["subtopologies"]
        if each["stateful"]
        for number in range(each["tasks"])
    }
    lag = given["acceptable_recovery_lag"]
    bounded = BEYOND_ALL if lag == UNBOUNDED and stateful - ends.keys() else lag
    return {**given, "members": members, "acceptable_recovery_lag": bounded}


def _up_to_ends(member: Mapping[str, Any], ends: Mapping[str, int]) -> dict[str, Any]:
    offsets = {key: min(offset, ends.get(key, offset)) for key, offset in member.get("offsets", {}).items()}
    return {**member, "offsets": offsets} if offsets else dict(member)


def differences(cases: Iterable[Case]) -> dict[str, list[str]]:
    """By case, where ``highly_available`` departs from Kafka's client without a reason in KIP-1071.

    A case that is there twice is compared with the one in other numbers.
    """
    by_id = {case["id"]: case for case in cases}
    return {
        case_id: unexplained(case["input"], by_id.get(case_id + DOCUMENTED, case)["expected"])
        for case_id, case in by_id.items()
    }


def unexplained(given: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Where the result departs from Kafka's, except that waiting standby tasks are warm-ups while some are free."""
    ours, kafka = assigned(given), recorded(expected)
    found = []
    for process, roles in kafka.items():
        for name, some in (("active", ["active"]), ("copies", ["standby", "warmup"])):
            if union(ours[process], some) != union(roles, some):
                found.append(f"{name} of {process}: {sorted(union(ours[process], some) ^ union(roles, some))}")
    made = {(process, task) for process, roles in ours.items() for task in roles["warmup"] - kafka[process]["warmup"]}
    waiting = {(process, task) for process, roles in kafka.items() for task in roles["waiting"]}
    free = given["num_warmup_replicas"] - sum(len(roles["warmup"]) for roles in kafka.values())
    if any(roles["warmup"] - ours[process]["warmup"] for process, roles in kafka.items()):
        found.append("a warm-up of Kafka's is not one")
    if not made <= waiting or len(made) != min(len(waiting), free):
        found.append(f"{len(made)} more warm-ups, {len(waiting)} standby tasks waiting, {free} free")
    return found


def union(roles: Mapping[str, set[TaskId]], names: Iterable[str]) -> set[TaskId]:
    """The tasks of several roles."""
    return {task for name in names for task in roles[name]}
