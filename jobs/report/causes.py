"""Who and what caused the rebalances of a group."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.rows import Cause, MembershipRow, RebalanceRow
from coordinator_core.records import LogPosition
from jobs.report.data import CausedBy, Count, Initiator

MOST_CAUSES = 20
"""A deploy of hundreds of members is one cause to a reader: the rest is a number."""
MOST_INITIATORS = 20


class CauseFamily(StrEnum):
    """Kinds of causes that charts show as one."""

    JOINED = "members joined"
    LEFT = "members left or expired"
    CHANGED = "members changed"
    TOPICS = "topics or connectors changed"
    FOLLOW_UP = "follow-up of a rebalance"
    GROUP = "group changed"
    SEVERAL = "several of these"
    UNKNOWN = "unknown"


FAMILY_OF = {
    CauseKind.MEMBER_JOINED: CauseFamily.JOINED,
    CauseKind.STATIC_MEMBER_RETURNED: CauseFamily.JOINED,
    CauseKind.STATIC_MEMBER_REPLACED: CauseFamily.JOINED,
    CauseKind.MEMBER_LEFT_OR_EXPIRED: CauseFamily.LEFT,
    CauseKind.STATIC_MEMBER_LEFT: CauseFamily.LEFT,
    CauseKind.MEMBER_LEFT: CauseFamily.LEFT,
    CauseKind.MEMBER_EXPIRED: CauseFamily.LEFT,
    CauseKind.MEMBER_TIMED_OUT: CauseFamily.LEFT,
    CauseKind.SUBSCRIPTION_CHANGED: CauseFamily.CHANGED,
    CauseKind.ASSIGNMENT_MISMATCH: CauseFamily.CHANGED,
    CauseKind.ASSIGNMENT_NOT_TAKEN: CauseFamily.CHANGED,
    CauseKind.ASSIGNOR_CHANGED: CauseFamily.CHANGED,
    CauseKind.ASSIGNOR_TIED: CauseFamily.CHANGED,
    CauseKind.PROTOCOL_CHANGED: CauseFamily.CHANGED,
    CauseKind.RACK_CHANGED: CauseFamily.CHANGED,
    CauseKind.TOPOLOGY_CHANGED: CauseFamily.CHANGED,
    CauseKind.MEMBER_CHANGED: CauseFamily.CHANGED,
    CauseKind.LEADER_REJOINED: CauseFamily.CHANGED,
    CauseKind.TOPIC_CREATED: CauseFamily.TOPICS,
    CauseKind.TOPIC_DELETED: CauseFamily.TOPICS,
    CauseKind.TOPIC_GROWN: CauseFamily.TOPICS,
    CauseKind.TOPIC_METADATA_CHANGED: CauseFamily.TOPICS,
    CauseKind.REGEX_RESOLVED: CauseFamily.TOPICS,
    CauseKind.CONNECTORS_CHANGED: CauseFamily.TOPICS,
    CauseKind.CONFIGS_DIFFER: CauseFamily.CHANGED,
    CauseKind.PARTITIONS_REVOKED: CauseFamily.FOLLOW_UP,
    CauseKind.DELAY_ELAPSED: CauseFamily.FOLLOW_UP,
    CauseKind.WARMUP_CAUGHT_UP: CauseFamily.FOLLOW_UP,
    CauseKind.GROUP_CONFIG_CHANGED: CauseFamily.GROUP,
    CauseKind.SHARE_STATE_INITIALIZED: CauseFamily.GROUP,
    CauseKind.GROUP_UPGRADED: CauseFamily.GROUP,
    CauseKind.GROUP_DOWNGRADED: CauseFamily.GROUP,
    CauseKind.UNKNOWN: CauseFamily.UNKNOWN,
}


def family(row: RebalanceRow) -> CauseFamily:
    """Return what the causes of a rebalance have in common."""
    families = {FAMILY_OF[CauseKind(cause.kind)] for cause in row.causes} - {CauseFamily.UNKNOWN}
    return CauseFamily.UNKNOWN if not families else families.pop() if len(families) == 1 else CauseFamily.SEVERAL


FOLLOW_UPS = frozenset((CauseKind.PARTITIONS_REVOKED, CauseKind.DELAY_ELAPSED))
"""What an earlier rebalance has left to do: the causes of that one say who began it."""


def origins(rows: Sequence[RebalanceRow]) -> list[RebalanceRow | None]:
    """Return for each rebalance of one log, in order, the one that it follows up; None where it has own causes.

    A follow-up of a follow-up has the same origin. It is None, too, where the rebalance before is not in the log.
    """
    followed: list[RebalanceRow | None] = []
    for index, row in enumerate(rows):
        before = rows[index - 1] if index else None
        if not _follows_up(row) or before is None or before.to_epoch != row.from_epoch:
            followed.append(None)
        else:
            followed.append(followed[-1] or (before if not _follows_up(before) else None))
    return followed


def _follows_up(row: RebalanceRow) -> bool:
    return bool(row.causes) and all(cause.kind in FOLLOW_UPS for cause in row.causes)


def caused_by(row: RebalanceRow, members: Mapping[str, MembershipRow]) -> tuple[CausedBy, ...]:
    """Return the first causes of a rebalance; ``members`` has the members of the group by member id."""
    return tuple(_caused_by(cause, members.get(cause.member_id or "")) for cause in row.causes[:MOST_CAUSES])


def _caused_by(cause: Cause, member: MembershipRow | None) -> CausedBy:
    return CausedBy(
        kind=str(cause.kind),
        member_id=cause.member_id,
        client_id=None if member is None else member.client_id,
        # Java writes an address whose name was not looked up with a slash before it.
        client_host=None if member is None or member.client_host is None else member.client_host.lstrip("/"),
        instance_id=cause.instance_id or (None if member is None else member.instance_id),
        topics=cause.topics,
        detail=cause.detail,
        hint=cause.hint,
        source=cause.source,
        at=cause.at,
    )


def initiators(history: GroupHistory, parts: Iterable[Sequence[RebalanceRow]]) -> tuple[Sequence[Initiator], int]:
    """Return the members by the number of rebalances that they caused, and the rebalances that no member caused.

    ``parts`` has the rebalances of each log. Members that are one client after the other are one. A rebalance with
    several causes counts for each member.
    """
    followed: Counter[str] = Counter()
    caused: Counter[str] = Counter()
    delayed: Counter[str] = Counter()
    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    ids: defaultdict[str, set[str]] = defaultdict(set)
    last: dict[str, LogPosition] = {}
    memberless = 0
    for row, origin in (pair for rows in parts for pair in zip(rows, origins(rows), strict=True)):
        names = set()
        for cause in row.causes:
            name = history.client(cause.member_id)
            if name is None or cause.member_id is None:
                continue
            names.add(name)
            kinds[name][str(cause.kind)] += 1
            ids[name].add(cause.member_id)
            last[name] = max(cause.at, last.get(name, cause.at), key=lambda at: (at.timestamp_ms, at.offset))
        # Once for a client, however many of the causes name it.
        caused.update(names)
        began = {history.client(cause.member_id) for cause in origin.causes} - {None} if origin is not None else set()
        followed.update(name for name in began if name is not None)
        memberless += not names and not began
        delaying = history.client(row.delayed_by)
        if delaying is not None:
            delayed[delaying] += 1
    ordered = sorted(caused, key=lambda name: (-caused[name], -followed[name], name))
    initiators = [
        Initiator(
            name, len(ids[name]), caused[name], followed[name], most_frequent(kinds[name]), delayed[name], last[name]
        )
        for name in ordered
    ]
    return initiators, memberless


def most_frequent(counted: Counter[str]) -> tuple[Count, ...]:
    """Return the names that were counted, the most frequent first."""
    return tuple(Count(name, counted[name]) for name in sorted(counted, key=lambda name: (-counted[name], name)))
