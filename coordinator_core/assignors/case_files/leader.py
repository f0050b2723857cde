"""Cases of groups whose leader assigns, of consumers and of Connect: each step is one round, assigned by the member
that leads the group in it.
"""

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby

from coordinator_core.assignors.case_files.case_forms import (
    CaseMember,
    CaseWorker,
    ClassicCase,
    ConnectCase,
    LeaderTopic,
)
from coordinator_core.assignors.client.clients import CLIENTS, JAVA, JAVA_CLIENTS, remembered
from coordinator_core.assignors.client.leader_view import leader_order
from coordinator_core.assignors.connect.work import LeaderAssignment
from coordinator_core.assignors.inputs import (
    Assignment,
    ClassicGroupSpec,
    ClassicMemberSpec,
    ConnectGroupSpec,
    ConnectorTask,
    WorkerSpec,
)
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.registry import Assign
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.errors import AssignorError, InputError
from coordinator_core.java.hash_codes import utf16

NAMES = tuple(dict.fromkeys(chain(*CLIENTS.values())))
"""The names of the assignors of all clients."""


def run(name: str, case: ClassicCase, profile: Profile, assign: Assign) -> dict[str, object]:
    """Return the rounds of a case of this assignor. Its memory lives while its member is in the group."""
    client = case.get("client", JAVA)
    broker_racks = {broker["id"]: broker.get("rack") for broker in case["brokers"]}
    memories: dict[str, object] = {}
    results: list[dict[str, object]] = []
    for step in case["steps"]:
        joined = _members(step["members"])
        members = leader_order(joined) if client in JAVA_CLIENTS else joined
        memories = {member: memory for member, memory in memories.items() if member in members}
        leader = step["leader"]
        order = [topic["name"] for topic in step["topics"]]
        spec = ClassicGroupSpec(members, memories.get(leader), client, leader, order)
        try:
            assigned = assign(name, spec, _image(step["topics"], broker_racks), profile)
            results.append({"assignment": {member: _runs(work) for member, work in assigned.members.items()}})
        except AssignorError as error:
            results.append({"error": error.kind, "message": error.message})
        # Also after an error: the assignor of this member was called all the same.
        memories[leader] = remembered(client, name, spec)
    return {"steps": results}


def _members(members: Iterable[CaseMember]) -> dict[str, ClassicMemberSpec]:
    specs: dict[str, ClassicMemberSpec] = {}
    for member in members:
        if member["id"] in specs:
            raise InputError(f"member {member['id']!r} is in the group twice")
        owned, user_data = member.get("owned"), member.get("user_data")
        specs[member["id"]] = ClassicMemberSpec(
            topics=member["topics"],
            owned=None if owned is None else [(topic, number) for topic, numbers in owned for number in numbers],
            generation=member.get("generation"),
            user_data=None if user_data is None else b64decode(user_data),
            instance_id=member.get("instance"),
            rack_id=member.get("rack"),
        )
    return specs


def _image(topics: Iterable[LeaderTopic], broker_racks: Mapping[int, str | None]) -> TopicImage:
    image = []
    for topic in topics:
        if topic["partitions"] < 0:
            raise InputError(f"topic {topic['name']!r} has {topic['partitions']} partitions")
        replicas = tuple(map(tuple, topic.get("replicas", ())))
        racks = tuple(
            tuple(rack for rack in map(broker_racks.get, brokers) if rack is not None) for brokers in replicas
        )
        image.append(Topic(topic["name"], "", topic["partitions"], racks, replicas))
    return TopicImage.of(image, broker_racks)


def _runs(work: Sequence[tuple[str, int]]) -> list[list[object]]:
    """Partitions as runs of one topic."""
    return [[topic, [number for _, number in run]] for topic, run in groupby(work, key=lambda partition: partition[0])]


PROTOCOLS = {"EAGER": "default", "COMPATIBLE": "compatible", "SESSIONED": "sessioned"}
"""Names of Connect's protocols in cases to those in group records."""

MOST_DIGITS = 10
"""Digits of a task's number, which is a 32-bit integer."""


def run_connect(case: ConnectCase, profile: Profile, assign: Assign) -> dict[str, object]:
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
        steps.append(_worker_step(assigned))
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


def _worker_step(assigned: Assignment[LeaderAssignment]) -> dict[str, object]:
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
