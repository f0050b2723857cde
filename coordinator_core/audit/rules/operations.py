"""Rules of what the coordinator always writes together, judged when an operation is complete."""

from __future__ import annotations

from coordinator_core.audit.rules.judged_group import JudgedGroup
from coordinator_core.audit.rules.known_facts import WriteGroup
from coordinator_core.groups.epochs import EpochGroup
from coordinator_core.groups.rules import CURRENT, MEMBER, TARGET, Rule
from coordinator_core.records import CoordinatorRecord

TOMBSTONES = frozenset((MEMBER, TARGET, CURRENT))


def begin(judged: JudgedGroup, record: CoordinatorRecord) -> None:
    """Take in a record: it begins an operation, or belongs to the one under way."""
    operation = judged.facts.operation
    if operation is not None:
        if operation.batch == record.batch and operation.time_ms == record.at.timestamp_ms:
            return
        end(judged, operation)
    state = judged.group.state
    empty = state is None or not state.members
    is_whole = _is_whole(judged, record)
    judged.facts.operation = WriteGroup(record.at.timestamp_ms, record.batch, record.at, empty=empty, is_whole=is_whole)


def end(judged: JudgedGroup, operation: WriteGroup) -> None:
    """Judge an operation that is complete: records that it should contain and does not are violations."""
    if not operation.is_whole:
        return
    for member_id, departure in operation.departed.items():
        lacking = sorted(TOMBSTONES - set(departure.kinds))
        if lacking:
            detail = f"no tombstone of {' and '.join(lacking)}"
            judged.broken(Rule.MEMBER_REMOVED_IN_PART, departure.at, member_id, detail)
    for member_id, at in operation.leaving.items():
        judged.broken(Rule.DEPARTURE_WITHOUT_EPOCH, at, member_id, "it left, but no new group epoch was opened")
    for member_id, at in operation.joining.items():
        judged.broken(Rule.JOIN_WITHOUT_EPOCH, at, member_id, "it joined, but no new group epoch was opened")
    for member_id, at in operation.unassigned.items() if _moves_joiners(judged) else ():
        judged.broken(Rule.JOIN_WITHOUT_ASSIGNMENT, at, member_id, "it joined, but got no current assignment")
    if operation.crossed is not None:
        judged.broken(
            Rule.TYPE_CHANGED_IN_PART,
            operation.crossed,
            None,
            "removed with members; no group of another type followed",
        )
    if operation.targetless is not None:
        detail = "the target assignment metadata was removed, but not the group"
        judged.broken(Rule.GROUP_REMOVED_IN_PART, operation.targetless, None, detail)
    for member_id, at in operation.targets.items():
        judged.broken(Rule.TARGET_WITHOUT_EPOCH, at, member_id, "no target assignment metadata followed")


def _moves_joiners(judged: JudgedGroup) -> bool:
    """Whether a member that joins gets an epoch of its own: not in a group that was converted at generation 0."""
    state = judged.group.state
    return not isinstance(state, EpochGroup) or state.assignment_epoch != 0


def _is_whole(judged: JudgedGroup, first: CoordinatorRecord) -> bool:
    """Whether an operation that begins with this record has no gap before it; one with a gap in it begins again."""
    return judged.facts.whole or first.batch == first.at.offset or first.at.offset > judged.facts.run
