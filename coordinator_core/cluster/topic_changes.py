"""What a history of topics is made of: changes of a topic, the intervals between them, and gaps of the source."""

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from coordinator_core.cluster.image import Topic
from coordinator_core.records import LogPosition

TOPIC_CLEANUP_MS: Final = 10_000
"""After a topic is deleted the coordinator may take this long (ms) to remove its offsets."""


class TopicChange(NamedTuple):
    """A change of one topic; ``before`` or ``after`` is None where the topic did not exist.

    ``kind``: created, deleted, grown, replaced (a new id under the same name) or moved (replicas on other racks).
    """

    kind: str
    name: str
    at: LogPosition
    before: Topic | None
    after: Topic | None


class HistoryGap(NamedTuple):
    """Something that the source of a history does not contain, found at ``at``.

    ``whole_ms`` is the time up to which nothing was missing; None: not known.
    """

    at: LogPosition
    cause: str
    whole_ms: int | None = None


def hole_before(at: LogPosition, whole_ms: int) -> HistoryGap:
    """Return the gap of a metadata log that lacks the records before this one: brokers do not compact it.

    ``whole_ms`` is the time of the last record before the hole.
    """
    return HistoryGap(at, f"the metadata log has a hole before offset {at.offset}", whole_ms)


@dataclass(frozen=True, slots=True)
class TopicInterval:
    """One row of ``topic_history``: a topic as it was over an interval.

    ``racks[p]`` and ``replicas[p]`` are as in ``Topic``.
    """

    topic: Annotated[str, "topic name"]
    topic_id: Annotated[str, "topic id"]
    partitions: Annotated[int, "number of partitions"]
    racks: Annotated[tuple[tuple[str, ...], ...], "the racks of the replicas of each partition; empty: not known"]
    replicas: Annotated[tuple[tuple[int, ...], ...], "the brokers of the replicas of each partition; empty: not known"]
    since: Annotated[LogPosition, "the record with which it began"]
    until: Annotated[LogPosition | None, "the record with which it ended; null while it lasts"]
    ended_by: Annotated[str | None, "changed, deleted or replaced; null while it lasts"]


def change_kind(before: Topic | None, after: Topic | None, *, replicas: bool = False) -> str | None:
    """Return what happened to a topic between two versions, None if nothing that a group could notice.

    With ``replicas`` also a new place of replicas counts that changes no rack, and racks that were not known before.
    """
    if before is None or after is None:
        return "created" if after else "deleted" if before else None
    if before.id != after.id:
        return "replaced"
    if before.partitions != after.partitions:
        return "grown"
    if before.racks != after.racks and (replicas or (before.racks and after.racks)):
        return "moved"
    if replicas and before.replicas != after.replicas:
        return "moved"
    return None


def topic_interval(
    topic: Topic, since: LogPosition, until: LogPosition | None, following: Topic | None
) -> TopicInterval:
    """Return the row of a topic as it was until ``following``, or None, came in its place."""
    ended_by = None
    if until is not None:
        kind = change_kind(topic, following, replicas=True)
        ended_by = kind if kind in ("deleted", "replaced") else "changed"
    return TopicInterval(topic.name, topic.id, topic.partitions, topic.racks, topic.replicas, since, until, ended_by)
