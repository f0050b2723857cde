"""How members join and leave: which replace others, which continue under another group type, and what that causes.

The log does not say whether a member left or expired, but the commits of its partitions may show it. A client that
commits sends heartbeats, too. So a member that committed shortly before it was removed had not been silent for its
session timeout: it left, or a request removed it. The reverse proves nothing: an idle consumer does not commit.
"""

from typing import Final

from coordinator_core.clients.known_clients import LEAVES_IF_NOT_POLLED
from coordinator_core.cluster.clocks import utc
from coordinator_core.cluster.coordinators_away import FOUND_AGAIN_MS, times_away
from coordinator_core.durations import duration
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.streams.sources import sources_of
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.history.causes import DEPARTED, CauseKind, about
from coordinator_core.history.grounds import NOT_SEEN_TO_GO_ON
from coordinator_core.history.history_writer import SHARE, HistoryWriter
from coordinator_core.history.holdings import WorkUnit
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenMembership
from coordinator_core.history.rows import AWAY_LOST, AWAY_UNSEEN, LEFT_OR_EXPIRED, REPLACED
from coordinator_core.history.testimony import lack
from coordinator_core.history.topics_of_epochs import CLASSIC
from coordinator_core.records import LOG_TOPICS, CoordinatorRecord, LogPosition, elapsed_ms

LEFT: Final = "left:"
"""How the hint of a member begins whose commits show that its session did not expire."""
EXPIRED: Final = "expired:"
"""How the hint of a member begins whose session expired."""
REMOVED: Final = "removed by a request:"
"""How the hint of a static member begins that was removed well before its session ended."""
NOT_SAID: Final = "its session expired, or a request removed it"
"""How the hint of a static member begins that went without a word: mostly it expired, but an administrator may remove
it, and so may its own client (``CloseOptions`` from Kafka 4.1 on, a Streams application that fails).
"""
COORDINATOR_AWAY: Final = "its coordinator was away"
"""How the hint of a member begins that could not send heartbeats."""
SLOW_POLL: Final = "it did not poll in time:"
"""How the hint of a member begins that left a little later than its rebalance timeout after it got partitions."""
BY_ITSELF: Final = (LEFT, SLOW_POLL, REMOVED)
"""How the hint of a member begins that had not lost its session."""
SHORTEST_SESSION_MS: Final = 1_000
"""No session timeout is shorter, where the log does not say it: brokers refuse less than 45 s unless told otherwise."""
NO_COMMIT: Final = "it made no commit for its partitions"
"""The hint of a member without a commit of its partitions since it got them; it may have had, and committed, others."""
WELL_WITHIN: Final = 2
"""Heartbeats come at most this part of a session timeout before a commit."""


def away_hint(since: LogPosition, at: LogPosition, session_timeout_ms: int | None) -> str | None:
    """Return what the time that a static member was away suggests of why it was removed; None without times.

    It expires once it has sent no heartbeat for its session timeout. Before, only a request removes it.
    """
    away_ms = elapsed_ms(since.timestamp_ms, at.timestamp_ms)
    if away_ms is None:
        return None
    away = f"it had been away for {duration(away_ms)}"
    if session_timeout_ms is None:
        return away
    away = f"{away}, its session timeout is {duration(session_timeout_ms)}"
    is_early = away_ms * WELL_WITHIN < session_timeout_ms
    return f"{REMOVED if is_early else EXPIRED} {away}"


