"""Replay of log files in this process, without Spark and without tables.

The fold is the core's own, the same that the replay job runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.moved_groups import without_moved
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.groups.share.state_log import ShareStateLog
from coordinator_core.groups.simple_groups import without_forgotten
from coordinator_core.history.knowledge import GivenLogs, GivenShareState, Knowledge
from coordinator_core.history.lost_records import NOTHING_LOST
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, Family
from coordinator_core.wire.record_decoder import UnreadableRecord
from jobs.queries.from_logs.given import (
    given_logs,
    given_share_state,
    given_topics,
    log_counts,
    missing_ends,
    without_times,
)
from jobs.queries.from_logs.log_partition import LogPartition, first_beyond
from jobs.queries.moment_times import LogEnd, MomentTimes
from jobs.relations.moment import AsOf
from jobs.sources.bounded_warnings import Warn
from jobs.sources.files import LogPart
from jobs.sources.log_reader import LogReader, by_partition, log_rows
from jobs.sources.topics import known_topics


@dataclass(slots=True)
class ReplayedGroups:
    """The coordinator at a moment: the log ``partitions`` of groups; what was not given is None.

    ``times`` are those of the moment in other logs.
    """

    partitions: list[LogPartition] = field(default_factory=list)
    topics: TopicHistory | None = None
    share_state: ShareStateLog | None = None
    given: GivenLogs = field(default_factory=GivenLogs)
    given_share_state: GivenShareState = field(default_factory=GivenShareState)
    times: MomentTimes = field(default_factory=MomentTimes)

    def groups(self) -> Iterator[GroupThen]:
        """Every group that there was or may have been, or that offsets were committed for, by group id."""
        thens = [then for partition in self.partitions for then in partition.groups()]
        there = without_forgotten(thens, lambda: self.surroundings().oldest_broker)
        yield from without_moved(sorted(there, key=lambda then: then.group.group_id))

    def named(self) -> set[str]:
        """Return the ids of all groups of which a record up to the moment tells, be it a tombstone."""
        return {group_id for partition in self.partitions for group_id in partition.named()}

    def gaps(self) -> dict[str, LogGaps]:
        """Return what is missing in each partition of the group logs, by the name of the partition."""
        return {str(partition.reader): partition.gaps for partition in self.partitions}

    def knowledge(self) -> Knowledge:
        """Return what the logs lack, as seen from the moment."""
        lost = NOTHING_LOST
        for partition in self.partitions:
            lost = lost.joined(partition.unreadable.lost(partition.reader.place))
        times = self._times()
        topics = given_topics(self.topics)
        first_ms, last_ms = min(times, default=None), max(times, default=None)
        return Knowledge(
            self.given,
            self.gaps(),
            lost,
            topics,
            first_ms,
            last_ms,
            lambda: self.given_share_state,
            without_ends=sorted(str(partition.reader) for partition in self.partitions if partition.may_hide_ends),
            without_times=without_times(partition.reader for partition in self.partitions),
            missing_ends=missing_ends(partition.reader for partition in self.partitions),
        )

    def image(self) -> TopicImage | None:
        """Return the topics at the moment; None if they are unknown, as at an offset whose record has no time."""
        if self.topics is None or not self.times.is_timed:
            return None
        return self.topics.image_at(self.times.topics_ms, max(self._times(), default=0), self.times.upto_ms)

    def lives(self, topic: str) -> list[TopicInterval] | None:
        """Return the times over which a topic stayed as it was, also after the moment; None if topics are unknown."""
        return None if self.topics is None else [*self.topics.intervals([topic])]

    def span(self) -> tuple[int | None, int | None]:
        """Return the times of the first and the last record in the logs of groups; see ``GroupsThen``."""
        times = self._times()
        is_cut = any(partition.is_cut for partition in self.partitions)
        return min(times, default=None), None if is_cut else max(times, default=None)

    def _times(self) -> list[int]:
        """Return the times of the first and the last record of each partition."""
        return [time_ms for partition in self.partitions for time_ms in partition.times.known()]

    def surroundings(self) -> Surroundings:
        """Return the facts outside a group that its description needs."""
        around = Surroundings(self.image(), self.share_state)
        topics = self.topics if self.times.is_timed else None
        return around.with_brokers(topics, self.times.topics_ms, self.times.upto_ms)


def replay(
    logs: Iterable[LogPart], moment: AsOf, warn: Warn, listed: TopicHistory | None = None, group_id: str | None = None
) -> ReplayedGroups:
    """Replay the logs up to the moment. What cannot be read or decoded is skipped, and ``warn`` is called.

    ``listed`` are the topics where the metadata log is not given; ``group_id`` is the group that is asked for, if one
    is.
    """
    logs = list(logs)
    partitions = by_partition(logs)
    by_topic = {GROUP_LOG: partitions[Family.GROUP], CONNECT_LOG: partitions[Family.CONNECT]}
    replayed = ReplayedGroups(topics=known_topics(partitions, listed, warn))

    def read(topics: Sequence[str], at: AsOf) -> list[LogEnd]:
        ends = []
        for number, files in chain.from_iterable(by_topic[topic].items() for topic in topics):
            partition = LogPartition(LogReader(files, warn, group_id), replayed.topics)
            ends.append(partition.replay(at.time_ms, at.offsets.get(number)))
            replayed.partitions.append(partition)
        return ends

    times = replayed.times = MomentTimes.looked_up(moment, read)
    last_ms = replayed.span()[1]
    # Between the last record and the moment more may have happened than these files have.
    if moment.time_ms is not None and last_ms is not None and moment.time_ms > last_ms:
        for partition in replayed.partitions:
            if partition.reader.partition not in moment.offsets:  # its end at that time is known
                partition.gaps = partition.gaps.after_end()
    for partition in replayed.partitions:
        if partition.reader.family is Family.CONNECT and partition.reader.partition in times.untimed:
            partition.gaps = partition.gaps.untimed()
    counts = log_counts(replayed.topics, logs)
    replayed.given = given_logs(logs, counts)
    given = replayed.given_share_state = given_share_state(logs, counts)
    # Last, because only the logs of groups tell up to which time it counts.
    for files in partitions[Family.SHARE].values():
        replayed.share_state = replayed.share_state or ShareStateLog(lost=set(given.doubtful), sure_ms=times.sure_ms)
        _replay_share_state(replayed.share_state, LogReader(files, warn), times.shares_ms, given)
    return replayed


def _replay_share_state(state: ShareStateLog, reader: LogReader, time_ms: int | None, given: GivenShareState) -> None:
    """Replay a partition of the share state log up to a time, and note what it lacks until then."""
    end: int | None = None
    last: int | None = None
    for batch in reader.batches():
        beyond = first_beyond(batch, time_ms, None)
        for row in log_rows(batch.slice(0, beyond)):
            if last is not None and row.offset != last + 1:
                state.lose(reader.partition)
            last = row.offset
            record = reader.read(row)
            if isinstance(record, UnreadableRecord):
                state.lose(reader.partition)
                given.note_unreadable(reader.partition, row.offset)
            elif record is not None:
                state.apply(record)
        if beyond is not None:
            end = batch.column("offset")[beyond].as_py()
            break
    if reader.gaps.last_lost_below(end) >= 0:
        state.lost.add(reader.partition)
    lost = ((gone.first, gone.last) for gone in reader.gaps.lost if end is None or gone.first < end)
    given.note_lost(reader.partition, lost)
