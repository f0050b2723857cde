"""The topics through time that lines of brokers' application logs show, where there is no metadata log (ZooKeeper).

A broker says of each partition when it makes its log, and when it puts it aside. A topic is there while a broker has a
log of it. What was there before the first line, or on brokers whose files are not given, is not known.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.cluster.image import MOST_PARTITIONS, Topic
from coordinator_core.cluster.topic_changes import HistoryGap
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.cluster.topic_lists import ZERO_ID, new_history, snapshot_position, take_list

KINDS: Final = frozenset((EventKind.LOG_CREATED, EventKind.LOG_DELETED))
AT_ONCE_MS: Final = 2_000
"""Lines of one topic that follow each other within this time are of one request: the broker does one at a time."""
ONLY_SEEN: Final = "lines of brokers' logs show the topics of those brokers, since their files begin"


@dataclass(slots=True)
class _Change:
    """A topic has so many partitions since a time (ms); 0: it is gone. ``last_ms``: the last line that says so."""

    at_ms: int
    topic: str
    kind: str
    partitions: int
    last_ms: int


def topics_of_lines(events: Iterable[BrokerEvent]) -> TopicHistory | None:
    """Return the history of topics in lines whose times are known; None: no line is about a topic."""
    changes: list[_Change] = []
    newest: dict[str, _Change] = {}
    logs: defaultdict[str, Counter[int]] = defaultdict(Counter)
    end_ms = -1
    timed = ((event.timestamp_ms, event) for event in events if event.timestamp_ms is not None)
    for time_ms, event in sorted(timed, key=lambda pair: pair[0]):
        end_ms = time_ms
        number = event.partition
        if event.kind not in KINDS or event.topic is None or number is None or number >= MOST_PARTITIONS:
            continue
        known, of_topic = newest.get(event.topic), logs[event.topic]
        of_topic[number] += 1 if event.kind == EventKind.LOG_CREATED else -1
        partitions = max((each + 1 for each, copies in of_topic.items() if copies > 0), default=0)
        if partitions and event.kind == EventKind.LOG_DELETED and known is not None:
            partitions = known.partitions  # a broker lost a copy, or the others will follow
        if known is None or known.kind != event.kind or time_ms - known.last_ms > AT_ONCE_MS:
            known = newest[event.topic] = _Change(time_ms, event.topic, event.kind, partitions, time_ms)
            changes.append(known)
        known.partitions, known.last_ms = partitions, time_ms
    if not changes:
        return None
    history = new_history()
    history.is_of_lines = True
    history.gaps.append(HistoryGap(snapshot_position(changes[0].at_ms), ONLY_SEEN))
    for change in changes:
        there = [Topic(change.topic, ZERO_ID, change.partitions, ())] if change.partitions else []
        take_list(history, change.at_ms, there, () if there else (change.topic,))
    take_list(history, end_ms, (), ())
    return history
