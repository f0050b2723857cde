"""What log files lack: the partitions that were not given, the offsets without a record, the unreadable records."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow.compute as pc

from coordinator_core.cluster.given_topics import NO_TOPICS_GIVEN, GivenTopics
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import InputError
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.groups.log_partition import counted, placing_key, shown
from coordinator_core.history.knowledge import GivenLogs, GivenShareState, Knowledge
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.records import GROUP_LOG, SHARE_LOG, Family
from coordinator_core.wire.batch_format import Damage, Kind
from jobs.queries.from_logs.log_partition import decoded_keys
from jobs.queries.interface import NO_LOG_OF_GROUPS
from jobs.sources.files import FAMILIES, GROUP_TOPICS, REPLAYED_TOPICS, numbered
from jobs.sources.log_parts import LogPart, LogPlaced
from jobs.sources.log_reader import LogReader


def given_logs(logs: Iterable[LogPlaced], counts: Mapping[str, int]) -> GivenLogs:
    """Return which partitions of the logs of groups are among these files; ``counts``: see ``log_counts``."""
    partitions: dict[str, frozenset[int] | None] = {}
    logs = list(logs)
    for log in logs:
        if log.topic not in FAMILIES and log.family is Family.GROUP:
            # A file that names no topic is of some partition of this log: which ones were given is not known then.
            partitions[GROUP_LOG] = None
        elif log.topic in GROUP_TOPICS:
            there = partitions.get(log.topic, frozenset())
            is_known = there is not None and log.is_placed
            partitions[log.topic] = frozenset([*there, log.partition]) if is_known and there is not None else None
    known = {topic: counts[topic] for topic in GROUP_TOPICS if topic in counts}
    return GivenLogs(partitions, known, numbered(logs))


def require_log_of_groups(logs: Iterable[LogPart]) -> None:
    """Raise InputError where no log of groups is among these files: then every answer would be empty."""
    if not any(log.family in (Family.GROUP, Family.CONNECT) for log in logs):
        raise InputError(NO_LOG_OF_GROUPS)


def log_counts(topics: TopicHistory | None, logs: Iterable[LogPart]) -> dict[str, int]:
    """Return how many partitions each log of a coordinator has, by topic, as far as it is known.

    The history of topics tells it as of its end; of the others, the keys of records in these files may prove it.
    """
    files = defaultdict[str, list[LogPart]](list)
    for log in logs:
        if log.topic in REPLAYED_TOPICS and log.is_placed:
            files[log.topic].append(log)
    placed = {topic: _placed(of_topic) for topic, of_topic in files.items()}
    return counted_by(topics, placed, shown((topic, file.partition) for topic in files for file in files[topic]))


def counted_by(
    topics: TopicHistory | None, placed: Mapping[str, Iterable[tuple[str, int]]], at_least: Mapping[str, int]
) -> dict[str, int]:
    """Return the same of keys that are ``placed`` in logs, of which there are ``at_least`` so many partitions."""
    image = None if topics is None else topics.image_at(None)
    by_name = {} if image is None else image.by_name
    known = {topic: by_name[topic].partitions for topic in REPLAYED_TOPICS if topic in by_name}
    return counted(known, placed, at_least, lambda: image is not None and image.is_whole)


def _placed(files: Sequence[LogPart]) -> Iterator[tuple[str, int]]:
    """Yield what these files of a log say to lie in their partitions."""
    return ((key, file.partition) for file in files for key in _placing_keys(file))


def _placing_keys(file: LogPart) -> Iterator[str]:
    """Yield of what the records of a file say in which partition they lie, each once."""
    seen: set[bytes] = set()
    for rows in file.parts():
        if isinstance(rows, Damage):
            continue
        # Made unique as columns: the same few keys of commits come again and again.
        keys = rows.filter(pc.equal(rows.column("kind"), Kind.RECORD.value)).column("key").drop_null().unique()
        new = {*keys.to_pylist()} - seen
        seen |= new
        yield from (placing_key(key) for _, key in decoded_keys(new, file.family))


def knowledge(
    logs: Iterable[LogPart],
    topics: TopicHistory | None,
    counts: Mapping[str, int],
    readers: Iterable[LogReader],
    lost: LostRecords,
    times: Sequence[int],
    share_state: GivenShareState,
    whole_from_ms: int | None = None,
) -> Knowledge:
    """Return what logs lack whose partitions were read to their end by these readers; ``times``: of their records.

    ``counts`` are those of ``log_counts``; ``whole_from_ms`` is as in ``Knowledge``.
    """
    readers = list(readers)
    gaps = {
        str(reader): LogGaps(reader.gaps.last_missing_below(None), reader.gaps.last_lost_below(None)).with_unreadable(
            lost.last_unplaced(reader.place)
        )
        for reader in readers
    }
    first_ms, last_ms = min(times, default=None), max(times, default=None)
    return Knowledge(
        given_logs(logs, counts),
        gaps,
        lost,
        given_topics(topics),
        first_ms,
        last_ms,
        lambda: share_state,
        without_ends=sorted(str(reader) for reader in readers if reader.may_hide_ends(None)),
        without_times=without_times(readers),
        whole_from_ms=whole_from_ms,
        missing_ends=missing_ends(readers),
    )


def without_times(readers: Iterable[LogReader]) -> list[str]:
    """Return the partitions of the logs of groups of which some records that were read have no time, by name."""
    return sorted(str(reader) for reader in readers if reader.lacks_times)


def missing_ends(readers: Iterable[LogReader]) -> dict[str, str]:
    """Return in words why the ends of partitions are missing, by name."""
    return {str(reader): reader.missing_end for reader in readers if reader.missing_end is not None}


def given_share_state(logs: Iterable[LogPlaced], counts: Mapping[str, int]) -> GivenShareState:
    """Return which partitions of the share state log are among these files; what they lack is noted when read.

    ``counts`` are those of ``log_counts``.
    """
    of_shares = [log for log in logs if log.family is Family.SHARE]
    partitions = {log.partition for log in of_shares}
    is_placed = all(log.is_placed for log in of_shares)
    return GivenShareState(partitions, counts.get(SHARE_LOG, 0), is_placed)


def given_topics(topics: TopicHistory | None) -> GivenTopics:
    """Return what was given of the topics."""
    return NO_TOPICS_GIVEN if topics is None else topics.given
