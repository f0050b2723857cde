"""The groups of a log that is still written: the folds of a night, fed as records come, and what happens in them.

The rows are those that a night makes of the same log. A rebalance is reported when its first row appears and when its
row is final; a finding when it was not there at the last look.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.findings.of_cluster import ClusterSigns, CoveredRows, about_cluster, marked
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.commit_times import CommitCountFold
from coordinator_core.audit.folds.group_folds import GroupFolds, RecordSizeFold
from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GatheredRow, GroupHistory, ShareLogs
from coordinator_core.audit.folds.partition_folds import PartitionFolds
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS, TopicsAtEnd
from coordinator_core.audit.group_audit import GroupAudit, ShareAudit
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.broker_history import BrokerHistory
from coordinator_core.cluster.coordinators_away import NEVER_AWAY, coordinators_away
from coordinator_core.cluster.metadata_log import MetadataLog
from coordinator_core.cluster.topic_changes import hole_before
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError, UnknownTypeError
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.history.coverage import Coverage, ignored_in_words
from coordinator_core.history.lost_records import NOTHING_LOST
from coordinator_core.records import AnyRecord, Family, LogPosition, RecordType
from coordinator_core.wire.batch_format import Kind
from coordinator_core.wire.control import MARKERS
from coordinator_core.wire.record_codec import key_type
from coordinator_core.wire.record_decoder import RecordDecoder, UnreadableRecord
from jobs.sources.bounded_warnings import BoundedWarnings, Warn
from jobs.sources.log_reader import LogRow
from jobs.watch.events import (
    CLUSTER,
    FindingEvent,
    GroupKey,
    LagChanged,
    RebalanceBegan,
    RebalanceEnded,
    Reported,
    WatchEvent,
)
from jobs.watch.followed_group import FollowedGroup
from jobs.watch.followed_log import FollowedLog, Reached
from jobs.watch.followed_share_state import FollowedShareState
from jobs.watch.lags import Lags
from jobs.watch.live_topics import LiveTopics, SeenLeaders
from jobs.watch.looks import Looks
from jobs.watch.new_rows import LogPlace, NewRows

if TYPE_CHECKING:
    from jobs.watch.live_broker import Look, TakenSnapshot

MOST_RANGES = 1_000
"""So many ranges of offsets without a gap are kept of a log partition, the newest."""
MOST_OVER = 1_000
"""So many groups that were deleted are kept, the last ones."""
REMEMBERED_MS = 7 * 24 * 3_600_000
"""A finding that was not seen for so long is reported again when it is there again."""


class FollowedGroups:
    """All groups of the followed logs. Feed new rows with ``feed``; ``events`` says what happened since it was asked.

    ``topics`` are those of snapshots of the cluster; rows of the metadata log take their place. ``live_topics`` are
    those that the cluster itself lists, and take their place too. Before ``is_live``,
    while what is there is read, no event is reported. ``clock`` gives seconds, for how often findings are made again.
    """

    def __init__(
        self,
        settings: AuditSettings,
        limits: Thresholds,
        topics: TopicHistory | None,
        warn: Warn,
        clock: Callable[[], float] = time.monotonic,
        live_topics: LiveTopics | None = None,
    ) -> None:
        self.is_live = False
        self.logs: dict[LogPlace, FollowedLog] = {}
        self.groups: dict[GroupKey, FollowedGroup] = {}
        self.shares: dict[str, FollowedShareState] = {}
        self.lags = Lags()
        self.of_cluster: list[FindingRow] = []
        self.reported: dict[GroupKey, Reported] = {}
        """What was reported of the cluster, and of groups that were not seen yet."""
        self.coverage: dict[Family, Coverage] = {family: Coverage({}) for family in Family}
        self.settings, self.topics, self.live_topics = settings, topics, live_topics
        self._limits, self._warn = limits, warn
        self.faults = BoundedWarnings("the followed logs", warn)
        """The records that cannot be decoded: a broker of a newer release may write them all the time."""
        self._ignored: set[tuple[LogPlace, int]] = set()
        self._metadata: MetadataLog | None = None
        self._decoders = {family: RecordDecoder(family) for family in Family}
        self._touched: dict[GroupKey, None] = {}
        self._less: dict[GroupKey, None] = {}
        self._looks = Looks(clock)
        self._at_end = 0, NO_TOPICS
        self._storms: list[CoveredRows] = []
        self._away = NEVER_AWAY
        known = topics if live_topics is None else live_topics.history
        self._brokers = BrokerHistory() if known is None else known.brokers
        self._leaders = SeenLeaders(self._brokers)
        self._is_cluster_changed = False

    def __len__(self) -> int:
        return len(self.groups)

    def reached(self) -> dict[LogPlace, Reached]:
        """Return how far each log partition was read."""
        return {place: Reached(log.last, log.from_start) for place, log in self.logs.items() if log.end}

    # --- records -----------------------------------------------------------------------------------------------------

    def feed(self, new: NewRows) -> None:
        """Take in rows of a log partition, in the order of their offsets."""
        log = self.logs.get(new.place)
        if log is None:
            log = self.log(new.place, from_start=new.from_start)
            if new.rows and not new.from_start and new.place.family in (Family.GROUP, Family.CONNECT):
                log.lose(0, new.rows[0].offset - 1)
        if new.place.family is Family.METADATA:
            self._feed_metadata(log, new)
        else:
            if new.place.family is Family.SHARE:
                log.lose_missing(new.rows)
            elif new.is_lost and new.rows and new.rows[0].offset > log.end:
                first, known = log.end, new.rows[0]
                log.lose(first, known.offset - 1)
                log.folds.lose_offsets(new.place.partition, first, known.offset - 1, known.timestamp)
            coverage = self.coverage[new.place.family]
            for row in new.rows:
                if new.hides_control and new.place.family is not Family.SHARE:
                    # A consumer sees no markers: where compaction has not been, a missing offset can be nothing else,
                    # and breaks nothing.
                    if not (log.is_compacted_here or (new.is_lost and row is new.rows[0])):
                        coverage.bridge(new.place.partition, row.offset)
                    log.note_key(row.key)
                self._feed_row(log, row, coverage)
            coverage.newest_ranges(new.place.partition, MOST_RANGES)
        if new.rows:
            log.read(new.rows)
        if not self.is_live:
            for _ in self._forget():
                pass

    def _feed_metadata(self, log: FollowedLog, new: NewRows) -> None:
        if self._metadata is None:
            self._metadata = MetadataLog()
            self._judge_by(self._metadata.history)
        if new.snapshot is not None:
            self._metadata.begin(new.snapshot)
        end, last_ms = log.end, log.last_ms
        for row in new.rows:
            if 0 < end < row.offset:
                at = LogPosition(new.place.partition, row.offset, row.timestamp)
                self._metadata.history.gaps.append(hole_before(at, last_ms))
            end, last_ms = row.offset + 1, max(last_ms, row.timestamp)
            record = self._decoded(new.place, row) if row.kind == Kind.RECORD.value else None
            if record is not None and not isinstance(record, UnreadableRecord):
                self._metadata.apply(record)
        self._metadata.finish()
        self._note_away(self._metadata.history.brokers)

    def _feed_row(self, log: FollowedLog, row: LogRow, coverage: Coverage) -> None:
        place = log.place
        if row.kind != Kind.RECORD.value:
            coverage.note(place.partition, row.offset)
            if row.control_type in MARKERS:
                for group in log.folds.end_transaction(
                    row.producer_id, committed=MARKERS[row.control_type], ended_ms=row.timestamp
                ):
                    group.is_changed = True
                    self._looks.note(group.key, only_commits=True)
            return
        record = self._decoded(place, row)
        # Share state goes on from its next snapshot: an unreadable update is a hole there, as if its offset were
        # missing.
        if place.family is not Family.SHARE or not isinstance(record, UnreadableRecord):
            coverage.note(place.partition, row.offset)
        if isinstance(record, UnreadableRecord):
            self._note_unreadable(log, record)
        elif record is not None and place.family is Family.SHARE:
            self._feed_share_state(record)
        elif record is not None:
            producer_id = row.producer_id if row.is_transactional else None
            group = log.folds.feed(record, row.sizes, row.batch_base_offset, row.leader_epoch, producer_id)
            group.fed += 1
            # In the order of their last records, those whose last one removes something: a deleted group is one of
            # them.
            self._less.pop(group.key, None)
            if record.value is None:
                self._less[group.key] = None
            is_commit = record.type <= RecordType.OFFSET_COMMIT
            if is_commit:
                self.lags.feed(record)
            else:  # commits begin and end no rebalance
                self._touched[group.key] = None
            self._looks.note(group.key, only_commits=is_commit)

    def log(self, place: LogPlace, *, from_start: bool) -> FollowedLog:
        """Begin to follow a log partition."""

        def begin(group_id: str) -> FollowedGroup:
            key = place.family, group_id
            audit = GroupAudit.begin(
                group_id, place.family, self.topics, self.coverage[place.family], self.settings, from_start=from_start
            )
            folds = GroupFolds(audit, RecordSizeFold(place.family), counts=CommitCountFold())
            reported = self.reported.pop(key, None) or Reported()
            group = self.groups[key] = FollowedGroup(key, place, folds, reported=reported)
            return group

        log = self.logs[place] = FollowedLog(place, from_start, PartitionFolds(begin))
        return log

    def _feed_share_state(self, record: AnyRecord) -> None:
        group_id = record.group_id
        share = self.shares.get(group_id)
        if share is None:
            share = FollowedShareState(ShareAudit.begin(group_id, self.topics, self.coverage[Family.SHARE]))
            self.shares[group_id] = share
        key = Family.GROUP, group_id
        for row in share.feed(record):
            if key in self.groups:
                self.groups[key].tallies.note(row)
        self._looks.note(key)

    def _decoded(self, place: LogPlace, row: LogRow) -> AnyRecord | UnreadableRecord | None:
        """Return a record; None: one of a type that has no schema."""
        at = LogPosition(place.partition, row.offset, row.timestamp)
        decoder = self._decoders[place.family]
        try:
            return decoder.record(at, row.key, row.value, row.batch_base_offset)
        except DecodeError as error:
            if isinstance(error, UnknownTypeError):
                if place.family is not Family.METADATA and (ignored := (place, key_type(row.key))) not in self._ignored:
                    self._ignored.add(ignored)
                    self._warn(ignored_in_words(str(place), ignored[1], row.offset))
                return None
            self.faults.add(f"{place} offset {row.offset}: {error}", str(error))
            return decoder.unreadable(at, row.key, error)

    def _note_unreadable(self, log: FollowedLog, record: UnreadableRecord) -> None:
        self._less.pop((log.place.family, record.group_id or ""), None)
        if log.place.family is Family.SHARE:
            log.folds.unreadable.note(record.group_id, record.at.offset)
            return
        log.folds.lose_record(record)
        if record.is_commit:
            self.lags.lose(record)

    def restore(self, group: FollowedGroup) -> None:
        """Take a group that was stored; its log partition was taken before."""
        folds = self.logs[group.place].folds
        self.groups[group.key] = folds.groups[group.group_id] = group
        if group.is_over:
            self._less[group.key] = None
        # The index by producer is not stored: the groups' own memories make it again.
        for producer_id in group.folds.commits.memory.pending:
            folds.writing.setdefault(producer_id, set()).add(group.group_id)

    # --- what brokers say --------------------------------------------------------------------------------------------

    def take_snapshot(self, snapshot: TakenSnapshot | None) -> None:
        """Take in what the cluster shows of its topics and settings."""
        live = self.live_topics
        if live is not None and snapshot is not None:
            live.take(snapshot.rows, snapshot.time_ms)
        self.use_live_topics()

    def use_live_topics(self) -> None:
        """Judge by the topics that the cluster lists, if it has listed any."""
        if self.live_topics is not None and self.live_topics.is_known:
            self._judge_by(self.live_topics.history)

    def _judge_by(self, topics: TopicHistory) -> None:
        """Judge by these topics from now on, also groups of which something was read before there were any."""
        if self.topics is topics:
            return
        self.topics = topics
        for (family, _), group in self.groups.items():
            state = group.folds.audit.state()
            group.folds.audit = GroupAudit.resume(state, topics, self.coverage[family], self.settings)
        for share in self.shares.values():
            share.audit = ShareAudit.resume(share.audit.state(), topics, self.coverage[Family.SHARE])

    def take_look(self, look: Look) -> None:
        """Take in what brokers said of the cluster, or that none answered."""
        self.take_snapshot(look.snapshot)
        self._leaders.saw(look.time_ms, look.leaders)
        self._note_away(self._brokers)

    def _note_away(self, brokers: BrokerHistory) -> None:
        before, self._away = self._away, coordinators_away(brokers)
        lasts = any(time.until is None for times in self._away.values() for time in times)
        self._is_cluster_changed |= lasts or before != self._away

    # --- what happened -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Take all that is known by now as reported: from now on ``events`` tells what is new."""
        keys = {*self.groups, *((Family.GROUP, group_id) for group_id in self.shares)}
        for key in keys:
            for _ in self._rebalances(key, is_settled=True):
                pass
            for _ in self._look(key):
                pass
        for _ in self._cluster_findings():
            pass
        # A finding that one of the cluster covers has not ended: it was never told.
        for key in keys if self._storms else ():
            for _ in self._look(key):
                pass
        self._touched.clear()
        self.faults.finish()
        self.is_live = True

    def resume(self) -> None:
        """Tell from now on what is new since what is known by now, which was reported; all findings are made again."""
        for key in {*self.groups, *((Family.GROUP, group_id) for group_id in self.shares)}:
            self._touched[key] = None
            self._looks.note(key)
        self.is_live = True

    def events(self, *, is_settled: bool = True) -> Iterator[WatchEvent]:
        """Yield what happened in the groups that had new records since the last call, group by group.

        Findings of groups with much news may come with a later call. ``is_settled``: the rows that were fed do not end
        in the middle of what a coordinator wrote at once.
        """
        if not self.is_live:
            return
        touched, self._touched = self._touched, {}
        for key in touched:
            yield from self._rebalances(key, is_settled=is_settled)
        if not is_settled:
            # What has not ended may be news once the rest is there, without another record of the group.
            self._touched |= touched
        for key in self._looks.due():
            yield from self._look(key)
        if is_settled:
            yield from self._forget()
        # After the groups: the cluster is judged by what their looks have shown.
        if self._is_cluster_changed:
            yield from self._cluster_findings()

    def _forget(self) -> Iterator[WatchEvent]:
        """Forget deleted groups, but for the last ones; yield the ends of their findings."""
        while len(self._less) > MOST_OVER:
            key = next(iter(self._less))
            del self._less[key]
            group, share = self.groups[key], self.shares.get(key[1]) if key[0] is Family.GROUP else None
            if group.is_over and not (share is not None and share.audit.open_rows()):
                yield from group.reported.changes(key, (), self.logs[group.place].last_ms)
                del self.groups[key], self.logs[group.place].folds.groups[group.group_id]
                if share is not None:
                    del self.shares[key[1]]
                self._looks.forget(key)

    def findings(self) -> Iterator[FindingRow]:
        """Yield the findings of all groups as of their last looks, without what a storm of many groups covers, and
        those of the cluster.
        """
        for group in self.groups.values():
            yield from (row for row in marked(group.findings, self._storms) if not row.covered)
        for group_id, share in self.shares.items():
            if (Family.GROUP, group_id) not in self.groups:
                yield from share.findings
        yield from self.of_cluster

    def read_ends(self, time_ms: int, ends: Mapping[TopicPartition, EndOffset], end_ms: int) -> Iterator[LagChanged]:
        """Take end offsets as of a time, when the logs had been read up to ``end_ms``; yield what changed of lag."""
        for row in list(self.lags.read(time_ms, ends, end_ms)):
            group = self.groups.get((Family.GROUP, row.group_id))
            if group is not None and group.reported.lag != row.status:
                changed = LagChanged(group.key, row._replace(before=group.reported.lag))
                # That a group is well is news only after it was not.
                is_first_ok = group.reported.lag is None and not row.worst
                group.reported.note(changed)
                group.is_changed = True
                if not is_first_ok:
                    yield changed

    def history(self, key: GroupKey) -> GroupHistory:
        """Return the history of a group, as far as it is kept."""
        group, share = self.groups.get(key), self.shares.get(key[1]) if key[0] is Family.GROUP else None
        log = None if group is None else self.logs[group.place]
        lost = NOTHING_LOST if log is None else log.lost_records
        if share is not None:
            for share_log in self._logs_of(Family.SHARE):
                lost = lost.joined(share_log.lost_records)
        rows = chain[GatheredRow](
            () if group is None else group.rows(self.topics), () if share is None else share.rows()
        )
        return GroupHistory.gather(
            key[1],
            0 if log is None else log.last_ms,
            rows,
            self._topics_at_end(),
            NO_SHARE_LOGS if share is None else self._share_logs(),
            lost,
        )

    def members(self, event: RebalanceBegan | RebalanceEnded) -> Mapping[str, str]:
        """Return the names of the clients behind the members of the event's group, with their ids; by member id."""
        return self.groups[event.key].members()

    def _topics_at_end(self) -> TopicsAtEnd:
        """Return what is known of the topics; most of it is asked again once there is another version of them."""
        if self.topics is None:
            return NO_TOPICS._replace(away=self._away, seen_ms=self._leaders.seen_ms)
        version, at_end = self._at_end
        if version != len(self.topics):
            at_end = TopicsAtEnd.of(self.topics)
            self._at_end = len(self.topics), at_end
        reach = self.topics.reach
        return at_end._replace(
            reach=reach,
            away=self._away,
            features=self.topics.brokers.features(from_start=reach.from_start),
            levels=self.topics.broker_levels(None),
            seen_ms=self._leaders.seen_ms,
        )

    def _share_logs(self) -> ShareLogs:
        of_state = self._logs_of(Family.SHARE)
        of_groups = [log for log in self._logs_of(Family.GROUP) if log.is_whole]
        coverage = self.coverage[Family.SHARE]
        return ShareLogs(
            {log.place.partition: log.last_ms for log in of_state},
            frozenset(
                log.place.partition
                for log in of_state
                if log.lost_records == NOTHING_LOST and coverage.unbroken(log.place.partition, 0, log.last.offset)
            ),
            {log.place.partition: log.last_ms for log in of_groups},
        )

    def _logs_of(self, family: Family) -> list[FollowedLog]:
        return [log for log in self.logs.values() if log.place.family is family]

    def _rebalances(self, key: GroupKey, *, is_settled: bool) -> Iterator[WatchEvent]:
        group = self.groups.get(key)
        if group is not None:
            yield from group.rebalances(is_settled=is_settled)

    def _look(self, key: GroupKey) -> Iterator[FindingEvent]:
        """Make the findings of a group again; yield what changed with them."""
        group = self.groups.get(key)
        history = self.history(key)
        reported = self.reported.setdefault(key, Reported()) if group is None else group.reported
        rows = list(marked(findings(history, self._limits), self._storms))
        before = dict(reported.findings)
        yield from reported.changes(key, [row for row in rows if not row.covered], history.shares_ms)
        reported.forget(history.shares_ms - REMEMBERED_MS)
        if group is not None:
            # The cluster is judged from all groups: that is asked again only where this one shows another sign of it.
            self._is_cluster_changed |= group.show(rows, ClusterSigns.of(history))
            group.is_changed |= reported.findings != before
        elif key[1] in self.shares:
            self.shares[key[1]].findings = rows

    def _cluster_findings(self) -> Iterator[FindingEvent]:
        self._is_cluster_changed = False
        signs = ClusterSigns.of_all(group.signs for group in self.groups.values())
        of_groups = (row for group in self.groups.values() for row in group.findings)
        is_whole = all(log.is_whole for log in (*self._logs_of(Family.GROUP), *self._logs_of(Family.CONNECT)))
        self.of_cluster, self._storms = about_cluster(
            signs, self._topics_at_end(), of_groups, self._limits, lambda since_ms: is_whole
        )
        now_ms = max((log.last_ms for log in self.logs.values()), default=0)
        yield from self.reported.setdefault(CLUSTER, Reported()).changes(CLUSTER, self.of_cluster, now_ms)
