"""A member of a share group (KIP-932) that behaves as the Java client does."""

from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.share.partitions import assignment_pending
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.epoch_client import EpochClient


class ShareConsumer(EpochClient):
    """Takes its assignment at once, as nothing has to be given up; it commits no offsets."""

    heartbeat_api = "ShareGroupHeartbeat"
    heartbeat_version = 1
    commits = False

    def crash(self) -> None:
        """Stop without leaving the group; the broker sees that the connections are gone."""
        if self.running:
            self.shard.sharing.crash(self.group_id, self.member_id, self.shard.now)
        super().crash()

    def freeze(self, lasts_ms: int) -> None:
        """Let the process hang; its connections remain."""
        if self.running:
            now = self.shard.now
            self.shard.sharing.hang(self.group_id, self.member_id, now, now + lasts_ms)
        super().freeze(lasts_ms)

    def abandon(self) -> None:
        """Return to epoch 0."""
        self.epoch = 0
        self._news = {}

    def join(self) -> None:
        """Send the first heartbeat, with the subscription."""
        self._news = {"subscribedTopicNames": self.setup.topics, "rackId": self.setup.rack}
        self.beat()

    def subscribe(self, topics: list[str]) -> None:
        """Subscribe to these topics with the next heartbeat."""
        self.setup.topics = topics
        if self.running and self.epoch > 0:
            self._news = {"subscribedTopicNames": topics}
            self.beat_in(self.chance.between(1, self.script.heartbeat))

    def answered(self, api: str, response: Fields) -> None:
        """Take over the new epoch."""
        if response["memberEpoch"] >= 0:
            self.epoch = response["memberEpoch"]
            self._news = {}
            self.rest()

    def settled(self) -> bool:
        """Whether it is at its target and no share partition waits to be assigned."""
        live = self.shard.memory.live.get(self.group_id)
        if not isinstance(live, LiveShareGroup) or self._news:
            return False
        return (
            self.epoch == live.group_epoch == live.assignment_epoch
            and not assignment_pending(live)
            and not live.metadata_expired(self.shard.now)
        )
