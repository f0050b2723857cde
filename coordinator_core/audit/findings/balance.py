"""How work is distributed: imbalance, members without work, partitions without an owner, needless moves."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level
from coordinator_core.audit.findings.converged_states import ConvergedState, converged_states
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import CONNECTOR_OR_TASK, GroupHistory, counted, first_of
from coordinator_core.durations import duration
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.rows import NEXT_EPOCH, NO_COMPUTING_WORKER, GroupEpochRow, MembershipRow, RebalanceRow

STICKY = frozenset(("uniform", "sticky", "cooperative-sticky"))
MEMBERS_ONLY = frozenset(
    (
        CauseKind.MEMBER_JOINED,
        CauseKind.MEMBER_LEFT_OR_EXPIRED,
        CauseKind.STATIC_MEMBER_LEFT,
        CauseKind.MEMBER_LEFT,
        CauseKind.MEMBER_EXPIRED,
        CauseKind.MEMBER_TIMED_OUT,
        CauseKind.STATIC_MEMBER_RETURNED,
        CauseKind.PARTITIONS_REVOKED,
    )
)
"""Causes of rebalances for which the smallest possible number of moves can be computed."""


def shares(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield imbalance, empty members and needless moves, over all converged states."""
    # Needless moves count in a state that passes at once, too; only what lasts can be called uneven or empty.
    moments = list(converged_states(history))
    complete = (moment for moment in moments if not _waits(history, moment.rebalance))
    lasting = [each for each in _with_ends(history, complete) if each.has_lasted(history, limits.uneven_ms)]
    yield from _imbalance(history, limits, lasting)
    yield from _empty(history, limits, lasting)
    yield from _needless(history, limits, moments)


def _waits(history: GroupHistory, rebalance: RebalanceRow) -> bool:
    """Whether work of a Connect group waits for a worker to return (KIP-415): what the others have is not their share.

    With the classic protocol the leader set a delay; on KIP-848 work is in no target.
    """
    epoch = history.epoch_of(rebalance)
    return bool((epoch is not None and epoch.unassigned) or rebalance.delay_ms)


class _Lasting(NamedTuple):
    """A converged state, and when the next rebalance, or the end of the group, ended it (ms); None: the log does."""

    moment: ConvergedState
    ended_ms: int | None

    @property
    def since_ms(self) -> int:
        """Since when all members had what they had then."""
        return (self.moment.rebalance.finished or self.moment.rebalance.at).timestamp_ms

    def has_lasted(self, history: GroupHistory, least_ms: int) -> bool:
        """Whether they had it for so long."""
        if self.ended_ms is None:
            return history.has_lasted(self.since_ms, least_ms)
        return self.ended_ms - self.since_ms >= least_ms

    def until_ms(self, history: GroupHistory) -> int:
        """Until when they had it, as far as the log shows."""
        return history.now_ms if self.ended_ms is None else self.ended_ms


def _with_ends(history: GroupHistory, moments: Iterable[ConvergedState]) -> Iterator[_Lasting]:
    """Yield when each state ended. A state that passes at once is no advice: members join one after the other, and a
    cooperative rebalance takes away first what it gives out then (KIP-429). Nothing tells how long a state lasted in
    which records were lost.
    """
    # By log offset: after the coordinator moves, the next broker's clock may be behind.
    gone = (row.ended for row in history.epochs if row.ended is not None and row.ended_by != NEXT_EPOCH)
    ends = sorted(chain(gone, (row.at for row in history.rebalances)), key=lambda at: at.offset)
    for moment in moments:
        done = moment.rebalance.finished or moment.rebalance.at
        following = bisect_right(ends, done.offset, key=lambda at: at.offset)
        end = ends[following] if following < len(ends) else None
        if not history.loses(done, end):
            yield _Lasting(moment, None if end is None else end.timestamp_ms)


