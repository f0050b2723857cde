"""Topic history from lists of topics that were made at some moments (rows of JSON or Parquet)."""

from collections.abc import Iterable, Mapping
from typing import Any

from coordinator_core.cluster.image import MOST_PARTITIONS, Topic
from coordinator_core.cluster.topic_changes import HistoryGap
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import InputError
from coordinator_core.records import LogPosition

ZERO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def snapshot_position(time_ms: int) -> LogPosition:
    """Return the position of a list of topics: it has no log, only a time."""
    return LogPosition(-1, -1, time_ms)


def fold_snapshots(rows: Iterable[Mapping[str, object]]) -> TopicHistory:
    """Return the history of topics in such rows: one row per topic and time, all rows of one time a whole list.

    Fields: ``name`` (text), ``id`` (base64url, optional), ``partitions`` (a count, or a list with one entry per
    partition), ``racks`` (optional: for each partition the racks of its replicas, null for a broker without one) and
    ``time`` (milliseconds, or a datetime). A topic that a later list lacks was deleted between the two.

    Raises:
        InputError: a row does not have this shape.
    """
    listings: dict[int, dict[str, Topic]] = {}
    for number, row in enumerate(rows):
        time_ms, topic = _read(number, row)
        listings.setdefault(time_ms, {})[topic.name] = topic
    history = new_history()
    before: dict[str, Topic] = {}
    for time_ms, topics in sorted(listings.items()):
        take_list(history, time_ms, topics.values(), before.keys() - topics.keys())
        before = topics
    return history


def new_history() -> TopicHistory:
    """Return the history of topics before the first list: ``take_list`` adds them in order of time."""
    return TopicHistory(complete=False, is_listed=True)


def take_list(history: TopicHistory, time_ms: int, topics: Iterable[Topic], gone: Iterable[str]) -> None:
    """Add a list of topics to a history: those that may be new or changed, and the names of those that are gone."""
    at = snapshot_position(time_ms)
    if not history.gaps:
        history.gaps.append(HistoryGap(at, "snapshots show the topics at their times only"))
    history.open_version(at)
    for name in gone:
        history.remove_topic(name)
    for topic in topics:
        history.put_topic(topic)
    history.last_seen_ms = time_ms


def _read(number: int, row: Mapping[str, Any]) -> tuple[int, Topic]:
    try:
        name, partitions, time = row["name"], row["partitions"], row["time"]
    except KeyError as missing:
        raise InputError(f"topic snapshot row {number} lacks the field {missing}") from None
    count = partitions if isinstance(partitions, int) else len(partitions) if isinstance(partitions, list) else -1
    time_ms = int(time.timestamp() * 1000) if hasattr(time, "timestamp") else time
    if not isinstance(name, str) or count < 0 or not isinstance(time_ms, int):
        raise InputError(
            f"topic snapshot row {number} ({name!r}): wants name as text, partitions as a count or a list, time as "
            f"milliseconds; got partitions {partitions!r}, time {time!r}"
        )
    if count > MOST_PARTITIONS:
        raise InputError(
            f"topic snapshot row {number} ({name!r}): {count} partitions, but a topic has at most {MOST_PARTITIONS}"
        )
    racks = tuple(tuple(rack for rack in racks if rack is not None) for racks in row.get("racks") or ())
    if racks and len(racks) != count:
        raise InputError(f"topic snapshot row {number} ({name}): racks of {len(racks)} partitions, but {count} of them")
    return time_ms, Topic(name, row.get("id") or ZERO_ID, count, racks)
