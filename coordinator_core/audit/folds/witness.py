"""What brokers' application logs add to the history of a group: how members went, when rebalances began, and why.

The log of the coordinator stays the truth. A line is bound to the record that it speaks of by group, member and epoch
or generation, and says in words what that record leaves open. A line that fits no record changes nothing, lines that
contradict each other decide nothing, and where no line is, nothing follows.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from coordinator_core.audit.folds.absences import Absence, absences, absences_within
from coordinator_core.broker_log.all_files import OF_EPOCH, SLACK_MS
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.durations import duration
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import DEPARTED, CauseKind
from coordinator_core.history.memberships import COORDINATOR_AWAY
from coordinator_core.history.rows import LEFT_OR_EXPIRED, Cause, GroupEpochRow, MembershipRow, RebalanceRow
from coordinator_core.records import LogPosition

VIEW_CHANGED: Final = "cached metadata has changed"
"""Why a leader of Kafka's Java client joins again that sees other partitions or racks than it assigned by (KIP-800)."""

_REJOINS: Final = re.compile(
    r"(?:[Ll]eader (?P<leader>.+?) re-joining group|Updating metadata for member (?P<member>.+?))"
    r"(?: during (?P<state>\w+))?(?:; client reason: .*)?",
    re.DOTALL,
)
"""Why a rebalance begins that a member's JoinGroup makes: the leader's, or one with other metadata than before. 2.8
writes "leader".
"""

HOW = {
    EventKind.MEMBER_LEFT: (CauseKind.MEMBER_LEFT, "leave"),
    EventKind.MEMBER_EXPIRED: (CauseKind.MEMBER_EXPIRED, "expiry"),
    EventKind.MEMBER_TIMED_OUT: (CauseKind.MEMBER_TIMED_OUT, "rebalance timeout"),
}
"""Lines about a member that went: the cause, and how its membership ended."""
OF_MEMBER = frozenset((*HOW, EventKind.MEMBER_FENCED))
"""Lines about a member that went; of one that was fenced for a reason that is not known here, no cause follows."""


class Testimony(NamedTuple):
    """The rows of a group with what the lines add, and the lines with the records that they belong to."""

    epochs: list[GroupEpochRow]
    rebalances: list[RebalanceRow]
    memberships: list[MembershipRow]
    events: tuple[BrokerEvent, ...]


class FileSpan(NamedTuple):
    """The times of the first and the last line of a file (ms)."""

    file: str
    first_ms: int
    last_ms: int


NO_LINE = "the broker logs of that time have no line about it"
NO_FILE = "no broker log of that time is given"


class BrokerLines:
    """The lines about a group and its log partition, in order of time, by what they speak of."""

    def __init__(self, events: Iterable[BrokerEvent]) -> None:
        self.events = sorted(events, key=line_order)
        self.of_epoch: defaultdict[tuple[str, int | None], list[BrokerEvent]] = defaultdict(list)
        self.of_offset: defaultdict[tuple[str | None, int | None], list[BrokerEvent]] = defaultdict(list)
        self.of_kind: defaultdict[str, list[BrokerEvent]] = defaultdict(list)
        for event in self.events:
            self.of_kind[event.kind].append(event)
            if event.kind == EventKind.OFFSET_EXPIRED:
                self.of_offset[event.topic, event.partition].append(event)
            elif event.epoch is not None:
                self.of_epoch[event.kind, event.epoch].append(event)
        self.away = absences(self.events)
        self.spans = tuple(_spans(self.events))

    def silence(self, at_ms: int) -> str | None:
        """Return why no line says how a member went at that time (ms); None: no file is given whose time is known."""
        if not self.spans:
            return None
        return NO_LINE if any(span.first_ms <= at_ms <= span.last_ms for span in self.spans) else NO_FILE


