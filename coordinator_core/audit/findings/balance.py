"""How work is distributed: imbalance, members without work, partitions without an owner, needless moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.converged_states import ConvergedState, converged_states
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import CONNECTOR_OR_TASK, GroupHistory, counted, first_of
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.rows import NO_COMPUTING_WORKER, GroupEpochRow, RebalanceRow

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
    moments = list(converged_states(history))
    yield from _imbalance(history, limits, moments)
    yield from _empty(history, limits, moments)
    yield from _needless(history, limits, moments)


def _imbalance(history: GroupHistory, limits: Thresholds, moments: Sequence[ConvergedState]) -> Iterator[FindingRow]:
    """Yield the worst state; groups whose members subscribe to different topics cannot be judged by their loads.

    While tasks warm up, they stay where their state is: that does not count as uneven.
    """
    uneven = [
        moment
        for moment in moments
        if not moment.warming_up
        and moment.spread >= limits.imbalance_units
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
        f"uneven in {len(uneven)} of {len(moments)} stable epochs"
    )
    yield history.finding(
        FindingKind.IMBALANCE,
        worst.spread,
        limits.imbalance_units,
        detail,
        [moment.rebalance.finished or moment.rebalance.at for moment in uneven],
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


def _empty(history: GroupHistory, limits: Thresholds, moments: Sequence[ConvergedState]) -> Iterator[FindingRow]:
    idle = [moment for moment in moments if moment.idle >= limits.empty_members and moment.units]
    if not idle:
        return
    worst = max(idle, key=lambda moment: moment.idle)
    names = sorted({history.client(member_id) or "" for member_id in worst.empty_members})
    detail = (
        f"{worst.idle} of {len(worst.loads)} members had nothing after the rebalance to {worst.rebalance.to_epoch} "
        f"({first_of(names, 3)}), with {worst.units} to assign; so in {len(idle)} of {len(moments)} stable epochs"
    )
    positions = [moment.rebalance.finished or moment.rebalance.at for moment in idle]
    complete = _shows_all_states(history)
    yield history.finding(
        FindingKind.EMPTY_MEMBERS,
        worst.idle,
        limits.empty_members,
        detail,
        positions,
        is_open=_holds(history, idle[-1]),
        complete=complete,
    )


def _needless(history: GroupHistory, limits: Thresholds, moments: Sequence[ConvergedState]) -> Iterator[FindingRow]:
    """Yield moves between members that stayed, beyond a fair share for each member that joined.

    Where members subscribe to different topics, the topics of a member that left go to few of the others, which then
    have to give up some of what they had: there nothing says how many moves were needed.
    """
    for moment in moments:
        rebalance, previous = moment.rebalance, moment.previous
        sticky = rebalance.group_type == "STREAMS" or _assignor(history, rebalance) in STICKY
        if not sticky or previous is None or rebalance.from_epoch != previous.to_epoch or not moment.loads:
            continue
        if not all(cause.kind in MEMBERS_ONLY for cause in rebalance.causes) or not _alike(history, moment):
            continue
        needed = moment.joined * -(-moment.units // len(moment.loads))
        surplus = moment.left_to_others - needed
        if surplus >= limits.needless_moves:
            noun = "task" if rebalance.group_type == "STREAMS" else "partition"
            detail = (
                f"the rebalance to {rebalance.to_epoch} moved {counted(moment.left_to_others, noun)} between members "
                f"that stayed; {_needed(moment.joined, needed)}"
            )
            yield history.finding(
                FindingKind.MOVED_MORE_THAN_NEEDED,
                surplus,
                limits.needless_moves,
                detail,
                [rebalance.at, rebalance.finished or rebalance.at],
                complete=rebalance.history_complete,
            )


def _needed(joined: int, needed: int) -> str:
    """Say how many moves the members that joined explain."""
    if joined == 0:
        return "no member joined, so that no move was needed"
    return f"{counted(joined, 'member')} joined, which explains at most {needed}"


def _assignor(history: GroupHistory, rebalance: RebalanceRow) -> str | None:
    """Return the assignor of a rebalance: the one that its target was recomputed with, otherwise what the log says."""
    target, epoch = history.target_of(rebalance), history.epoch_of(rebalance)
    if target is not None and target.assignor is not None:
        return target.assignor
    return None if epoch is None else epoch.assignor


WITHOUT_TARGET = "in no worker's target"


def unassigned_work(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for the connectors and tasks that are in no worker's target now, whatever the group's state.

    Only groups on KIP-848 say in their log what there is to run.
    """
    if history.group_type != "CONNECT" or history.present is None:
        return
    begun = last = None
    for epoch in history.epochs:
        if epoch.unassigned == 0 or (epoch.members == () and epoch.unassigned is None):
            begun = None
        elif epoch.unassigned is not None and (epoch.target is not None or epoch.members == ()):
            begun, last = begun or epoch.target or epoch.opened, epoch
    if begun is None or last is None or last.unassigned is None or last.unassigned < limits.unassigned_partitions:
        return
    waited_ms = history.now_ms - begun.timestamp_ms
    yield history.finding(
        FindingKind.UNASSIGNED_WORK,
        last.unassigned,
        limits.unassigned_partitions,
        f"{'without a worker' if history.present.members == () else WITHOUT_TARGET} for {waited_ms} ms: "
        f"{counted(last.unassigned, CONNECTOR_OR_TASK)}",
        list(dict.fromkeys((begun, last.target or last.opened))),
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
            1,
            f"epochs {listed}",
            evidence,
            is_open=failed[-1] is history.present,
        )


def _failure(epoch: GroupEpochRow) -> str:
    if epoch.target is None and epoch.assignment_error == NO_COMPUTING_WORKER:
        return "no worker supports the versions of all others: FATAL"
    return f"error {epoch.assignment_error}"
