"""The topics of a running cluster, by lists of them that a watch asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.cluster.topic_lists import new_history, take_list
from jobs.sources.cluster_snapshot import SnapshotRow
from jobs.sources.snapshot_files import settings_of, topics_of


@dataclass(slots=True)
class TopicList:
    """What a list of topics shows that the one before did not: topics, and the names of those that are gone."""

    time_ms: int
    topics: list[Topic]
    gone: list[str]


class LiveTopics:
    """The history of topics that the lists show. It grows in place; ``lists`` are those that showed something new."""

    def __init__(self) -> None:
        self.history: TopicHistory = new_history()
        self.lists: list[TopicList] = []
        self._settings: list[list[SnapshotRow]] = []

    @property
    def is_known(self) -> bool:
        """Whether there was a list."""
        return bool(self.lists)

    def take(self, rows: Sequence[SnapshotRow], time_ms: int) -> None:
        """Take in a snapshot of the cluster: rows of partitions and of settings, of one time (ms)."""
        listed = topics_of(row for row in rows if "topic" in row).image_at(None)
        if listed is None:
            return
        known = self.history.image_at(None) if self.is_known else None
        before: Mapping[str, Topic] = {} if known is None else known.by_name
        new = [topic for name, topic in listed.by_name.items() if before.get(name) != topic]
        gone = sorted(before.keys() - listed.by_name.keys())
        if new or gone:
            self.put(TopicList(time_ms, new, gone))
        self.history.last_seen_ms = time_ms
        self._take_settings([row for row in rows if "resource" in row])

    def put(self, listed: TopicList) -> None:
        """Take in a list of a former watch, or a new one."""
        take_list(self.history, listed.time_ms, listed.topics, listed.gone)
        self.lists.append(listed)

    def _take_settings(self, rows: list[SnapshotRow]) -> None:
        """Of snapshots with the same settings the first and the last one are kept."""
        if len(self._settings) > 1 and all(_timeless(each) == _timeless(rows) for each in self._settings[-2:]):
            # The one in the middle says nothing new: with the first and the last the value is known for all the time.
            self._settings.pop()
        self._settings.append(rows)
        self.history.snapshots = settings_of(chain.from_iterable(self._settings))


def _timeless(rows: Sequence[SnapshotRow]) -> list[dict[str, object]]:
    return [{**row, "timestamp_ms": None} for row in rows]