def departure_hint(
    writer: HistoryWriter, member_id: str, at: LogPosition, session_timeout_ms: int | None, *, may_be_late: bool = False
) -> str | None:
    """Return what the commits of a member's partitions suggest.

    None if there are no commits to compare; without a known timeout only the time since the last commit is given.
    ``may_be_late``: the group may have removed the member for another reason than its silence, as it did not join,
    revoke or ask for its assignment in time.
    """
    open_history = writer.open_history
    membership = open_history.memberships.get(member_id)
    if membership is None or open_history.type == SHARE or at.timestamp_ms < 0 or open_history.commits_lost:
        return None
    # Only what it has now: commits of what it gave up before are the next owner's.
    times = [
        (open_history.commits.get(topic, {}).get(partition), since.timestamp_ms)
        for unit, (since, _, _) in open_history.current.units(member_id)
        for topic, partition in _committed(writer, unit)
    ]
    # What was committed before it got the partition, the owner before committed.
    last = max((time_ms for time_ms, since_ms in times if time_ms is not None and time_ms > since_ms), default=None)
    if not _saw_commits(writer, membership.joined, at, last):
        return None
    since_ms = max((since_ms for _, since_ms in times), default=membership.joined.timestamp_ms)
    # First of all: while nobody answered, silence says nothing of the member.
    sign_ms = since_ms if last is None else last
    if (away := _coordinator_away(writer, membership, sign_ms, at, session_timeout_ms)) is not None:
        return away
    if last is None:
        # Of a member whose beginning is not in the log, commits may be missing from before the first record of it.
        if not times or membership.missing is not None:
            return None
        slow = _slow_poll(membership, at.timestamp_ms - since_ms)
        return slow or (NO_COMMIT if open_history.commits else None)
    return _since_commit(at.timestamp_ms - last, session_timeout_ms, membership.instance_id, may_be_late=may_be_late)


def _since_commit(gap_ms: int, session_timeout_ms: int | None, instance_id: str | None, *, may_be_late: bool) -> str:
    """Return what the time since the last commit suggests. That it is long proves nothing: a consumer without new
    records does not commit. A static member seldom leaves by itself.
    """
    committed = f"it committed {duration(gap_ms)} before"
    last = f"its last commit was {duration(gap_ms)} before"
    if session_timeout_ms is None:
        if gap_ms * WELL_WITHIN < SHORTEST_SESSION_MS and not may_be_late:
            return f"{LEFT} {committed}, and no session timeout is so short"
        return last
    if gap_ms * WELL_WITHIN < session_timeout_ms and not may_be_late:
        return f"{LEFT} {committed}, well within its session timeout of {duration(session_timeout_ms)}"
    last = f"{last}, its session timeout is {duration(session_timeout_ms)}"
    if gap_ms < session_timeout_ms:
        return last
    return f"{last}; a consumer without new records does not commit" if instance_id is None else f"{NOT_SAID}: {last}"


def _slow_poll(membership: OpenMembership, waited_ms: int) -> str | None:
    """Return what it suggests that a member, so long after it got partitions, left without a commit; None: nothing.

    The record that shows it may come as much later as the others take to join again. What a client that does not watch
    its application sends as its rebalance timeout says nothing of how often that polls.
    """
    rebalance_timeout_ms, clients = membership.rebalance_timeout_ms, membership.told.clients
    if rebalance_timeout_ms is None or not 0 < rebalance_timeout_ms <= waited_ms <= 2 * rebalance_timeout_ms:
        return None
    if clients and LEAVES_IF_NOT_POLLED.isdisjoint(clients):
        return None
    return (
        f"{SLOW_POLL} it was gone {duration(waited_ms)} after it got partitions and had committed nothing; its "
        f"rebalance timeout (max.poll.interval.ms) is {duration(rebalance_timeout_ms)}"
    )


def _coordinator_away(
    writer: HistoryWriter, membership: OpenMembership, since_ms: int, at: LogPosition, session_timeout_ms: int | None
) -> str | None:
    """Return that the coordinator was away between the last sign of a member and its end; None: it was not.

    Its last sign is a commit, or that it got a partition (``since_ms``), or a request of its own. Timers begin again
    once a coordinator is back: first that of the session, then that of a rebalance, which a classic group writes last.
    """
    latest_ms = max(session_timeout_ms or 0, FOUND_AGAIN_MS)
    if writer.open_history.type == GroupType.CLASSIC:
        latest_ms += max(membership.rebalance_timeout_ms or 0, 0)
    if writer.topics is None:
        return None
    times = times_away(writer.topics.brokers, LOG_TOPICS[writer.group.family], at.partition)
    away = [
        each
        for each in times
        if each.overlaps(since_ms, at.timestamp_ms, writer.open_history.leader_epoch)
        and not each.was_over(membership.heard_ms, membership.heard_epoch)
        and (each.until_ms is None or at.timestamp_ms <= each.until_ms + latest_ms)
    ]
    if not away:
        return None
    return f"{away_until(away[-1].until_ms)} no member could send a heartbeat"


