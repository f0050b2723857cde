"""All that a coordinator keeps in memory for one partition of ``__consumer_offsets``, told apart by its origin.

- ``log``: what the log says. It changes by applying records and in no other way.
- ``live``: by group, what the coordinator keeps beside the log: indices that follow from the records in their order,
  and soft state that no record holds (a classic rebalance in progress, parked requests, metadata refresh deadlines).
  A group without an entry does not exist for requests.
- ``timers`` and ``tasks``: what is armed or runs in the background, by key. They outlive a group, as in Kafka.
- ``topic_hashes``, ``subscribers`` and ``new_topics_version``: what is remembered of topics.

Soft state is lost when a coordinator moves; ``follow`` rebuilds from the log all that follows from it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from coordinator_core.assignors.profiles import DEFAULT, Profile
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.coordinator.config import BrokerConfig, GroupConfig
from coordinator_core.coordinator.protocol import Task, Timer
from coordinator_core.coordinator.record_templates import Unwritten
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.records import CoordinatorRecord, RecordType


class CoordinatorPhase(StrEnum):
    """Whether a broker coordinates the groups of a log partition."""

    LOADING = "loading"
    """It became the partition's leader, and still reads the log."""
    ACTIVE = "active"
    RESIGNED = "resigned"
    """It is not the partition's leader."""


class LiveGroup(Protocol):
    """What every type of group offers to the coordinator's memory; it is made from its id alone."""

    @property
    def group_id(self) -> str:
        """The group's id."""

    @property
    def type(self) -> GroupType:
        """The type of group."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    @property
    def timer_keys(self) -> Collection[str]:
        """The keys of timers that end with the group; all others run out and find no group."""

    def tombstones(self) -> Sequence[Unwritten]:
        """Return type and key of the records whose tombstones delete the group, in order."""

    def follow(self, record: CoordinatorRecord, log: CoordinatorShard) -> tuple[set[str], set[str]]:
        """Apply a record to the log state and update the indices; return newly subscribed and no longer
        subscribed topics.
        """

    def request_metadata_refresh(self) -> None:
        """Note that a subscribed topic changed: the next heartbeat checks the topics."""


GroupClass = Callable[[str], LiveGroup]
"""Makes a group in memory from its id."""
GroupClasses = Mapping[int, GroupClass]
"""Record type to the class of the group in memory that a record of it makes."""


@dataclass(slots=True)
class CoordinatorState:
    """The memory for one log partition, whose next record gets ``end_offset``. ``coordinator.new_state`` makes it.

    ``group_classes`` has every record type that makes a group; offsets make one of the class of GROUP_METADATA. Topics
    are by name; ``new_topics_version`` is the newest image version with new topics. ``profile`` says whose behaviour it
    is: that of a release, or for streams groups what KIP-1071 defines beyond it. Requests are served in the ``phase``
    ACTIVE only.
    """

    group_classes: GroupClasses
    config: BrokerConfig = field(default_factory=BrokerConfig)
    partition: int = 0
    end_offset: int = 0
    log: CoordinatorShard = field(default_factory=CoordinatorShard)
    live: dict[str, LiveGroup] = field(default_factory=dict)
    timers: dict[str, Timer] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    topic_hashes: dict[str, int] = field(default_factory=dict)
    subscribers: dict[str, set[str]] = field(default_factory=dict)
    new_topics_version: int = -1
    group_configs: dict[str, GroupConfig] = field(default_factory=dict)
    profile: Profile = DEFAULT
    phase: CoordinatorPhase = CoordinatorPhase.ACTIVE
    default_group_config: GroupConfig = field(init=False)

    def __post_init__(self) -> None:
        self.default_group_config = GroupConfig.default(self.config)

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the settings that hold for this group."""
        return self.group_configs.get(group_id, self.default_group_config)

    def configure_group(self, group_id: str, settings: Mapping[str, object]) -> None:
        """Replace the group's own settings; raises InputError for invalid ones."""
        if settings:
            self.group_configs[group_id] = GroupConfig.of(self.config, settings, kip_1071=self.profile.is_kip_1071)
        else:
            self.group_configs.pop(group_id, None)

    def publish(
        self, version: int, created: Collection[str] = (), changed: Collection[str] = (), deleted: Collection[str] = ()
    ) -> None:
        """Set a new image of the topics; the names are those of topics that differ from the last image.

        A change of brokers' racks alone names no topic, so that cached hashes stay, as in Kafka.
        """
        # Only a new topic can make a regular expression match more: resolutions are compared with this version.
        if created or self.new_topics_version == -1:
            self.new_topics_version = version
        for name in (*created, *changed, *deleted):
            self.topic_hashes.pop(name, None)
            for group_id in self.subscribers.get(name, ()):
                group = self.live.get(group_id)
                if group is not None:
                    group.request_metadata_refresh()

    def metadata_hash(self, names: Iterable[str], topics: TopicImage) -> int:
        """Return the hash of the topics that exist; the hash of each topic is cached until the topic changes."""
        hashes: list[tuple[str, int]] = []
        for name in names:
            topic = topics.by_name.get(name)
            if topic is not None:
                value = self.topic_hashes.get(name)
                if value is None:
                    value = self.topic_hashes[name] = topic_hash(topic)
                hashes.append((name, value))
        return group_hash(hashes)

    def follow(self, record: CoordinatorRecord, producer_id: int | None = None) -> None:
        """Apply a record of the log, and update everything that is derived from records.

        ``producer_id`` is given if the record's batch is transactional.
        """
        group_class = self.group_classes.get(record.type)
        if group_class is None:
            self.log.apply(record, producer_id)
            if record.value is not None and record.group_id not in self.live:
                # Offsets make a classic group where there is none: a simple one, without records of its own.
                self.live[record.group_id] = self.group_classes[RecordType.GROUP_METADATA](record.group_id)
            return
        group_id = record.group_id
        live = self.live.get(group_id)
        if live is None or type(live) is not group_class:
            # A tombstone makes no group, and one of another type leaves the group alone that took its place.
            if record.value is None:
                self.log.apply(record)
                return
            live = self.live[group_id] = group_class(group_id)
        subscribed, unsubscribed = live.follow(record, self.log)
        for name in subscribed:
            self.subscribers.setdefault(name, set()).add(group_id)
        for name in unsubscribed:
            self._unsubscribe(group_id, name)
        if self.log.groups[group_id].state is None:
            self.forget(group_id)

    def forget(self, group_id: str) -> None:
        """Remove the group from memory; its subscriptions and its timers stay, as in Kafka."""
        self.live.pop(group_id, None)
        self.log.groups.pop(group_id, None)

    def _unsubscribe(self, group_id: str, name: str) -> None:
        groups = self.subscribers.get(name)
        if groups is not None:
            groups.discard(group_id)
            if not groups:
                del self.subscribers[name]
                self.topic_hashes.pop(name, None)
