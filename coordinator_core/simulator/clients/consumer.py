"""A consumer of the consumer protocol (KIP-848), as the Java client behaves."""

from coordinator_core.coordinator.consumer.group import LiveConsumerGroup, is_reconciled_to
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.epoch_client import ReconcilingClient

Partitions = dict[str, tuple[int, ...]]
"""Partitions by topic id."""


class Consumer(ReconcilingClient):
    """Reports what it owns whenever that changed, and gives up partitions within a while when asked to."""

    heartbeat_api = "ConsumerGroupHeartbeat"
    heartbeat_version = 1

    def abandon(self) -> None:
        """Return to epoch 0, without partitions."""
        super().abandon()
        self._owned: Partitions = {}
        self._wanted: Partitions = {}

    def join(self) -> None:
        """Send the first heartbeat, with the whole configuration."""
        self._news = {
            "rebalanceTimeoutMs": self.script.rebalance_timeout,
            "subscribedTopicNames": self.setup.topics if self.setup.regex is None else None,
            "subscribedTopicRegex": self.setup.regex,
            "serverAssignor": self.setup.assignor,
            "rackId": self.setup.rack,
            "topicPartitions": [],
        }
        self.beat()

    def subscribe(self, topics: list[str]) -> None:
        """Subscribe to these topics with the next heartbeat."""
        self.setup.topics = topics
        self._tell(subscribedTopicNames=topics)

    def choose(self, assignor: str) -> None:
        """Ask for this assignor with the next heartbeat."""
        self.setup.assignor = assignor
        self._tell(serverAssignor=assignor)

    def _tell(self, **news: object) -> None:
        if self.running and self.epoch > 0:
            self._news |= news
            self.beat_in(self.chance.between(1, self.script.heartbeat))

    def answered(self, api: str, response: Fields) -> None:
        """Take over the new epoch, and begin to reconcile a new assignment."""
        if api != self.heartbeat_api or response["memberEpoch"] < 0:
            return
        self.epoch = response["memberEpoch"]
        self._news = {}
        assignment = response["assignment"]
        if assignment is not None:
            self._wanted = {
                partition["topicId"]: tuple(partition["partitions"]) for partition in assignment["topicPartitions"]
            }
        asked_back = any(set(owned).difference(self._wanted.get(topic, ())) for topic, owned in self._owned.items())
        self.reconcile(asked_back=asked_back, changed=not _same(self._owned, self._wanted))

    def take_over(self) -> None:
        """Consume the assigned partitions, and commit for them."""
        partitions = self._owned = self._wanted
        topics = self.shard.topics.by_id
        self.commit(
            [
                (topics[topic_id].name, topic_id, partition)
                for topic_id, numbers in partitions.items()
                if topic_id in topics
                for partition in numbers
            ]
        )
        self._news["topicPartitions"] = [
            {"topicId": topic_id, "partitions": list(numbers)} for topic_id, numbers in partitions.items()
        ]
        self.beat_in(self.chance.between(1, 20))

    def settled(self) -> bool:
        """Whether it is at its target and has no regex, which the coordinator resolves again from time to time."""
        live = self.shard.memory.live.get(self.group_id)
        if not isinstance(live, LiveConsumerGroup) or self.setup.regex is not None or self._news:
            return False
        return is_at_target(live, self.member_id, self.shard.now)


def is_at_target(group: LiveConsumerGroup, member_id: str, now: int) -> bool:
    """Whether neither the member nor the coordinator has anything left to change."""
    member = group.log.members.get(member_id)
    return (
        member is not None
        and group.assignment_epoch == group.group_epoch
        and is_reconciled_to(member, group.group_epoch)
        and not group.metadata_expired(now)
    )


def _same(some: Partitions, others: Partitions) -> bool:
    return {topic: set(numbers) for topic, numbers in some.items() if numbers} == {
        topic: set(numbers) for topic, numbers in others.items() if numbers
    }
