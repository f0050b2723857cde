"""Rules of group epochs and target assignments, which consumer, share and streams groups have in common."""

from __future__ import annotations

from coordinator_core.audit.rules.hands import name
from coordinator_core.audit.rules.kinds import EpochKind
from coordinator_core.audit.rules.scene import Scene
from coordinator_core.audit.rules.watch import ASSIGNMENT_EPOCH, EPOCH, HeldUnit, member_fact
from coordinator_core.groups.epochs import INITIAL_EPOCH, EpochGroup
from coordinator_core.groups.violations import Rule
from coordinator_core.records import CoordinatorRecord, Fields

MAX_ASSIGNMENT_INTERVAL_MS = 15_000
"""The highest ``group.{consumer,share}.assignment.interval.ms`` that a broker accepts, unless told otherwise: its
``max.assignment.interval.ms`` is 15 s by default (KIP-1263), and a static setting of brokers is in no log."""


def on_epoch(scene: Scene, kind: EpochKind, record: CoordinatorRecord) -> None:
    """Group metadata: the epoch grows by one."""
    watch, value, at = scene.watch, record.value, record.at
    state = scene.group.state
    before = state.group_epoch if isinstance(state, kind.state) else None
    known = watch.knows(EPOCH)
    if value is None:
        _end(scene, kind, record)
        return
    scene.keep(record)
    watch.note(EPOCH, at)
    operation = scene.operation
    operation.leaving.clear()
    operation.joining.clear()
    epoch = value["epoch"]
    scene.arrived(epoch, at)
    if not known or before is None or epoch < before:
        return
    if epoch == before and before > INITIAL_EPOCH:
        scene.broken(Rule.EPOCH_REPEATED, at, None, f"group epoch {epoch} once more")
    elif epoch > before + 1 and before > INITIAL_EPOCH:
        scene.broken(Rule.EPOCH_SKIPPED, at, None, f"group epoch {epoch} after {before}")


def _end(scene: Scene, kind: EpochKind, record: CoordinatorRecord) -> None:
    """The group ends, its members and its target having ended before."""
    watch, state = scene.watch, scene.group.state
    epoch = state.assignment_epoch if isinstance(state, EpochGroup) else None
    if epoch not in (None, INITIAL_EPOCH) and watch.knows(ASSIGNMENT_EPOCH):
        detail = f"target assignment metadata of epoch {epoch} still stood"
        scene.broken(Rule.GROUP_REMOVED_IN_PART, record.at, None, detail)
    scene.keep(record)
    scene.current.clear()
    scene.target.clear()
    operation = scene.operation
    if operation.leaving:
        operation.crossed, operation.crossed_epoch = record.at, operation.reached
    operation.leaving.clear()
    watch.begin_life()


def on_target(scene: Scene, kind: EpochKind, record: CoordinatorRecord) -> None:
    """Target of one member: whole only with the metadata record that ends the target."""
    member_id, at, value = record.key["memberId"], record.at, record.value
    watch, operation = scene.watch, scene.operation
    scene.keep(record)
    watch.note(member_fact("target", member_id), at)
    if value is None:
        scene.target.put(member_id, {})
        scene.departing(member_id, "target", at)
        return
    twice(scene, record)
    state = scene.group.state
    assert isinstance(state, kind.state)
    held = kind.wanted(state.targets[member_id])
    if member_id not in operation.replaced:
        operation.targets[member_id] = at
    if kind.exclusive:
        for (resource, partition), _ in scene.target.put(member_id, held):
            operation.clashes.append(HeldUnit(*resource, partition, member_id))


def on_target_epoch(scene: Scene, kind: EpochKind, record: CoordinatorRecord) -> None:
    """Target assignment metadata: a target for the group's present epoch is whole."""
    value, at = record.value, record.at
    watch, operation = scene.watch, scene.operation
    before = scene.group.state
    if value is None and isinstance(before, EpochGroup) and watch.knows(ASSIGNMENT_EPOCH):
        operation.reached = before.assignment_epoch
    scene.keep(record)
    watch.note(ASSIGNMENT_EPOCH, at)
    operation.targets.clear()
    if value is None:
        return
    state = scene.group.state
    assert isinstance(state, EpochGroup)
    epoch = value["assignmentEpoch"]
    if watch.knows(EPOCH) and state.group_epoch is not None and epoch < state.group_epoch:
        detail = f"assignment epoch {epoch} written while the group is at {state.group_epoch}"
        scene.broken(Rule.ASSIGNMENT_EPOCH_NOT_THE_GROUPS, at, None, detail)
    for role, what, partition, member_id in operation.clashes:
        unit = ((role, what), partition)
        others = [other for other in scene.target.others(unit, member_id) if watch.knows_member("target", other)]
        if others and unit in scene.target.clashing and member_id in scene.target.clashing[unit]:
            scene.broken(Rule.TARGET_OF_TWO, at, member_id, f"{name(unit)} is also in the target of {others[0]}")
    operation.clashes.clear()


def twice(scene: Scene, record: CoordinatorRecord) -> None:
    """No list of partitions in a record has one twice."""
    assert record.value is not None
    for field, entries in record.value.items():
        if isinstance(entries, list):
            doubled = _doubled(entries)
            if doubled:
                detail = f"{field}: {', '.join(doubled)}"
                scene.broken(Rule.UNIT_TWICE_IN_RECORD, record.at, record.key.get("memberId"), detail)


def _doubled(entries: list[Fields]) -> list[str]:
    seen: set[tuple[str, int]] = set()
    doubled = []
    for entry in entries:
        if "partitions" not in entry:
            return []
        what = entry.get("topicId") or entry.get("subtopologyId") or ""
        for partition in entry["partitions"]:
            if (what, partition) in seen:
                doubled.append(f"{what}-{partition}")
            seen.add((what, partition))
    return doubled