def testify(
    epochs: Sequence[GroupEpochRow],
    rebalances: Sequence[RebalanceRow],
    memberships: Sequence[MembershipRow],
    lines: BrokerLines,
) -> Testimony:
    """Return the rows with what the lines about this group, and about its log partition, add."""
    departures = _Departures(memberships, lines)
    by_epoch: defaultdict[int, list[GroupEpochRow]] = defaultdict(list)
    for row in epochs:
        if row.group_type != GroupType.CONNECT:
            by_epoch[row.epoch].append(row)
    return Testimony(
        [_epoch(row, lines, departures) for row in epochs],
        [
            _rebalance(row, beginning(row, lines), _leader(by_epoch[row.from_epoch or 0], row), departures, lines.away)
            for row in rebalances
        ],
        [departures.membership(row) for row in memberships],
        tuple(_bound(event, departures, by_epoch) for event in lines.events),
    )


def _leader(epochs: Sequence[GroupEpochRow], row: RebalanceRow) -> str | None:
    """Return who led the group before a rebalance."""
    return next((each.leader for each in reversed(epochs) if each.opened.offset < row.at.offset), None)


def _spans(lines: Iterable[BrokerEvent]) -> Iterator[FileSpan]:
    first: dict[str, int] = {}
    for line in lines:
        if line.kind == EventKind.FILE_BEGINS and line.timestamp_ms is not None:
            first[line.file] = line.timestamp_ms
        elif line.kind == EventKind.FILE_ENDS and line.timestamp_ms is not None and line.file in first:
            yield FileSpan(line.file, first[line.file], line.timestamp_ms)


def line_order(event: BrokerEvent) -> tuple[int, str, int]:
    """Return the key by which lines are in order of time, those of one file as they stand there."""
    at = event.timestamp_ms if event.timestamp_ms is not None else event.local_ms
    return (at or 0, event.file, event.line)


class _Departures:
    """Which line says how a member went, by member and the record that removes it."""

    def __init__(self, memberships: Sequence[MembershipRow], lines: BrokerLines) -> None:
        self.lines = lines
        by_group: defaultdict[str, list[BrokerEvent]] = defaultdict(list)
        for event in lines.events:
            if event.kind in OF_MEMBER and (name := event.member_id or _static(event.instance_id)) is not None:
                by_group[name].append(event)
        lives: defaultdict[str, list[MembershipRow]] = defaultdict(list)
        for row in memberships:
            if row.left is not None and row.group_type != GroupType.CONNECT:
                for name in {row.member_id, _static(row.instance_id)} & by_group.keys():
                    lives[name or ""].append(row)
        self.of: defaultdict[tuple[str, LogPosition], list[BrokerEvent]] = defaultdict(list)
        self.record: dict[tuple[str, int, str | None], LogPosition] = {}
        for name, rows in lives.items():
            rows.sort(key=lambda row: row.joined.offset)
            for row, own_lines in zip(rows, _shared_out(rows, by_group[name]), strict=True):
                if own_lines and row.left is not None and row.went_by in GONE:
                    self.of[row.member_id, row.left] += own_lines
                    self.record |= {(line.file, line.line, line.member_id): row.left for line in own_lines}

    def membership(self, row: MembershipRow) -> MembershipRow:
        """Return the membership with how it ended."""
        if row.left is None or row.went_by != LEFT_OR_EXPIRED or row.group_type == GroupType.CONNECT:
            return row
        lines = self.of.get((row.member_id, row.left))
        if not lines:
            return row._replace(hint=self._silence(row.hint, row.left))
        if (one := _agreed(lines)) is None:
            return row._replace(hint=_undecided(lines))
        # That its coordinator was away is why a session expired: a line that it did does not make that untrue.
        is_away = one.kind == EventKind.MEMBER_EXPIRED and (row.hint or "").startswith(COORDINATOR_AWAY)
        return row._replace(
            went_by=HOW[EventKind(one.kind)][1], hint=f"{row.hint}; {one.quote}" if is_away else one.quote
        )

    def cause(self, row: Cause, group_type: str) -> Cause:
        """Return the cause with how its member went."""
        if row.kind not in DEPARTED or group_type == GroupType.CONNECT:
            return row
        lines = self.of.get((row.member_id or "", row.at))
        if not lines:
            return row._replace(hint=self._silence(row.hint, row.at))
        if (one := _agreed(lines)) is None:
            return row._replace(hint=_undecided(lines))
        detail = "; ".join(part for part in (row.detail, in_words(one)) if part) or None
        return row._replace(kind=str(HOW[EventKind(one.kind)][0]), detail=detail, hint=one.place)

    def _silence(self, hint: str | None, at: LogPosition) -> str | None:
        return "; ".join(part for part in (hint, self.lines.silence(at.timestamp_ms)) if part) or None


