"""One random request to a group, sensible or not: mostly of its own kind of group, mostly of one of its members."""

import random
from dataclasses import dataclass
from typing import Any

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.epoch_group import LiveEpochGroup
from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.records import Fields
from tests.core.coordinator.requests import metadata
from tests.core.coordinator.transcript import GROUP

KINDS = ("classic", "consumer", "share", "streams")
MEMBERS = ("m1", "m2", "m3", "m4")
TOPICS = ("a", "b", "c")
SUBTOPOLOGIES: list[Fields] = [
    {"subtopologyId": "0", "sourceTopics": ["a"]},
    {"subtopologyId": "1", "sourceTopics": ["b"]},
]
_SUBSCRIPTIONS = (["a"], ["a"], ["a", "b"], ["b", "a", "a"], ["c"], [], None)
_REGEXES = (*[None] * 6, "", "a|b", "c.*", "(")


def topic_id(name: str) -> str:
    """The id of the topic of that name."""
    return name.ljust(22, "A")


def random_request(
    draw: random.Random, kind: str, memory: CoordinatorState, topics: TopicImage
) -> tuple[str, int, Fields]:
    """Return API, version and data of a request to a group that began as one of that kind."""
    return _Requests(draw, kind, memory, topics).choose()


@dataclass
class _Requests:
    draw: random.Random
    kind: str
    memory: CoordinatorState
    topics: TopicImage

    def choose(self) -> tuple[str, int, Fields]:
        kind = self.kind if self.draw.random() < 0.75 else self.draw.choice(KINDS)
        makers = [self._offset_commit, self._txn_commit, self._offset_fetch, self._offset_delete]
        own = {
            "classic": [self._join, self._join, self._sync, self._sync, self._heartbeat, self._leave],
            "consumer": [self._consumer],
            "share": [self._share],
            "streams": [self._streams],
        }[kind]
        if self.kind == "consumer" and self.draw.random() < 0.15:
            own = [self._join, self._sync, self._heartbeat, self._leave]
        if not self.topics.by_name:
            makers = [self._offset_delete]
        return self.draw.choice(own if self.draw.random() < 0.65 else makers)()

    def _group(self) -> str:
        return self.draw.choice([GROUP] * 40 + ["other", ""])

    def _member(self) -> tuple[str, int, str | None]:
        """A member id with an epoch and an instance id, mostly those of a member."""
        group = self.memory.live.get(GROUP)
        known: list[tuple[str, int, str | None]] = []
        if isinstance(group, LiveEpochGroup):
            known = [
                (name, member.member_epoch or 0, member.instance_id if hasattr(member, "instance_id") else None)
                for name, member in group.log.members.items()
            ]
        elif isinstance(group, LiveClassicGroup):
            known = [(name, group.generation, member.instance_id) for name, member in group.members.items()]
            known += [(name, group.generation, None) for name in group.pending_join]
        if known and self.draw.random() < 0.75:
            name, epoch, instance = self.draw.choice(known)
        else:
            name, epoch, instance = self.draw.choice([*MEMBERS * 2, "", " "]), 0, None
        if self.draw.random() < 0.15:
            epoch += self.draw.choice([-2, -1, 1, 5])
        if self.draw.random() < 0.12:
            instance = self.draw.choice(["i1", "i2", "", None])
        return name, epoch, instance

    def _partitions(self) -> list[Fields]:
        names = self.draw.sample(["a", "b", "gone"], self.draw.choice([1, 1, 2]))
        return [{"topicId": topic_id(name), "partitions": self._numbers(0, 1, 2)} for name in names]

    def _numbers(self, *counts: int) -> list[int]:
        return self.draw.sample(range(4), self.draw.choice(counts))

    def _owned(self, member_id: str) -> list[Fields] | None:
        group = self.memory.live.get(GROUP)
        chance = self.draw.random()
        if chance < 0.1:
            return self._partitions()
        if chance < 0.3:
            return None
        member = group.log.members.get(member_id) if isinstance(group, LiveConsumerGroup) else None
        if member is None:
            return []
        return [{"topicId": topic, "partitions": list(numbers)} for topic, numbers in member.assigned.items()]

    def _often(self, usual: Any, *others: Any) -> Any:
        return usual if self.draw.random() < 0.9 else self.draw.choice(others)

    def _consumer(self) -> tuple[str, int, Fields]:
        member_id, epoch, instance = self._member()
        action = self.draw.random()
        joins = epoch == 0 or action < 0.2
        if joins:
            epoch = 0
            instance = instance or self.draw.choice([None, None, None, "i1", "i2"])
        elif action < 0.3:
            epoch = self.draw.choice([-1, -1, -2, -3])
        data = {
            "groupId": self._group(),
            "memberId": member_id,
            "memberEpoch": epoch,
            "instanceId": instance,
            "rackId": self.draw.choice([None] * 8 + ["r", "", " "]),
            "rebalanceTimeoutMs": self._often(5_000, -1, 0) if joins else self._often(-1, 5_000),
            "subscribedTopicNames": self.draw.choice(_SUBSCRIPTIONS) if joins else self._often(None, ["a"], ["b"], []),
            "subscribedTopicRegex": self.draw.choice(_REGEXES) if joins else self._often(None, "", "b.*"),
            "serverAssignor": self.draw.choice([None] * 6 + ["range", "uniform", "x", ""]),
            "topicPartitions": self._often([], None, self._partitions()) if joins else self._owned(member_id),
        }
        return "ConsumerGroupHeartbeat", self._often(1, 0), data

    def _share(self) -> tuple[str, int, Fields]:
        member_id, epoch, _ = self._member()
        if self.draw.random() < 0.2:
            epoch = self.draw.choice([0, 0, -1, -2])
        others = [["a"], ["b", "a"], ["c"], []]
        names = self._often(["a"], *others, None) if epoch == 0 else self._often(None, *others)
        data = {
            "groupId": self._group(),
            "memberId": member_id,
            "memberEpoch": epoch,
            "rackId": self.draw.choice([None] * 8 + ["r", "", " "]),
            "subscribedTopicNames": names,
        }
        return "ShareGroupHeartbeat", 1, data

    def _streams(self) -> tuple[str, int, Fields]:
        member_id, epoch, _ = self._member()
        action = self.draw.random()
        joins = epoch == 0 or action < 0.15
        if joins:
            epoch = 0
        elif action < 0.3:
            epoch = self.draw.choice([-1, -1, -2, -3])
        topology = None
        if self._often(joins, not joins):
            subtopologies = self._often(SUBTOPOLOGIES, SUBTOPOLOGIES[:1])
            topology = {"epoch": self._often(0, 1, -1), "subtopologies": subtopologies}
        tasks: Any = [] if joins else None
        if not joins and self.draw.random() < 0.8:
            group = self.memory.live.get(GROUP)
            member = group.log.members.get(member_id) if isinstance(group, LiveStreamsGroup) else None
            active = {} if member is None else member.assigned.active
            tasks = [{"subtopologyId": each, "partitions": list(numbers)} for each, numbers in active.items()]
        if self.draw.random() < 0.05:
            tasks = [{"subtopologyId": self.draw.choice(["0", "9"]), "partitions": self.draw.choice([[0], [7]])}]
        warm = [{"subtopologyId": "0", "partitions": [0]}]
        data = {
            "groupId": self._group(),
            "memberId": member_id,
            "memberEpoch": epoch,
            "endpointInformationEpoch": self.draw.choice([-1, 0, 1]),
            "instanceId": self._often(None, "", "i1"),
            "rackId": self.draw.choice([None] * 8 + ["r", "", " "]),
            "rebalanceTimeoutMs": self._often(5_000, -1, 0) if joins else -1,
            "topology": topology,
            "activeTasks": tasks,
            "standbyTasks": None if tasks is None else self._often([], None),
            "warmupTasks": None if tasks is None else self._often([], None, warm),
            "processId": self._often("p1", "p2", None) if joins else None,
            "userEndpoint": self.draw.choice([None] * 8 + [{"host": "h", "port": 9}, {"host": "", "port": 65_535}]),
            "clientTags": self.draw.choice([None] * 4 + [[{"key": "k", "value": "v"}]]) if joins else None,
            "shutdownApplication": self._often(False, True),
            "taskOffsets": self._often(None, None, []),
            "taskEndOffsets": self._often(None, None, []),
        }
        return "StreamsGroupHeartbeat", 0, data

    def _join(self) -> tuple[str, int, Fields]:
        member_id, _, instance = self._member()
        if self.draw.random() < 0.25:
            member_id = ""
        names = self.draw.choice([["range"]] * 6 + [["range", "sticky"], ["sticky", "range"], ["x"], []])
        blob = metadata(self.draw.choice([["a"], ["a", "b"], []]), self.draw.choice([1, 3]))
        data = {
            "groupId": self._group(),
            "sessionTimeoutMs": self._often(10_000, 100, 10_000_000),
            "rebalanceTimeoutMs": self._often(5_000, 0),
            "memberId": member_id,
            "groupInstanceId": instance or self.draw.choice([None] * 5 + ["i1", "i2"]),
            "protocolType": self._often("consumer", "connect", ""),
            "protocols": [{"name": name, "metadata": self._often(blob, b"", b"\x00")} for name in names],
            "reason": None,
        }
        version = self.draw.choice([2, 3, 4, 5, 6, 7, 8, 9, 9, 9])
        if version < 5:
            data["groupInstanceId"] = None
        return "JoinGroup", version, data

    def _sync(self) -> tuple[str, int, Fields]:
        member_id, generation, instance = self._member()
        group = self.memory.live.get(GROUP)
        protocol = group.protocol if isinstance(group, LiveClassicGroup) else "range"
        members = list(group.members) if isinstance(group, LiveClassicGroup) else []
        version = self.draw.choice([0, 3, 4, 5, 5])
        data = {
            "groupId": self._group(),
            "generationId": generation,
            "memberId": member_id,
            "groupInstanceId": instance if version >= 3 else None,
            "protocolType": self._often("consumer", None, "connect") if version >= 5 else None,
            "protocolName": self._often(protocol, None, "nope") if version >= 5 else None,
            "assignments": [{"memberId": name, "assignment": self._often(b"\x00\x01", b"")} for name in members],
        }
        return "SyncGroup", version, data

    def _heartbeat(self) -> tuple[str, int, Fields]:
        member_id, generation, instance = self._member()
        version = self.draw.choice([0, 1, 3, 4])
        data = {"groupId": self._group(), "generationId": generation, "memberId": member_id}
        return "Heartbeat", version, {**data, "groupInstanceId": instance if version >= 3 else None}

    def _leave(self) -> tuple[str, int, Fields]:
        member_id, _, instance = self._member()
        version = self.draw.choice([0, 2, 3, 4, 5])
        if version < 3:
            return "LeaveGroup", version, {"groupId": self._group(), "memberId": member_id}
        members = [{"memberId": self._often(member_id, ""), "groupInstanceId": instance, "reason": None}]
        if self.draw.random() < 0.2:
            other, _, instance = self._member()
            members.append({"memberId": other, "groupInstanceId": instance, "reason": None})
        return "LeaveGroup", version, {"groupId": self._group(), "members": members}

    def _topics_of_commit(self, *, with_epoch: bool) -> list[Fields]:
        names = list(self.topics.by_name)
        names = self.draw.sample(names, min(len(names), self.draw.choice([1, 1, 2])))
        return [
            {
                "name": name,
                "topicId": topic_id(name),
                "partitions": [
                    {
                        "partitionIndex": number,
                        "committedOffset": self.draw.choice([0, 1, 5, -1]),
                        "committedLeaderEpoch": self.draw.choice([-1, 0, 3]) if with_epoch else -1,
                        "committedMetadata": self._often("m", None, "much too long"),
                    }
                    for number in self._numbers(1, 2)
                ],
            }
            for name in names
        ]

    def _offset_commit(self) -> tuple[str, int, Fields]:
        member_id, epoch, instance = self._member()
        if self.draw.random() < 0.3:
            member_id, epoch, instance = "", -1, None
        version = self.draw.choice([2, 3, 5, 6, 7, 8, 9, 9, 9, 10, 10])
        data = {
            "groupId": self._group(),
            "generationIdOrMemberEpoch": epoch,
            "memberId": member_id,
            "groupInstanceId": instance if version >= 7 else None,
            "retentionTimeMs": self._often(-1, 1_000, 0) if version <= 4 else -1,
            "topics": self._topics_of_commit(with_epoch=version >= 6),
        }
        return "OffsetCommit", version, data

    def _txn_commit(self) -> tuple[str, int, Fields]:
        member_id, epoch, instance = self._member()
        if self.draw.random() < 0.3:
            member_id, epoch, instance = "", -1, None
        version = self.draw.choice([2, 3, 4, 5])
        data = {
            "transactionalId": "t",
            "groupId": self._group(),
            "producerId": self.draw.choice([1, 2]),
            "producerEpoch": 0,
            "generationId": epoch if version >= 3 else -1,
            "memberId": member_id if version >= 3 else "",
            "groupInstanceId": instance if version >= 3 else None,
            "topics": self._topics_of_commit(with_epoch=version >= 2),
        }
        return "TxnOffsetCommit", version, data

    def _offset_fetch(self) -> tuple[str, int, Fields]:
        member_id, epoch, _ = self._member()
        version = self.draw.choice([8, 9, 10])
        topics = [
            {"name": "" if version == 10 else name, "topicId": topic_id(name), "partitionIndexes": [0, 1, 2]}
            for name in ("a", "b")
            if name in self.topics.by_name
        ]
        asked = self.draw.choice([None, topics])
        group: Fields = {"groupId": self._group(), "memberId": None, "memberEpoch": -1, "topics": asked}
        if version >= 9 and self.draw.random() < 0.6:
            group |= {"memberId": member_id, "memberEpoch": epoch}
        return "OffsetFetch", version, {"groups": [group], "requireStable": self.draw.random() < 0.4}

    def _offset_delete(self) -> tuple[str, int, Fields]:
        partitions = [{"partitionIndex": number} for number in (0, 1)]
        topics = [{"name": name, "partitions": partitions} for name in self.draw.sample(TOPICS, 2)]
        return "OffsetDelete", 0, {"groupId": self._group(), "topics": topics}
