"""Names and numbers of what members have, for the rows of assignments: topics, subtopologies, connectors."""

from __future__ import annotations

from collections.abc import Callable, Container

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.holdings import Resource, Wanted
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenEpoch
from coordinator_core.history.topics_of_epochs import ProvenTopics, Used, proven_topics
from coordinator_core.records import LogPosition

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
