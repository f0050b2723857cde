"""Times over which log partitions had no coordinator: no group of theirs could commit, join, or be seen to be alive.

What the clients of these groups did then and right after is a consequence: no finding blames them for it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Final, NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level, make_finding
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted, first_of
from coordinator_core.audit.folds.topics_at_end import TopicsAtEnd
from coordinator_core.cluster.clocks import utc
from coordinator_core.cluster.coordinators_away import FOUND_AGAIN_MS, CoordinatorAway
from coordinator_core.durations import duration
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.memberships import COORDINATOR_AWAY, away_until
from coordinator_core.history.rows import GroupEpochRow
from coordinator_core.records import LOG_TOPICS, Family

SEEN: Final = (
    "Seen by a watch that asks brokers every few seconds: its times are those of its questions, and the network may be "
    "the cause."
)
"""How sure it is where there is no metadata log."""
CLIENTS_WAIT_MS = 60_000
"""How long a client's call waits before it fails: the default of default.api.timeout.ms."""


class GroupLife(NamedTuple):
    """Over which time a group was in a partition of a coordinator's log."""

    group_id: Annotated[str, "the group"]
    topic: Annotated[str, "topic of the log"]
    partition: Annotated[int, "its partition"]
    first_ms: Annotated[int, "when its first epoch began there"]
    last_ms: Annotated[int | None, "when its last epoch there ended; null: it lasts"]
    history_complete: Annotated[bool, "true if the log shows that it was not there before"]


def group_lives(history: GroupHistory) -> Iterator[GroupLife]:
    """Yield the life of a group in each log partition in which it has epochs."""
    by_place: dict[tuple[str, int], list[GroupEpochRow]] = {}
    for row in history.epochs:
        topic = LOG_TOPICS[Family.CONNECT if row.group_type == GroupType.CONNECT else Family.GROUP]
        by_place.setdefault((topic, row.opened.partition), []).append(row)
    for (topic, partition), rows in sorted(by_place.items()):
        ends = [row.ended.timestamp_ms for row in rows if row.ended is not None]
        last = max(ends) if len(ends) == len(rows) else None
        first = min(row.opened.timestamp_ms for row in rows)
        is_whole = any(row.history_complete and row.opened.timestamp_ms == first for row in rows)
        yield GroupLife(history.group_id, topic, partition, first, last, is_whole)


class LostMember(NamedTuple):
    """A member that was removed as its coordinator was away, or soon after."""

    group_id: Annotated[str, "the group"]
    left_ms: Annotated[int, "when it was removed"]
    hint: Annotated[str, "up to when its coordinator was away"]


def lost_members(history: GroupHistory) -> Iterator[LostMember]:
    """Yield the members of a group that may have lost their sessions as its coordinator was away."""
    for row in history.memberships:
        if row.left is not None and row.hint is not None and row.hint.startswith(COORDINATOR_AWAY):
            yield LostMember(history.group_id, row.left.timestamp_ms, row.hint)


def told_of(history: GroupHistory, limits: Thresholds, time_ms: int) -> bool:
    """Whether what happened in a group at a time may be the consequence of a coordinator that was away for long."""
    near = (time for time in history.away if time.overlaps(time_ms - FOUND_AGAIN_MS, time_ms))
    return any(time.is_taken_over or _counts(time, history.has_lasted, limits) for time in near)


def _counts(time: CoordinatorAway, has_lasted: Callable[[int, int], bool], limits: Thresholds) -> bool:
    """Whether a finding tells of it: not of one that is planned and lasts to the end of the log, as a log that is
    copied from a broker which was shut down ends so, nor of one that another broker took over from.
    """
    if time.is_taken_over or (time.until is None and time.is_planned):
        return False
    since_ms, least_ms = time.since.timestamp_ms, limits.coordinator_away_ms
    return has_lasted(since_ms, least_ms) if time.until_ms is None else time.until_ms - since_ms >= least_ms


def coordinator_away(
    lives: Iterable[GroupLife], lost: Iterable[LostMember], topics: TopicsAtEnd, limits: Thresholds
) -> Iterator[FindingRow]:
    """Yield a finding for each time over which log partitions had no coordinator for long.

    A planned restart is a notice where it harmed nobody: it was over before a client's call failed, and no
    member can have lost its session.
    """
    known, gone = list(lives), list(lost)
    log_ms = max(topics.reach.until_ms, topics.seen_ms)
    times = (time for of_partition in topics.away.values() for time in of_partition)
    counting = [time for time in times if _counts(time, lambda since, least: log_ms - since >= least, limits)]
    for together in _together(counting):
        yield _finding(together, known, gone, topics, limits)