def _static(instance_id: str | None) -> str | None:
    """A name for a static member: a request that removes one may name its instance alone."""
    return None if instance_id is None else f"instance {instance_id}"


GONE = frozenset((LEFT_OR_EXPIRED, *(how for _, how in HOW.values())))


def _shared_out(lives: Sequence[MembershipRow], lines: Sequence[BrokerEvent]) -> list[list[BrokerEvent]]:
    """Share the lines about a member out to its lives: by time, or one to each in order where the zone is not known."""
    if any(line.timestamp_ms is None for line in lines) or any(_left_ms(row) < 0 for row in lives):
        if len(lives) == 1:
            return [list(lines)]
        return [[line] for line in lines] if len(lives) == len(lines) else [[] for _ in lives]
    of_lives: list[list[BrokerEvent]] = [[] for _ in lives]
    for line in lines:
        # First without slack: a line near the end of one life would fit the next one, too.
        fitting = [place for place, row in enumerate(lives) if _within(row, line, 0)]
        fitting = fitting or [place for place, row in enumerate(lives) if _within(row, line, SLACK_MS)]
        for place in fitting[:1]:
            of_lives[place].append(line)
    return of_lives


def _left_ms(row: MembershipRow) -> int:
    """When a member left (ms); -1: records of that time have none, or it did not leave."""
    return -1 if row.left is None else row.left.timestamp_ms


def _within(row: MembershipRow, line: BrokerEvent, slack_ms: int) -> bool:
    return is_between(line, row.joined.timestamp_ms - slack_ms, _left_ms(row) + slack_ms)


def is_between(line: BrokerEvent, first_ms: int, last_ms: int) -> bool:
    """Whether a line may have been written between these times (ms), as far as its own time is exact."""
    begin, end = line.timestamp_ms, line.latest_ms
    return begin is not None and end is not None and first_ms <= end and begin <= last_ms


def _agreed(lines: Sequence[BrokerEvent]) -> BrokerEvent | None:
    """Return the line that tells how a member went; None: no line does, or they say different things."""
    kinds = {HOW.get(EventKind(line.kind)) for line in lines}
    return lines[-1] if len(kinds) == 1 and None not in kinds else None


def _undecided(lines: Sequence[BrokerEvent]) -> str:
    """What lines say that do not tell how a member went."""
    quotes = "; ".join(line.quote for line in lines[:3])
    return quotes if len({line.kind for line in lines}) == 1 else f"broker logs contradict each other: {quotes}"


def in_words(line: BrokerEvent) -> str | None:
    """Return what a line about a member that went says beyond the kind of the cause."""
    if line.kind == EventKind.MEMBER_LEFT:
        return None if line.reason is None else f'"{line.reason}"'
    if line.kind == EventKind.MEMBER_TIMED_OUT:
        return (
            "rebalance timeout passed"
            if line.duration_ms is None
            else f"rebalance timeout of {duration(line.duration_ms)}"
        )
    return None


# --- rebalances ------------------------------------------------------------------------------------------------------


