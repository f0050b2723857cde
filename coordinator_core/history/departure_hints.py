"""Whether a member left or expired: the log does not say, but the commits of its partitions may show it.

A client that commits sends heartbeats, too. So a member that committed shortly before it was removed had not been
silent for its session timeout: it left, or a request removed it. The reverse proves nothing: an idle consumer does not
commit.
"""

from __future__ import annotations

from typing import Final

from coordinator_core.cluster.clocks import utc
from coordinator_core.cluster.coordinators_away import away_at, times_away
from coordinator_core.durations import duration
from coordinator_core.groups.streams.sources import sources_of
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.history.history_writer import SHARE, HistoryWriter
from coordinator_core.history.resources import CLASSIC
from coordinator_core.history.work_units import WorkUnit
from coordinator_core.records import LOG_TOPICS, LogPosition, elapsed_ms

LEFT: Final = "left:"
"""How the hint of a member begins whose commits show that its session did not expire."""
EXPIRED: Final = "expired:"
"""How the hint of a member begins whose session expired: that of a static one, which does not end by itself."""
NOT_SAID: Final = f"{EXPIRED} a static member that leaves says so first, and this one did not"
COORDINATOR_AWAY: Final = "its coordinator was away"
"""How the hint of a member begins that could not send heartbeats."""
SLOW_POLL: Final = "it did not poll in time:"
"""How the hint of a member begins that left a little later than its rebalance timeout after it got partitions."""
SHORTEST_SESSION_MS: Final = 1_000
"""No session timeout is shorter, where the log does not say it: brokers refuse less than 45 s unless told otherwise."""
NO_COMMIT: Final = "it committed nothing of what it had"
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
    return f"removed by a request: {away}" if is_early else f"expired: {away}"


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
    if (away := _coordinator_away(writer, since_ms if last is None else last, at)) is not None:
        return away
    if last is None:
        # Of a member whose beginning is not in the log, commits may be missing from before the first record of it.
        if not times or membership.missing is not None:
            return None
        slow = _slow_poll(at.timestamp_ms - since_ms, membership.rebalance_timeout_ms)
        return slow or (NO_COMMIT if open_history.commits else None)
    return _since_commit(at.timestamp_ms - last, session_timeout_ms, membership.instance_id, may_be_late=may_be_late)


def _since_commit(gap_ms: int, session_timeout_ms: int | None, instance_id: str | None, *, may_be_late: bool) -> str:
    """Return what the time since the last commit suggests. That it is long proves nothing: a consumer without new
    records does not commit. A static member does not leave by itself.
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
    return f"{last}; one without new records commits none" if instance_id is None else f"{EXPIRED} {last}"


def _slow_poll(waited_ms: int, rebalance_timeout_ms: int | None) -> str | None:
    """Return what it suggests that a member, so long after it got partitions, left without a commit; None: nothing.

    Clients leave by themselves once they have not polled for max.poll.interval.ms, which they send as their rebalance
    timeout (KIP-62). The record that shows it may come as much later as the others take to join again.
    """
    if rebalance_timeout_ms is None or not 0 < rebalance_timeout_ms <= waited_ms <= 2 * rebalance_timeout_ms:
        return None
    return (
        f"{SLOW_POLL} it was gone {duration(waited_ms)} after it got partitions and had committed nothing; its "
        f"rebalance timeout (max.poll.interval.ms) is {duration(rebalance_timeout_ms)}"
    )


def _coordinator_away(writer: HistoryWriter, since_ms: int, at: LogPosition) -> str | None:
    """Return that the coordinator was away between the last sign of a member and its end; None: it was not."""
    if writer.topics is None:
        return None
    times = times_away(writer.topics.brokers, LOG_TOPICS[writer.group.family], at.partition)
    away = away_at(times, since_ms, at.timestamp_ms)
    if not away:
        return None
    until = "" if away[-1].until_ms is None else f" until {utc(away[-1].until_ms)}"
    return f"{COORDINATOR_AWAY}{until}: no member could send a heartbeat"


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