def _together(times: Iterable[CoordinatorAway]) -> Iterator[list[CoordinatorAway]]:
    """Yield the times that overlap: the partitions of a broker lose their leader within moments of each other."""
    found: list[CoordinatorAway] = []
    end_ms: int | None = 0
    for time in sorted(times, key=lambda time: (time.since.timestamp_ms, time.topic, time.partition)):
        if found and end_ms is not None and time.since.timestamp_ms > end_ms:
            yield found
            found, end_ms = [], 0
        found.append(time)
        # None: it lasts, and overlaps all that begins later.
        end_ms = None if end_ms is None or time.until_ms is None else max(end_ms, time.until_ms)
    if found:
        yield found


def _finding(
    times: Sequence[CoordinatorAway],
    lives: Iterable[GroupLife],
    lost: Iterable[LostMember],
    topics: TopicsAtEnd,
    limits: Thresholds,
) -> FindingRow:
    is_open, is_seen = any(time.until is None for time in times), any(time.is_seen for time in times)
    since_ms = min(time.since.timestamp_ms for time in times)
    until_ms = max(topics.reach.until_ms, topics.seen_ms) if is_open else max(time.until_ms or 0 for time in times)
    places = {(time.topic, time.partition) for time in times}
    there = [
        life
        for life in lives
        if (life.topic, life.partition) in places and (life.last_ms is None or life.last_ms >= since_ms)
    ]
    groups = sorted({life.group_id for life in there if life.first_ms <= until_ms})
    are_all = all(life.history_complete for life in there if life.group_id not in groups)
    # Of a log that was compacted since, some groups of that time are not known.
    whose = "" if are_all else " of groups that the log does not show any more"
    if groups:
        whose = f" of {'' if are_all else 'at least '}{counted(len(groups), 'group')} ({first_of(groups)})"
    how = "has been away for at least" if is_open else "was away for"
    ended = "" if is_open else f" until {utc(until_ms)}"
    logs_of = Counter(topic for topic, _ in places)
    logs = ", ".join(f"{counted(count, 'partition')} of {topic}" for topic, count in sorted(logs_of.items()))
    within_reach = " that this watch could reach" if is_seen else ""
    by_broker = {time.broker: time for time in times}
    fates = " and ".join(fate(by_broker[broker]) for broker in sorted(by_broker))
    detail = (
        f"the coordinator{whose} {how} {duration(until_ms - since_ms)}, from "
        f"{utc(since_ms)}{ended}: {fates}; {logs} had no leader{within_reach}: "
        "their groups could not commit, join or rebalance"
    )
    # A hint was made where leader epochs tell on which side of the time a record lies: the two clocks need not agree.
    hints, last_ms = tuple(away_until(time.until_ms) for time in times), until_ms + FOUND_AGAIN_MS
    near = (row for row in lost if row.group_id in groups and row.left_ms <= last_ms)
    members = [
        row for row in near if row.hint.startswith((*hints, away_until(None)) if row.left_ms >= since_ms else hints)
    ]
    if members:
        detail += f"; {counted(len(members), 'member')} may have lost their sessions by it"
    is_quick = all(time.is_planned for time in times) and not is_open and until_ms - since_ms < CLIENTS_WAIT_MS
    brokers = {time.broker for time in times}
    finding = make_finding(
        FindingKind.COORDINATOR_AWAY,
        until_ms - since_ms,
        limits.coordinator_away_ms,
        detail,
        [at for time in times if not time.is_seen for at in (time.since, time.until) if at is not None],
        subject=f"broker {brokers.pop()}" if len(brokers) == 1 else None,
        since_ms=since_ms,
        until_ms=until_ms,
        is_open=is_open,
        level=Level.NOTICE if is_quick and not members else None,
        log_topic=LOG_TOPICS[Family.METADATA],
        complete=are_all and (is_seen or topics.reach.covers(since_ms, until_ms)),
    )
    return finding._replace(certainty=SEEN) if is_seen else finding


def fate(time: CoordinatorAway) -> str:
    """Say of a broker whether it was in a controlled shutdown, and when it was fenced."""
    fenced = "" if time.fenced is None else f" (fenced at {utc(time.fenced.timestamp_ms)})"
    if time.is_planned:
        return f"broker {time.broker} was in a controlled shutdown{fenced}"
    if time.is_planned is None or time.fenced is None:
        return f"broker {time.broker} was gone{fenced}"
    return f"broker {time.broker} was gone without a controlled shutdown{fenced}"
