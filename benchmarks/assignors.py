"""How fast the assignors are: ``python -m benchmarks.assignors [--members N --partitions N] [--libs DIR] [NAME...]``.

Prints one JSON line for each assignor and situation (first assignment; one member joins): the median processor time of
the thread in milliseconds, the process's peak memory, and, given the folder of Kafka's jars (``--libs``), the same of
Kafka's own class on the same group, warm, in one Java process; their ratio, and whether the results are equal, order
included. NAME is an assignor, that of classic groups with ``client-`` before it; without one, all are measured.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import tempfile
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_core.assignors.client.leader_view import leader_order
from coordinator_core.assignors.coordinator_view import presented_members, presented_sets
from coordinator_core.assignors.inputs import (
    AssignedGroupType,
    Assignment,
    ClassicGroupSpec,
    ClassicMemberSpec,
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
from coordinator_core.wire.embedded import encode_blob

TOPICS = 100
SUBTOPOLOGIES = 10
REPETITIONS, JAVA_REPETITIONS = 7, 15
MOST_MS = 10_000
CLIENT = "client-"
REFERENCE = Path(__file__).with_name("AssignorReference.java")

CLIENT_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
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
    spec: GroupSpec | StreamsGroupSpec | ClassicGroupSpec


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


def classic_groups(members: int, image: TopicImage) -> Iterator[Situation]:
    """Classic groups without racks; the second of each pair has said what it was assigned by the first."""
    names = [topic.name for topic in image.by_id.values()]
    for name in CLIENT_ASSIGNORS:
        for shape, share in (("equal", 1), ("random quarter", 4)):
            chance = random.Random(3)
            fresh = {
                f"consumer-{number}-{uuid(chance)}": ClassicMemberSpec(
                    sorted(chance.sample(names, len(names) // share))
                )
                for number in range(members + 1)
            }
            newcomer, subscription = fresh.popitem()
            first = ClassicGroupSpec(leader_order(fresh))
            yield Situation(CLIENT + name, shape, "first", first)
            work = assign(name, first, image).members
            again = {member: joining_again(fresh[member], work[member]) for member in fresh}
            joined = ClassicGroupSpec(leader_order(again | {newcomer: subscription}))
            yield Situation(CLIENT + name, shape, "join", joined)


def joining_again(member: ClassicMemberSpec, owned: Sequence[tuple[str, int]]) -> ClassicMemberSpec:
    """The member with what it owns, as both sticky assignors read it."""
    topics: dict[str, list[int]] = {}
    for topic, number in owned:
        topics.setdefault(topic, []).append(number)
    previous = [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()]
    user_data = encode_blob("StickyAssignorUserData", 1, {"previousAssignment": previous, "generation": 1})
    return ClassicMemberSpec(member.topics, owned=owned, generation=1, user_data=user_data)


def measure(situation: Situation, image: TopicImage) -> MeasuredAssignor:
    times: list[float] = []
    while len(times) <= REPETITIONS and sum(times) < MOST_MS:
        start = time.thread_time()
        assignment = assign(situation.assignor.removeprefix(CLIENT), situation.spec, image)
        times.append((time.thread_time() - start) * 1e3)
    return MeasuredAssignor(statistics.median(times[1:] or times), as_result(assignment))


def as_result(assignment: Assignment[Any]) -> dict[str, Any]:
    return {
        member: {"active": work.active, "standby": work.standby}
        if isinstance(work, Tasks)
        else [[topic, list(numbers)] for topic, numbers in work.items()]
        if isinstance(work, Mapping)
        else [list(each) for each in work]
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
    if isinstance(spec, ClassicGroupSpec):
        return {
            "assignor": situation.assignor.removeprefix(CLIENT),
            "counts": {topic.name: topic.partitions for topic in image.by_id.values()},
            "members": [
                {
                    "id": member,
                    "topics": had.topics,
                    "owned": had.owned or [],
                    "generation": -1 if had.generation is None else had.generation,
                    "user_data": None if had.user_data is None else b64encode(had.user_data).decode(),
                }
                for member, had in spec.members.items()
            ],
        }
    return {
        "assignor": situation.assignor,
        "homogeneous": spec.homogeneous,
        "topics": {topic.id: topic.partitions for topic in image.by_id.values()},
        "members": [
            {"id": member, "topics": had.topics, "previous": [[t, list(p)] for t, p in had.previous.items()]}
            for member, had in spec.members.items()
        ],
    }


def references(situations: Sequence[Situation], image: TopicImage, libs: Path) -> Iterator[dict[str, Any]]:
    """Yield what Kafka's own class does with each of these groups, all in one Java process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "groups.jsonl")
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(as_input(each, image)) + "\n" for each in situations)
        command = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{libs}/*", str(REFERENCE)]
        command += [str(file), str(JAVA_REPETITIONS)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
            assert process.stdout is not None
            yield from map(json.loads, process.stdout)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*")
    options.add_argument("--members", type=int, default=10_000)
    options.add_argument("--partitions", type=int, default=100_000)
    options.add_argument("--libs", type=Path)
    given = options.parse_args()
    image = TopicImage.of(
        Topic(f"topic-{number}", uuid(random.Random(number)), given.partitions // TOPICS) for number in range(TOPICS)
    )
    kinds = [
        partition_groups(given.members, image),
        streams_groups(given.members, given.partitions),
        classic_groups(given.members, image),
    ]
    situations = [each for kind in kinds for each in kind if not given.names or each.assignor in given.names]
    kafkas = references(situations, image, given.libs) if given.libs else repeat(None)
    for situation, kafka in zip(situations, kafkas, strict=bool(given.libs)):
        measured = measure(situation, image)
        row: dict[str, Any] = {
            "assignor": situation.assignor,
            "shape": situation.shape,
            "phase": situation.phase,
            "cpu_ms": round(measured.ms, 1),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        if kafka is not None:
            row["kafka_cpu_ms"] = round(kafka["ms"], 1)
            row["ratio"] = round(measured.ms / kafka["ms"], 2)
            row["equal"] = kafka.get("assignment") == measured.result
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
