"""What no group's own history shows, as it is of many groups: sessions that end in the same second, of members that
come back, and groups that are made again and again under new names.

A process that starts again takes a new member id. One that comes back under its id went on: it was cut off, or stood
still, or the coordinator did. Each start of a console consumer makes a group: it leaves records of its group and its
offsets in the coordinator's log until these expire, however short it read.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Final, NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, make_finding
from coordinator_core.audit.findings.coordinator_away import LostMember, fate
from coordinator_core.audit.findings.membership import TOGETHER_MS
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.audit.folds.witness import GONE, HOW
from coordinator_core.broker_log.events import EventKind
from coordinator_core.cluster.coordinators_away import FOUND_AGAIN_MS, CoordinatorAway
from coordinator_core.durations import duration
from coordinator_core.history.memberships import BY_ITSELF, away_until
from coordinator_core.history.rows import MembershipRow
from coordinator_core.records import LogPosition

VARIES: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{12,}|\d+", re.I)
"""The part of a name that is another one each time: a UUID, a long hexadecimal number, or a number."""


class GroupStay(NamedTuple):
    """A group that had members, and has none any more."""

    group_id: Annotated[str, "the group"]
    joined: Annotated[LogPosition, "the record of its first member"]
    left_ms: Annotated[int, "when its last member went"]


def group_stays(history: GroupHistory) -> Iterator[GroupStay]:
    """Yield over which time a group had members, if none is left."""
    gone = [row.left for row in history.memberships if row.left is not None]
    if gone and len(gone) == len(history.memberships):
        first = min((row.joined for row in history.memberships), key=lambda at: (at.timestamp_ms, at.offset))
        yield GroupStay(history.group_id, first, max(at.timestamp_ms for at in gone))


def short_lived(stays: Iterable[GroupStay], limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each set of groups whose names differ in a number alone and that had members for a short
    time, where there are many.
    """
    by_name: dict[str, list[GroupStay]] = defaultdict(list)
    for stay in stays:
        name = VARIES.sub("N", stay.group_id)
        if name != stay.group_id and 0 <= stay.joined.timestamp_ms >= stay.left_ms - limits.short_lived_ms:
            by_name[name].append(stay)
    for name, alike in sorted(by_name.items()):
        if len(alike) < limits.short_lived_groups:
            continue
        alike.sort(key=lambda stay: (stay.joined.timestamp_ms, stay.group_id))
        longest = max(stay.left_ms - stay.joined.timestamp_ms for stay in alike)
        yield make_finding(
            FindingKind.SHORT_LIVED_GROUPS,
            len(alike),
            limits.short_lived_groups,
            f"{len(alike)} groups named {name}, from {alike[0].group_id} to {alike[-1].group_id}, had members once, "
            f"for at most {duration(longest)}, and have none now: each start of a client makes a new group",
            [alike[0].joined, alike[-1].joined],
            subject=name,
            since_ms=alike[0].joined.timestamp_ms,
            until_ms=max(stay.left_ms for stay in alike),
            complete=True,
        )


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
    broker's log says that they left, or their commits do, or that they polled too late: a consumer of KIP-848 keeps its
    id then.
    """
    by_id: dict[str, list[MembershipRow]] = defaultdict(list)
    for row in sorted(history.memberships, key=lambda row: row.joined.offset):
        by_id[row.member_id].append(row)
    for rows in by_id.values():
        for gone, back in pairwise(rows):
            is_lost = gone.went_by in LOST and not (gone.hint or "").startswith(BY_ITSELF)
            if is_lost and gone.left is not None and gone.left.timestamp_ms >= 0:
                yield LostSession(
                    gone.group_id,
                    gone.member_id,
                    gone.client_host,
                    gone.left,
                    back.joined.timestamp_ms,
                    gone.history_complete,
                )


def stood_still(
    sessions: Iterable[LostSession],
    limits: Thresholds,
    away: Sequence[FindingRow] = (),
    failed: Sequence[CoordinatorAway] = (),
    lost: Iterable[LostMember] = (),
) -> Iterator[FindingRow]:
    """Yield a finding for each time at which enough members of enough groups lost their sessions together.

    ``sessions`` are those of one cluster, by the time at which they ended. One time's sessions are in memory. ``away``
    are the findings about coordinators that were away: sessions that were lost then, or soon after, are no other story.
    ``failed`` are coordinators from which another broker took over, ``lost`` the members that may be lost by them.
    """
    # The partitions of a broker are taken over at one time: there are few of these beginnings of hints.
    hints = {away_until(time.until_ms): time for time in failed}
    by_failure = {
        (row.group_id, row.left_ms): time for row in lost for hint, time in hints.items() if row.hint.startswith(hint)
    }
    together: list[LostSession] = []
    for session in sessions:
        left_ms = session.left.timestamp_ms
        if any(gone.since_ms <= left_ms <= gone.until_ms + FOUND_AGAIN_MS for gone in away):
            continue
        if together and left_ms - together[-1].left.timestamp_ms > TOGETHER_MS:
            yield from _stood_still(together, limits, by_failure)
            together = []
        together.append(session)
    yield from _stood_still(together, limits, by_failure)


def in_order(sessions: Iterable[LostSession]) -> list[LostSession]:
    """Return sessions by the time at which they ended, as ``stood_still`` takes them."""
    return sorted(
        sessions,
        key=lambda session: (session.left.timestamp_ms, session.left.partition, session.left.offset, session.member_id),
    )


def _stood_still(
    sessions: Sequence[LostSession], limits: Thresholds, by_failure: Mapping[tuple[str, int], CoordinatorAway]
) -> Iterator[FindingRow]:
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
    failed = [by_failure.get((session.group_id, session.left.timestamp_ms)) for session in sessions]
    by_broker = {time.broker: time for time in failed if time is not None}
    if None not in failed:
        cause = f"their coordinator had failed: {' and '.join(fate(by_broker[each]) for each in sorted(by_broker))}"
        subject = f"broker {min(by_broker)}" if len(by_broker) == 1 else None
    elif len(hosts) == 1:
        cause, subject = "that host, its network, or a broker stood still", hosts[0].lstrip("/")
    else:
        cause, subject = "a broker, or the network, stood still", None
    detail = (
        f"{counted(members, 'member')} of {counted(len(groups), 'group')} ({', '.join(named)}{more}) lost their "
        f"sessions within {duration(max(last_ms - first_ms, 1))}, and were back under the same member ids at most "
        f"{duration(away_ms)} later, {where}: no process was started again; {cause}"
    )
    evidence = [session.left for session in sessions]
    yield make_finding(
        FindingKind.STOOD_STILL,
        members,
        limits.stood_still_members,
        detail,
        evidence,
        subject=subject,
        since_ms=first_ms,
        until_ms=max(session.back_ms for session in sessions),
        complete=all(session.history_complete for session in sessions),
    )
