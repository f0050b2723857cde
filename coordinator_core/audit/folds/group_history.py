"""The input of the findings: the history rows of one group, and a summary of its commits."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar

from coordinator_core.audit.audited_rows import AuditedRow
from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level, make_finding
from coordinator_core.audit.folds.client_names import client_library, client_name, clients_of, named, shared_names
from coordinator_core.audit.folds.commit_times import CommitCount, CommitTrail
from coordinator_core.audit.folds.commits import OpenTransaction, PartitionCommits, Removal
from coordinator_core.audit.folds.log_ends import Noted, UseOfEnds
from coordinator_core.audit.folds.removals import EmptySpans, how_by_lines
from coordinator_core.audit.folds.share_deliveries import ShareDelivery, share_deliveries
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS, TopicsAtEnd
from coordinator_core.audit.folds.witness import BrokerLines, Testimony, testify
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.broker_log.all_files import without_copies
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.cluster.coordinators_away import CoordinatorAway
from coordinator_core.cluster.given_topics import TopicReach
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE, STREAMS_PROTOCOL
from coordinator_core.groups.end_offsets import NewestEnds
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.violations import Violation
from coordinator_core.history.lost_records import NOTHING_LOST, LogExtent, LostRecords, Place
from coordinator_core.history.rows import (
    AssignmentRow,
    GroupEpochRow,
    MembershipRow,
    RebalanceRow,
    ShareInitializationRow,
    SharePartitionRow,
)
from coordinator_core.records import GROUP_LOG, LOG_TOPICS, Family, LogPosition

LastingT = TypeVar("LastingT", AssignmentRow, GroupEpochRow, MembershipRow, ShareInitializationRow)


class RecordSize(NamedTuple):
    """The largest record of one type that a group has in a log, or its largest batch."""

    log_topic: Annotated[str, "topic of the log"]
    record_type: Annotated[int | None, "record type; null: all records of the group in one batch"]
    size: Annotated[
        int, "bytes of the batch, uncompressed: keys, values, framing, header; of one record, if it were alone in it"
    ]
    records: Annotated[int, "number of records"]
    at: Annotated[LogPosition, "the record, or the first offset of the batch with the time of its last record"]


class ShareLogs(NamedTuple):
    """What was read of the share state log: by partition the time (ms) of its last record; and which partitions
    were read from their beginning without a gap. ``groups_ms`` has the time of the last record for each partition of
    the log of groups that was read from its beginning and that lacks only what compaction removed; it is empty for a
    group that is in that log.
    """

    last_ms: Mapping[int, int] = MappingProxyType({})
    whole: frozenset[int] = frozenset()
    groups_ms: Mapping[int, int] = MappingProxyType({})


NO_SHARE_LOGS = ShareLogs()


@dataclass(frozen=True)
class GroupHistory:
    """All that is known about one group, as of ``now_ms``, the last time that its own log shows.

    ``ends_used`` notes what is concluded from the ends of the logs; ``replaced`` makes another history that notes it at
    the same place.
    ``topics`` are those of then. ``logs_ms``: the last time of each log, by topic, of workers in two logs.
    ``deliveries`` sums ``share_partitions`` up. ``lost`` is what the logs of groups lack.
    ``trails`` are the commits over time, which reports alone read from tables.
    ``events`` are the lines of brokers' application logs about the group and its log partition; what they add is in the
    rows. ``ends`` are the newest end offsets of data partitions that were given.
    """

    group_id: str
    now_ms: Noted[int] = Noted()  # noqa: RUF009  (a descriptor)
    epochs: Sequence[GroupEpochRow] = ()
    rebalances: Sequence[RebalanceRow] = ()
    memberships: Sequence[MembershipRow] = ()
    assignments: Sequence[AssignmentRow] = ()
    violations: Sequence[Violation] = ()
    targets: Sequence[TargetAuditRow] = ()
    initializations: Sequence[ShareInitializationRow] = ()
    share_partitions: Sequence[SharePartitionRow] = ()
    deliveries: Sequence[ShareDelivery] = ()
    commits: Sequence[PartitionCommits] = ()
    commit_counts: Sequence[CommitCount] = ()
    trails: Sequence[CommitTrail] = field(default=(), compare=False)
    transactions: Sequence[OpenTransaction] = ()
    sizes: Sequence[RecordSize] = ()
    topics: TopicsAtEnd = NO_TOPICS
    logs_ms: Mapping[str, int] = field(default_factory=dict)
    share_logs: Noted[ShareLogs] = Noted(NO_SHARE_LOGS)  # noqa: RUF009
    lost: LostRecords = NOTHING_LOST
    events: Sequence[BrokerEvent] = ()
    ends: NewestEnds = field(default_factory=dict)
    ends_used: UseOfEnds = field(default_factory=UseOfEnds, compare=False, repr=False)

    @classmethod
    def gather(
        cls,
        group_id: str,
        now_ms: int,
        rows: "Iterable[GatheredRow]",
        topics: TopicsAtEnd,
        share_logs: ShareLogs,
        lost: LostRecords = NOTHING_LOST,
        brokers: Sequence[BrokerEvent] = (),
    ) -> "GroupHistory":
        """Return the history of the group from its rows, given in any order.

        Rows are sorted by offset; the type of the group decides where it lives in two logs. ``brokers`` are the
        lines of brokers' application logs that name no group.
        """
        by_type: dict[type, list[Any]] = defaultdict(list)
        lost = lost.about(group_id)
        for row in lost.all_known(rows):
            by_type[type(row)].append(row)
        shares = by_type[SharePartitionRow] or by_type[ShareDelivery]
        if now_ms:
            share_logs = share_logs._replace(groups_ms={})
        witnessed, used = _witnessed(by_type, brokers), UseOfEnds()
        rebalances = [so_far(row, now_ms, lost) for row in witnessed.rebalances]
        if shares or _goes_on(rebalances, by_type[PartitionCommits], topics.reach):
            used.note()
        return cls(
            group_id,
            now_ms,
            epochs=witnessed.epochs,
            rebalances=rebalances,
            memberships=witnessed.memberships,
            assignments=sorted(by_type[AssignmentRow], key=_assignment_order),
            violations=sorted(set(by_type[Violation]), key=lambda row: (row.at.offset, row.rule, row.detail)),
            targets=sorted(by_type[TargetAuditRow], key=lambda row: (row.at.offset, row.group_type)),
            initializations=sorted(by_type[ShareInitializationRow], key=lambda row: (row.since.offset, row[1:5])),
            # By time: share partitions lie in several partitions of their log.
            share_partitions=sorted(by_type[SharePartitionRow], key=lambda row: (row.since.timestamp_ms, row.since)),
            commits=sorted(
                _with_removals(by_type[PartitionCommits], witnessed.events, topics.reach, EmptySpans(witnessed.epochs))
            ),
            commit_counts=sorted(by_type[CommitCount]),
            trails=sorted(by_type[CommitTrail], key=lambda row: (*row[:3], row.points[0].number)),
            transactions=sorted(by_type[OpenTransaction]),
            sizes=sorted(by_type[RecordSize], key=lambda row: (row.log_topic, row.record_type or -1)),
            deliveries=sorted(
                (
                    delivery if delivery.current is None else delivery._replace(current=lost.as_known(delivery.current))
                    for delivery in by_type[ShareDelivery] or share_deliveries(by_type[SharePartitionRow])
                ),
                key=lambda row: (row.topic_id, row.partition),
            ),
            topics=topics,
            share_logs=share_logs,
            lost=lost,
            events=witnessed.events,
            ends_used=used,
        )

    def replaced(self, **changes: object) -> "GroupHistory":
        """Return the same with other values of some fields. To copy the ends of the logs is not to use them."""
        known = self.__dict__
        return GroupHistory(**{name: known[name] for name in FIELDS} | changes)

    @property
    def shares_ms(self) -> int:
        """The last time of the group's own log and of the state of its shares, which may go on: an idle group writes
        nothing while its members take records.
        """
        return max(self.now_ms, *self.share_logs.last_ms.values(), 0) if self.deliveries else self.now_ms

    def has_lasted(self, since_ms: int, least_ms: int = 0) -> bool:
        """Whether so much time has passed since a time until the group's own log ends."""
        # Not by the field, which would note that the end itself is used: here it matters only that the log reaches a
        # time.
        return self.ends_used.reaches(self.__dict__["now_ms"], since_ms + least_ms)

    def may_go_on(self, last_ms: int, within_ms: int) -> bool:
        """Whether one more may follow of what members do again and again: at most so long after the last one."""
        # One exactly so long later still belongs to it: only after another millisecond is it over.
        return self.may_have_members and not self.has_lasted(last_ms, within_ms + 1)

    def records_read(self, place: Place) -> LogExtent | None:
        """Return what was read of a log partition; None: it is not known."""
        self.ends_used.note()
        return self.lost.read.get(place)

    @cached_property
    def lines(self) -> BrokerLines:
        """The events by what they speak of."""
        return BrokerLines(self.events)

    @cached_property
    def places(self) -> frozenset[tuple[str, int]]:
        """Return the partitions of coordinators' logs, with their topics, in which the group was seen."""
        of_epochs = {
            (LOG_TOPICS[Family.CONNECT if row.group_type == GroupType.CONNECT else Family.GROUP], row.opened.partition)
            for row in self.epochs
        }
        return frozenset(of_epochs | {(GROUP_LOG, row.last.partition) for row in self.commits})

    @cached_property
    def away(self) -> tuple[CoordinatorAway, ...]:
        """Return when the group had no coordinator, by the metadata log."""
        return tuple(time for place in sorted(self.places) for time in self.topics.away.get(place, ()))

    @property
    def group_type(self) -> str | None:
        """Return the group's type when last seen; None if the log shows none."""
        last = self._last_epoch
        return None if last is None else last.group_type

    @cached_property
    def _last_epoch(self) -> GroupEpochRow | None:
        return max(self.epochs, key=lambda row: row.opened.offset, default=None)

    @property
    def is_streams(self) -> bool:
        """Whether the group belonged to Kafka Streams when last seen: type STREAMS, or Streams on the classic
        protocol.
        """
        last = self._last_epoch
        return last is not None and (last.group_type == "STREAMS" or last.assignor == STREAMS_PROTOCOL)

    @property
    def is_connect(self) -> bool:
        """Whether it was a group of Connect workers when last seen, on KIP-848 or with the classic protocol."""
        last = self._last_epoch
        return last is not None and (last.group_type == "CONNECT" or last.protocol_type == CONNECT_PROTOCOL_TYPE)

    def epoch_of(self, rebalance: RebalanceRow) -> GroupEpochRow | None:
        """Return the epoch that a rebalance opened. Its number does not tell: a group that was deleted and created
        again has it once more.
        """
        return self._epochs_by_record.get(rebalance.at)

    @cached_property
    def _epochs_by_record(self) -> dict[LogPosition, GroupEpochRow]:
        return {row.opened: row for row in self.epochs}

    def epoch_ended_by(self, rebalance: RebalanceRow) -> GroupEpochRow | None:
        """Return the epoch before the one that a rebalance opened; None: the log does not show it."""
        return self._epochs_by_end.get(rebalance.at)

    @cached_property
    def _epochs_by_end(self) -> dict[LogPosition, GroupEpochRow]:
        return {row.ended: row for row in self.epochs if row.ended is not None}

    def target_of(self, rebalance: RebalanceRow) -> TargetAuditRow | None:
        """Return the verdict on the target of a rebalance; None: it has none, or targets were not judged."""
        return None if rebalance.target is None else self._targets_by_record.get(rebalance.target)

    @cached_property
    def _targets_by_record(self) -> dict[LogPosition, TargetAuditRow]:
        return {row.at: row for row in self.targets}

    @cached_property
    def present(self) -> GroupEpochRow | None:
        """Return the group's present epoch; None if the group has none."""
        return next((row for row in self.epochs if row.is_open), None)

    @property
    def may_have_members(self) -> bool:
        """Return whether the group is there, and is not known to have no members."""
        return self.present is not None and not self.is_empty

    @property
    def is_empty(self) -> bool:
        """Return whether the group is there and has no members: its state may tell that where who was in it before is
        not known.
        """
        return self.present is not None and (self.present.members == () or self.present.state == "EMPTY")

    @property
    def lacks(self) -> str | None:
        """Return in words that an epoch is not whole, for an answer that finds nothing; None: each one is."""
        row = next((row for row in self.epochs if not row.history_complete), None)
        if row is None:
            return None
        place = f"offset {row.opened.offset} of partition {row.opened.partition}"
        return f"the log lacks records of the group before {place}" + (f": {row.missing}" if row.missing else "")

    def knows_members_at(self, at: LogPosition) -> bool:
        """Return whether the log tells all members that the group had at a position behind its last epoch."""
        last = self._last_epoch
        if last is not None:
            return last.history_complete
        return not self.lost.any_within(GROUP_LOG, at.partition, 0, at.offset)

    @property
    def own_log(self) -> str:
        """Return the topic of the log in which the group is."""
        return LOG_TOPICS[Family.CONNECT if self.group_type == GroupType.CONNECT else Family.GROUP]

    def loses(self, since: LogPosition, until: LogPosition | None = None) -> bool:
        """Return whether records of the group may be lost between two of its own log, or to its end: what was so before
        need not have lasted.
        """
        return self.lost.any_within(
            self.own_log, since.partition, since.offset, None if until is None else until.offset
        )

    def lasting(self, rows: Iterable[LastingT]) -> list[LastingT]:
        """Return the rows that go on at the end of the log, and of which nothing that is lost may be the end."""
        return [row for row in rows if row.is_open and self.lost.as_known(row) is row]

    def finding(
        self,
        kind: FindingKind,
        value: int,
        detail: str,
        evidence: Sequence[LogPosition],
        *,
        threshold: int = 1,
        subject: str | None = None,
        level: Level | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        is_open: bool = False,
        complete: bool = True,
        in_share_state: bool = False,
    ) -> FindingRow:
        """Return a finding about this group; its time range is that of the evidence, or ``since_ms`` to ``until_ms``.

        ``threshold``: the smallest value that is one. ``level``: None for that of the kind. ``is_open``: it goes on,
        and its time range ends with the log.
        ``in_share_state``: the evidence lies in the share state log, and not in the group's own. A finding is not
        complete if records of the log are lost in which its evidence lies, or have no time: nothing tells which of them
        were written together.
        """
        log = LOG_TOPICS[Family.SHARE] if in_share_state else self.own_log
        times = [at.timestamp_ms for at in evidence]
        # A finding counts, so that one more record of the group may change its value wherever it lies.
        lacks = (self.lost.any_within(log, partition, 0, None) for partition in {at.partition for at in evidence})
        complete = complete and min(times, default=0) >= 0 and not any(lacks)
        if is_open or not times:  # only now: to read the end of a log is to use it
            end_ms = self.shares_ms if in_share_state else self.now_ms
        else:
            end_ms = max(times)
        return make_finding(
            kind,
            value,
            threshold,
            detail,
            sorted(evidence, key=lambda at: at.offset),
            group_id=self.group_id,
            group_type=self.group_type,
            level=level,
            subject=subject,
            since_ms=min(times, default=end_ms) if since_ms is None else since_ms,
            until_ms=end_ms if until_ms is None else until_ms,
            is_open=is_open,
            log_topic=log,
            complete=complete,
        )

    def client(self, member_id: str | None) -> str | None:
        """Return a name for the client behind a member that survives restarts, or the member id if no such name
        is unique.
        """
        known = self._members.get(member_id or "")
        if known is None:
            return member_id
        name = client_name(known)
        return member_id if name in self.shared_names else name

    def members(self) -> dict[str, str]:
        """Return the names of the clients behind members, with their ids; by member id."""
        return {member_id: named(row) for member_id, row in self._members.items()}

    def library(self, member_id: str | None) -> str | None:
        """Return the client library of a member; see ``client_library``."""
        return client_library(self._members[member_id]) if member_id in self._members else None

    def clients_of(self, epoch: GroupEpochRow, *, with_leader: bool = True) -> str | None:
        """Return who leads an epoch, and how many members each client has; see ``clients_of``."""
        return clients_of(epoch, self._members, with_leader=with_leader)

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """Return the client names that do not identify one client: more members than AT_ONCE had them at the same
        time.
        """
        return frozenset(shared_names(self.memberships))

    @cached_property
    def _members(self) -> dict[str, MembershipRow]:
        return {row.member_id: row for row in self.memberships}


