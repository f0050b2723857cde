"""What the assignors of each Kafka release give to groups, to compare our profiles with them.

``pytest tests/broker/test_releases.py`` compares 300 groups for each release and assignor. ``python -m
tests.broker.releases`` writes the recordings in ``tests/data/releases``. Both need a JDK and Maven.
"""

import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.broker.kafka import JARS, jars

HERE = Path(__file__).parent
CACHE = JARS.parent
ARTIFACTS = ("kafka-group-coordinator", "kafka-group-coordinator-api", "kafka-clients", "kafka-server-common")
RELEASES = {
    "3.9.2": "kafka-3.9",
    "4.0.0": "kafka-4.0",
    "4.0.1": "kafka-4.0.1",
    "4.1.1": "kafka-4.1",
    "4.2.1": "kafka-4.3.1",
    "4.3.1": "kafka-4.3.1",
    "4.4.0": "kafka-4.4",
}
"""Releases that Maven has, and the profile of each."""

ASSIGNORS = ("uniform", "range", "simple", "sticky")
"""Of consumer groups, of share groups, and of streams groups (``sticky``)."""

WITHOUT = {"3.9.2": ("simple", "sticky"), "4.0.0": ("sticky",), "4.0.1": ("sticky",)}
"""Assignors that a release does not have."""

Group = dict[str, Any]


def groups(assignor: str, count: int, seed: int = 848) -> list[Group]:
    """Return random groups: members with the same or with other topics, of which some had partitions before."""
    choose = random.Random(f"{assignor} {seed}")
    made = _streams_group if assignor == "sticky" else _group
    return [made(assignor, choose) for _ in range(count)]


def _group(assignor: str, choose: random.Random) -> Group:
    topics = {topic_id(number): choose.randint(1, 9) for number in range(1, choose.randint(2, 5))}
    everything = list(topics)
    same = choose.random() < 0.6
    members: dict[str, Any] = {}
    for number in range(choose.randint(1, 7)):
        mine = everything if same else choose.sample(everything, choose.randint(1, len(everything)))
        members[f"member-{number}"] = {"topics": mine, "before": {}}
    if choose.random() < 0.75:
        for topic, partitions in topics.items():
            readers = [member for member in members.values() if topic in member["topics"]]
            for partition in range(partitions):
                if readers and choose.random() < 0.8:
                    choose.choice(readers)["before"].setdefault(topic, []).append(partition)
    return {"assignor": assignor, "topics": topics, "members": members}


def _streams_group(assignor: str, choose: random.Random) -> Group:
    """A few processes, each with one member (thread) or more, of which some had tasks before."""
    subtopologies = [
        {"id": str(number), "tasks": choose.randint(1, 6), "stateful": choose.random() < 0.7}
        for number in range(choose.randint(1, 3))
    ]
    members: dict[str, Any] = {}
    for number in range(choose.randint(1, 7)):
        process = f"process-{choose.randint(0, 3)}"
        members[f"member-{number}"] = {"process": process, "active": {}, "standby": {}}
    standbys = choose.choice((0, 0, 1, 2))
    if choose.random() < 0.75:
        for each in subtopologies:
            for task in range(each["tasks"]):
                if choose.random() < 0.8:
                    had = choose.sample(list(members.values()), min(len(members), 1 + standbys))
                    for role, member in zip(("active", "standby", "standby"), had, strict=False):
                        if role == "active" or (each["stateful"] and member["process"] != had[0]["process"]):
                            member[role].setdefault(each["id"], []).append(task)
    return {"assignor": assignor, "subtopologies": subtopologies, "standbys": standbys, "members": members}


def topic_id(number: int) -> str:
    """Return the id of a topic as Kafka writes it."""
    return "AAAAAAAAAAAAAAAAAAAA" + "ABCDEFGHIJ"[number] + "A"


def results(release: str, given: Sequence[Group], home: Path) -> list[Group]:
    """Return what the assignors of a release give to these groups; files go to the folder ``home``."""
    answers = {
        of_streams: iter(
            _answers(program, release, [g for g in given if (g["assignor"] == "sticky") == of_streams], home)
        )
        for program, of_streams in (("ReleaseAssignors", False), ("ReleaseStreams", True))
    }
    return [next(answers[group["assignor"] == "sticky"]) for group in given]


def _answers(program: str, release: str, given: Sequence[Group], home: Path) -> list[Group]:
    if not given:
        return []
    path = _class_path(release)
    source = HERE / f"{program}.java"
    subprocess.run(["javac", "-nowarn", "-d", str(home), "-cp", path, str(source)], check=True, capture_output=True)
    lines = "".join(json.dumps(group) + "\n" for group in given)
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{home}:{path}", program]
    done = subprocess.run(command, check=True, input=lines, capture_output=True, encoding="utf-8")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _class_path(release: str) -> str:
    """The jars of the release, then those for JSON and logging. Maven fetches them the first time."""
    jars()
    folder = CACHE / f"assignors-{release}"
    if not folder.is_dir():
        fetched = folder.with_suffix(".part")
        for artifact in ARTIFACTS:
            wanted = f"-Dartifact=org.apache.kafka:{artifact}:{release}"
            command = ["mvn", "-q", "-B", "dependency:copy", wanted, f"-DoutputDirectory={fetched}"]
            subprocess.run(command, check=True, capture_output=True)
        fetched.rename(folder)
    others = [str(jar) for name in ("jackson*", "slf4j*") for jar in sorted(JARS.glob(f"{name}.jar"))]
    return ":".join([f"{folder}/*", *others])
