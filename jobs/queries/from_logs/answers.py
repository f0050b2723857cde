"""Answers read from log files, in this process: the fold is the core's own, the same that the replay job runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import InputError
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
from jobs.queries.from_logs.brokers import NO_BROKER_LOGS, BrokerLogs, LinesByGroup
from jobs.queries.from_logs.given import (
    given_logs,
    given_share_state,
    given_topics,
    log_counts,
    missing_ends,
    require_log_of_groups,
    without_times,
)
from jobs.queries.from_logs.log_partition import LogPartition, first_beyond
from jobs.queries.interface import NO_ENDS, AllHistories, GroupsThen, OwnedBy, RebalanceFilter, by_time, violation_order
from jobs.queries.moment_times import LogEnd, MomentTimes
from jobs.relations.moment import AsOf
from jobs.sources.bounded_warnings import Warn, each_once
from jobs.sources.log_parts import LogPart
from jobs.sources.log_reader import LogReader, by_partition, log_rows
from jobs.sources.topics import known_topics

if TYPE_CHECKING:  # what judges histories is imported once a history is asked for: it is half of the core
    from coordinator_core.audit.finding_rows import FindingRow
    from coordinator_core.audit.findings.resets import OffsetReset
    from coordinator_core.audit.folds.group_history import GroupHistory
    from coordinator_core.audit.offsets.burrow import LagPoint
    from coordinator_core.audit.offsets.runs import GroupCommits
    from coordinator_core.audit.rows import TargetAuditRow
    from coordinator_core.audit.settings import AuditSettings
    from coordinator_core.audit.targets.rounds import Round
    from coordinator_core.cluster.topic_history import TopicHistory
    from coordinator_core.groups.end_offsets import NewestEnds
    from coordinator_core.groups.violations import Violation
    from coordinator_core.history.knowledge import Knowledge
    from coordinator_core.history.rows import AssignmentRow, RebalanceRow
    from jobs.relations.news import News
    from jobs.settings import Settings
    from jobs.sources.end_offsets import EndOffsets


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
            # Brokers do not compact this log, so that a missing offset is a lost record.
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
    last_lost = reader.gaps.last_lost_below(end)
    if last_lost > (-1 if last is None else last):
        # No record follows up to the moment that would show the hole: it may have changed any state before it.
        state.lose(reader.partition)
    elif last_lost >= 0:
        state.lost.add(reader.partition)
    lost = ((gone.first, gone.last) for gone in reader.gaps.lost if end is None or gone.first < end)
    given.note_lost(reader.partition, lost)


@dataclass(slots=True)
class LogAnswers:
    """Answers from log files. ``warn`` is called once for each problem with reading or decoding them.

    ``listed`` are the topics of snapshots of the cluster, for logs without the metadata log, ``brokers`` the
    application logs of brokers. ``load_settings`` is
    called only for an answer that needs settings, as it takes long for a single question.
    """

    logs: Sequence[LogPart]
    warn: Warn
    load_settings: Callable[[], Settings]
    listed: TopicHistory | None = None
    brokers: BrokerLogs = NO_BROKER_LOGS
    _lines: LinesByGroup | None = None
    _known: Knowledge | None = None
    _members: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise InputError where no log of groups is among the logs."""
        require_log_of_groups(self.logs)

    @property
    def cluster_name(self) -> str:
        """The name in the settings: logs do not have one."""
        return self.load_settings().cluster

    def at(self, moment: AsOf, group_id: str | None = None) -> GroupsThen:
        """Replay all groups, also if only one is asked for."""
        self._broker_lines()
        return replay(self.logs, moment, self._warn_once(), self.listed, group_id)

    def history(self, group_id: str) -> GroupHistory | None:
        """One pass over the logs."""
        from coordinator_core.audit.folds.two_logs import combined

        # To the end of the logs, beyond the group: only then is it known what they lack.
        parts = list(combined(self._histories(group_id, self.load_settings().audit)))
        return parts[0] if parts else None

    def resets(self, history: GroupHistory) -> list[OffsetReset]:
        """From the commits of the history."""
        from coordinator_core.audit.findings.resets import offset_resets, rewinds_of

        return offset_resets(history, rewinds_of(history))

    def commits(self, group_id: str) -> GroupCommits:
        """One pass over the logs, in which the records of the group alone are decoded."""
        from jobs.queries.from_logs.commits import group_commits

        self._broker_lines()
        return group_commits(self.logs, self._warn_once(), group_id, self.listed)

    def lag(self, group_id: str | None, ends: EndOffsets | None) -> list[LagPoint]:
        """One pass over the logs; for one group only its records are decoded."""
        from jobs.queries.from_logs.commits import lag_from_logs

        if ends is None:
            raise InputError(NO_ENDS)
        self._broker_lines()
        return lag_from_logs(self.logs, self._warn_once(), group_id, ends)

    def newest_ends(self, until_ms: int | None) -> NewestEnds:
        """Log files have none."""
        return {}

    def rebalances(self, wanted: RebalanceFilter) -> Sequence[RebalanceRow]:
        """One pass over the logs."""
        from coordinator_core.audit.folds.two_logs import combined, told_rebalances

        rows = []
        for history in combined(self._histories(wanted.group_id)):
            if of_group := wanted.choose(told_rebalances(history)):
                self._members.update(history.members())
                rows += of_group
        return wanted.choose(rows)

    def members(self, groups: Collection[str]) -> Mapping[str, str]:
        """Of the rebalances that were asked for: their pass over the logs notes them."""
        return self._members

    def owned(self, wanted: OwnedBy) -> Sequence[AssignmentRow]:
        """One pass over the logs; targets are not judged."""
        return [row for history in self._histories(None) for row in history.assignments if wanted.has(row)]

    def group_of(self, partition: int, offset: int) -> str | None:
        """One pass over the logs."""
        for row in self.rebalances(RebalanceFilter()):
            if (row.at.partition, row.at.offset) == (partition, offset):
                return row.group_id
        return None

    def verdicts(self, group_id: str | None, since_ms: int) -> Iterable[TargetAuditRow]:
        """One pass over the logs."""
        rows = [row for history in self._histories(group_id, self.load_settings().audit) for row in history.targets]
        return sorted((row for row in rows if row.at.timestamp_ms >= since_ms), key=by_time)

    def violations(self, group_id: str | None, since_ms: int) -> Iterable[Violation]:
        """One pass over the logs; targets are not judged."""
        rows = [row for history in self._histories(group_id) for row in history.violations]
        return sorted((row for row in rows if row.at.timestamp_ms >= since_ms), key=violation_order)

    def findings(self, group_id: str | None, ends: NewestEnds | None = None) -> Sequence[FindingRow]:
        """One pass over the logs."""
        from coordinator_core.audit.finding_rows import listed
        from coordinator_core.audit.findings.all_findings import findings_of_cluster
        from coordinator_core.audit.folds.two_logs import combined

        chosen = self.load_settings()
        histories = combined(self._histories(group_id, chosen.audit))
        with_ends = (replace(history, ends=ends or {}) for history in histories)
        rows = findings_of_cluster(with_ends, chosen.findings, self._shows_all_since)
        return listed(rows, group_id)

    def news(self, night: str | None) -> News:
        """Everything is new: log files do not say what was known before."""
        from jobs.relations.news import News

        return News()

    def histories(self, ends: NewestEnds | None = None) -> AllHistories:
        """One pass over the logs for all of it."""
        from coordinator_core.audit.finding_rows import listed
        from coordinator_core.audit.findings.all_findings import findings_of_cluster
        from coordinator_core.audit.folds.two_logs import combined, told_rebalances

        chosen = self.load_settings()

        def noted() -> Iterator[GroupHistory]:
            for history in self._histories(None, chosen.audit):
                verdicts.extend(history.targets)
                violations.extend(history.violations)
                yield history

        def with_rebalances() -> Iterator[GroupHistory]:
            for history in combined(noted()):
                rebalances.extend(told_rebalances(history))
                yield replace(history, ends=ends or {})

        rebalances: list[RebalanceRow] = []
        verdicts: list[TargetAuditRow] = []
        violations: list[Violation] = []
        # The three lists are filled while the findings read the generators: they are complete only behind this line.
        rows = list(findings_of_cluster(with_rebalances(), chosen.findings, self._shows_all_since))
        return AllHistories(
            sorted(rebalances, key=by_time),
            sorted(verdicts, key=by_time),
            sorted(violations, key=violation_order),
            listed(rows),
        )

    def rounds(self, group_id: str) -> list[Round]:
        """One pass over the logs."""
        from jobs.queries.from_logs.history import group_rounds

        self._broker_lines()
        return group_rounds(self.logs, self._warn_once(), self.load_settings().audit, group_id, self.listed)

    def _histories(self, group_id: str | None, audit: AuditSettings | None = None) -> Iterator[GroupHistory]:
        """Yield the histories of one group or all; targets are judged if there are settings for it."""
        from jobs.queries.from_logs.history import group_histories

        lines = self._broker_lines()
        return group_histories(self.logs, self._warn_once(), group_id, audit, self.listed, lines, self._note)

    def _broker_lines(self) -> LinesByGroup:
        """Return the lines of brokers' logs, read once: also for answers that do not change by them, as their warnings
        tell what the logs lack. Their topics are those of the answers where no others were given.
        """
        if self._lines is None:
            self._lines = self.brokers.read(self.logs, self.warn)
            if self.listed is None:  # one without topics is false, and may have settings
                self.listed = self._lines.topics()
        return self._lines

    def knowledge(self) -> Knowledge:
        """One pass over the logs, unless an answer before was one."""
        if self._known is None:
            for _ in self._histories(None):
                pass
        assert self._known is not None
        return self._known

    def lacks_of_shares(self, group_id: str | None) -> Sequence[str]:
        """As the last pass found it, which was about the group."""
        return self.knowledge().about_share_groups()

    def _shows_all_since(self, time_ms: int) -> bool:
        return self.knowledge().shows_all_since(time_ms)

    def _note(self, known: Knowledge) -> None:
        self._known = known

    def _warn_once(self) -> Warn:
        """Return ``warn`` for the first pass only: every pass meets the same problems. It says nothing twice."""
        warn, self.warn = self.warn, lambda message: None
        return each_once(warn)
