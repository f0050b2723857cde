"""How a member moves from the tasks it runs to its target, while no task ever has two owners (KIP-1071).

An active task has one owner in the group, and a process has a task in only one role: its members share its state
directory.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.epochs import PartitionEpochs
from coordinator_core.groups.streams.state import CurrentTasks, StreamsMember, StreamsMemberState

TaskSet = Mapping[str, Collection[int]]
OwnedTasks = tuple[TaskSet, TaskSet, TaskSet] | None
"""Active, standby and warm-up tasks that a heartbeat reports as owned; None: the heartbeat does not say."""


class _Step(NamedTuple):
    """One role: what stays, what has to go, what can be taken now, and whether something has to be waited for."""

    kept: dict[str, list[int]]
    revoked: dict[str, list[int]]
    gained: dict[str, list[int]]
    waits: bool


def reconcile(
    group: LiveStreamsGroup, member: StreamsMember, epoch: int, target: Tasks, owned: OwnedTasks
) -> StreamsMember:
    """Return the member after this heartbeat's step towards the target of that epoch; the same object if nothing
    changes.
    """
    now_at = member.member_epoch or 0
    if member.state == StreamsMemberState.STABLE:
        return member if now_at == epoch else _next(group, member, now_at, epoch, target, owned)
    if member.state == StreamsMemberState.UNREVOKED_TASKS:
        pending = member.pending_revocation
        if _owns_any(owned, (pending.active, pending.standby, pending.warmup)):
            return member
        # It gave up all: it is one epoch further, even if the newest target takes more from it at once.
        return _next(group, member, now_at + 1, epoch, target, owned)
    if member.state == StreamsMemberState.UNRELEASED_TASKS:
        return _next(group, member, now_at, epoch, target, owned)
    # A newer coordinator wrote this state: what the member has is not known, so it may only begin anew, without tasks.
    if owned is None or any(map(_units, owned)):
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
        )
    return _next(group, member, epoch, epoch, target, owned)


def _next(
    group: LiveStreamsGroup, member: StreamsMember, now_at: int, epoch: int, target: Tasks, owned: OwnedTasks
) -> StreamsMember:
    """First give up what is not in the target; then, at the target's epoch, take the rest that no member holds."""
    process_id = member.process_id or ""

    def in_process(task: tuple[str, int]) -> bool:
        return process_id in group.standby.get(task, ()) or process_id in group.warmup.get(task, ())

    had = member.assigned
    active = _step(had.active, target.active, lambda task: task in group.active or in_process(task))
    # Copies of a task may lie in many processes at once: only what the member's own process has is waited for.
    standby = _step(
        had.standby, target.standby, lambda task: process_id in group.active.get(task, ()) or in_process(task)
    )
    warmup = _step(had.warmup, target.warmup, lambda task: process_id in group.active.get(task, ()) or in_process(task))
    steps = (active, standby, warmup)
    kept = _with_epochs(active.kept, had.active)
    revoked = active.revoked, standby.revoked, warmup.revoked
    # Its epoch stays until all is given up: with it the member can still commit what it processed.
    if any(revoked) and _owns_any(owned, revoked):
        return _moved(
            member,
            now_at,
            StreamsMemberState.UNREVOKED_TASKS,
            CurrentTasks(kept, standby.kept, warmup.kept),
            CurrentTasks(_with_epochs(active.revoked, had.active), standby.revoked, warmup.revoked),
        )
    for subtopology_id, partitions in active.gained.items():
        kept.setdefault(subtopology_id, {}).update(dict.fromkeys(partitions, epoch))
    state = StreamsMemberState.UNRELEASED_TASKS if any(step.waits for step in steps) else StreamsMemberState.STABLE
    tasks = CurrentTasks(kept, _merged(standby), _merged(warmup))
    return _moved(member, epoch, state, tasks, CurrentTasks())


def _moved(
    member: StreamsMember, epoch: int, state: StreamsMemberState, assigned: CurrentTasks, revoked: CurrentTasks
) -> StreamsMember:
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch or 0,
        state=state,
        assigned=assigned,
        pending_revocation=revoked,
    )


def _step(had: TaskSet, target: TaskSet, held: Callable[[tuple[str, int]], bool]) -> _Step:
    step = _Step({}, {}, {}, False)
    waits = False
    for key in sorted({*had, *target}):
        own, wanted = set(had.get(key, ())), set(target.get(key, ()))
        missing = wanted - own
        free = {partition for partition in missing if not held((key, partition))}
        waits |= len(free) < len(missing)
        for into, some in ((step.kept, own & wanted), (step.revoked, own - wanted), (step.gained, free)):
            if some:
                into[key] = sorted(some)
    return step._replace(waits=waits)


def _with_epochs(tasks: Mapping[str, Iterable[int]], epochs: PartitionEpochs) -> PartitionEpochs:
    return {key: {partition: epochs[key][partition] for partition in numbers} for key, numbers in tasks.items()}


def _merged(step: _Step) -> dict[str, list[int]]:
    keys = sorted({*step.kept, *step.gained})
    return {key: sorted([*step.kept.get(key, ()), *step.gained.get(key, ())]) for key in keys}


def _units(tasks: TaskSet) -> set[tuple[str, int]]:
    return {(key, partition) for key, partitions in tasks.items() for partition in partitions}


def _owns_any(owned: OwnedTasks, tasks: tuple[TaskSet, TaskSet, TaskSet]) -> bool:
    """Whether the member may still own any of the tasks: one that does not say may."""
    if owned is None:
        return True
    return any(_units(own) & _units(some) for own, some in zip(owned, tasks, strict=True))
