"""The topics that an epoch was computed from, and how topics changed since the epoch before; and names and numbers of
what members have, for the rows of assignments.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS, METADATA_LAG_MS
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.cluster.topic_changes import TopicChange
from coordinator_core.cluster.topic_history import ImageVersion, TopicHistory
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.epoch_records import GroupEpochRecord
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import topic_causes
from coordinator_core.history.holdings import Resource, Wanted
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenEpoch
from coordinator_core.history.rows import Cause
from coordinator_core.records import LogPosition, RecordType

NO_TOPICS_HASH: Final = 0
"""The metadata hash of subscribed topics of which none is there."""
ProvenTopics = Mapping[str, Topic | None]
"""Topics by name, as a hash proves them; None: there was no such topic."""
NO_TOPICS: Final[ProvenTopics] = MappingProxyType({})


class Used(NamedTuple):
    """The topics that an epoch was computed from.

    ``hash`` is None if the record has none. ``proven``: an image of the topics has that hash; None: there is no hash,
    or not every version of the topics is known. ``at`` and ``version`` are those of that image, or of the image at that
    time if none is proven; None and -1 if nothing is known. ``at`` is None, too, where topics may have changed since.
    """

    hash: int | None
    proven: bool | None
    at: LogPosition | None
    version: int


def hash_of_topics(record: GroupEpochRecord, state: object, *, is_whole: bool) -> int | None:
    """Return the metadata hash that group metadata has of the subscribed topics; None: it has none, or does not say.

    The record of a consumer group leaves out the hash 0. Brokers before 4.1 write no hash at all, but what they know of
    the topics in a record of its own: where no such record came, and ``is_whole``, none can be missing, it is 0.

    Brokers of 4.1 write 0 when a member of a streams group leaves, whatever the topics are. Only they write a streams
    group with neither its validated topology nor its configurations.
    """
    value = record.value
    if value is None:
        return None
    metadata_hash = value.get("metadataHash")
    if metadata_hash is None and is_whole and isinstance(state, ConsumerGroup):
        return NO_TOPICS_HASH if state.subscription_metadata is None else None
    is_streams = record.type == RecordType.STREAMS_GROUP_METADATA
    is_of_4_1 = is_streams and not {"validatedTopologyEpoch", "lastAssignmentConfigs"} & value.keys()
    return None if is_of_4_1 and metadata_hash == NO_TOPICS_HASH else metadata_hash


def topics_used(topics: TopicHistory | None, metadata_hash: int | None, names: set[str], at: LogPosition) -> Used:
    """Return the image of ``names`` that the coordinator used when it wrote the record at ``at``."""
    if topics is None:
        return Used(metadata_hash, None, None, -1)
    is_of_no_names = metadata_hash == NO_TOPICS_HASH and not names  # every version of the topics has this hash
    if metadata_hash is not None and not is_of_no_names:
        matching = matching_hash(topics, metadata_hash, names, at.timestamp_ms, CLOCK_TOLERANCE_MS)
        if matching is not None:
            return Used(metadata_hash, True, matching.at, matching.version)
    version = topics.version_at(at.timestamp_ms)
    proven = None if metadata_hash is None or version < 0 or not topics.shows_all(at.timestamp_ms) else is_of_no_names
    is_known = version >= 0 and (topics.is_listed or topics.reach.covers(at.timestamp_ms, at.timestamp_ms))
    return Used(metadata_hash, proven, topics.positions[version] if is_known else None, version)


def matching_hash(
    topics: TopicHistory, metadata_hash: int, names: set[str], time_ms: int, tolerance_ms: int
) -> ImageVersion | None:
    """Return the newest version of ``names`` with this hash that a coordinator knew at a time of its clock.

    By the controller's clock it may be later, by up to the tolerance. Such a version counts where all earlier ones are
    older than what a broker may work with: topics may become again what they were.
    """
    newest = topics.newest_matching_hash(metadata_hash, names, time_ms)
    # A broker may lag behind the controller, but not for long: a version that was replaced before that is no
    # candidate.
    if newest is not None and not topics.changes(names, newest.version, topics.version_at(time_ms - METADATA_LAG_MS)):
        return newest
    return topics.newest_matching_hash(metadata_hash, names, time_ms, tolerance_ms)


def image_used(topics: TopicHistory | None, used: Used) -> tuple[TopicImage | None, bool]:
    """Return the image with these topics, and whether a topic that is not in it did not exist.

    The image is None where nothing is known, or topics may have changed since.
    """
    if topics is None or used.version < 0 or used.at is None:
        return None, False
    is_whole = bool(used.proven) or (topics.complete and not topics.gaps)
    return topics.version(used.version).image, is_whole


def proven_topics(topics: TopicHistory | None, used: Used, names: Iterable[str]) -> ProvenTopics:
    """Return what the hash of an epoch proves of the topics with these names; nothing where no image has that hash."""
    if topics is None or not used.proven:
        return NO_TOPICS
    image = topics.version(used.version).image
    return {name: image.by_name.get(name) for name in names}


def changes_between(topics: TopicHistory | None, names: set[str], before: int, now: int) -> list[Cause]:
    """Return the changes of topics between two versions of their history, as causes."""
    if topics is None or before < 0 or now <= before:
        return []
    return topic_causes(topics.changes(names, before, now))


def changes_not_seen(topics: TopicHistory | None, epoch: OpenEpoch | None, at: LogPosition) -> list[TopicChange]:
    """Return the changes of its topics that an epoch has not seen at a position, as far as its hash tells."""
    if topics is None or epoch is None or not epoch.topics_proven:
        return []
    return topics.changes(epoch.topics, epoch.topics_version, topics.version_at(at.timestamp_ms))


CLASSIC = GroupType.CLASSIC.value

Columns = tuple[str, str, str | None, str | None, str | None, str | None]
"""Role, resource, topic, topic id, subtopology and connector."""


def _partitions(topic: Topic | None, topic_id: str) -> int:
    """How many partitions the topic with this id has, 0 where ``topic`` is another one."""
    return 0 if topic is None or topic.id != topic_id else topic.partitions


class Resources:
    """The names of a group's resources, as far as its ``open_history`` and the ``topics`` contain them."""

    __slots__ = ("_columns", "_open_history", "_topics")

    def __init__(self, open_history: OpenHistory, topics: TopicHistory | None) -> None:
        self._open_history = open_history
        self._topics = topics
        self._columns: dict[Resource, Columns] = {}

    def columns(self, resource: Resource) -> Columns:
        """Return the columns that name a resource; they are cached once its topic has a name."""
        columns = self._columns.get(resource)
        if columns is None:
            columns = self._named(*resource)
            if columns[2] is not None:
                self._columns[resource] = columns
        return columns

    def forget(self) -> None:
        """Forget all names: the group continues as another type, in which the same name may be another resource."""
        self._columns.clear()

    def topic_name(self, topic_id: str) -> str | None:
        """Return the name of a topic by its id; None if no source contains it."""
        known = self._topics.topic_name(topic_id) if self._topics is not None else None
        return known or self._open_history.topic_names.get(topic_id)

    def wanted(self, at: LogPosition, epoch: OpenEpoch | None, proven: ProvenTopics) -> Callable[[str], Wanted]:
        """Return a function from a topic id to what a group with epochs wants of the topic at a time.

        Where the group unsubscribed from some topics, one without a name may be one of them. The clock of the metadata
        log may be another one than that of ``at``: what an epoch that opens there has ``proven`` decides, and what the
        ``epoch`` before has proven to be gone remains so.
        """
        subscribed: tuple[str, ...] = epoch.topics if epoch is not None else ()
        has_dropped = epoch is not None and bool(epoch.dropped_topics)
        before: ProvenTopics = {}
        if epoch is not None:
            used = Used(epoch.metadata_hash, epoch.topics_proven, epoch.topics_at, epoch.topics_version)
            before = proven_topics(self._topics, used, epoch.topics)

        def wanted(topic_id: str) -> Wanted:
            name = self.topic_name(topic_id)
            if name is not None and name not in subscribed:
                return Wanted(0)
            if name is not None and name in proven:
                return Wanted(_partitions(proven[name], topic_id))
            if name is not None and name in before and not _partitions(before[name], topic_id):
                return Wanted(0)
            topics = self._topics
            is_deleted = topics is not None and topics.is_deleted_about(topic_id, at.timestamp_ms)
            count = None if is_deleted else self._partitions(topic_id, at)
            return Wanted(count, may_be_unsubscribed=name is None and has_dropped)

        return wanted

    def wanted_by_name(self, at: LogPosition, subscribed: Container[str]) -> Callable[[str], Wanted]:
        """Return a function from a topic's name to what a classic group wants of the topic at a time."""
        return lambda name: Wanted(self._partitions(name, at) if name in subscribed else 0)

    def _partitions(self, topic: str, at: LogPosition) -> int | None:
        return None if self._topics is None else self._topics.partitions_at(topic, at.timestamp_ms)

    def _named(self, role: str, name: str) -> Columns:
        if role == "partition":
            if self._open_history.type == CLASSIC:
                return role, name, name, None, None, None
            return role, name, self.topic_name(name), name, None, None
        if role in ("connector", "task"):
            return role, name, None, None, None, name
        return role, name, None, None, name, None
