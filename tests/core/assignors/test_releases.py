"""Each profile gives what the assignors of its release give (recorded by ``python -m tests.broker.releases``)."""

import gzip
import json
from collections import Counter
from typing import Any

import pytest

from coordinator_core.assignors.inputs import (
    AssignedGroupType,
    GroupSpec,
    MemberSpec,
    StreamsConfigs,
    StreamsGroupSpec,
    StreamsMemberSpec,
    SubtopologyTasks,
    Tasks,
)
from coordinator_core.assignors.profiles import OTHER_BEFORE, profile
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.errors import AssignorError, InputError
from tests.broker.releases import RELEASES
from tests.shared_data import ROOT

FOLDER = ROOT / "tests" / "data" / "releases"
Group = dict[str, Any]


Given = dict[str, dict[str, Any]]


def ours(group: Group, name: str) -> Given:
    """What the profile of that name gives to a group: member, topic id, partitions in ascending order.

    For a streams group: member, role, subtopology, partitions in ascending order.
    """
    if group["assignor"] == "sticky":
        return _ours_of_streams(group, name)
    members = {
        member: MemberSpec(had["topics"], {topic: tuple(numbers) for topic, numbers in had["before"].items()})
        for member, had in group["members"].items()
    }
    same = len({frozenset(member.topics) for member in members.values()}) <= 1
    kind = AssignedGroupType.SHARE if group["assignor"] == "simple" else AssignedGroupType.CONSUMER
    image = TopicImage.of(Topic(topic, topic, count) for topic, count in group["topics"].items())
    found = assign(group["assignor"], GroupSpec(members, same, type=kind), image, profile(name)).members
    return {
        member: {topic: sorted(numbers) for topic, numbers in work.items() if len(numbers)}
        for member, work in found.items()
    }


def _ours_of_streams(group: Group, name: str) -> Given:
    def tasks(entries: dict[str, list[int]]) -> dict[str, tuple[int, ...]]:
        return {subtopology: tuple(numbers) for subtopology, numbers in entries.items()}

    members = {
        member: StreamsMemberSpec(had["process"], Tasks(tasks(had["active"]), tasks(had["standby"])))
        for member, had in group["members"].items()
    }
    subtopologies = [SubtopologyTasks(each["id"], each["tasks"], each["stateful"]) for each in group["subtopologies"]]
    spec = StreamsGroupSpec(members, subtopologies, StreamsConfigs(num_standby_replicas=group["standbys"]))
    found = assign("sticky", spec, TopicImage.of(()), profile(name)).members
    return {
        member: {
            role: {subtopology: sorted(numbers) for subtopology, numbers in getattr(work, role).items() if numbers}
            for role in ("active", "standby")
        }
        for member, work in found.items()
    }


def ours_or_none(group: Group, name: str) -> Given | None:
    """The same; None where Kafka's class throws."""
    try:
        return ours(group, name)
    except AssignorError:
        return None


RECORDED = sorted(file.name.removesuffix(".jsonl.gz") for file in FOLDER.glob("*.jsonl.gz"))


def test_recordings_are_there() -> None:
    assert {"4.0.0", "4.0.1", "4.3.1"} <= set(RECORDED) <= RELEASES.keys()


@pytest.mark.parametrize("release", RECORDED)
def test_each_profile_is_its_release(release: str) -> None:
    """The algorithms of ``simple`` and ``sticky`` before 4.2 are not reproduced, and the profile says so."""
    lines = gzip.decompress((FOLDER / f"{release}.jsonl.gz").read_bytes()).decode().splitlines()
    equal: Counter[str] = Counter()
    for line in lines:
        case = json.loads(line)
        group, assignor = case["group"], case["group"]["assignor"]
        if assignor in ("simple", "sticky") and profile(RELEASES[release]).release < OTHER_BEFORE:
            with pytest.raises(InputError, match="is another algorithm"):
                ours(group, RELEASES[release])
            continue
        assert ours_or_none(group, RELEASES[release]) == case["result"].get("members"), group
        equal[assignor] += 1
    assert min(equal.values()) >= 24


def test_profiles_differ_where_their_releases_do() -> None:
    """Else nothing would be proven by choosing the right one."""
    lines = gzip.decompress((FOLDER / "4.0.0.jsonl.gz").read_bytes()).decode().splitlines()
    groups = [json.loads(line)["group"] for line in lines]
    uniform = [group for group in groups if group["assignor"] == "uniform"]
    assert any(ours(group, "kafka-4.0") != ours(group, "kafka-4.0.1") for group in uniform)
    lines = gzip.decompress((FOLDER / "4.4.0.jsonl.gz").read_bytes()).decode().splitlines()
    streams = [group for group in (json.loads(line)["group"] for line in lines) if group["assignor"] == "sticky"]
    assert any(ours(group, "kafka-4.3.1") != ours(group, "kafka-4.4") for group in streams)
