"""Group histories from log files, in this process: history, violations and commits in one pass."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from coordinator_core.audit.audited_rows import AuditedRow
from coordinator_core.audit.folds.commit_times import CommitCountFold
from coordinator_core.audit.folds.commits import CommitFold
from coordinator_core.audit.folds.group_folds import FoldedRow, GroupFolds, RecordSizeFold
from coordinator_core.audit.folds.group_history import GatheredRow, GroupHistory, ShareLogs
from coordinator_core.audit.folds.partition_folds import PartitionFolds
from coordinator_core.audit.folds.topics_at_end import TopicsAtEnd
from coordinator_core.audit.group_audit import GroupAudit, ShareAudit
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.rounds import Round, in_order, rounds
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.knowledge import GivenLogs, GivenShareState, Knowledge
from coordinator_core.history.lost_records import NOTHING_LOST, LogExtent, LostRecords, Place, UnreadableOffsets
from coordinator_core.history.missing_ends import AtEnd
from coordinator_core.history.topic_inputs import SharePhase
from coordinator_core.records import AnyRecord, Family, LogPosition
from coordinator_core.wire.control import MARKERS
from coordinator_core.wire.record_decoder import UnreadableRecord
from jobs.queries.from_logs.brokers import NO_LINES, LinesByGroup
from jobs.queries.from_logs.given import given_logs, given_share_state, knowledge, log_counts
from jobs.queries.from_logs.log_partition import look_for_end, read_to_end
from jobs.queries.from_logs.taken_rows import SeenTimes, TakenRow, taken_rows
from jobs.relations.moment import NEVER_MS
from jobs.sources.bounded_warnings import Warn
from jobs.sources.log_parts import LogPart
from jobs.sources.log_reader import LogReader, by_partition
from jobs.sources.topics import known_topics


@dataclass(slots=True)
class _Gathered:
    """The folds of one group, and the rows that they have produced so far."""

    folds: GroupFolds
    rows: list[AuditedRow] = field(default_factory=list)

    def keep(self, final: Iterable[AuditedRow]) -> None:
        self.rows += final


def group_histories(
    logs: Iterable[LogPart],
    warn: Warn,
    group_id: str | None = None,
    audit: AuditSettings | None = None,
    listed: TopicHistory | None = None,
    brokers: LinesByGroup = NO_LINES,
    noted: Callable[[Knowledge], None] | None = None,
    *,
    over_time: bool = False,
) -> Iterator[GroupHistory]:
    """Yield the history of each group, or of one. ``warn`` is called for what cannot be read or decoded.

    Targets are recomputed with the settings ``audit``; None: they are not. ``listed`` are the topics where the metadata
    log is not given, ``brokers`` the lines of brokers' application logs. ``noted`` is called at the end with
    what the logs lack. ``over_time``: with the counts and the trails of commits, which only a report shows.
    """
    logs = list(logs)
    readers, topics, share_readers = _opened(logs, warn, listed, group_id)
    counts = log_counts(topics, logs)
    # The share state log is read first: each history takes its rows out of it as soon as the group's own log is read.
    surroundings = _Surroundings(
        topics,
        _ShareState.read(share_readers, topics, group_id, given_share_state(logs, counts)),
        brokers,
        given_logs(logs, counts),
    )
    of_shares = 0
    for reader in readers:
        for history in _partition(reader, surroundings, group_id, audit, over_time=over_time):
            of_shares += any(
                row.was_initialized or row.phase == SharePhase.INITIALIZED for row in history.initializations
            )
            yield history
    around = surroundings
    known = knowledge(
        logs, topics, counts, readers, around.lost, around.times, around.shares.given, around.whole_from_ms
    )
    for reason in (*known.reasons_with_topics(group_id), *known.about_history()):
        warn(reason)
    if not of_shares and not surroundings.shares.groups:
        known = replace(known, share_state=None)
    for reason in known.about_share_groups():
        warn(reason)
    if noted is not None:
        noted(known)
    # What nobody has taken is of groups of which the logs of groups have no record.
    for other in list(surroundings.shares.groups):
        yield surroundings.history(other, 0, ())


def group_rounds(
    logs: Iterable[LogPart], warn: Warn, settings: AuditSettings, group_id: str, listed: TopicHistory | None = None
) -> list[Round]:
    """Return the assignment rounds of one group. ``warn`` is called for what cannot be read."""
    logs = list(logs)
    readers, topics, _ = _opened(logs, warn, listed, group_id)
    of_group: list[Round] = []
    times: list[int] = []
    lost, counts = NOTHING_LOST, log_counts(topics, logs)
    given = given_logs(logs, counts)
    for reader in readers:
        unreadable, own_times = UnreadableOffsets(), list[int]()
        records = _records_of(group_id, reader, unreadable, own_times)
        group = Group(group_id, from_start=reader.from_start, family=reader.family)
        of_group += rounds(records, group, topics, settings)
        if given.may_have(group_id, [str(reader)]):
            look_for_end(reader, unreadable, max(own_times, default=None), partial(read_to_end, reader), topics)
        times += own_times
        lost = lost.joined(_lost(reader, unreadable))
    known = knowledge(logs, topics, counts, readers, lost, times, given_share_state(logs, counts))
    for reason in (*known.reasons_with_topics(group_id), *known.about_history()):
        warn(reason)
    return in_order(of_group)


def _opened(
    logs: Iterable[LogPart], warn: Warn, listed: TopicHistory | None, group_id: str | None
) -> tuple[list[LogReader], TopicHistory | None, list[LogReader]]:
    """Return readers of the logs of groups, the topics of the metadata log, readers of the share state log."""
    partitions = by_partition(logs)
    topics = known_topics(partitions, listed, warn)
    of_groups = [*partitions[Family.CONNECT].values(), *partitions[Family.GROUP].values()]
    of_share_state = [LogReader(files, warn) for files in partitions[Family.SHARE].values()]
    return [LogReader(files, warn, group_id) for files in of_groups], topics, of_share_state


def _records_of(
    group_id: str, reader: LogReader, unreadable: UnreadableOffsets, times: list[int]
) -> Iterator[AnyRecord]:
    """Yield the records of a group, and note what cannot be decoded of its partition, and ``times`` (``_rows``)."""
    for row, *_ in _rows(reader, times, group_id):
        record = reader.read(row)
        if isinstance(record, UnreadableRecord):
            unreadable.note(record.group_id, row.offset, is_commit=record.is_commit)
        elif record is not None and record.group_id == group_id:
            yield record


def _lost(reader: LogReader, unreadable: UnreadableOffsets) -> LostRecords:
    """Return what a partition lacks that was read to its end."""
    return unreadable.lost(reader.place, [(span.first, span.last) for span in reader.gaps.lost])


@dataclass(slots=True)
class _ShareState:
    """The share state log, read: the rows of each group whose history was not made yet.

    ``groups_ms`` is as in ``ShareLogs``: the partitions of the log of groups that have been read so far. ``given`` is
    what the log lacks.
    """

    given: GivenShareState

    groups: dict[str, tuple[ShareAudit, list[AuditedRow]]] = field(default_factory=dict)
    last_ms: dict[int, int] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)
    lost: LostRecords = NOTHING_LOST
    groups_ms: dict[int, int] = field(default_factory=dict)

    @classmethod
    def read(
        cls, readers: Iterable[LogReader], topics: TopicHistory | None, wanted: str | None, given: GivenShareState
    ) -> "_ShareState":
        """``wanted`` is a group, None: all."""
        shares, coverage = cls(given), Coverage({})
        for reader in readers:
            last, unreadable = -1, UnreadableOffsets()
            for row in reader.rows():
                last = row.offset
                shares.last_ms[reader.partition] = max(row.timestamp, shares.last_ms.get(reader.partition, 0))
                record = reader.read(row)
                if isinstance(record, UnreadableRecord):
                    given.note_unreadable(reader.partition, row.offset)
                    unreadable.note(record.group_id, row.offset)
                    continue
                if not reader.is_numbered:
                    coverage.note(reader.partition, row.offset)
                if record is None or (wanted is not None and record.group_id != wanted):
                    continue
                known = shares.groups.get(record.group_id)
                if known is None:
                    known = shares.groups[record.group_id] = ShareAudit.begin(record.group_id, topics, coverage), []
                known[1].extend(known[0].feed(record))
            given.note_lost(reader.partition, ((gone.first, gone.last) for gone in reader.gaps.lost))
            shares.lost = shares.lost.joined(_lost(reader, unreadable))
            is_lost = reader.partition in given.lost or reader.partition in given.unreadable
            if last >= 0 and not is_lost and coverage.unbroken(reader.partition, 0, last):
                shares.whole.add(reader.partition)
        return shares

    def take(self, group_id: str) -> list[AuditedRow]:
        """The rows of a group, which are asked for once."""
        audit, rows = self.groups.pop(group_id, (None, []))
        return rows if audit is None else [*rows, *audit.open_rows()]


@dataclass(slots=True)
class _Surroundings:
    """What histories need beyond the records of their groups. ``times`` are those of the first and the last record of
    each partition that was read, ``read`` what was read of it, ``lost`` what it lacks; ``whole_from_ms`` is as in
    ``Knowledge``.
    """

    topics: TopicHistory | None
    shares: _ShareState
    brokers: LinesByGroup
    given: GivenLogs
    times: list[int] = field(default_factory=list)
    whole_from_ms: int | None = None
    read: dict[Place, LogExtent] = field(default_factory=dict)
    lost: LostRecords = NOTHING_LOST
    at_end: TopicsAtEnd = field(init=False)

    def __post_init__(self) -> None:
        self.at_end = TopicsAtEnd.of(self.topics)

    def note_missing(self, before_ms: int) -> None:
        """Note that offsets are missing before a record of this time."""
        self.whole_from_ms = max(before_ms, self.whole_from_ms or 0)

    def history(
        self, group_id: str, own_ms: int, rows: Iterable[FoldedRow], lost: LostRecords = NOTHING_LOST
    ) -> GroupHistory:
        """The history of these rows, and of those that the share state log gives. ``lost`` is what its log lacks."""
        of_share_state = self.shares.take(group_id)
        return GroupHistory.gather(
            group_id,
            own_ms,
            chain[GatheredRow](rows, of_share_state, self.brokers.of_group.get(group_id, ())),
            self.at_end,
            ShareLogs(self.shares.last_ms, frozenset(self.shares.whole), self.shares.groups_ms),
            lost.joined(self.shares.lost),
            self.brokers.others,
        )


def _partition(
    reader: LogReader, surroundings: _Surroundings, wanted: str | None, audit: AuditSettings | None, *, over_time: bool
) -> Iterator[GroupHistory]:
    coverage = Coverage({})
    # Where offsets number the lines of a text, they do not tell what is missing between two of them.
    shown = Coverage({}) if reader.is_numbered else coverage

    def begin(group_id: str) -> _Gathered:
        fold = GroupAudit.begin(
            group_id, reader.family, surroundings.topics, shown, audit, from_start=reader.from_start
        )
        counts = CommitCountFold() if over_time else None
        return _Gathered(GroupFolds(fold, RecordSizeFold(reader.family), CommitFold(has_trails=over_time), counts))

    folds = PartitionFolds(begin)
    last = LogPosition(reader.partition, -1, 0)
    losses = 0
    for row, first, latest_ms, passed in _rows(reader, surroundings.times, wanted):
        if reader.losses > losses:
            losses, gone = reader.losses, reader.gaps.lost[-1]
            folds.lose_offsets(reader.partition, gone.first, gone.last, row.timestamp)
        coverage.note(reader.partition, row.offset, first)
        if first > last.offset + 1:
            surroundings.note_missing(row.timestamp)
        last = LogPosition(reader.partition, row.offset, max(latest_ms, last.timestamp_ms))
        if row.control_type in MARKERS:
            folds.end_transaction(row.producer_id, committed=MARKERS[row.control_type], ended_ms=row.timestamp)
        record = reader.read(row)
        if isinstance(record, UnreadableRecord):
            folds.lose_record(record)
        elif record is not None and wanted in (None, record.group_id):
            producer_id = row.producer_id if row.is_transactional else None
            folds.feed(record, row.sizes, row.batch_base_offset, row.leader_epoch, producer_id, passed)
    if wanted is None or surroundings.given.may_have(wanted, [str(reader)]):
        at_end = partial(_at_end, folds) if wanted is None else partial(read_to_end, reader)
        look_for_end(reader, folds.unreadable, last.timestamp_ms, at_end, surroundings.topics)
    if reader.gaps.last_lost_below(None) > last.offset:
        # Nothing follows what is lost at the end: there is no record from which the log is whole again.
        surroundings.note_missing(NEVER_MS)
    is_whole = not reader.gaps.lost and folds.unreadable.unplaced is None
    if reader.family is Family.GROUP and reader.from_start and is_whole:
        surroundings.shares.groups_ms[reader.partition] = last.timestamp_ms
    surroundings.read[reader.place] = LogExtent.of(coverage.ranges(reader.partition))
    lost = _lost(reader, folds.unreadable)
    surroundings.lost = surroundings.lost.joined(lost)
    lost = replace(lost, read={**surroundings.read})
    for group_id, gathered in folds.groups.items():
        if wanted in (None, group_id):
            yield _as_history(group_id, gathered, last.timestamp_ms, surroundings, lost)


def _at_end(folds: PartitionFolds[_Gathered]) -> AtEnd:
    of_groups = [(group_id, gathered.folds) for group_id, gathered in folds.groups.items()]
    commits = ((group_id, commit) for group_id, each in of_groups for commit in each.commits.partitions())
    committed = ((group_id, commit.topic) for group_id, commit in commits if commit.offset is not None)
    return AtEnd((each.audit.group for _, each in of_groups), committed)


def _rows(reader: LogReader, times: list[int], wanted: str | None) -> Iterator[TakenRow]:
    """Yield the rows of a partition, see ``taken_rows``, and note the times of its first and of its last record."""
    seen = SeenTimes()
    for part in reader.batches():
        seen.note(part.column("timestamp"))
        yield from taken_rows(part, reader.family, wanted)
    times += seen.known()


def _as_history(
    group_id: str, gathered: _Gathered, own_ms: int, surroundings: _Surroundings, lost: LostRecords
) -> GroupHistory:
    for topic, deleted_ms in () if surroundings.topics is None else surroundings.topics.deletions():
        gathered.folds.commits.topic_deleted(topic, deleted_ms)
    rows = chain[FoldedRow](gathered.rows, gathered.folds.open_rows())
    return surroundings.history(group_id, own_ms, rows, lost)
