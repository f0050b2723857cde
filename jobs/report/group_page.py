"""One group's part of the report, from the rows of its history."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter

from coordinator_core.audit.explain import explanations, with_log, within
from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.findings.work_owners import TwoOwners, two_owners_of
from coordinator_core.audit.folds.client_names import client_library, client_name
from coordinator_core.audit.folds.commits import PartitionCommits
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.two_logs import by_log, log_topic, time_order
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.groups.end_offsets import NewestEnds, records_behind
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.streams.readiness import reason
from coordinator_core.groups.streams.state import StreamsGroupState
from coordinator_core.groups.violations import Violation
from coordinator_core.history.rows import AssignmentRow, GroupEpochRow, OffsetRange, RebalanceRow, SharePartitionRow
from coordinator_core.records import LogPosition
from jobs.formatting import number_ranges
from jobs.report.causes import MOST_CAUSES, MOST_INITIATORS, caused_by, family, initiators, most_frequent, origins
from jobs.report.data import (
    Broken,
    Count,
    GroupDetail,
    GroupLine,
    Member,
    Offsets,
    OffsetsOverTime,
    OwnedUnit,
    OwnerSpell,
    Rebalance,
    ShareSpell,
    ShareTimeline,
    Spell,
    TwoOwnersSpan,
)
from jobs.report.offsets_over_time import NOTHING, offsets_over_time
from jobs.report.worst import badness, because

MOST_SHARE_PARTITIONS = 60
MOST_PHASES = 1200
"""Number of phases of all listed share partitions together."""


class SharedState(StrEnum):
    """What the state of a share partition shows."""

    UNSET = "no start offset yet"
    """The start offset is set by the first fetch."""
    WAITING = "records wait for redelivery"
    """Records were given back and wait for their next delivery."""
    IN_FLIGHT = "records in flight"
    """Between start and end are records without a state: delivered, and not acknowledged yet."""
    SETTLED = "nothing waits"
    """All records that the state names are settled."""
    UNKNOWN = "unknown"
    """The log lacks what was before."""


def share_timelines(rows: Iterable[SharePartitionRow]) -> tuple[Sequence[ShareTimeline], int]:
    """Return the first share partitions by name, and the number of all."""
    by_partition: defaultdict[str, list[SharePartitionRow]] = defaultdict(list)
    for row in rows:
        by_partition[f"{row.topic or row.topic_id} {row.partition}"].append(row)
    # By number within a topic: as a text, partition 10 would come before 2.
    names = sorted(by_partition, key=lambda name: (name.rpartition(" ")[0], by_partition[name][0].partition))[
        :MOST_SHARE_PARTITIONS
    ]
    most = MOST_PHASES // max(1, len(names))
    return [_timeline(name, by_partition[name], most) for name in names], len(by_partition)


def _timeline(name: str, rows: list[SharePartitionRow], most: int) -> ShareTimeline:
    phases: list[ShareSpell] = []
    for row in sorted(rows, key=lambda row: (row.since.timestamp_ms, row.since.partition, row.since.offset)):
        phase = _phase(row)
        last = phases[-1] if phases else None
        if last is not None and _goes_on(last, phase):
            phases[-1] = _joined(last, phase)
        else:
            phases.append(phase)
    return ShareTimeline(name, tuple(phases[-most:]), max(0, len(phases) - most))


def _phase(row: SharePartitionRow) -> ShareSpell:
    return ShareSpell(
        phase=str(_phase_name(row)),
        since=row.since,
        until_ms=None if row.until is None else row.until.timestamp_ms,
        start_offset=row.start_offset,
        accepted=row.accepted_now,
        released=_records(row.released_now),
        archived=_records(row.given_up_now),
        redelivered=row.redelivered_now,
    )


def _phase_name(row: SharePartitionRow) -> SharedState:
    if row.start_offset is None or row.start_offset < 0:
        return SharedState.UNSET
    if row.available is None or row.unknown is None:
        return SharedState.UNKNOWN
    if row.available:
        return SharedState.WAITING
    return SharedState.IN_FLIGHT if row.unknown else SharedState.SETTLED


def _goes_on(last: ShareSpell, then: ShareSpell) -> bool:
    """Return whether nothing but acknowledgements happened: what is given back or given up begins a phase."""
    happened = then.released or then.archived or then.redelivered
    return last.phase == then.phase and last.until_ms == then.since.timestamp_ms and not happened


def _joined(first: ShareSpell, then: ShareSpell) -> ShareSpell:
    return first._replace(
        until_ms=then.until_ms, start_offset=then.start_offset, accepted=first.accepted + then.accepted
    )


def _records(ranges: Iterable[OffsetRange]) -> int:
    return sum(span.last - span.first + 1 for span in ranges)


MOST_SPELLS = 200
"""Number of last holding periods that are kept for one member."""
LONGEST_TEXT = 400
"""Maximum number of characters that list what a member owned."""


def spells_of_members(rows: Iterable[AssignmentRow]) -> Mapping[str, Sequence[Spell]]:
    """Return the holding periods by member id, in log order, from current assignments; targets do not count."""
    by_member: defaultdict[str, list[AssignmentRow]] = defaultdict(list)
    for row in rows:
        if row.kind == "current":
            by_member[row.member_id].append(row)
    return {member_id: _spells(own)[-MOST_SPELLS:] for member_id, own in by_member.items()}


def _spells(rows: list[AssignmentRow]) -> list[Spell]:
    begins: defaultdict[LogPosition, list[AssignmentRow]] = defaultdict(list)
    ends: defaultdict[LogPosition, list[AssignmentRow]] = defaultdict(list)
    for row in rows:
        begins[row.since].append(row)
        if row.until is not None:
            ends[row.until].append(row)
    # By offset: times within one log may run backwards.
    moments = sorted(begins.keys() | ends.keys(), key=attrgetter("offset"))
    spells: list[Spell] = []
    held: dict[int, AssignmentRow] = {}
    for moment, following in zip(moments, [*moments[1:], None], strict=True):
        # Ends first: what one record takes from a member and what it gives to it change together.
        for row in ends[moment]:
            held.pop(id(row), None)
        held.update((id(row), row) for row in begins[moment])
        if held:
            until = None if following is None else following.timestamp_ms
            spells.append(Spell(moment, until, len(held), _text(held.values())))
    return spells


def _text(rows: Iterable[AssignmentRow]) -> str:
    """Return what is owned, by role and resource: ``orders 0-3,7; standby 0_1``."""
    numbers: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for row in rows:
        name = row.topic or row.connector or row.subtopology or row.resource
        # Tasks are written as Kafka does: subtopology 0, partition 1 is task 0_1.
        numbers[row.role, name, "_" if row.subtopology and not row.topic else " "].append(row.partition)
    parts = []
    for (role, name, joint), held in sorted(numbers.items()):
        prefix = "" if role == "partition" else f"{role} "
        parts.append(f"{prefix}{name}" if role == "connector" else f"{prefix}{name}{joint}{number_ranges(held)}")
    text = "; ".join(parts)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


# A long life is cut to its newest part, and the page says how much there is; ``render`` limits all details together.
MOST_MEMBERS = 200
MOST_REBALANCES = 500
MOST_BROKEN = 100
MOST_OFFSETS = 500
MOST_TWO_OWNERS = 100
MOST_UNITS = 120
MOST_OWNERS = 2400
"""Number of owners of all listed partitions or tasks together."""

DIGITS = re.compile(r"(\d+)")


def detail(
    whole: GroupHistory, limits: Thresholds, ends: NewestEnds, since_ms: int | None = None, until_ms: int | None = None
) -> GroupDetail:
    """The group in full, within bounds; lag is to those of the end offsets ``ends`` that are known.

    Of a group that is longer than a page, the rows are those from ``since_ms`` to ``until_ms`` (None: no bound).
    """
    of_group = findings(whole.replaced(ends=ends), limits)
    # Findings and totals are those of the whole group: only the lists below are cut to the window.
    line = _line(whole, by_log(whole), of_group)
    history = _in_window(whole, since_ms, until_ms)
    parts = by_log(history)
    doubled = [list(two_owners_of(part)) for part in parts]
    rebalances, worst = _rebalances(parts, doubled)
    causing, memberless = initiators(history, [part.rebalances for part in parts])
    owned, owned_seen = owned_units(history.assignments)
    shares, shares_seen = share_timelines(history.share_partitions)
    over_time = offsets_over_time(history)
    return GroupDetail(
        line=line,
        findings=tuple(of_group),
        members=tuple(_members(parts)),
        rebalances=rebalances,
        worst=None if worst is None else worst[0],
        worst_because=None if worst is None else worst[1],
        initiators=tuple(causing[:MOST_INITIATORS]),
        initiators_seen=len(causing),
        memberless=memberless,
        owned=tuple(owned),
        owned_seen=owned_seen,
        two_owners=tuple(_two_owners(span) for spans in doubled for span in spans[:MOST_TWO_OWNERS]),
        commits=tuple(history.commit_counts),
        share_partitions=tuple(shares),
        share_partitions_seen=shares_seen,
        broken=tuple(_broken(row) for row in history.violations[:MOST_BROKEN]),
        offsets=tuple(_offsets(row, ends, over_time) for row in sorted(history.commits)[:MOST_OFFSETS]),
        offsets_seen=len(history.commits),
    )


def _in_window(history: GroupHistory, since_ms: int | None, until_ms: int | None) -> GroupHistory:
    """Return a history that is longer than a page with the rebalances, members and assignments of a window alone."""
    is_long = len(history.rebalances) > MOST_REBALANCES or len(history.memberships) > MOST_MEMBERS
    if not is_long or (since_ms is None and until_ms is None):
        return history

    def lies(first: LogPosition, last: LogPosition | None) -> bool:
        begins = until_ms is None or first.timestamp_ms <= until_ms
        return begins and (since_ms is None or last is None or last.timestamp_ms >= since_ms)

    return history.replaced(
        rebalances=[row for row in history.rebalances if lies(row.at, row.finished or row.at)],
        memberships=[row for row in history.memberships if lies(row.joined, row.left)],
        assignments=[row for row in history.assignments if lies(row.since, row.until)],
    )


def counts(names: Iterable[str]) -> tuple[Count, ...]:
    """How often each name occurs, the most frequent first."""
    return most_frequent(Counter(names))


def _line(history: GroupHistory, parts: Sequence[GroupHistory], own: Sequence[FindingRow]) -> GroupLine:
    present = history.present
    newest = max(parts, key=_last_event)
    epochs = sorted(newest.epochs, key=lambda row: row.opened.offset)
    last = epochs[-1] if epochs else None
    times = list(_times(history))
    return GroupLine(
        group_id=history.group_id,
        group_type=newest.group_type or "OFFSETS",
        state="-" if last is None else "GONE" if present is None else present.state or "UNKNOWN",
        not_running=_why_it_stands_still(present),
        epoch=None if last is None else last.epoch,
        assignor=next((row.assignor for row in reversed(epochs) if row.assignor is not None), None),
        members=sum(1 for row in history.memberships if row.left is None),
        members_seen=len(history.memberships),
        clients=next((clients for row in reversed(epochs) if (clients := newest.clients_of(row)) is not None), None),
        rebalances=len(history.rebalances),
        outcomes=counts(row.outcome for part in parts for row in part.rebalances),
        verdicts=counts(str(row.verdict) for row in history.targets),
        findings=len(own),
        broken=len(history.violations),
        score=max((row.score for row in own), default=0.0),
        first_ms=min(times, default=None),
        last_ms=max(times, default=None),
        stands_still_ms=None if _why_it_stands_still(present) is None else history.now_ms,
        complete=_is_complete(history),
    )


def _why_it_stands_still(present: GroupEpochRow | None) -> str | None:
    is_waiting = present is not None and present.state == StreamsGroupState.NOT_READY and present.members != ()
    return reason(present.topology) if present is not None and is_waiting else None


def _last_event(part: GroupHistory) -> tuple[bool, int]:
    """Of the logs of a group, that in which it is now comes last."""
    return part.present is not None, max(_times(part), default=-1)


def _is_complete(history: GroupHistory) -> bool:
    epochs, memberships = history.epochs, history.memberships
    return all(row.history_complete for row in epochs) and all(row.history_complete for row in memberships)


def _times(history: GroupHistory) -> Iterator[int]:
    """Yield the times of all known events; records without a time are left out."""
    positions = [row.opened for row in history.epochs]
    positions += [row.joined for row in history.memberships]
    positions += [row.ended for row in history.epochs if row.ended is not None]
    positions += [row.left for row in history.memberships if row.left is not None]
    positions += [position for row in history.commits for position in (row.first, row.last)]
    return (at.timestamp_ms for at in positions if at.timestamp_ms >= 0)


def _members(parts: Sequence[GroupHistory]) -> Iterator[Member]:
    spells = [spells_of_members(part.assignments) for part in parts]
    rows = [(index, row) for index, part in enumerate(parts) for row in part.memberships]
    rows.sort(key=lambda each: _order(parts, each[0], each[1].joined))
    for index, row in rows[-MOST_MEMBERS:]:
        end = None if row.left is None else row.left.offset
        # A member may have come back under its id: of its spells, those of this stay are its own.
        own = [
            spell
            for spell in spells[index].get(row.member_id, ())
            if spell.since.offset >= row.joined.offset and (end is None or spell.since.offset < end)
        ]
        yield Member(
            row.member_id,
            ", ".join(name for name in (client_name(row), client_library(row)) if name),
            row.rack_id,
            row.joined,
            row.came_by,
            row.left,
            row.went_by,
            row.hint,
            row.client,
            row.client_certainty,
            row.client_release,
            tuple(own),
        )


def _order(parts: Sequence[GroupHistory], index: int, at: LogPosition) -> tuple[int, int, int]:
    """The order of rows: times within one log may run backwards."""
    return (0, 0, at.offset) if len(parts) == 1 else time_order(parts[index], at)


def _two_owners(span: TwoOwners) -> TwoOwnersSpan:
    units = tuple(unit_name(second) for _, second in span.units[:MOST_UNITS])
    until_ms = None if span.until is None else span.until.timestamp_ms
    return TwoOwnersSpan(span.at, until_ms, units, len(span.units), tuple(span.members))


def _rebalances(
    parts: Sequence[GroupHistory], doubled: Sequence[Sequence[TwoOwners]]
) -> tuple[tuple[Rebalance, ...], tuple[int, str] | None]:
    """Return the last rebalances and the worst one, in order; the place of the worst, and why it is."""
    rows = [(index, row) for index, part in enumerate(parts) for row in part.rebalances]
    if not rows:
        return (), None
    rows.sort(key=lambda each: _order(parts, each[0], each[1].at))
    # Of equals the last one: ``because`` says so where none is worse than the others.
    worst = max(range(len(rows)), key=lambda place: (*badness(rows[place][1]), place))
    # The worst one is kept also where it is older than the last ones.
    places = sorted({worst, *range(max(0, len(rows) - MOST_REBALANCES), len(rows))})[-MOST_REBALANCES - 1 :]
    explained = tuple(_explained(parts, doubled, [rows[place] for place in places]))
    return explained, (places.index(worst), because(rows[worst][1]))


def _explained(
    parts: Sequence[GroupHistory], doubled: Sequence[Sequence[TwoOwners]], rows: Sequence[tuple[int, RebalanceRow]]
) -> Iterator[Rebalance]:
    targets = [{row.at.offset: row for row in part.targets} for part in parts]
    # One generator for each log: rows of one log are in its order here, so that ``next`` gives the story of the row.
    stories = [
        explanations(part, [row for of_part, row in rows if of_part == index]) for index, part in enumerate(parts)
    ]
    members = [{row.member_id: row for row in part.memberships} for part in parts]
    began = [dict(zip(part.rebalances, origins(part.rebalances), strict=True)) for part in parts]
    for index, row in rows:
        origin = began[index][row]
        target = None if row.target is None else targets[index].get(row.target.offset)
        part, sentences = parts[index], next(stories[index])
        yield Rebalance(
            group_type=row.group_type,
            log_topic=log_topic(part),
            at=row.at,
            from_epoch=row.from_epoch,
            to_epoch=row.to_epoch,
            causes=tuple(dict.fromkeys(str(cause.kind) for cause in row.causes)),
            family=str(family(row)),
            caused_by=caused_by(row, members[index]),
            more_causes=max(0, len(row.causes) - MOST_CAUSES),
            follows=None if origin is None else origin.to_epoch,
            origin=() if origin is None else caused_by(origin, members[index]),
            outcome=row.outcome,
            began_ms=row.began_before_ms,
            ended_ms=None if row.finished is None else row.finished.timestamp_ms,
            duration_min_ms=row.duration_min_ms,
            duration_max_ms=row.duration_max_ms,
            verdict=None if target is None else str(target.verdict),
            judged=None if target is None else _judged(target),
            members=row.members_after,
            moved=row.units_moved,
            lost=row.units_lost,
            idle_ms=row.idle_ms,
            delayed_by=row.delayed_by,
            doubled=sum(len(span.units) for span in doubled[index] if within(row, span.at)),
            missing=row.missing,
            story=tuple(sentences if len(parts) == 1 else with_log(sentences, log_topic(part))),
        )


def _judged(target: TargetAuditRow) -> str:
    """Return in one line what was compared, and the result."""
    parts = [f"recomputed: {target.assignor}" if target.assignor else f"compared with: {target.basis}"]
    if target.fitted:
        parts.append(f"fits with {target.fitted}")
    if target.missing:
        parts.append(f"missing: {target.missing}")
    parts += target.differences
    if target.more_differences > 0:
        parts.append(f"{target.more_differences} more differences")
    return "; ".join(parts)


def _broken(row: Violation) -> Broken:
    source = "share state log" if row.rule.in_share_state else "group log"
    return Broken(str(row.rule), str(row.rule.severity), row.rule.says, row.at, source, row.member_id, row.detail)


def _offsets(row: PartitionCommits, ends: NewestEnds, over_time: Mapping[tuple[str, int], OffsetsOverTime]) -> Offsets:
    end, lag = ends.get(TopicPartition(row.topic, row.partition)) if ends else None, None
    if end is not None and row.offset is not None:
        lag = records_behind(end, row.offset, row.last.timestamp_ms, row.topic_id)
    return Offsets(
        row.topic,
        row.partition,
        row.offset,
        row.last,
        row.commits,
        len(row.rewinds),
        len(row.removals),
        lag,
        over_time.get((row.topic, row.partition), NOTHING),
    )


def owned_units(rows: Iterable[AssignmentRow]) -> tuple[Sequence[OwnedUnit], int]:
    """Return the partitions or tasks that changed owner most, by name, and the number of all with an owner.

    Targets do not count: they say what was to be owned.
    """
    by_unit: defaultdict[str, list[AssignmentRow]] = defaultdict(list)
    for row in rows:
        if row.kind == "current":
            by_unit[unit_name(row)].append(row)
    chosen = sorted(by_unit, key=lambda name: (-len(by_unit[name]), _natural(name)))[:MOST_UNITS]
    most = MOST_OWNERS // max(1, len(chosen))
    return [_unit(name, by_unit[name], most) for name in sorted(chosen, key=_natural)], len(by_unit)


def _unit(name: str, rows: list[AssignmentRow], most: int) -> OwnedUnit:
    rows.sort(key=lambda row: (row.since.timestamp_ms, row.since.offset, row.member_id))
    owners = (
        OwnerSpell(row.member_id, row.since, None if row.until is None else row.until.timestamp_ms)
        for row in rows[-most:]
    )
    return OwnedUnit(name, tuple(owners), max(0, len(rows) - most))


def unit_name(row: AssignmentRow) -> str:
    """Return the name of a partition, task or connector, with its role unless it is the owner of a partition."""
    name = row.topic or row.connector or row.subtopology or row.resource
    prefix = "" if row.role == "partition" else f"{row.role} "
    return f"{prefix}{name}" if row.role == "connector" else f"{prefix}{name} {row.partition}"


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers in names by their value.

    A number is its count of digits, then its digits: a hostile name has more of them than Python reads as an integer.
    """
    parts = DIGITS.split(name)
    texts, numbers = parts[::2], (digits.lstrip("0") for digits in (*parts[1::2], ""))
    return [key for text, number in zip(texts, numbers, strict=True) for key in ((0, text), (len(number), number))]