def _imbalance(history: GroupHistory, limits: Thresholds, states: Sequence[_Lasting]) -> Iterator[FindingRow]:
    """Yield the worst state; groups whose members subscribe to different topics cannot be judged by their loads.

    While tasks warm up, they stay where their state is: that does not count as uneven.
    """
    moments = [state.moment for state in states]
    uneven = [
        moment
        for moment in moments
        if not moment.warming_up
        and moment.spread >= limits.imbalance_units
        # The highest load against the mean (units by members), multiplied out.
        and max(moment.loads.values()) * len(moment.loads) > limits.imbalance_ratio * moment.units
        and _alike(history, moment)
    ]
    if not uneven:
        return
    worst = max(uneven, key=lambda moment: moment.spread)
    most = max(worst.loads, key=lambda member_id: worst.loads[member_id])
    detail = (
        f"{history.client(most)} had {worst.loads[most]} of {worst.units}, while another of the {len(worst.loads)} "
        f"members had {min(worst.loads.values())}, after the rebalance to {worst.rebalance.to_epoch}; "
        f"uneven in {len(uneven)} of {len(moments)} lasting stable epochs"
    )
    yield history.finding(
        FindingKind.IMBALANCE,
        worst.spread,
        detail,
        [moment.rebalance.finished or moment.rebalance.at for moment in uneven],
        threshold=limits.imbalance_units,
        subject=history.client(most),
        is_open=_holds(history, uneven[-1]),
        complete=_shows_all_states(history),
    )


def _holds(history: GroupHistory, moment: ConvergedState) -> bool:
    """Whether the group still has what it had then: no epoch began since."""
    return history.present is not None and history.present.epoch == moment.rebalance.to_epoch


def _shows_all_states(history: GroupHistory) -> bool:
    """Whether all stable epochs are known, of which a finding says in how many it was so."""
    return all(row.history_complete for row in history.rebalances)


def _alike(history: GroupHistory, moment: ConvergedState) -> bool:
    """Whether all members had the same subscription, as far as the log says."""
    rows = (row for row in history.memberships if row.member_id in moment.loads)
    return len({(row.subscribed_topics, row.subscribed_regex) for row in rows}) <= 1


def _empty(history: GroupHistory, limits: Thresholds, states: Sequence[_Lasting]) -> Iterator[FindingRow]:
    """Yield the state in which most members had nothing that could have had something."""
    rows_of: dict[str, list[MembershipRow]] = defaultdict(list)
    for row in history.memberships:
        rows_of[row.member_id].append(row)
    empty = (
        (state, [name for name in state.moment.empty_members if _could_have(rows_of[name], state.moment)])
        for state in states
    )
    idle = [(state, names) for state, names in empty if names]
    if not idle:
        return
    state, members = max(idle, key=lambda each: len(each[1]))
    moment, lasted_ms = state.moment, state.until_ms(history) - state.since_ms
    names = sorted({history.client(member_id) or "" for member_id in members})
    detail = (
        f"{len(members)} of {len(moment.loads)} members had nothing for {duration(lasted_ms)} after the "
        f"rebalance to {moment.rebalance.to_epoch} ({first_of(names, 3)}), with {moment.units} to assign"
    )
    detail += ": spare members, if intended" if moment.units < len(moment.loads) else ""
    last = idle[-1][0]
    yield history.finding(
        FindingKind.EMPTY_MEMBERS,
        len(members),
        f"{detail}; the same in {len(idle)} of {len(states)} lasting stable epochs",
        [each.moment.rebalance.finished or each.moment.rebalance.at for each, _ in idle],
        until_ms=last.until_ms(history),
        is_open=_holds(history, last.moment),
        complete=_shows_all_states(history),
    )


def _could_have(rows: Sequence[MembershipRow], moment: ConvergedState) -> bool:
    """Whether a member that had nothing subscribes to a topic that was assigned; tasks and connectors are for all."""
    names = {name for row in rows for name in row.subscribed_topics}
    patterns = {row.subscribed_regex for row in rows if row.subscribed_regex}
    if not moment.topics or (not names and not patterns):
        return moment.units > 0
    return not names.isdisjoint(moment.topics) or any(
        _may_match(pattern, topic) for pattern in patterns for topic in moment.topics
    )


def _may_match(pattern: str, topic: str) -> bool:
    """Whether a topic matches a consumer's regular expression; brokers use RE2/J, whose syntax is nearly the same."""
    try:
        return re.fullmatch(pattern, topic) is not None
    except re.error:
        return True


