"""Groups for the comparison of ``highly_available`` with Kafka Streams: random ones, the same for the same seed."""

import random
import uuid
from typing import Any

from coordinator_core.assignors.inputs import TaskId
from tests.core.assignors.streams.groups import by_subtopology
from tests.core.assignors.streams.kafka_cases import END, UNBOUNDED, Case

OFFSETS = (END, END, END - 5, END - 6, END - 500, END // 2, 50, 0)


def random_case(seed: int) -> Case:
    """A group of a few processes, most of which hold some state; by the seed alone."""
    chance = random.Random(seed)
    subtopologies = _subtopologies(chance)
    tasks = [(each["id"], number) for each in subtopologies for number in range(each["tasks"])]
    stateful = [(each["id"], number) for each in subtopologies if each["stateful"] for number in range(each["tasks"])]
    members = _members(chance)
    zones = chance.randint(1, 3)
    for process in {each["process_id"]: each for each in members}.values():
        tags = {"zone": f"z{chance.randrange(zones)}", "cluster": f"c{chance.randrange(2)}"}
        some = {key: value for key, value in tags.items() if chance.random() < 0.9}
        for each in members:
            if each["process_id"] == process["process_id"]:
                each["tags"] = some
    _give_state(chance, members, tasks, stateful)
    members = [{key: value for key, value in each.items() if value != {}} for each in members]
    return {
        "id": f"random-{seed:04d}",
        "input": {
            "subtopologies": subtopologies,
            "num_standby_replicas": chance.choice([0, 0, 1, 1, 1, 2, 3]),
            "num_warmup_replicas": chance.choice([1, 2, 2, 2, 3, 20]),
            "acceptable_recovery_lag": chance.choice([0, 5, 5, 10_000, 10_000, 10_000, END, UNBOUNDED]),
            "rack_aware_tags": chance.choice([[], [], [], ["zone"], ["zone", "cluster"], ["cluster"]]),
            "members": members,
        },
    }


def _subtopologies(chance: random.Random) -> list[dict[str, Any]]:
    numbers = list(range(13 if chance.random() < 0.06 else chance.randint(1, 4)))
    return [
        {
            "id": str(number),
            "tasks": chance.randint(0, 3 if len(numbers) > 4 else 7),
            "stateful": chance.random() < 0.75,
        }
        for number in numbers
    ]


def _members(chance: random.Random) -> list[dict[str, Any]]:
    processes = [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(chance.randint(1, 7))]
    sizes = [chance.choice([1, 1, 1, 2, 3]) if chance.random() < 0.5 else 1 for _ in processes]
    owners = [process for process, size in zip(processes, sizes, strict=True) for _ in range(size)]
    chance.shuffle(owners)
    return [
        {
            "id": f"m{number}",
            "process_id": process,
            "tags": {},
            **{role: {} for role in ("active", "standby", "warmup", "offsets", "end_offsets")},
        }
        for number, process in enumerate(owners)
    ]


def _give_state(
    chance: random.Random, members: list[dict[str, Any]], tasks: list[TaskId], stateful: list[TaskId]
) -> None:
    """Let some of the members have had the tasks, and report how far their copies are."""
    if chance.random() < 0.08:
        return
    old = members[: chance.randint(1, len(members))]
    known_end, copies = chance.choice([1.0, 1.0, 0.9, 0.5]), chance.choice([0.1, 0.3, 0.6])
    had: dict[tuple[str, str], list[TaskId]] = {}
    for task in tasks:
        owner = chance.choice(old)
        has_end = chance.random() < known_end
        if chance.random() < 0.9:
            had.setdefault((owner["id"], "active"), []).append(task)
        for process in {each["process_id"]: each for each in members}.values():
            if task not in stateful:
                continue
            if process["process_id"] == owner["process_id"]:
                _report_active(chance, owner, task, has_end)
            elif chance.random() < copies:
                role = chance.choice(["standby", "standby", "warmup", "dormant"])
                had.setdefault((process["id"], role), []).append(task)
                process["offsets"]["_".join(map(str, task))] = chance.choice(OFFSETS) + 7 * (chance.random() < 0.03)
                if has_end and role != "dormant" and chance.random() < 0.7:
                    process["end_offsets"]["_".join(map(str, task))] = END
    for (member_id, role), some in had.items():
        if role != "dormant":
            next(each for each in members if each["id"] == member_id)[role] = by_subtopology(some)


def _report_active(chance: random.Random, owner: dict[str, Any], task: TaskId, has_end: bool) -> None:
    """Running; or assigned a moment ago; or restoring still."""
    key, manner = "_".join(map(str, task)), chance.random()
    if manner < 0.8:
        owner["offsets"][key] = END - 300 * (chance.random() < 0.2)
        if has_end:
            owner["end_offsets"][key] = owner["offsets"][key]
    elif manner > 0.9:
        owner["offsets"][key] = chance.choice(OFFSETS)
        if has_end:
            owner["end_offsets"][key] = END
