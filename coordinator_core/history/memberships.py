"""How members join and leave: which replace others, which continue under another group type, and what that causes."""

from __future__ import annotations

from coordinator_core.history.causes import DEPARTED, CauseKind, cause
from coordinator_core.history.grounds import NOT_SEEN_TO_GO_ON
from coordinator_core.history.history_writer import HistoryWriter
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenMembership
from coordinator_core.history.resources import CLASSIC
from coordinator_core.history.rows import AWAY_UNSEEN, LEFT_OR_EXPIRED, REPLACED
from coordinator_core.history.testimony import lack
from coordinator_core.records import CoordinatorRecord, LogPosition


def join(writer: HistoryWriter, membership: OpenMembership) -> None:
    """Record that a member joined. That is not a cause if the member only continues under another group type."""
    open_history, member_id = writer.open_history, membership.member_id
    at, instance = membership.joined, membership.instance_id
    if open_history.rebalance is not None:
        open_history.rebalance.behind[member_id] = True
    crossing = open_history.crossing.pop(member_id, None)
    if crossing is not None:
        open_history.withdraw(member_id, DEPARTED)
        membership.joined, membership.came_by = crossing.joined, crossing.came_by
        membership.replaces, membership.first_epoch = crossing.replaces, crossing.first_epoch
        lack(membership, crossing.missing)
        open_history.memberships[member_id] = membership
        return
    open_history.memberships[member_id] = membership
    replaced = _replaced(open_history, membership)
    if replaced is None:
        open_history.joined.append(member_id)
        open_history.changes.append(cause(CauseKind.MEMBER_JOINED, at, member=member_id, instance=instance))
        return
    membership.came_by, membership.replaces = REPLACED, replaced.member_id
    membership.first_epoch = open_history.epoch_of(membership)
    # A static member of the classic protocol says nothing to its group when it goes.
    hint = AWAY_UNSEEN if open_history.type == CLASSIC or replaced.speaks_classic else None
    replaced.went_by, replaced.hint = REPLACED, hint
    open_history.withdraw(replaced.member_id, DEPARTED)
    open_history.ownership.rename(replaced.member_id, member_id)
    may_be_away = replaced.away_since is not None or hint is not None
    kind = CauseKind.STATIC_MEMBER_RETURNED if may_be_away else CauseKind.STATIC_MEMBER_REPLACED
    detail = f"in place of {replaced.member_id}"
    open_history.changes.append(cause(kind, at, member=member_id, instance=instance, detail=detail, hint=hint))


def _replaced(open_history: OpenHistory, membership: OpenMembership) -> OpenMembership | None:
    if membership.instance_id is None:
        return None
    departed = open_history.departed.values()
    return next((gone for gone in departed if gone.instance_id == membership.instance_id), None)


def depart(writer: HistoryWriter, member_id: str, at: LogPosition) -> None:
    """Record that a member was removed; nothing happens if it was not known."""
    open_history = writer.open_history
    if open_history.rebalance is not None:
        open_history.rebalance.behind.pop(member_id, None)
    membership = open_history.memberships.pop(member_id, None)
    if membership is None:
        return
    membership.left, membership.went_by, membership.last_epoch = at, LEFT_OR_EXPIRED, open_history.epoch_of(membership)
    open_history.departed[member_id] = membership
    instance, away, hint, detail = membership.instance_id, membership.away_since, membership.hint, None
    kind = CauseKind.MEMBER_LEFT_OR_EXPIRED if instance is None else CauseKind.STATIC_MEMBER_LEFT
    if away is not None:
        detail = f"left at offset {away.offset} and did not return"
    open_history.changes.append(cause(kind, at, member=member_id, instance=instance, hint=hint, detail=detail))


def left_behind(writer: HistoryWriter, epoch: CoordinatorRecord) -> None:
    """Record that members of a classic group who are not in the consumer group made of it had left before.

    ``epoch`` is the consumer group's first one; everything that the operation wrote before it has been applied.
    """
    at, open_history, coverage = epoch.at, writer.open_history, writer.coverage
    ends = (membership.left.offset for membership in open_history.crossing.values() if membership.left is not None)
    # A dump without batches has the tombstone of the classic group right before the first record of the new one.
    begin = epoch.batch if epoch.batch >= 0 else min(ends, default=at.offset) - 1
    if coverage is None or not coverage.unbroken(at.partition, begin, at.offset):
        for membership in open_history.crossing.values():
            open_history.past.rest(membership, NOT_SEEN_TO_GO_ON)
        return
    for member_id, membership in open_history.crossing.items():
        membership.went_by, instance = LEFT_OR_EXPIRED, membership.instance_id
        kind = CauseKind.MEMBER_LEFT_OR_EXPIRED if instance is None else CauseKind.STATIC_MEMBER_LEFT
        open_history.changes.append(cause(kind, at, member=member_id, instance=instance))
    writer.close(open_history.crossing)
