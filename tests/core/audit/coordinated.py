"""Logs that the executable coordinator wrote, with everything that an audit is told beside them."""

import random
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field

from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.coordinator import coordinator
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.java.hash_codes import STRING, spread
from coordinator_core.java.order import timeline_slot
from coordinator_core.records import CoordinatorRecord, LogPosition
from coordinator_core.wire.record_codec import encode_key
from tests.core.coordinator.clients import GROUP, Cluster, Consumer

EVERYTHING = Coverage({0: [(0, 2**40)]})


@dataclass(slots=True)
class RecordedCluster:
    """A cluster whose topics are written down, and whose coordinator can fail over."""

    cluster: Cluster
    topics: TopicHistory = field(default_factory=TopicHistory)
    leader_epochs: list[int] = field(default_factory=list)
    fail_overs: list[int] = field(default_factory=list)
    _batched: int = 0

    @classmethod
    def of(cls, partitions: dict[str, int], **settings: object) -> "RecordedCluster":
        recorded = cls(Cluster.of(partitions, **settings))
        recorded._note_topics()
        return recorded

    def next_batch(self) -> None:
        """What is written from now on goes into another record batch."""
        first = self._batched
        self.log[first:] = [record._replace(batch=first) for record in self.log[first:]]
        self._batched = len(self.log)

    def set_topics(self, partitions: dict[str, int]) -> None:
        self.cluster.now += 1
        self.cluster.set_topics(partitions)
        self._note_topics()

    def fail_over(self, compacted: int) -> None:
        """Another coordinator loads the log, which is compacted below an offset."""
        cluster = self.cluster
        last = {encode_key(each.type, each.key): each for each in cluster.log[:compacted]}
        memory = coordinator.new_state(cluster.memory.config, end_offset=len(cluster.log))
        memory.publish(cluster.topics.version, created=list(cluster.topics.by_name))
        for record in cluster.log:
            if record.at.offset >= compacted or last[encode_key(record.type, record.key)] is record:
                memory.follow(record)
        cluster.now += 1
        coordinator.take_over(memory, cluster.topics, cluster.now)
        cluster.memory = memory
        self._note_leader()
        self.fail_overs.append(cluster.now)

    def audited(self, *, leaders: bool = True) -> list[TargetAuditRow]:
        """The verdicts; with ``leaders`` the leader epoch of each record is known."""
        self._note_leader()
        self.next_batch()
        auditor = TargetAuditor(Group(GROUP, from_start=True), None, self.topics, coverage=EVERYTHING)
        rows = []
        for record, epoch in zip(self.cluster.log, self.leader_epochs, strict=True):
            rows += auditor.feed(record, epoch if leaders else None)
        return rows

    def register_brokers(self) -> None:
        """The metadata log tells of the broker that started at each fail-over."""
        for time_ms in self.fail_overs:
            self.topics.brokers.note_registration(7, LogPosition(0, 99, time_ms))

    @property
    def log(self) -> list[CoordinatorRecord]:
        return self.cluster.log

    def _note_topics(self) -> None:
        self.topics.open_version(LogPosition(0, len(self.topics), self.cluster.now))
        image = self.cluster.topics.by_name
        for name in [topic.topic for topic in self.topics.intervals() if topic.until is None]:
            if name not in image:
                self.topics.remove_topic(name)
        for topic in image.values():
            self.topics.put_topic(topic)

    def _note_leader(self) -> None:
        self.leader_epochs += [len(self.fail_overs)] * (len(self.log) - len(self.leader_epochs))


def colliding_ids(rng: random.Random, count: int) -> list[str]:
    """Member ids that share a slot in the coordinator's own map and in the one that it fills for the assignor."""
    by_slots: dict[tuple[int, int], list[str]] = {}
    while True:
        member_id = urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")
        hashed = STRING.hash_code(member_id)
        slots = spread(hashed) & 31, timeline_slot(hashed, 32)
        found = by_slots.setdefault(slots, [])
        found.append(member_id)
        if len(found) == count:
            return found


def churn(rng: random.Random, steps: int, fail_over: float = 0.0) -> RecordedCluster:
    """Consumers that come, go and change their minds about three topics; sometimes another coordinator takes over.

    Only eight member ids are in use, and these collide: what a map's history can change, it changes often.
    """
    member_ids = colliding_ids(rng, 8)
    partitions = {"a": 7, "b": 5, "c": 16}
    recorded = RecordedCluster.of(partitions, **{"group.consumer.assignment.interval.ms": 0})
    consumers: list[Consumer] = []
    for _ in range(steps):
        recorded.cluster.now += rng.randrange(1, 50)
        topics = sorted(rng.choice([{"a", "b", "c"}, {"a", "b", "c"}, {"a", "b"}, {"c"}]))
        chance = rng.random()
        if len(consumers) < 3 or (chance < 0.4 and len(consumers) < len(member_ids)):
            member_id = rng.choice([each for each in member_ids if each not in {had.member_id for had in consumers}])
            consumers.append(Consumer(recorded.cluster, member_id, topics, assignor="uniform"))
            consumers[-1].beat()
        elif chance < 0.7:
            consumers.pop(rng.randrange(len(consumers))).leave()
        elif chance < 0.8:
            rng.choice(consumers).beat(subscribedTopicNames=topics)
        else:
            rng.choice(consumers).beat()
        if rng.random() < fail_over:
            recorded.fail_over(rng.randrange(len(recorded.log) + 1))
    return recorded