def beginning(row: RebalanceRow, lines: BrokerLines) -> BrokerEvent | None:
    """Return the line with which a rebalance of a classic group began: the one after the generation before.

    None: there is none, or several may be it. A conversion to the classic protocol has none: its generation may be of a
    number that the group had in an earlier life, too.
    """
    if row.group_type != GroupType.CLASSIC or row.from_epoch is None:
        return None
    if any(cause.kind == CauseKind.GROUP_DOWNGRADED for cause in row.causes):
        return None
    beginnings = lines.of_epoch.get((EventKind.REBALANCE_BEGAN, row.from_epoch), [])
    if any(line.timestamp_ms is None for line in beginnings) or row.at.timestamp_ms < 0:
        return beginnings[0] if len(beginnings) == 1 else None
    after = -1 if row.began_after_ms is None else row.began_after_ms
    for slack in (0, SLACK_MS):
        fitting = [line for line in beginnings if is_between(line, after - slack, row.at.timestamp_ms + slack)]
        if fitting:
            return fitting[0] if len(fitting) == 1 else None
    return None


def _of_beginning(cause: Cause, began: BrokerEvent, leader: str | None, loaded: BrokerEvent | None) -> Cause:
    """Return a cause that the log does not show as the line tells it: by what a client said itself, or by who joined
    again. While a group is stable only its leader begins a rebalance without another subscription.
    """
    reason = began.reason or ""
    if reason.endswith(f"client reason: {VIEW_CHANGED}"):
        said = f"a client said so: {VIEW_CHANGED}"
        return cause._replace(kind=str(CauseKind.TOPIC_METADATA_CHANGED), detail=said, hint=began.place)
    cause = cause._replace(hint=f"{began.place}: {reason}")
    again = _REJOINS.fullmatch(reason)
    if again is None or (again["state"] or "Stable").title() != "Stable" or not (leader or again["leader"]):
        return cause
    member = again["leader"] or again["member"]
    if again["leader"] is None and member != leader:
        return cause._replace(kind=str(CauseKind.MEMBER_CHANGED), detail=None, member_id=member)
    detail = None if loaded is None else f"its coordinator had just loaded the group ({loaded.place})"
    return cause._replace(kind=str(CauseKind.LEADER_REJOINED), detail=detail, member_id=member)


def _loaded_before(began: BrokerEvent, row: RebalanceRow, away: Iterable[Absence]) -> BrokerEvent | None:
    """Return the line that the group was loaded since its generation before, and shortly before the rebalance began."""
    begin_ms = began.timestamp_ms or 0
    first_ms = max(begin_ms - SLACK_MS, row.began_after_ms or 0)
    return next((each.until for each in away if is_between(each.until, first_ms, begin_ms)), None)


def _rebalance(
    row: RebalanceRow, began: BrokerEvent | None, leader: str | None, departures: _Departures, away: Sequence[Absence]
) -> RebalanceRow:
    causes = tuple(departures.cause(cause, row.group_type) for cause in row.causes)
    if began is not None and began.reason is not None:
        loaded = _loaded_before(began, row, away)
        causes = tuple(
            _of_beginning(cause, began, leader, loaded) if cause.kind == CauseKind.UNKNOWN else cause
            for cause in causes
        )
    row = row._replace(causes=causes)
    if (
        began is not None
        and began.timestamp_ms is not None
        and began.latest_ms is not None
        and row.at.timestamp_ms >= 0
    ):
        at_ms = row.at.timestamp_ms
        first, last = (
            max(min(time_ms, at_ms), -1 if row.began_after_ms is None else row.began_after_ms)
            for time_ms in (began.timestamp_ms, began.latest_ms)
        )
        row = row._replace(
            began_after_ms=first, began_before_ms=last, duration_min_ms=at_ms - last, duration_max_ms=at_ms - first
        )
    if absences_within(row, away):
        row = row._replace(delayed_by=None, broker_away=True)
    return row


def _epoch(row: GroupEpochRow, lines: BrokerLines, departures: _Departures) -> GroupEpochRow:
    causes = tuple(departures.cause(cause, row.group_type) for cause in row.causes)
    assignor = row.assignor
    if assignor is None and (computed := computed_target(row.epoch, row.opened, lines)) is not None:
        assignor = computed.reason
    return row._replace(causes=causes, assignor=assignor)


