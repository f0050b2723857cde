"""Members that join and leave: flapping members, rolling deploys, static members fenced or expired."""

import itertools
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.connect import advice
from coordinator_core.audit.findings.coordinator_away import told_of
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.client_names import client_name
from coordinator_core.audit.folds.group_history import GroupHistory, counted, first_of
from coordinator_core.audit.folds.windows import stretches
from coordinator_core.audit.folds.witness import GONE, HOW
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.clients.known_clients import default_client
from coordinator_core.durations import duration, durations
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.memberships import EXPIRED, NOT_SAID, REMOVED, SLOW_POLL
from coordinator_core.history.rows import AWAY_LOST, AWAY_UNSEEN, LEFT_OR_EXPIRED, REPLACED, MembershipRow
from coordinator_core.records import LogPosition

TOGETHER_MS = 1_000
"""Clients that leave within this time of each other leave together."""
LONGEST_SESSION_MS = 60_000
"""The default of group.consumer.max.session.timeout.ms: a member that ended was in its group at most so long."""
CONNECT_TASK = re.compile(r"connector-consumer-.+-\d+( at .+)?")
"""The client id of a task of a sink connector: workers close and open its consumer as they rebalance."""
WITHOUT_STATIC_MEMBERS = frozenset(("SHARE", "STREAMS"))
"""Types of groups whose members cannot have an instance id."""


