"""Rebalances that are too frequent, take too long, or never reach a stable assignment."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.coordinator_away import told_of
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.absences import absences_within
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.offset_spans import OffsetSpans
from coordinator_core.audit.folds.windows import stretches
from coordinator_core.audit.folds.witness import HOW
from coordinator_core.durations import duration
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import DEPARTED, CauseKind
from coordinator_core.history.rows import DOWNGRADED, REACHED_NOT_READY, UPGRADED, MembershipRow, RebalanceRow
from coordinator_core.records import LogPosition

SETTLED = frozenset(("converged", REACHED_NOT_READY, "emptied", "group deleted", UPGRADED, DOWNGRADED))
"""Outcomes after which a group was stable, or was removed."""
SECOND_HALF = frozenset(
    (
        CauseKind.PARTITIONS_REVOKED,
        CauseKind.SHARE_STATE_INITIALIZED,
        CauseKind.DELAY_ELAPSED,
        CauseKind.WARMUP_CAUGHT_UP,
    )
)
"""Causes that go on with what another rebalance began."""
CONVERSIONS = frozenset((CauseKind.GROUP_UPGRADED, CauseKind.GROUP_DOWNGRADED))
"""Causes that move the group to the other protocol as a whole. Who left with it may be told in the other log alone."""
ARRIVED = frozenset((CauseKind.MEMBER_JOINED, CauseKind.STATIC_MEMBER_RETURNED, CauseKind.STATIC_MEMBER_REPLACED))
GONE = DEPARTED.union(kind for kind, _ in HOW.values())
"""A member went; the log alone, or a broker's line, says how."""
TWICE = 2


