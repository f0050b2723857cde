"""Random scripts for a share group: each step is chosen when the one before was answered."""

import base64
import random
import uuid
from collections.abc import Callable
from typing import Any

from tests.broker.share_group import Line

NAMES = ("foo", "bar", "baz")
MEMBERS = "abc"
START_MS = 1_767_225_600_000
PAUSES_MS = (1, 500, 999, 1_000, 2_500, 4_999, 5_000, 10_000, 46_000)
RETRIES_MS = (1_000, 3_000, 5_000, 7_000, 30_000)


def record_trace(seed: int, steps: int, do: Callable[[Line], Line]) -> list[Line]:
    """The trace of one random script; ``do`` gives a line to the coordinator and returns what it made of it."""
    script = _Script(random.Random(seed))
    trace = [do(script.header(seed))]
    while len(trace) <= steps:
        step = script.choose()
        if step is not None:
            trace.append(do(step))
            script.learn(trace[-1])
    return [*trace, do({"kind": "end"})]


def _step(op: str, **fields: Any) -> Line:
    return {"kind": "step", "op": op, **fields}


def _request(api: str, version: int, client_id: str, **data: Any) -> Line:
    request = {"api": api, "version": version, "client_id": client_id, "data": {"groupId": "g1", **data}}
    return _step("request", request=request)


class _Script:
    """What the script knows of the coordinator: topics, members, and what share coordinators were asked for."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._topics = {name: [self._id(), chance.randint(1, 4)] for name in chance.sample(NAMES, chance.randint(1, 3))}
        self._epochs: dict[str, int] = {}
        self._asked: list[list[Line]] = []
        self._deleted: list[str] = []
        self._ways = {
            self._heartbeat: 30,
            self._pause: 15,
            self._answer: 17,
            self._change_topics: 8,
            self._clean_up: 4,
            self._alter: 10,
            self._delete: 8,
            self._offsets_deleted: 3,
            self._prepare_delete: 2,
            self._delete_group: 1,
            self._fail_over: 2,
        }

    def header(self, seed: int) -> Line:
        config = {
            "group.consumer.assignors": ["uniform", "range"],
            "group.share.assignment.interval.ms": self._chance.choice((0, 0, 1_000)),
            "group.share.initialize.retry.interval.ms": self._chance.choice(RETRIES_MS),
        }
        return {
            "kind": "header",
            "type": "share",
            "seed": seed,
            "kafka": "4.3.1",
            "group_id": "g1",
            "start_ms": START_MS,
            "client_host": "/127.0.0.1",
            "config": config,
            "group_config": {},
            "image_version": 1,
            "brokers": {"0": None},
            "topics": [self._topic(name) for name in self._topics],
        }

    def choose(self) -> Line | None:
        """The next step; None where what was chosen cannot be done now."""
        (way,) = self._chance.choices(list(self._ways), list(self._ways.values()))
        return way()

    def learn(self, step: Line) -> None:
        """Keep what the coordinator made of a step."""
        if step.get("initialize_share_group_state"):
            self._asked.append(step["initialize_share_group_state"])
        for timer in step.get("timers", ()):
            self._epochs.pop(timer["key"].rsplit("-", 1)[1], None)
        if step["op"] == "request" and step["request"]["api"] == "ShareGroupHeartbeat":
            epoch = -1 if "error" in step else step["response"]["memberEpoch"]
            self._epochs[step["request"]["data"]["memberId"]] = epoch
            self._epochs = {member: each for member, each in self._epochs.items() if each >= 0}

    def _id(self) -> str:
        return base64.urlsafe_b64encode(uuid.UUID(int=self._chance.getrandbits(128)).bytes).decode().rstrip("=")

    def _topic(self, name: str) -> Line:
        topic_id, partitions = self._topics[name]
        placed = {"replicas": [[0]] * partitions, "racks": [[]] * partitions}
        return {"name": name, "id": topic_id, "partitions": partitions, **placed}

    def _some(self, most: int) -> list[str]:
        return self._chance.sample(NAMES, self._chance.randint(1, most))

    def _heartbeat(self) -> Line:
        member = self._chance.choice(MEMBERS)
        epoch, names = self._epochs.get(member, 0), None
        if epoch == 0 or self._chance.random() < 0.2:
            names = self._some(3)
        elif self._chance.random() < 0.2:
            epoch = -1
        fields = {"memberId": member, "memberEpoch": epoch, "rackId": None, "subscribedTopicNames": names}
        return _request("ShareGroupHeartbeat", 1, "app", **fields)

    def _pause(self) -> Line:
        return _step("advance", ms=self._chance.choice(PAUSES_MS))

    def _answer(self) -> Line | None:
        """A share coordinator did what it was asked for, or part of it, or failed; or its answer is lost."""
        if not self._asked:
            return None
        asked = self._asked.pop(self._chance.randrange(len(self._asked)))
        done = []
        for topic in asked:
            partitions = [each["partition"] for each in topic["partitions"] if self._chance.random() < 0.9]
            if partitions and self._chance.random() < 0.9:
                done.append({"topic_id": topic["topic_id"], "partitions": partitions})
        ops = ("initialize_share_group_state", "uninitialize_share_group_state", None)
        (op,) = self._chance.choices(ops, (60, 20, 20))
        return _step(op, topic_partitions=done) if op and done else None

    def _change_topics(self) -> Line | None:
        change: Line = {"created": [], "changed": [], "deleted": []}
        name = self._chance.choice(NAMES)
        if name not in self._topics:
            self._topics[name] = [self._id(), self._chance.randint(1, 4)]
            change["created"].append(self._topic(name))
        elif self._chance.random() < 0.5:
            self._topics[name][1] += 1
            change["changed"].append(self._topic(name))
        else:
            topic_id, _ = self._topics.pop(name)
            self._deleted.append(topic_id)
            change["deleted"].append({"name": name, "id": topic_id})
        return _step("metadata", metadata=change)

    def _clean_up(self) -> Line | None:
        return _step("share_cleanup", deleted_topic_ids=[self._deleted.pop()]) if self._deleted else None

    def _alter(self) -> Line:
        topics = [
            {
                "topicName": name,
                "partitions": [
                    {"partitionIndex": each, "startOffset": self._chance.randint(0, 99)}
                    for each in self._chance.sample(range(5), self._chance.randint(1, 3))
                ],
            }
            for name in self._some(2)
        ]
        return _request("AlterShareGroupOffsets", 0, "admin", topics=topics)

    def _delete(self) -> Line:
        topics = [{"topicName": name} for name in self._some(2)]
        return _request("DeleteShareGroupOffsets", 0, "admin", topics=topics)

    def _offsets_deleted(self) -> Line | None:
        if not self._topics:
            return None
        name = self._chance.choice(list(self._topics))
        return _step("share_offsets_deleted", topics={self._topics[name][0]: name})

    def _prepare_delete(self) -> Line:
        return _step("prepare_delete_group", group_id="g1")

    def _delete_group(self) -> Line:
        return _step("delete_group", group_id="g1")

    def _fail_over(self) -> Line:
        return _step("fail_over")
