"""Warm-up tasks that caught up, as causes of epochs (KIP-1071): they open one without a record that says so."""

from collections.abc import Iterator
from typing import NamedTuple

from coordinator_core.groups.streams.state import StreamsGroup, task_units
from coordinator_core.history.causes import CauseKind, cause
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.records import LogPosition

NO_LONGER_ASSIGNED = ", no longer assigned"
"""What the detail of a cause says of a warm-up task that became nothing else."""
AT_LEAST_ONE = "at least one of these causes: the log does not show which"


class EndedWarmups(NamedTuple):
    """Warm-up tasks of a member's process that its new target ends: ``turned`` into active or standby tasks of the
    member, or ``dropped`` by it.
    """

    turned: list[str]
    dropped: list[str]


def ended_warmups(state: StreamsGroup, member_id: str) -> EndedWarmups:
    """Return the warm-up tasks that the member's new target ends."""
    member, target = state.members.get(member_id), state.targets[member_id]
    if member is None:
        return EndedWarmups([], [])
    kept, given = set(task_units(target.warmup)), {*task_units(target.active), *task_units(target.standby)}
    turned: set[tuple[str, int]] = set()
    for other in state.members.values():
        if other.process_id == member.process_id:
            turned |= given & set(task_units(other.assigned.warmup))
    dropped = set(task_units(member.assigned.warmup)) - kept - turned
    return EndedWarmups(*([f"{name}_{number}" for name, number in sorted(tasks)] for tasks in (turned, dropped)))


def refined_warmups(state: StreamsGroup, epoch_before: int | None) -> Iterator[tuple[str, EndedWarmups]]:
    """Yield the members that may have reported that a warm-up task had caught up, where the target stays as it is.

    Brokers that refine assignments (after 4.4: pull request 22748) keep warm-up tasks out of the target. Such a task is
    in the current assignment of the member that the target gives the task to, and once it has caught up the next epoch
    has the same target. ``epoch_before`` is the epoch that a member had reached then.
    """
    for member_id, member in sorted(state.members.items()):
        target = state.targets.get(member_id)
        if target is not None and member.member_epoch == epoch_before:
            warmed = set(task_units(member.assigned.warmup)) & set(task_units(target.active))
            if warmed:
                yield member_id, EndedWarmups([f"{name}_{number}" for name, number in sorted(warmed)], [])


def explain_by_warmups(open_history: OpenHistory, ended: EndedWarmups, member_id: str, at: LogPosition) -> None:
    """Name warm-up tasks that caught up as the cause of the epoch for which the log shows no other.

    Nothing else bumps the group epoch without a record. A task that caught up is turned into an active or standby
    task; only where the target turns none can it be one that a member dropped. It is not the cause where records may
    be missing.
    """
    epoch, rebalance = open_history.epoch, open_history.rebalance
    if epoch is None or rebalance is None or rebalance.target is not None or not any(ended):
        return
    if epoch.missing or rebalance.missing or open_history.past.missing:
        return
    if not all(each.kind in (CauseKind.UNKNOWN, CauseKind.WARMUP_CAUGHT_UP) for each in epoch.causes):
        return
    known = [each for each in epoch.causes if each.kind == CauseKind.WARMUP_CAUGHT_UP]
    named = [each for each in known if not (each.detail or "").endswith(NO_LONGER_ASSIGNED)]
    if not ended.turned and named:
        return
    tasks = ended.turned or ended.dropped
    detail = f"task{'' if len(tasks) == 1 else 's'} {', '.join(tasks)}{'' if ended.turned else NO_LONGER_ASSIGNED}"
    causes = [
        *(named if ended.turned else known),
        cause(CauseKind.WARMUP_CAUGHT_UP, at, member=member_id, detail=detail),
    ]
    if len(causes) > 1:
        causes = [each._replace(hint=AT_LEAST_ONE) for each in causes]
    epoch.causes = tuple(causes)