def storms(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield the stretches in which every window has too many rebalances, each with the client that causes most.

    Those of which the log has no time are left out, and those of which another finding tells: they follow a
    coordinator that was away.
    """
    in_order = [row for row in history.rebalances if row.at.timestamp_ms >= 0]
    disturbing = (row for before, row in pairwise([None, *in_order]) if row is not None and _disturbs(row, before))
    rows = [row for row in disturbing if not told_of(history, limits, row.at.timestamp_ms)]
    times = [row.at.timestamp_ms for row in rows]
    for storm in stretches(times, limits.storm_rebalances, limits.storm_window_ms):
        yield from _stormy(history, limits, rows[storm.times], storm.most)


def _stormy(history: GroupHistory, limits: Thresholds, rows: Sequence[RebalanceRow], most: int) -> Iterator[FindingRow]:
    """Yield the finding, unless so many of the rebalances are those of a deploy, or may be, that it is no storm."""
    if _out_of_the_ordinary(history, rows) < limits.storm_rebalances:
        return
    driver, count = _most_often({history.client(cause.member_id) for cause in row.causes} for row in rows)
    kinds = Counter(cause.kind for row in rows for cause in row.causes)
    causes = ", ".join(f"{kind.replace('_', ' ')} {number}" for kind, number in kinds.most_common(3))
    detail = f"{most} rebalances within {duration(limits.storm_window_ms)}, {len(rows)} in total; causes: {causes}"
    if count * TWICE < len(rows):
        driver = None
        detail += "; no single member causes most of them"
    else:
        detail += f"; {driver} causes {count} of them"
    yield history.finding(
        FindingKind.REBALANCE_STORM,
        most,
        detail,
        [row.at for row in rows],
        threshold=limits.storm_rebalances,
        subject=driver,
        is_open=history.may_go_on(rows[-1].at.timestamp_ms, limits.storm_window_ms),
        complete=all(row.history_complete for row in rows),
    )


def _disturbs(row: RebalanceRow, before: RebalanceRow | None) -> bool:
    """Whether a rebalance disturbs members that had work: not the second half of one, which gives out what the first
    half took away, nor one with which a group is converted, or begins or ends to have members.

    One that gives out has no second half: if the next one gives out, too, the members pass partitions round.
    """
    if row.members_before == 0 or row.members_after == 0:
        return False
    causes = {cause.kind for cause in row.causes}
    if causes & CONVERSIONS:
        return False
    goes_on = bool(causes) and causes <= SECOND_HALF
    return not goes_on or (before is not None and _hands_over(before) and _hands_over(row))


def _hands_over(row: RebalanceRow) -> bool:
    return {cause.kind for cause in row.causes} == {CauseKind.PARTITIONS_REVOKED}


def _lacks_members(row: RebalanceRow) -> bool:
    """Whether records are missing that tell how many members the group had before a rebalance, or after it."""
    return row.missing is not None and None in (row.members_before, row.members_after)


def _stays(memberships: Iterable[MembershipRow]) -> Mapping[bool, OffsetSpans]:
    """Return the stays of members that are known, by whether they are those of a Connect group on KIP-848: offsets of
    the two logs of a group are kept apart.
    """
    known = [row for row in memberships if row.left is not None or row.missing is None]
    return {
        log: OffsetSpans.of((row.joined, row.left) for row in known if (row.group_type == GroupType.CONNECT) is log)
        for log in (False, True)
    }


def _out_of_the_ordinary(history: GroupHistory, rows: Sequence[RebalanceRow]) -> int:
    """Return how many rebalances are more than clients make that start, are restarted once and stop: a deploy, or one
    that scales. Those do not count of which records are missing that tell why they began, or whether the group had
    members before and after.

    Each may come and go twice. One that is restarted elsewhere has another name: there may be twice as many as members
    at a time.
    """
    came, went, other = Counter[str](), Counter[str](), 0
    # Stays are put in order only for rebalances that need them: those of a whole log need none.
    stays = _stays(history.memberships if any(map(_lacks_members, rows)) else ())
    for row in rows:
        is_unknown = row.missing is not None and any(cause.kind == CauseKind.UNKNOWN for cause in row.causes)
        has_one = stays[row.group_type == GroupType.CONNECT].any_at
        if is_unknown or (_lacks_members(row) and not has_one(row.at.offset)):
            continue
        unexplained = 0
        for cause in row.causes:
            counter = came if cause.kind in ARRIVED else went if cause.kind in GONE else None
            if counter is not None:
                counter[history.client(cause.member_id) or ""] += 1
            elif cause.kind not in SECOND_HALF:
                unexplained = 1
        other += unexplained or not row.causes or _hands_over(row)
    size = max((row.members_after or 0 for row in rows), default=0)
    clients = len(came.keys() | went.keys())
    repeated = sum(max(count - TWICE, 0) for counter in (came, went) for count in counter.values())
    return repeated + max(clients - TWICE * size, 0) + other


def slow(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield rebalances that took too long, or already do, each with the member that delayed it.

    One that the next rebalance superseded counts if it waited for a member, and ``never_converges`` does not tell it.
    While a static member is away, only its own partitions wait for it (KIP-345): that time does not count.
    """
    told = {row.at for stretch, *_ in _restless(history, limits) for row in stretch.rows}
    absences = _absences(history)
    for row, after in zip_longest(history.rebalances, history.rebalances[1:]):
        took, who, is_superseded = row.duration_min_ms, row.delayed_by, row.outcome == "superseded"
        if took is None or took < limits.slow_rebalance_ms or (is_superseded and (who is None or row.at in told)):
            continue
        if who in absences and absences[who].left_ms(row.at.timestamp_ms, took) < limits.slow_rebalance_ms:
            continue
        name = history.client(who)
        state = f"has taken {duration(took)} so far" if row.outcome == "open" else f"took {duration(took)}"
        state += " and was not completed" if is_superseded else ""
        detail = f"the rebalance to {row.to_epoch} {state}"
        if who is not None:
            detail += f", delayed by {name}" + (f" ({who})" if name != who else "")
        went = () if after is None else (cause.hint for cause in after.causes if cause.member_id == who and cause.hint)
        if is_superseded and (hint := next(iter(went), None)) is not None:
            detail += f"; {hint}"
        if away := absences_within(row, history.lines.away):
            detail += f"; the coordinator was away meanwhile ({away[0].until.place})"
        elif row.broker_away:
            detail += "; a broker was down meanwhile, or another one took over as the coordinator"
        end = row.finished or row.at
        yield history.finding(
            FindingKind.SLOW_REBALANCE,
            took,
            detail,
            [row.at, *([row.target] if row.target else []), end],
            threshold=limits.slow_rebalance_ms,
            subject=name,
            is_open=row.outcome == "open",
            complete=row.history_complete,
        )


class _Absence(NamedTuple):
    """Over which records a static member was away: since it left, perhaps to return, until another one took its place,
    or it was removed; ``until`` None: it still is.
    """

    since: LogPosition
    until: LogPosition | None

    def had(self, at: LogPosition) -> bool:
        """Whether it was away at a record."""
        return self.since.offset <= at.offset and (self.until is None or self.until.offset > at.offset)

    def left_ms(self, begin_ms: int, took_ms: int) -> int:
        """Return what is left of a time without it."""
        end_ms = begin_ms + took_ms
        until_ms = end_ms if self.until is None else min(self.until.timestamp_ms, end_ms)
        return end_ms - begin_ms - max(until_ms - max(self.since.timestamp_ms, begin_ms), 0)


def _absences(history: GroupHistory) -> Mapping[str | None, _Absence]:
    """Return when static members were away, also by the ids of those that took their places (KIP-848)."""
    gone: dict[str | None, _Absence] = {}
    for row in history.memberships:
        if row.away_since is not None:
            gone[row.member_id] = _Absence(row.away_since, row.left)
    return gone | {row.member_id: gone[row.replaces] for row in history.memberships if row.replaces in gone}


def _waits_for_nobody(row: RebalanceRow, after: RebalanceRow | None, absences: Mapping[str | None, _Absence]) -> bool:
    """Whether all members that were there had reached the target by the next rebalance, or the end of the log: those
    that had not were static members that were away, or that were removed as such.
    """
    went = [cause.member_id for cause in after.causes if cause.kind in GONE] if after is not None else []
    behind = [absences[each] for each in row.behind if each in absences]
    return (
        len(behind) == row.members_behind
        and bool(behind or went)
        and all(each.until is None if after is None else each.had(after.at) for each in behind)
        and all(each in absences for each in went)
    )


def never_converges(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield the periods of superseded rebalances that are too long, each with the one member that held most of them up.

    A rebalance whose outcome is unknown may have settled at once: the period that is known ends where it began.
    """
    for stretch, who, count in _restless(history, limits):
        rows, took = stretch.rows, stretch.lasted_ms
        epochs = f"{rows[0].to_epoch} to {rows[-1].to_epoch}"
        detail = f"{len(rows)} rebalances, {epochs}, without a stable assignment for {duration(took)}"
        if who is not None:
            detail += f"; {who} was behind in {count} of them"
        yield history.finding(
            FindingKind.NEVER_CONVERGES,
            took,
            detail,
            [row.at for row in rows],
            threshold=limits.never_converges_ms,
            subject=who,
            until_ms=stretch.end_ms,
            is_open=stretch.is_open,
            complete=all(row.history_complete for row in rows),
        )


def _restless(history: GroupHistory, limits: Thresholds) -> "Iterator[tuple[_Stretch, str | None, int]]":
    """Yield these periods, each with that member, None: there is no such one, and how many rebalances it held up.

    While clients are restarted one after the other, or come, the group cannot settle: that counts only if one of them
    holds all rebalances up.
    """
    for stretch in _stretches(history):
        if stretch.lasted_ms < limits.never_converges_ms:
            continue
        waited_for = zip(stretch.rows, _waited_for(stretch.rows), strict=True)
        held_up = [{history.client(each) for each in members} for row, members in waited_for if not row.broker_away]
        who, count = _most_often(held_up)
        if count < len(held_up) and not _out_of_the_ordinary(history, stretch.rows):
            continue
        if count * TWICE < len(held_up) or count == _most_often(names - {who} for names in held_up)[1]:
            who = None  # the group as a whole is behind
        yield stretch, who, count


def _waited_for(rows: Iterable[RebalanceRow]) -> Iterator[set[str]]:
    """Yield the members that others waited for in each of these rebalances: those that did not give up what they were
    asked to, with which they go on in the next one, or else those that did not reach the target; none if there are more
    than the row names.
    """
    asked = set[str]()
    for row in rows:
        asked = asked.intersection(row.behind).union(each.member_id for each in row.revocations if each.given is None)
        yield asked or set(row.behind if row.members_behind == len(row.behind) else ())


class _Stretch(NamedTuple):
    """Rebalances each of which superseded the one before, and when it ended, or the end of the log (ms)."""

    rows: Sequence[RebalanceRow]
    end_ms: int
    is_open: bool

    @property
    def lasted_ms(self) -> int:
        """How long it lasted (ms), but for rebalances within which the coordinator was away or moved."""
        begins = [row.at.timestamp_ms for row in self.rows]
        lasted = zip(self.rows, begins, [*begins[1:], self.end_ms], strict=True)
        return sum(end_ms - began_ms for row, began_ms, end_ms in lasted if not row.broker_away and began_ms >= 0)


def _stretches(history: GroupHistory) -> Iterator[_Stretch]:
    stretch: list[RebalanceRow] = []
    absences = _absences(history)
    for row, after in zip_longest(history.rebalances, history.rebalances[1:]):
        stretch.append(row)
        is_reached = _waits_for_nobody(row, after, absences)
        if row.outcome == "superseded" and not is_reached:
            continue
        if len(stretch) > 1:
            end = row.at if row.outcome not in SETTLED else row.finished or row.at
            # One in progress has lasted since, unless its end may be among what is lost.
            is_open = row.outcome == "open" and not is_reached
            lasted_ms = (row.duration_min_ms or 0) if is_open else 0
            yield _Stretch(stretch, end.timestamp_ms + lasted_ms, is_open)
        stretch = []
    if len(stretch) > 1:
        yield _Stretch(stretch, history.now_ms, is_open=True)


def _most_often(clients: Iterable[set[str | None]]) -> tuple[str | None, int]:
    """Return the client that counts in most rebalances, and in how many; a client counts once in each, also with two
    members.
    """
    # In order of name within a rebalance: with equal counts the first one counted is named, in every process the same.
    counts = Counter(name for of_row in clients for name in sorted(filter(None, of_row)))
    return counts.most_common(1)[0] if counts else (None, 0)