def away_until(until_ms: int | None) -> str:
    """How the hint of a member begins that could not send heartbeats up to a time; None: up to the end of the log."""
    return f"{COORDINATOR_AWAY}:" if until_ms is None else f"{COORDINATOR_AWAY} until {utc(until_ms)}:"


def _saw_commits(writer: HistoryWriter, joined: LogPosition, at: LogPosition, last_ms: int | None) -> bool:
    """Whether no commit can be missing after the last one that was seen, or, without one, since the member joined."""
    coverage, first = writer.coverage, writer.open_history.past.first
    if coverage is None or coverage.unbroken(at.partition, joined.offset, at.offset):
        return True
    return last_ms is not None and first is not None and last_ms >= first.timestamp_ms


def _committed(writer: HistoryWriter, unit: WorkUnit) -> list[tuple[str, int]]:
    """Topic names and partitions whose offsets the owner of a unit commits."""
    role, name, partition = unit
    if role == "partition":
        topic = name if writer.open_history.type == CLASSIC else writer.resources.topic_name(name)
        return [(topic, partition)] if topic is not None else []
    state = writer.group.state
    if role == "active" and isinstance(state, StreamsGroup) and state.topology is not None:
        epoch = writer.open_history.epoch
        known = () if epoch is None else epoch.topics
        named = (subtopology for subtopology in state.topology.subtopologies if subtopology.subtopology_id == name)
        return [(topic, partition) for subtopology in named for topic in sources_of(state.topology, subtopology, known)]
    return []


def join(writer: HistoryWriter, membership: OpenMembership) -> None:
    """Record that a member joined. That is not a cause if the member only continues under another group type."""
    open_history, member_id = writer.open_history, membership.member_id
    at = membership.joined
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
        open_history.changes.append(about(membership, CauseKind.MEMBER_JOINED, at))
        return
    membership.came_by, membership.replaces = REPLACED, replaced.member_id
    membership.first_epoch = open_history.epoch_of(membership)
    hint = None
    # A static member of the classic protocol says nothing to its group when it goes.
    if open_history.type == CLASSIC or replaced.speaks_classic:
        hint = AWAY_UNSEEN
    elif replaced.away_since is None and not open_history.past.saw_since(replaced.joined, lasts=True):
        hint = AWAY_LOST
    replaced.went_by, replaced.hint = REPLACED, hint
    open_history.withdraw(replaced.member_id, DEPARTED)
    open_history.ownership.rename(replaced.member_id, member_id)
    may_be_away = replaced.away_since is not None or hint is not None
    kind = CauseKind.STATIC_MEMBER_RETURNED if may_be_away else CauseKind.STATIC_MEMBER_REPLACED
    open_history.changes.append(about(membership, kind, at, f"in place of {replaced.member_id}", hint=hint))


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
    away = membership.away_since
    detail = None if away is None else f"left at offset {away.offset} and did not return"
    open_history.changes.append(about(membership, _departure(membership), at, detail, hint=membership.hint))


def _departure(membership: OpenMembership) -> CauseKind:
    return CauseKind.MEMBER_LEFT_OR_EXPIRED if membership.instance_id is None else CauseKind.STATIC_MEMBER_LEFT


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
    for membership in open_history.crossing.values():
        membership.went_by = LEFT_OR_EXPIRED
        open_history.changes.append(about(membership, _departure(membership), membership.left or at))
    writer.close(open_history.crossing)