def flapping(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield clients that joined and left after a short stay again and again within a while, and the group went on.

    A job that runs now and then, alone or with all its clients, disturbs no other one: each time it begins with an
    empty group and leaves one behind. Nor does one flap that is restarted in a deploy, or a task that Connect moves:
    only sessions that expired and poll loops that took too long tell that it failed. What a coordinator that was
    away ended is no doing of clients.
    """
    runs = _Runs(history)
    deployed = {restart.left for wave in _waves(history, limits) for restart in wave}
    for name, rows in _by_client(history).items():
        if name in history.shared_names or (_has_default_id(rows) and not _one_at_a_time(rows)):
            continue
        short = [
            row
            for row in rows
            if row.left is not None
            and row.went_by in GONE
            and row.joined.timestamp_ms >= max(row.left.timestamp_ms - limits.flapping_stay_ms, 0)
            and not told_of(history, limits, row.left.timestamp_ms)
        ]
        again = Counter(runs.of(row) for row in short)
        is_task = CONNECT_TASK.fullmatch(name) is not None
        short = [
            row
            for row in short
            if is_expired(row)
            or (row.hint or "").startswith(SLOW_POLL)
            or (not is_task and again[runs.of(row)] > 1 and row.left not in deployed and not runs.ends_with(row))
        ]
        ends = [row.left.timestamp_ms for row in short if row.left is not None]
        for stretch in stretches(ends, limits.flapping_stays, limits.flapping_window_ms):
            yield _flaps(history, limits, name, short[stretch.times])


def _flaps(history: GroupHistory, limits: Thresholds, name: str, short: Sequence[MembershipRow]) -> FindingRow:
    stays = [row.left.timestamp_ms - row.joined.timestamp_ms for row in short if row.left is not None]
    detail = f"{name} joined and left {len(short)} times, after {durations(min(stays), max(stays))} each"
    if (cause := polls_too_slowly(history, short)) is not None:
        detail += f"; {cause}"
    evidence = [at for row in short for at in (row.joined, row.left) if at is not None]
    return history.finding(
        FindingKind.FLAPPING_MEMBER,
        len(short),
        detail,
        evidence,
        threshold=limits.flapping_stays,
        subject=name,
        # Also while the client is in the group.
        is_open=history.may_go_on(evidence[-1].timestamp_ms, limits.flapping_stay_ms),
    )


class _Runs:
    """The times over which a group is known to have had members without a break."""

    def __init__(self, history: GroupHistory) -> None:
        ended = [(row.joined, row.left) for row in history.memberships if row.left is not None]
        changes = [(row.joined.offset, 1) for row in history.lasting(history.memberships)]
        changes += [(joined.offset, 1) for joined, _ in ended] + [(left.offset, -1) for _, left in ended]
        members, self._begins, self._ends_ms = 0, list[int](), dict[int, int]()
        times = {left.offset: left.timestamp_ms for _, left in ended}
        # One that takes another one's place comes with the record that ends the other.
        for offset, change in sorted(changes, key=lambda each: (each[0], -each[1])):
            if members == 0 and change > 0:
                self._begins.append(offset)
            members += change
            if members == 0 and change < 0 and self._begins:
                self._ends_ms[len(self._begins)] = times[offset]

    def of(self, row: MembershipRow) -> int:
        """Return the number of the run in which a member joined."""
        return bisect_right(self._begins, row.joined.offset)

    def ends_with(self, row: MembershipRow) -> bool:
        """Whether all members left with this one: they were stopped together."""
        end_ms = self._ends_ms.get(self.of(row))
        return end_ms is not None and row.left is not None and end_ms - row.left.timestamp_ms <= TOGETHER_MS


def polls_too_slowly(history: GroupHistory, stays: Sequence[MembershipRow]) -> str | None:
    """Return the words for members that exceed max.poll.interval.ms each time; None: their stays do not show it."""
    timeouts = {row.rebalance_timeout_ms for row in stays}
    timeout_ms = timeouts.pop() if len(timeouts) == 1 else None
    if timeout_ms is None or not all((row.hint or "").startswith(SLOW_POLL) for row in stays):
        return None
    # When each member last got partitions before it left, by member and the record that ended them.
    got: dict[tuple[str, LogPosition], LogPosition] = {}
    for each in history.assignments:
        if each.kind == "current" and each.until is not None:
            key = each.member_id, each.until
            got[key] = max(each.since, got.get(key, each.since), key=lambda at: at.offset)
    waits = [
        row.left.timestamp_ms - got[row.member_id, row.left].timestamp_ms
        for row in stays
        if row.left is not None and (row.member_id, row.left) in got
    ]
    if not waits:
        return None
    return (
        f"each time {durations(min(waits), max(waits))} after it got partitions and without a commit, a little above "
        f"its rebalance timeout of {duration(timeout_ms)}, which is its max.poll.interval.ms: its poll loop takes "
        f"longer"
    )


class _Restart(NamedTuple):
    """A client that left and joined again shortly after, as another member."""

    name: str
    gone: MembershipRow
    left: LogPosition
    back: LogPosition


def rolling_deploys(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield restarts of several clients one after the other, none of them a static member.

    A process that starts again has a new member id: one that comes back with its id lost its session and went on. Only
    a Connect worker on KIP-848 keeps its id.
    """
    for wave in _waves(history, limits):
        yield from _deploy(history, limits, wave)


def _waves(history: GroupHistory, limits: Thresholds) -> Iterator[list[_Restart]]:
    """Yield the restarts of each deploy, in their order."""
    wave: list[_Restart] = []
    for restart in sorted(_restarts(history, limits), key=lambda restart: restart.left.offset):
        if wave and restart.left.timestamp_ms - wave[-1].back.timestamp_ms > limits.rolling_deploy_gap_ms:
            if _is_deploy(wave, limits):
                yield wave
            wave = []
        wave.append(restart)
    if _is_deploy(wave, limits):
        yield wave


def _is_deploy(wave: Sequence[_Restart], limits: Thresholds) -> bool:
    clients = {session.name for session in wave}
    # A deploy restarts a client once, or twice where it is rolled back: one that comes and goes more often fails.
    return min(len(clients), _moments(wave)) >= limits.rolling_deploy_clients and len(wave) <= 2 * len(clients)


POLL_TIMEOUT = "poll timeout has expired"
"""What a client says that leaves as it was too slow, and comes back by itself (KIP-800)."""


def _restarts(history: GroupHistory, limits: Thresholds) -> Iterator[_Restart]:
    # Who went, with which record, as it was too slow, as brokers' logs say: that is not a restart.
    too_slow = {
        (event.member_id, event.record)
        for event in history.events
        if event.kind == EventKind.MEMBER_TIMED_OUT
        or (event.kind == EventKind.MEMBER_LEFT and POLL_TIMEOUT in (event.reason or ""))
    }
    for name, rows in _by_client(history).items():
        rows = [row for row in rows if row.instance_id is None and row.client_id is not None]
        alone = _one_at_a_time(rows)
        for gone, back in itertools.pairwise(rows):
            went_on = gone.member_id == back.member_id and gone.group_type != GroupType.CONNECT
            if not alone or gone.left is None or gone.went_by not in GONE or went_on:
                continue
            if (gone.member_id, gone.left) in too_slow:
                continue
            # 0 <=: where the clock of the next coordinator is behind, the time between says nothing.
            if 0 <= back.joined.timestamp_ms - gone.left.timestamp_ms <= limits.rolling_deploy_gap_ms:
                yield _Restart(name, gone, gone.left, back.joined)


def _one_at_a_time(rows: Sequence[MembershipRow]) -> bool:
    """Whether the name belongs to one client: several clients of one name cannot be distinguished."""
    return all(
        gone.left is not None and gone.left.offset <= back.joined.offset for gone, back in itertools.pairwise(rows)
    )


def _has_default_id(rows: Sequence[MembershipRow]) -> bool:
    """Whether members are named by a client id that a client library has by default: every process on a host has it."""
    first = rows[0]
    return first.instance_id is None and first.client_id is not None and default_client(first.client_id) is not None


def _deploy(history: GroupHistory, limits: Thresholds, wave: Sequence[_Restart]) -> Iterator[FindingRow]:
    clients = {session.name for session in wave}
    moments = {session.left for session in wave} | {session.back for session in wave}
    first, last = min(at.offset for at in moments), max(at.offset for at in moments)
    rebalances = [
        row
        for row in history.rebalances
        if any(cause.at in moments for cause in row.causes) or first <= row.at.offset <= last
    ]
    if len(rebalances) < limits.rolling_deploy_rebalances:
        return
    # What is lost within the wave, or next to it, may be more of it: then it need not be a rolling restart.
    of_wave = {row.at for row in rebalances}
    since = max((row.at.offset for row in history.rebalances if row.at.offset < first), default=0)
    ends = [row.at.offset for row in history.rebalances if row.at.offset > last and row.at not in of_wave]
    if history.lost.any_within(history.own_log, wave[0].left.partition, since, min(ends, default=None)):
        return
    since_ms = min(session.left.timestamp_ms for session in wave) - limits.rolling_deploy_gap_ms
    until_ms = max(session.back.timestamp_ms for session in wave)
    known = [row for row in history.rebalances if since_ms <= row.at.timestamp_ms <= until_ms]
    moved = [row.units_moved for row in rebalances if row.units_moved is not None]
    detail = f"{len(clients)} clients were restarted one after the other: {counted(len(rebalances), 'rebalance')}"
    knows_moves = len(moved) in (0, len(rebalances))  # none are known of a share group
    if moved and knows_moves:
        detail += f", {counted(sum(moved), 'move')}"
    if (remedy := _remedy(history, wave)) is not None:
        detail += f"; {remedy}"
    yield history.finding(
        FindingKind.ROLLING_DEPLOY,
        len(rebalances),
        detail,
        [at for session in wave for at in (session.left, session.back)],
        threshold=limits.rolling_deploy_rebalances,
        is_open=history.may_go_on(until_ms, limits.rolling_deploy_gap_ms),
        complete=knows_moves and all(row.history_complete for row in known),
    )


def _moments(wave: Sequence[_Restart]) -> int:
    """Return at how many times clients left, one after the other: the threads of one process leave together."""
    count, last_ms = 0, None
    for left_ms in sorted(session.left.timestamp_ms for session in wave):
        if last_ms is None or left_ms - last_ms >= TOGETHER_MS:
            count += 1
        last_ms = left_ms
    return count


def _remedy(history: GroupHistory, wave: Sequence[_Restart]) -> str | None:
    """Return what would have avoided the rebalances; None if nothing would: share and streams groups refuse instance
    ids.
    """
    if history.is_connect:
        return advice(history, [session.gone for session in wave])
    if any(session.gone.group_type in WITHOUT_STATIC_MEMBERS for session in wave):
        return None
    return "static members would have kept their assignments"


def static_members(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield instance ids taken over while their member was in the group, and static members that did not return.

    What ended a stay decides: a member may have been replaced in another one.
    """
    fenced, expired = defaultdict[str, list[MembershipRow]](list), defaultdict[str, list[MembershipRow]](list)
    for row in history.memberships:
        if row.instance_id is None or row.left is None:
            continue
        if row.went_by == REPLACED and row.away_since is None and row.hint not in (AWAY_UNSEEN, AWAY_LOST):
            fenced[row.instance_id].append(row)
        elif is_expired(row):
            expired[row.instance_id].append(row)
    for instance_id, rows in fenced.items():
        detail = f"another client took over the instance id {instance_id} of a member in the group, "
        yield history.finding(
            FindingKind.STATIC_MEMBER_FENCED,
            len(rows),
            detail + counted(len(rows), "time"),
            [row.left for row in rows if row.left is not None],
            subject=f"instance {instance_id}",
        )
    yield from _not_returned(history, expired)
    yield from _turned_away(history, fenced.keys())


def _not_returned(history: GroupHistory, expired: Mapping[str, Sequence[MembershipRow]]) -> Iterator[FindingRow]:
    """Yield one finding for all static members whose sessions expired: a group that is switched off loses all."""
    if not expired:
        return
    there = {row.instance_id for row in history.memberships if row.is_open}
    times = [f"{name} {len(rows)} times" if len(rows) > 1 else name for name, rows in sorted(expired.items())]
    gone = [name for name in expired if name not in there]
    detail = f"{counted(len(expired), 'static member')} did not return before the session ended: {first_of(times)}"
    ends = [row for rows in expired.values() for row in rows]
    untold = sum(row.went_by == LEFT_OR_EXPIRED for row in ends)
    if untold:
        those = ("it" if untold == 1 else "them") if untold == len(ends) else f"{untold} of them"
        detail += f"; the session expired, or a request removed {those}: only a broker's log tells which"
    if len(gone) < len(expired):
        detail += f"; {len(expired) - len(gone)} came back later"
    elif history.is_empty:
        detail += "; the group has no members since"
    yield history.finding(
        FindingKind.STATIC_MEMBER_EXPIRED,
        len(ends),
        detail,
        [row.left for row in ends if row.left is not None],
        subject=f"instance {next(iter(expired))}" if len(expired) == 1 else None,
    )


def _turned_away(history: GroupHistory, known: Container[str]) -> Iterator[FindingRow]:
    """Yield instance ids with which another client was turned away, as only a broker's log says.

    ``known`` are those of which the coordinator's log says that they were taken over. One whose owner's session ended
    soon after, without another sign of it, was turned away in place of a client that had ended without leaving
    (KIP-848).
    """
    refused: dict[str, dict[str, BrokerEvent]] = defaultdict(dict)
    ended = {row.member_id: row.left for row in history.memberships if row.left and is_expired(row)}
    for line in history.lines.of_kind[EventKind.STATIC_MEMBER_FENCED]:
        left = ended.get(line.reason or "")
        is_of_dead = left is not None and _ended_before(history, line.reason, left, line.timestamp_ms or 0)
        if line.instance_id is not None and line.instance_id not in known and not is_of_dead:
            refused[line.instance_id].setdefault(line.member_id or "", line)
    for instance_id, lines in refused.items():
        owners = [row.joined for row in history.memberships if row.instance_id == instance_id]
        first = next(iter(lines.values()))
        detail = f"two clients have the instance id {instance_id}: {counted(len(lines), 'client')} turned away "
        times = [line.timestamp_ms for line in lines.values() if line.timestamp_ms is not None]
        yield history.finding(
            FindingKind.STATIC_MEMBER_FENCED,
            len(lines),
            f"{detail}({first.place})",
            owners,
            subject=f"instance {instance_id}",
            until_ms=max(times, default=None),
        )


def _ended_before(history: GroupHistory, member_id: str | None, left: LogPosition, time_ms: int) -> bool:
    """Whether a member whose session ended may have ended by itself before a time: it gave no sign afterwards. It does
    with what it takes or gives up, which it asks for, and with commits.
    """
    if not 0 <= left.timestamp_ms - time_ms <= LONGEST_SESSION_MS:
        return False
    had = [row for row in history.assignments if row.member_id == member_id and row.kind == "current"]
    last = {(row.topic, row.partition) for row in had if row.until and row.until.timestamp_ms == left.timestamp_ms}
    signs = [at for row in had for at in (row.since, row.until) if at is not None]
    signs += [each.last for each in history.commits if (each.topic, each.partition) in last]
    # What the coordinator removes of the member is written in one batch, and has one time.
    return not any(time_ms < at.timestamp_ms < left.timestamp_ms for at in signs)


def is_expired(row: MembershipRow) -> bool:
    """Whether the session of a member expired, as far as the log tells or a broker's log says."""
    hint = row.hint or ""
    if row.went_by == LEFT_OR_EXPIRED:
        return hint.startswith((EXPIRED, NOT_SAID)) or (row.away_since is not None and not hint.startswith(REMOVED))
    return row.went_by == HOW[EventKind.MEMBER_EXPIRED][1]


def _by_client(history: GroupHistory) -> dict[str, list[MembershipRow]]:
    by_client: dict[str, list[MembershipRow]] = defaultdict(list)
    for row in sorted(history.memberships, key=lambda row: row.joined.offset):
        by_client[client_name(row)].append(row)
    return by_client