def computed_target(epoch: int, opened: LogPosition, lines: BrokerLines) -> BrokerEvent | None:
    """Return the line about the target of an epoch, which opened there; None: there is none, or several may be it."""
    computed = lines.of_epoch.get((EventKind.TARGET_COMPUTED, epoch), [])
    known = [line for line in computed if line.timestamp_ms is not None]
    if computed and not known:
        return computed[0] if len(computed) == 1 else None
    return next((line for line in known if (line.latest_ms or 0) >= opened.timestamp_ms - SLACK_MS), None)


def leaders_time(row: RebalanceRow, lines: BrokerLines) -> tuple[BrokerEvent | None, BrokerEvent | None]:
    """Return the lines that all members of a generation had joined, and that the leader's assignment came; None: no
    line of that time says so.
    """

    def last(kind: EventKind, before_ms: int) -> BrokerEvent | None:
        near = (
            line
            for line in lines.of_epoch.get((kind, row.to_epoch), ())
            if line.timestamp_ms is not None and (row.began_after_ms or 0) - SLACK_MS <= line.timestamp_ms <= before_ms
        )
        return max(near, key=lambda line: line.timestamp_ms or 0, default=None)

    assigned = last(EventKind.GENERATION_ASSIGNED, row.at.timestamp_ms + SLACK_MS)
    if assigned is None or assigned.timestamp_ms is None:
        return None, None
    return last(EventKind.GENERATION_JOINED, assigned.timestamp_ms), assigned


def within(row: RebalanceRow, lines: BrokerLines) -> Iterator[BrokerEvent]:
    """Yield the lines that were written while a rebalance lasted, in order of time."""
    began_ms = row.at.timestamp_ms if row.began_after_ms is None else min(row.began_after_ms, row.at.timestamp_ms)
    ended_ms = None if row.finished is None else row.finished.timestamp_ms
    for event in lines.events:
        if event.timestamp_ms is not None and began_ms <= (event.latest_ms or 0):
            if ended_ms is not None and event.timestamp_ms > ended_ms:
                return
            yield event


def unfinished(row: RebalanceRow, lines: BrokerLines) -> Iterator[tuple[int, BrokerEvent]]:
    """Yield the generations between those of a rebalance that lines name, each with its first line: none completed."""
    if row.group_type != GroupType.CLASSIC or row.from_epoch is None or not row.skipped_generations:
        return
    # The lines are searched, not the generations between: a damaged record may skip two thousand million of them.
    joined = sorted(
        epoch for kind, epoch in lines.of_epoch if kind == EventKind.GENERATION_JOINED and epoch is not None
    )
    for epoch in joined:
        if not row.from_epoch < epoch < row.to_epoch:
            continue
        of_epoch = lines.of_epoch[EventKind.GENERATION_JOINED, epoch]
        span = (row.began_after_ms or 0) - SLACK_MS, row.at.timestamp_ms + SLACK_MS
        fitting = (line for line in of_epoch if line.timestamp_ms is None or is_between(line, *span))
        if (first := next(fitting, None)) is not None:
            yield epoch, first


# --- records ---------------------------------------------------------------------------------------------------------


def _bound(line: BrokerEvent, departures: _Departures, epochs: Mapping[int, Sequence[GroupEpochRow]]) -> BrokerEvent:
    """Return the line with the record that it belongs to, if one is known."""
    if line.kind in OF_MEMBER:
        return line._replace(record=departures.record.get((line.file, line.line, line.member_id)))
    if line.group_id is None or line.epoch is None or line.kind not in OF_EPOCH:
        return line
    rows = epochs.get(line.epoch, ())
    if len(rows) > 1 and line.timestamp_ms is not None:
        at_ms = line.timestamp_ms
        rows = [min(rows, key=lambda row: abs(row.opened.timestamp_ms - at_ms))]
    if len(rows) != 1:
        return line._replace(record=None)
    of_target = line.kind == EventKind.TARGET_COMPUTED
    return line._replace(record=rows[0].target if of_target else rows[0].opened)