FIELDS = tuple(GroupHistory.__dataclass_fields__)


def so_far(row: RebalanceRow, now_ms: int, lost: LostRecords) -> RebalanceRow:
    """Return a rebalance in progress with the time (ms) that it has lasted until ``now_ms``, the last time that the log
    of its group shows; others as they are, and those that may have ended in records that are lost.
    """
    lasts = row.outcome == "open" and row.began_before_ms >= 0 and lost.as_known(row) is row
    if not lasts or now_ms < row.began_before_ms:
        return row
    return row._replace(duration_min_ms=now_ms - row.began_before_ms)


def _goes_on(rebalances: Iterable[RebalanceRow], commits: Iterable[PartitionCommits], reach: TopicReach) -> bool:
    """Whether rows say another thing once the logs go on: rebalances in progress, and offsets that were removed at a
    time of which the topics are not known yet.
    """
    if any(row.outcome == "open" for row in rebalances):
        return True
    return any(reach.may_cover(removal.at.timestamp_ms) for row in commits for removal in row.removals)


GatheredRow = (
    AuditedRow
    | ShareDelivery
    | PartitionCommits
    | CommitCount
    | CommitTrail
    | OpenTransaction
    | RecordSize
    | BrokerEvent
)
"""A row of a history, or a sum of such rows, or a line of a broker's application log that names the group."""