def _needless(history: GroupHistory, limits: Thresholds, moments: Sequence[ConvergedState]) -> Iterator[FindingRow]:
    """Yield moves between members that stayed, beyond a fair share for each member that joined.

    Where members subscribe to different topics, the topics of a member that left go to few of the others, which then
    have to give up some of what they had: there nothing says how many moves were needed. Nor does it where members of a
    classic group have racks: a member gives up what has no replica in its rack, once another one may have it (KIP-881).
    """
    for moment in moments:
        rebalance, previous = moment.rebalance, moment.previous
        sticky = rebalance.group_type == "STREAMS" or _assignor(history, rebalance) in STICKY
        # If an epoch lies between the two states, its targets may have asked for the moves.
        if not sticky or previous is None or rebalance.from_epoch != previous.to_epoch or not moment.loads:
            continue
        if not all(cause.kind in MEMBERS_ONLY for cause in rebalance.causes) or not _alike(history, moment):
            continue
        racks = (row.rack_id for row in history.memberships if row.member_id in moment.loads)
        if rebalance.group_type == GroupType.CLASSIC and any(racks):
            continue
        # Each member that joined may get a share that is rounded up.
        # -(-a // b) rounds up.
        needed = moment.joined * -(-moment.units // len(moment.loads))
        surplus = moment.left_to_others - needed
        if surplus > 0:
            noun = "task" if rebalance.group_type == "STREAMS" else "partition"
            detail = (
                f"the rebalance to {rebalance.to_epoch} moved {counted(moment.left_to_others, noun)} between members "
                f"that stayed; {_needed(moment.joined, needed)}"
            )
            yield history.finding(
                FindingKind.MOVED_MORE_THAN_NEEDED,
                surplus,
                detail,
                [rebalance.at, rebalance.finished or rebalance.at],
                complete=rebalance.history_complete,
            )


def _needed(joined: int, needed: int) -> str:
    """Say how many moves the members that joined explain."""
    if joined == 0:
        return "no member joined: no move was needed"
    return f"{counted(joined, 'member')} joined, which explains at most {needed}"


def _assignor(history: GroupHistory, rebalance: RebalanceRow) -> str | None:
    """Return the assignor of a rebalance: the one that its target was recomputed with, otherwise what the log says."""
    target, epoch = history.target_of(rebalance), history.epoch_of(rebalance)
    if target is not None and target.assignor is not None:
        return target.assignor
    return None if epoch is None else epoch.assignor


def unassigned_work(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for the connectors and tasks that are in no worker's target now, whatever the group's state.

    Only groups on KIP-848 say in their log what there is to run. A group without workers was stopped, as any group
    without members. What waits for a worker to return is no fault until the delay, and a rebalance after it, are over.
    """
    if history.group_type != "CONNECT" or history.is_empty or not history.lasting(history.epochs):
        return
    begun = last = None
    for epoch in history.epochs:
        if epoch.unassigned == 0 or epoch.members == ():
            begun = None
        elif epoch.unassigned is not None and epoch.target is not None:
            begun, last = begun or epoch.target, epoch
    if begun is None or last is None or last.unassigned is None or last.unassigned < 1:
        return
    delay_ms = next((row.delay_ms for row in history.rebalances if row.target == begun), None)
    waits = delay_ms is not None and not history.has_lasted(begun.timestamp_ms, delay_ms + limits.slow_rebalance_ms)
    waited_ms = history.now_ms - begun.timestamp_ms
    detail = f"in no worker's target for {duration(waited_ms)}: {counted(last.unassigned, CONNECTOR_OR_TASK)}"
    if delay_ms is not None:
        detail += f"; a worker that left has {duration(delay_ms)} to return"
    yield history.finding(
        FindingKind.UNASSIGNED_WORK,
        last.unassigned,
        detail,
        # Both are the same record if work has been unassigned only since the last epoch.
        list(dict.fromkeys((begun, last.target or last.opened))),
        level=Level.NOTICE if waits else None,
        is_open=True,
        complete=last.history_complete,
    )


def failed_assignors(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for the targets with which an assignor reported an error."""
    failed = [epoch for epoch in history.epochs if epoch.assignment_error]
    if failed and history.group_type == "CONNECT":
        listed = first_of([f"{attempt.epoch} ({_failure(attempt)})" for attempt in failed])
        evidence = [attempt.target or attempt.opened for attempt in failed]
        yield history.finding(
            FindingKind.ASSIGNOR_FAILED,
            len(failed),
            f"epochs {listed}",
            evidence,
            is_open=failed[-1] is history.present,
        )


def _failure(epoch: GroupEpochRow) -> str:
    if epoch.target is None and epoch.assignment_error == NO_COMPUTING_WORKER:
        return "no worker supports the versions of all others: FATAL"
    return f"error {epoch.assignment_error}"
