"""A member of a streams group (KIP-1071): a Kafka Streams process with one thread."""

from __future__ import annotations

from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.coordinator.streams.validation import TASK_FIELDS
from coordinator_core.groups.epochs import LEAVE_GROUP_MEMBER_EPOCH
from coordinator_core.groups.streams.state import StreamsMemberState
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.epoch_client import ReconcilingClient
from coordinator_core.simulator.internal_topics import topology

HEARTBEAT_VERSION = 0

Tasks = frozenset[tuple[str, str, int]]
"""Tasks as role, subtopology and partition."""


class StreamsThread(ReconcilingClient):
    """Reports its tasks whenever they changed, and closes tasks within a while when asked to."""

    heartbeat_api = "StreamsGroupHeartbeat"

    def reset(self) -> None:
        """Use the topology of the configured topics, as a new process does."""
        super().reset()
        self._topology = topology(self.group_id, self.wish.topics, self.script.streams)

    def abandon(self) -> None:
        """Return to epoch 0, without tasks."""
        super().abandon()
        self._owned: Tasks = frozenset()
        self._wanted: Tasks = frozenset()

    def join(self) -> None:
        """Send the first heartbeat, with the topology."""
        self._news = {
            "rebalanceTimeoutMs": self.script.rebalance_timeout,
            "topology": self._topology,
            "processId": f"{self.client_id}-process",
            "rackId": self.wish.rack,
            **{role: [] for role in TASK_FIELDS},
        }
        self.beat()

    def beat(self) -> None:
        """Send a heartbeat with what changed since the last one."""
        self.shard.send(self, self.heartbeat_api, HEARTBEAT_VERSION, self.identity(self.epoch) | self._news)

    def say_goodbye(self) -> None:
        """Leave for good."""
        self.shard.send(self, self.heartbeat_api, HEARTBEAT_VERSION, self.identity(LEAVE_GROUP_MEMBER_EPOCH))

    def answered(self, api: str, response: Fields) -> None:
        """Take over the new epoch, and begin to reconcile new tasks."""
        if api != self.heartbeat_api or response["memberEpoch"] < 0:
            return
        self.epoch = response["memberEpoch"]
        self._news = {}
        if response["activeTasks"] is not None:
            self._wanted = frozenset(
                (role, each["subtopologyId"], partition)
                for role in TASK_FIELDS
                for each in response[role]
                for partition in each["partitions"]
            )
        self.reconcile(asked_back=bool(self._owned - self._wanted), changed=self._owned != self._wanted)

    def take_over(self) -> None:
        """Run the assigned tasks, and commit for the active ones."""
        tasks = self._owned = self._wanted
        topics = self.shard.topics.by_name
        sources = {
            each["subtopologyId"]: [
                *each.get("sourceTopics", ()),
                *(topic["name"] for topic in each.get("repartitionSourceTopics", ())),
            ]
            for each in self._topology["subtopologies"]
        }
        self.commit(
            [
                (name, topics[name].id, partition)
                for role, subtopology, partition in sorted(tasks)
                if role == "activeTasks"
                for name in sources[subtopology]
                if name in topics and partition < topics[name].partitions
            ]
        )
        for role in TASK_FIELDS:
            held: dict[str, list[int]] = {}
            for _, subtopology, partition in sorted(each for each in tasks if each[0] == role):
                held.setdefault(subtopology, []).append(partition)
            self._news[role] = [{"subtopologyId": name, "partitions": numbers} for name, numbers in held.items()]
        self.beat_in(self.chance.between(1, 20))

    def settled(self) -> bool:
        """Whether it is at its target and the group is ready."""
        live = self.shard.memory.live.get(self.group_id)
        if not isinstance(live, LiveStreamsGroup) or self._news:
            return False
        member = live.log.members.get(self.member_id)
        return (
            member is not None
            and member.state == StreamsMemberState.STABLE
            and member.member_epoch == live.group_epoch == live.assignment_epoch
            and not live.metadata_expired(self.shard.now)
        )