def _witnessed(by_type: Mapping[type, list[Any]], brokers: Sequence[BrokerEvent]) -> Testimony:
    """Return the rows in their order, with what the lines of brokers' application logs add."""
    epochs = sorted(by_type[GroupEpochRow], key=lambda row: (row.opened.offset, row.group_type))
    rebalances = sorted(by_type[RebalanceRow], key=lambda row: (row.at.offset, row.group_type))
    memberships = sorted(by_type[MembershipRow], key=lambda row: (row.joined.offset, row.member_id, row.group_type))
    events: list[BrokerEvent] = by_type[BrokerEvent]
    if not (events or brokers):
        return Testimony(epochs, rebalances, memberships, ())
    places = {row.at.partition for row in rebalances} | {row.opened.partition for row in epochs}
    places |= {row.last.partition for row in by_type[PartitionCommits]}
    members = {row.member_id for row in memberships}
    near = (
        broker
        for broker in brokers
        if (broker.log_partition is None or broker.log_partition in places)
        and (broker.kind not in OF_MEMBERS or members & {broker.member_id, broker.reason})
    )
    return testify(epochs, rebalances, memberships, BrokerLines(without_copies({*events, *near})))


OF_MEMBERS = frozenset((EventKind.STATIC_MEMBER_FENCED, EventKind.STATIC_MEMBER_REPLACED, EventKind.LEADER_LATE))
"""Lines that may name no group: their members tell it."""


def _with_removals(
    rows: Sequence[PartitionCommits], events: Sequence[BrokerEvent], reach: TopicReach, empty: EmptySpans
) -> Iterator[PartitionCommits]:
    """Yield the commits with how offsets were removed, as far as topics and a broker's log say so."""
    lines = BrokerLines(events)

    def with_cause(row: PartitionCommits, removal: Removal) -> Removal:
        how = empty.how(removal.how, removal.at)
        return removal._replace(how=how_by_lines(how, lines, row.topic, row.partition, removal.at, reach))

    for row in rows:
        removals = row.removals
        yield row._replace(removals=tuple(with_cause(row, removal) for removal in removals)) if removals else row


def _assignment_order(row: AssignmentRow) -> tuple[int, str, str, str, str, int, str]:
    return row.since.offset, row.member_id, row.kind, row.role, row.resource, row.partition, row.group_type


CONNECTOR_OR_TASK = "connector or task"
"""What Connect workers share out."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1: ``1 partition``, ``2 partitions``."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    return "connectors and tasks" if noun == CONNECTOR_OR_TASK else f"{noun}s"


def first_of(names: Sequence[str], most: int = 5) -> str:
    """Return the first names of a list, and how many more there are: ``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
