"""Sessions of many groups that end in the same second, of members that come back: a host or a broker stood still.

A process that starts again takes a new member id. One that comes back under its id went on: it was cut off, or stood
still, or the coordinator did. No group's own history shows that others had the same fate: this finding is of the
cluster.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, make_finding
from coordinator_core.audit.findings.membership import TOGETHER_MS
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.audit.folds.witness import GONE, HOW
from coordinator_core.broker_log.events import EventKind
from coordinator_core.cluster.coordinators_away import FOUND_AGAIN_MS
from coordinator_core.durations import duration
from coordinator_core.history.memberships import LEFT
from coordinator_core.history.rows import MembershipRow
from coordinator_core.records import LogPosition

LOST = GONE - {HOW[EventKind.MEMBER_LEFT][1]}
"""How a session may have been lost: a member that left, as a broker's log says, may come back under its id, too."""
MOST_NAMED = 5
"""A finding names at most this many groups."""


class LostSession(NamedTuple):
    """A member that was removed and came back under the same member id."""

    group_id: Annotated[str, "the group"]
    member_id: Annotated[str, "the member"]
    client_host: Annotated[str | None, "its host; null: not seen"]
    left: Annotated[LogPosition, "the record that removed it"]
    back_ms: Annotated[int, "when it was back"]
    history_complete: Annotated[bool, "true if the log shows all of its time before"]


def lost_sessions(history: GroupHistory) -> Iterator[LostSession]:
    """Yield the members of a group that were removed and came back under the same member id, but for those of which a
    broker's log says that they left, or their commits do.
    """
    by_id: dict[str, list[MembershipRow]] = defaultdict(list)
    for row in sorted(history.memberships, key=lambda row: row.joined.offset):
        by_id[row.member_id].append(row)
    for rows in by_id.values():
        for gone, back in pairwise(rows):
            if gone.left is not None and gone.went_by in LOST and not (gone.hint or "").startswith(LEFT):
                yield LostSession(
                    gone.group_id,
                    gone.member_id,
                    gone.client_host,
                    gone.left,
                    back.joined.timestamp_ms,
                    gone.history_complete,
                )


def stood_still(
    sessions: Iterable[LostSession], limits: Thresholds, away: Sequence[FindingRow] = ()
) -> Iterator[FindingRow]:
    """Yield a finding for each time at which enough members of enough groups lost their sessions together.

    ``sessions`` are those of one cluster, by the time at which they ended. One time's sessions are in memory. ``away``
    are the findings about coordinators that were away: sessions that were lost then, or soon after, are no other story.
    """
    sessions = (each for each in sessions if not any(_is_behind(each.left, gone) for gone in away))
    together: list[LostSession] = []
    for session in sessions:
        if together and session.left.timestamp_ms - together[-1].left.timestamp_ms > TOGETHER_MS:
            yield from _finding(together, limits)
            together = []
        together.append(session)
    yield from _finding(together, limits)


def _is_behind(at: LogPosition, away: FindingRow) -> bool:
    """Whether a session ended while the coordinator was away, or before its clients had to be back."""
    return away.since_ms <= at.timestamp_ms <= away.until_ms + FOUND_AGAIN_MS


def in_order(sessions: Iterable[LostSession]) -> list[LostSession]:
    """Return sessions by the time at which they ended, as ``stood_still`` takes them."""
    return sorted(
        sessions,
        key=lambda session: (session.left.timestamp_ms, session.left.partition, session.left.offset, session.member_id),
    )


def _finding(sessions: Sequence[LostSession], limits: Thresholds) -> Iterator[FindingRow]:
    groups = Counter(session.group_id for session in sessions)
    members = len({(session.group_id, session.member_id) for session in sessions})
    if members < limits.stood_still_members or len(groups) < limits.stood_still_groups:
        return
    first_ms, last_ms = sessions[0].left.timestamp_ms, sessions[-1].left.timestamp_ms
    away_ms = max(session.back_ms - session.left.timestamp_ms for session in sessions)
    hosts = sorted({session.client_host or "?" for session in sessions})
    named = [name for name, _ in sorted(groups.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_NAMED]]
    more = f" and {len(groups) - len(named)} more" if len(groups) > len(named) else ""
    where = f"all at {hosts[0].lstrip('/')}" if len(hosts) == 1 else f"at {len(hosts)} hosts"
    cause = "that host, its network, or a broker" if len(hosts) == 1 else "a broker, or the network,"
    detail = (
        f"{counted(members, 'member')} of {counted(len(groups), 'group')} ({', '.join(named)}{more}) lost their "
        f"sessions within {duration(max(last_ms - first_ms, 1))}, and were back under the same member ids at most "
        f"{duration(away_ms)} later, {where}: no process was started again; {cause} stood still"
    )
    evidence = [session.left for session in sessions]
    yield make_finding(
        FindingKind.STOOD_STILL,
        members,
        limits.stood_still_members,
        detail,
        evidence,
        subject=hosts[0].lstrip("/") if len(hosts) == 1 else None,
        since_ms=first_ms,
        until_ms=max(session.back_ms for session in sessions),
        complete=all(session.history_complete for session in sessions),
    )
