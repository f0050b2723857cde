"""How members join and leave: which replace others, which continue under another group type, and what that causes."""

from __future__ import annotations

from coordinator_core.history.causes import CauseKind, cause
from coordinator_core.history.history_writer import HistoryWriter
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenMembership
from coordinator_core.history.resources import CLASSIC
from coordinator_core.records import CoordinatorRecord, LogPosition

_DEPARTURES = frozenset((CauseKind.MEMBER_LEFT_OR_EXPIRED, CauseKind.STATIC_MEMBER_LEFT))


def join(recorder: HistoryWriter, membership: OpenMembership) -> None:
    """Record that a member joined. That is not a cause if the member only continues under another group type."""
    ledger, member_id = recorder.ledger, membership.member_id
    at, instance = membership.joined, membership.instance_id
    if ledger.rebalance is not None:
        ledger.rebalance.behind[member_id] = True
    crossing = ledger.crossing.pop(member_id, None)
    if crossing is not None:
        recorder.withdraw(member_id, _DEPARTURES)
        membership.joined, membership.came_by = crossing.joined, crossing.came_by
        membership.replaces, membership.first_epoch = crossing.replaces, crossing.first_epoch
        membership.missing = crossing.missing
        ledger.memberships[member_id] = membership
        return
    ledger.memberships[member_id] = membership
    replaced = _replaced(ledger, membership)
    if replaced is None:
        ledger.joined.append(member_id)
        ledger.changes.append(cause(CauseKind.MEMBER_JOINED, at, member=member_id, instance=instance))
        return
    membership.came_by, membership.replaces = "static replacement", replaced.member_id
    membership.first_epoch = ledger.last_epoch
    replaced.went_by, replaced.hint = "static replacement", None
    recorder.withdraw(replaced.member_id, _DEPARTURES)
    ledger.ownership.rename(replaced.member_id, member_id)
    silent = ledger.type == CLASSIC
    seen_away = replaced.away_since is not None or silent
    kind = CauseKind.STATIC_MEMBER_RETURNED if seen_away else CauseKind.STATIC_MEMBER_REPLACED
    hint = "when it was away is not logged in a classic group" if silent else None
    detail = f"in place of {replaced.member_id}"
    ledger.changes.append(cause(kind, at, member=member_id, instance=instance, detail=detail, hint=hint))


def _replaced(ledger: OpenHistory, membership: OpenMembership) -> OpenMembership | None:
    if membership.instance_id is None:
        return None
    departed = ledger.departed.values()
    return next((gone for gone in departed if gone.instance_id == membership.instance_id), None)


def depart(recorder: HistoryWriter, member_id: str, at: LogPosition) -> None:
    """Record that a member was removed; nothing happens if it was not known."""
    ledger = recorder.ledger
    if ledger.rebalance is not None:
        ledger.rebalance.behind.pop(member_id, None)
    membership = ledger.memberships.pop(member_id, None)
    if membership is None:
        return
    membership.left, membership.went_by, membership.last_epoch = at, "leave or expiry", ledger.last_epoch
    if ledger.type != CLASSIC and ledger.past.doubt is not None and ledger.past.is_lost:
        membership.last_epoch, membership.missing = None, membership.missing or ledger.past.doubt
    ledger.departed[member_id] = membership
    instance, away, hint, detail = membership.instance_id, membership.away_since, membership.hint, None
    kind = CauseKind.MEMBER_LEFT_OR_EXPIRED if instance is None else CauseKind.STATIC_MEMBER_LEFT
    if away is not None:
        hint, detail = "expired", f"left at offset {away.offset} and did not return"
    ledger.changes.append(cause(kind, at, member=member_id, instance=instance, hint=hint, detail=detail))


def left_behind(recorder: HistoryWriter, epoch: CoordinatorRecord) -> None:
    """Record that members of a classic group who are not in the consumer group made of it had left before.

    ``epoch`` is the consumer group's first one; everything that the operation wrote before it has been applied.
    """
    at, ledger, coverage = epoch.at, recorder.ledger, recorder.coverage
    if epoch.batch < 0 or coverage is None or not coverage.unbroken(at.partition, epoch.batch, at.offset):
        return
    for member_id, membership in ledger.crossing.items():
        membership.went_by, instance = "leave or expiry", membership.instance_id
        kind = CauseKind.MEMBER_LEFT_OR_EXPIRED if instance is None else CauseKind.STATIC_MEMBER_LEFT
        ledger.changes.append(cause(kind, at, member=member_id, instance=instance))
    recorder.close(ledger.crossing)
