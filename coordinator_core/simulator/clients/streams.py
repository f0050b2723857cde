"""A member of a streams group (KIP-1071): one thread of a Kafka Streams application that is its process."""

from __future__ import annotations

from coordinator_core.groups.consumer.timeouts import session_key
from coordinator_core.groups.epochs import LEAVE_GROUP_MEMBER_EPOCH
from coordinator_core.groups.protocol import ErrorCode
from coordinator_core.groups.streams.live import LiveStreamsGroup
from coordinator_core.groups.streams.state import MemberState
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.client import Client
from coordinator_core.simulator.internal_topics import topology
from coordinator_core.wire.primitives import uuid_text

HEARTBEAT_VERSION = 0
ROLES = ("activeTasks", "standbyTasks", "warmupTasks")

Tasks = frozenset[tuple[str, str, int]]
"""Role, subtopology and partition."""


class StreamsThread(Client):
    """It reports its tasks whenever they changed, and closes what is asked back within a while."""

    def reset(self) -> None:
        """A new process makes up a new member id."""
        self.member_id = uuid_text(self.chance.uuid().bytes)
        self._topology = topology(self.group_id, self.wish.topics, self.script.streams)
        self._abandon()

    def _abandon(self) -> None:
        self.epoch = 0
        self._owned: Tasks = frozenset()
        self._wanted: Tasks = frozenset()
        self._revoking = False
        self._news: Fields = {}

    def join(self) -> None:
        """The first heartbeat, with the topology."""
        self._news = {
            "rebalanceTimeoutMs": self.script.rebalance_timeout,
            "topology": self._topology,
            "processId": f"{self.client_id}-process",
            "rackId": self.wish.rack,
            **{role: [] for role in ROLES},
        }
        self.beat()

    def beat(self) -> None:
        """A heartbeat with what is new since the last one."""
        identity = {"groupId": self.group_id, "memberId": self.member_id, "memberEpoch": self.epoch}
        self.shard.send(self, "StreamsGroupHeartbeat", HEARTBEAT_VERSION, identity | self._news)

    def say_goodbye(self) -> None:
        """Leave for good."""
        data = {"groupId": self.group_id, "memberId": self.member_id, "memberEpoch": LEAVE_GROUP_MEMBER_EPOCH}
        self.shard.send(self, "StreamsGroupHeartbeat", HEARTBEAT_VERSION, data)

    def answered(self, api: str, response: Fields) -> None:
        """Take the new epoch over, and see to other tasks."""
        if api != "StreamsGroupHeartbeat" or response["memberEpoch"] < 0:
            return
        self.epoch = response["memberEpoch"]
        self._news = {}
        if response["activeTasks"] is not None:
            self._wanted = frozenset(
                (role, each["subtopologyId"], partition)
                for role in ROLES
                for each in response[role]
                for partition in each["partitions"]
            )
        if self._revoking:
            self.beat_in(self.script.heartbeat)
        elif self._owned - self._wanted:
            self._revoking = True
            self.soon(self.chance.between(1, self.wish.revocation_ms), self._revoked)
            self.beat_in(self.script.heartbeat)
        elif self._owned != self._wanted:
            self._own(self._wanted)
        else:
            self.rest()

    def _revoked(self) -> None:
        if self._revoking:
            self._revoking = False
            self._own(self._wanted)

    def _own(self, tasks: Tasks) -> None:
        self._owned = tasks
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
        for role in ROLES:
            held: dict[str, list[int]] = {}
            for _, subtopology, partition in sorted(each for each in tasks if each[0] == role):
                held.setdefault(subtopology, []).append(partition)
            self._news[role] = [{"subtopologyId": name, "partitions": numbers} for name, numbers in held.items()]
        self.beat_in(self.chance.between(1, 20))

    def refused(self, api: str, error: ErrorCode) -> None:
        """One that was fenced begins anew without tasks; one that is not let in gives up."""
        if api != "StreamsGroupHeartbeat" or not self.running:
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH) and self.epoch > 0:
            self.commit(())
            self._abandon()
            self.soon(self.chance.between(50, 500), self.join)
        else:
            self._stop()

    def session_key(self) -> str:
        """The key of the member's session timer."""
        return session_key(self.group_id, self.member_id)

    def settled(self) -> bool:
        """At the target of a group that is ready."""
        live = self.shard.memory.live.get(self.group_id)
        if not isinstance(live, LiveStreamsGroup) or self._news:
            return False
        member = live.log.members.get(self.member_id)
        return (
            member is not None
            and member.state == MemberState.STABLE
            and member.member_epoch == live.group_epoch == live.assignment_epoch
            and not live.metadata_expired(self.shard.now)
        )
