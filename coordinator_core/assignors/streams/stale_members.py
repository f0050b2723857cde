"""Members with an older topology get no new tasks (KIP-1071, topology updates).

They keep what they have of what an assignor would assign to them; everything else goes to members with the group's
topology.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from coordinator_core.assignors.inputs import Partitions, TaskId, Tasks


def retain_only(
    targets: Mapping[str, Tasks], stale: Collection[str], before: Mapping[str, Tasks], processes: Mapping[str, str]
) -> dict[str, Tasks]:
    """Return the targets in which ``stale`` members have nothing that they did not have in the targets ``before``.

    Remaining active tasks go to the other members, each to the one with the fewest tasks whose process (``processes``
    by member) does not have the task yet. Remaining copies of state are left out, and are replaced where all processes
    have one. Without other members no member runs the tasks.
    """
    changed = dict(targets)
    left: list[TaskId] = []
    for member_id in targets:
        if member_id in stale:
            target, had = targets[member_id], before.get(member_id, Tasks())
            left += sorted(_units(target.active) - _units(had.active))
            changed[member_id] = Tasks(
                _common(target.active, had.active),
                _common(target.standby, had.standby),
                _common(target.warmup, had.warmup),
            )
    fresh = {member_id: _units(target.active) for member_id, target in changed.items() if member_id not in stale}
    copies: dict[str, set[TaskId]] = {}
    for member_id, target in changed.items():
        copies.setdefault(processes[member_id], set()).update(_units(target.standby), _units(target.warmup))
    given: dict[str, set[TaskId]] = {}
    for task in sorted(left) if fresh else ():
        ready = [member_id for member_id in fresh if task not in copies[processes[member_id]]]
        least = min(ready or fresh, key=lambda member_id: (len(fresh[member_id]), member_id))
        fresh[least].add(task)
        given.setdefault(processes[least], set()).add(task)
    for member_id, target in changed.items():
        taken = given.get(processes[member_id], set())
        changed[member_id] = Tasks(
            _by_subtopology(fresh[member_id]) if member_id in fresh else target.active,
            _by_subtopology(_units(target.standby) - taken),
            _by_subtopology(_units(target.warmup) - taken),
        )
    return changed


def _units(tasks: Partitions) -> set[TaskId]:
    return {(key, partition) for key, partitions in tasks.items() for partition in partitions}


def _common(tasks: Partitions, others: Partitions) -> dict[str, list[int]]:
    return _by_subtopology(_units(tasks) & _units(others))


def _by_subtopology(units: Collection[TaskId]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for key, partition in sorted(units):
        numbers.setdefault(key, []).append(partition)
    return numbers
