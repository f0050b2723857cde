"""Where brokers' application logs contradict the log of the coordinator."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.audit.folds.witness import not_kept, quoted


def decisions_not_kept(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for all lines about members that went, and are still there in the log."""
    lines = not_kept(history.memberships, history.events, history.own_ms)
    if not lines:
        return
    members = sorted({line.member_id or "" for line in lines})
    there = {row.member_id: row.joined for row in history.memberships if row.left is None}
    detail = f"{counted(len(members), 'member')} went, says the broker, and still there in the log: {quoted(lines[0])}"
    yield history.finding(
        FindingKind.DECISION_NOT_KEPT,
        len(members),
        1,
        detail,
        [there[each] for each in members],
        until_ms=history.own_ms,
    )
