"""What log files lack: the partitions that were not given, the offsets without a record, the unreadable records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coordinator_core.cluster.given_topics import NO_TOPICS_GIVEN, GivenTopics
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import InputError
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.history.given_share_state import GivenShareState
from coordinator_core.history.knowledge import GivenLogs, Knowledge
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.records import GROUP_LOG, SHARE_LOG, Family
from jobs.queries.interface import NO_LOG_OF_GROUPS
from jobs.sources.files import FAMILIES, GROUP_TOPICS, UNKNOWN_PARTITION, LogPart, LogPlaced
from jobs.sources.log_reader import LogReader


def given_logs(logs: Iterable[LogPlaced], topics: TopicHistory | None) -> GivenLogs:
    """Return which partitions of the logs of groups are among these files, and how many there are as topics say."""
    partitions: dict[str, frozenset[int] | None] = {}
    for log in logs:
        if log.topic not in FAMILIES and log.family is Family.GROUP:
            partitions[GROUP_LOG] = None
        elif log.topic in GROUP_TOPICS:
            there = partitions.get(log.topic, frozenset())
            is_known = there is not None and log.partition != UNKNOWN_PARTITION
            partitions[log.topic] = frozenset([*there, log.partition]) if is_known and there is not None else None
    return GivenLogs(partitions, partition_counts(topics))


def require_log_of_groups(logs: Iterable[LogPart]) -> None:
    """Raise InputError where no log of groups is among these files: then every answer would be empty."""
    if not any(log.family in (Family.GROUP, Family.CONNECT) for log in logs):
        raise InputError(NO_LOG_OF_GROUPS)


def partition_counts(topics: TopicHistory | None) -> dict[str, int]:
    """Return how many partitions each log of groups has at the end of the history of topics, as far as it says."""
    image = None if topics is None else topics.image_at(None)
    if image is None:
        return {}
    return {name: image.by_name[name].partitions for name in GROUP_TOPICS if name in image.by_name}


def knowledge(
    logs: Iterable[LogPart],
    topics: TopicHistory | None,
    readers: Iterable[LogReader],
    lost: LostRecords,
    times: Sequence[int],
    share_state: GivenShareState,
    whole_from_ms: int | None = None,
) -> Knowledge:
    """Return what logs lack whose partitions were read to their end by these readers; ``times``: of their records.

    ``whole_from_ms`` is as in ``Knowledge``.
    """
    gaps = {
        str(reader): LogGaps(reader.gaps.last_missing_below(None), reader.gaps.last_lost_below(None)).with_unreadable(
            lost.last_unplaced(reader.place)
        )
        for reader in readers
    }
    first_ms, last_ms = min(times, default=None), max(times, default=None)
    return Knowledge(
        given_logs(logs, topics),
        gaps,
        lost,
        given_topics(topics),
        first_ms,
        last_ms,
        lambda: share_state,
        whole_from_ms=whole_from_ms,
    )


def given_share_state(logs: Iterable[LogPlaced], topics: TopicHistory | None) -> GivenShareState:
    """Return which partitions of the share state log are among these files; what they lack is noted when read."""
    partitions = {log.partition for log in logs if log.family is Family.SHARE}
    image = None if topics is None else topics.image_at(None)
    topic = None if image is None else image.by_name.get(SHARE_LOG)
    is_placed = UNKNOWN_PARTITION not in partitions
    return GivenShareState(partitions, 0 if topic is None else topic.partitions, is_placed)


def given_topics(topics: TopicHistory | None) -> GivenTopics:
    """Return what was given of the topics."""
    return NO_TOPICS_GIVEN if topics is None else topics.given
