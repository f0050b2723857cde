"""What brokers say when a watch asks them: the topics, and who leads the logs of coordinators.

A partition has no leader while brokers say so, or while no broker answers. That no broker answers counts from the
second time on: one answer may be lost, or late.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from coordinator_core.cluster.broker_history import NO_LEADER, BrokerHistory
from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.cluster.topic_lists import new_history, snapshot_position, take_list
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


Leaders = Mapping[tuple[str, int], int]
"""By topic and partition of a coordinator's log: the broker that leads it, or NO_LEADER."""


class SeenLeaders:
    """Notes in a history of brokers when leaders change; ``seen_ms`` is when they were asked last."""

    def __init__(self, brokers: BrokerHistory) -> None:
        self.seen_ms = -1
        self._brokers = brokers
        self._led: dict[tuple[str, int], int] = {}
        self._silent_since_ms: int | None = None

    def saw(self, time_ms: int, leaders: Leaders | None) -> None:
        """Take in an answer of the brokers to what was asked at a time (ms); None: no broker answered."""
        self.seen_ms = time_ms
        if leaders is None and self._silent_since_ms is None:
            self._silent_since_ms = time_ms
            return
        # From the first silence on, though it counts only now that there was a second one.
        since_ms = time_ms if leaders is not None else self._silent_since_ms or time_ms
        for place, leader in (dict.fromkeys(self._led, NO_LEADER) if leaders is None else leaders).items():
            if self._led.get(place) != leader:
                self._led[place] = leader
                self._brokers.note_leader(*place, leader, None, snapshot_position(since_ms))
        if leaders is not None:
            self._silent_since_ms = None
