"""How fast the broker's assignors are: ``python -m benchmarks.assignors [--members N --partitions N] [--libs DIR]``.

Prints one JSON line for each assignor and situation (first assignment; one member joins): the median of the running
times in milliseconds, the process's peak memory, and, given the folder of Kafka's jars (``--libs``), the median of
Kafka's own class on the same group in the same run, their ratio, and whether the results are equal, order included.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_core.assignors.coordinator_view import presented_members, presented_sets
from coordinator_core.assignors.inputs import (
    AssignedGroupType,
    Assignment,
    GroupSpec,
    MemberSpec,
    StreamsConfigs,
    StreamsGroupSpec,
    StreamsMemberSpec,
    SubtopologyTasks,
    Tasks,
)
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import Topic, TopicImage

TOPICS = 100
SUBTOPOLOGIES = 10
REPETITIONS = 5
REFERENCE = Path(__file__).with_name("AssignorReference.java")

PARTITION_ASSIGNORS = [
    ("uniform", "equal"),
    ("uniform", "five kinds"),
    ("uniform", "random quarter"),
    ("range", "equal"),
    ("range", "random quarter"),
    ("simple", "equal"),
    ("simple", "five kinds"),
]


class Situation(NamedTuple):
    """One group to assign."""

    assignor: str
    shape: str
    phase: str
    spec: GroupSpec | StreamsGroupSpec


class MeasuredAssignor(NamedTuple):
    """The median time, and what was assigned in the reference's form."""

    ms: float
    result: dict[str, Any]


def uuid(chance: random.Random) -> str:
    return urlsafe_b64encode(chance.randbytes(16)).decode()[:22]


def subscription(shape: str, number: int, topics: list[str], chance: random.Random) -> tuple[str, ...]:
    if shape == "equal":
        return tuple(topics)
    if shape == "five kinds":
        return tuple(topic for at, topic in enumerate(topics) if (at - number) % 5 < 2)
    return tuple(chance.sample(topics, len(topics) // 4))


def partition_groups(members: int, image: TopicImage) -> Iterator[Situation]:
    """Consumer and share groups; the second of each pair starts from what the first one was assigned."""
    chance = random.Random(1)
    topics = list(image.by_id)
    for name, shape in PARTITION_ASSIGNORS:
        group_type = AssignedGroupType.SHARE if name == "simple" else AssignedGroupType.CONSUMER
        ids = presented_members([uuid(chance) for _ in range(members)], {})
        shapes = {member: subscription(shape, number, topics, chance) for number, member in enumerate(ids)}
        first = GroupSpec({member: MemberSpec(shapes[member]) for member in ids}, shape == "equal", type=group_type)
        yield Situation(name, shape, "first", first)
        had = assign(name, first, image).members
        previous = {member: presented_sets(had[member].items(), 17, ids=True) for member in ids}
        newcomer = uuid(chance)
        shapes[newcomer] = subscription(shape, 0, topics, chance)
        joined = {
            member: MemberSpec(shapes[member], previous.get(member, {}))
            for member in presented_members(ids, {newcomer: True})
        }
        yield Situation(name, shape, "join", GroupSpec(joined, shape == "equal", type=group_type))


def streams_groups(members: int, tasks: int) -> Iterator[Situation]:
    """Streams groups with one member a process."""
    chance = random.Random(2)
    subtopologies = [SubtopologyTasks(str(number), tasks // SUBTOPOLOGIES, True) for number in range(SUBTOPOLOGIES)]
    for standbys in (0, 1):
        configs = StreamsConfigs(num_standby_replicas=standbys)
        ids = presented_members([uuid(chance) for _ in range(members)], {})
        first = StreamsGroupSpec(
            {member: StreamsMemberSpec(f"process-{member}") for member in ids}, subtopologies, configs
        )
        yield Situation("sticky", f"{standbys} standby", "first", first)
        had = assign("sticky", first, TopicImage.of(())).members
        joined = {
            member: StreamsMemberSpec(f"process-{member}", had.get(member, Tasks()))
            for member in presented_members(ids, {uuid(chance): True})
        }
        yield Situation("sticky", f"{standbys} standby", "join", StreamsGroupSpec(joined, subtopologies, configs))


def measure(situation: Situation, image: TopicImage) -> MeasuredAssignor:
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        assignment = assign(situation.assignor, situation.spec, image)
        times.append((time.perf_counter() - start) * 1e3)
    return MeasuredAssignor(statistics.median(times), as_result(assignment))


def as_result(assignment: Assignment[Any]) -> dict[str, Any]:
    return {
        member: {"active": work.active, "standby": work.standby}
        if isinstance(work, Tasks)
        else [[topic, list(numbers)] for topic, numbers in work.items()]
        for member, work in assignment.members.items()
    }


def as_input(situation: Situation, image: TopicImage) -> dict[str, Any]:
    """The group as the reference reads it."""
    spec = situation.spec
    if isinstance(spec, StreamsGroupSpec):
        members = [
            {"id": member, "process": had.process_id, "active": had.previous.active, "standby": had.previous.standby}
            for member, had in spec.members.items()
        ]
        subtopologies = [{"id": each.id, "tasks": each.tasks, "stateful": True} for each in spec.subtopologies]
        return {"subtopologies": subtopologies, "standbys": spec.configs.num_standby_replicas, "members": members}
    return {
        "assignor": situation.assignor,
        "homogeneous": spec.homogeneous,
        "topics": {topic.id: topic.partitions for topic in image.by_id.values()},
        "members": [
            {"id": member, "topics": had.topics, "previous": [[t, list(p)] for t, p in had.previous.items()]}
            for member, had in spec.members.items()
        ],
    }


def reference(situation: Situation, image: TopicImage, libs: Path) -> dict[str, Any]:
    """What Kafka's own class does with the same group."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "group.jsonl")
        file.write_text(json.dumps(as_input(situation, image)) + "\n", encoding="utf-8")
        command = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{libs}/*", str(REFERENCE)]
        done = subprocess.run([*command, str(file), "15"], check=True, capture_output=True, encoding="utf-8")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--members", type=int, default=10_000)
    options.add_argument("--partitions", type=int, default=100_000)
    options.add_argument("--libs", type=Path)
    given = options.parse_args()
    image = TopicImage.of(
        Topic(f"topic-{number}", uuid(random.Random(number)), given.partitions // TOPICS) for number in range(TOPICS)
    )
    situations = [partition_groups(given.members, image), streams_groups(given.members, given.partitions)]
    for situation in (each for group in situations for each in group):
        measured = measure(situation, image)
        row: dict[str, Any] = {
            "assignor": situation.assignor,
            "shape": situation.shape,
            "phase": situation.phase,
            "ms": round(measured.ms, 1),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        if given.libs:
            kafka = reference(situation, image, given.libs)
            row["kafka_ms"] = round(kafka["ms"], 1)
            row["ratio"] = round(measured.ms / kafka["ms"], 2)
            row["equal"] = kafka.get("assignment") == measured.result
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
