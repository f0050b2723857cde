"""Cases of Connect's assignors: each step is one round, assigned by the worker that leads the group in it."""

from __future__ import annotations

from collections.abc import Iterable

from coordinator_core.assignors.case_files.case_forms import CaseWorker, ConnectCase
from coordinator_core.assignors.client.leader_view import leader_order
from coordinator_core.assignors.connect.work import LeaderAssignment
from coordinator_core.assignors.inputs import Assignment, ConnectGroupSpec, ConnectorTask, WorkerSpec
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.registry import Assign
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError, InputError
from coordinator_core.java.hash_codes import utf16

PROTOCOLS = {"EAGER": "default", "COMPATIBLE": "compatible", "SESSIONED": "sessioned"}
"""Names of Connect's protocols in cases to those in group records."""

MOST_DIGITS = 10
"""Digits of a task's number, which is a 32-bit integer."""


def run(case: ConnectCase, profile: Profile, assign: Assign) -> dict[str, object]:
    """Return the rounds of one case. A worker's assignor is kept as long as the worker is in the group."""
    protocol = PROTOCOLS.get(case["protocol"])
    if protocol is None:
        raise InputError(f"no Connect protocol {case['protocol']!r}; there are {', '.join(PROTOCOLS)}")
    memories: dict[str, object] = {}
    steps: list[dict[str, object]] = []
    for step in case["steps"]:
        members = leader_order(_workers(step["members"]))
        leader = step["leader"]
        memories = {worker: memory for worker, memory in memories.items() if worker in members}
        spec = ConnectGroupSpec(
            members=members,
            leader=leader,
            connectors=step["config"],
            config_offset=step["config_offset"],
            generation=step["generation"],
            last_completed_generation=step.get("last_completed_generation", -1),
            now_ms=step["now_ms"],
            max_delay_ms=case["max_delay"],
            memory=memories.get(leader),
        )
        try:
            assigned = assign(protocol, spec, TopicImage.of(()), profile)
        except AssignorError as error:
            steps.append({"error": error.kind, "message": error.message})
            continue
        memories[leader] = assigned.memory
        steps.append(_step(assigned))
    return {"steps": steps}


def _workers(members: Iterable[CaseWorker]) -> dict[str, WorkerSpec]:
    workers: dict[str, WorkerSpec] = {}
    for member in members:
        if member["id"] in workers:
            raise InputError(f"worker {member['id']!r} is in the group twice")
        workers[member["id"]] = WorkerSpec(
            member["url"], member["offset"], member.get("connectors", ()), [*map(_task, member.get("tasks", ()))]
        )
    return workers


def _task(text: str) -> ConnectorTask:
    connector, dash, number = text.rpartition("-")
    if not dash or not number.isdecimal() or len(number) > MOST_DIGITS:
        raise InputError(f"{text!r} is not a task: use connector-number")
    return connector, int(number)


def _step(assigned: Assignment[LeaderAssignment]) -> dict[str, object]:
    workers = {}
    for worker in sorted(assigned.members, key=utf16):
        given = assigned.members[worker]
        workers[worker] = {"connectors": list(given.connectors), "tasks": _names(given.tasks)}
        if given.revoked_connectors:
            workers[worker]["revoked_connectors"] = list(given.revoked_connectors)
        if given.revoked_tasks:
            workers[worker]["revoked_tasks"] = _names(given.revoked_tasks)
    return {"assignment": workers, "delay": given.delay_ms, "error_code": given.error, "offset": given.config_offset}


def _names(tasks: Iterable[ConnectorTask]) -> list[str]:
    return [f"{connector}-{number}" for connector, number in tasks]
