"""A member of a share group (KIP-932), as the Java client behaves."""

from __future__ import annotations

from coordinator_core.groups.consumer.timeouts import session_key
from coordinator_core.groups.epochs import LEAVE_GROUP_MEMBER_EPOCH
from coordinator_core.groups.protocol import ErrorCode
from coordinator_core.groups.share.live import LiveShareGroup
from coordinator_core.groups.share.partitions import assignment_pending
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.client import Client
from coordinator_core.simulator.truth import Why
from coordinator_core.wire.primitives import uuid_text

HEARTBEAT_VERSION = 1


class ShareConsumer(Client):
    """It takes at once what it is given, as nothing has to be given up; it commits no offsets."""

    commits = False

    def reset(self) -> None:
        """A new process makes up a new member id."""
        self.member_id = uuid_text(self.chance.uuid().bytes)
        self.epoch = 0
        self._news: Fields = {}

    def join(self) -> None:
        """The first heartbeat, with the subscription."""
        self._news = {"subscribedTopicNames": self.wish.topics, "rackId": self.wish.rack}
        self.beat()

    def beat(self) -> None:
        """A heartbeat with what is new since the last one."""
        identity = {"groupId": self.group_id, "memberId": self.member_id, "memberEpoch": self.epoch}
        self.shard.send(self, "ShareGroupHeartbeat", HEARTBEAT_VERSION, identity | self._news, self._why())

    def _why(self) -> tuple[Why, ...]:
        names, live = self._news.get("subscribedTopicNames"), self.shard.memory.live.get(self.group_id)
        known = live.log.members.get(self.member_id) if isinstance(live, LiveShareGroup) else None
        if self.epoch == 0 or names is None or known is None:
            return ()
        changed = set(names) ^ set(known.subscribed_topic_names)
        return (Why("subscription_changed", self.member_id, tuple(sorted(changed))),) if changed else ()

    def subscribe(self, topics: list[str]) -> None:
        """Told with the next heartbeat."""
        self.wish.topics = topics
        if self.running and self.epoch > 0:
            self._news = {"subscribedTopicNames": topics}
            self.beat_in(self.chance.between(1, self.script.heartbeat))

    def say_goodbye(self) -> None:
        """Leave for good."""
        data = {"groupId": self.group_id, "memberId": self.member_id, "memberEpoch": LEAVE_GROUP_MEMBER_EPOCH}
        self.shard.send(self, "ShareGroupHeartbeat", HEARTBEAT_VERSION, data)

    def answered(self, api: str, response: Fields) -> None:
        """Take over the new epoch."""
        if response["memberEpoch"] >= 0:
            self.epoch = response["memberEpoch"]
            self._news = {}
            self.rest()

    def refused(self, api: str, error: ErrorCode) -> None:
        """One that was fenced begins anew; one that is not let in gives up."""
        if not self.running:
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH) and self.epoch > 0:
            self.epoch = 0
            self.soon(self.chance.between(50, 500), self.join)
        else:
            self._stop()

    def session_key(self) -> str:
        """The key of the member's session timer."""
        return session_key(self.group_id, self.member_id)

    def settled(self) -> bool:
        """At the target, and no share partitions are waiting to be assigned."""
        live = self.shard.memory.live.get(self.group_id)
        if not isinstance(live, LiveShareGroup) or self._news:
            return False
        return (
            self.epoch == live.group_epoch == live.assignment_epoch
            and not assignment_pending(live)
            and not live.metadata_expired(self.shard.now)
        )
