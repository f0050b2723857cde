"""Whether a log partition that ends before the others goes on, so that its last records are missing.

Where nothing happens nothing is written: that a log partition is quiet proves nothing. But some states of a group do
not last, as the coordinator ends each of them by a record, within a time that is known (KIP-848, KIP-932, KIP-1071):

====================================  ==============================================================  =================
at the end of the log partition       what is written                                                 within
====================================  ==============================================================  =================
a member has not reached the target   its next heartbeat moves it on, or its session expires          session timeout
a member has to give up partitions    it does, or is removed                                          rebalance timeout
a static member is away               it returns, or its session expires                              session timeout
topics that members subscribe to are  the next heartbeat of a member opens an epoch, or the sessions  session timeout
others than those of the epoch        of all expire
a topic with offsets was deleted      the coordinator removes the offsets, whatever the group is      10 s
====================================  ==============================================================  =================

A member that waits for others to give up partitions proves nothing, nor one that speaks the classic protocol, whose
client chose its session timeout. A coordinator that starts, or takes over, begins all of these times again, and one
that is away writes nothing: only the time counts over which the metadata log shows that the coordinator stayed.

A snapshot of the cluster that shows a higher end offset proves it for any group.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS, utc
from coordinator_core.cluster.coordinators_away import times_away
from coordinator_core.cluster.snapshot_settings import int_setting
from coordinator_core.cluster.topic_changes import TOPIC_CLEANUP_MS
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.durations import duration
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from coordinator_core.groups.group import Group
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.setting_bounds import DEFAULTS
from coordinator_core.history.held_units import EPOCH_KINDS, EpochKind

SHORTEST_MS: Final = (
    min(DEFAULTS[f"group.{kind.name.lower()}.max.session.timeout.ms"] for kind in EPOCH_KINDS) + CLOCK_TOLERANCE_MS
)
"""A log partition that ends less than this before the others is not looked at."""

_KINDS: Final = {kind.state: kind for kind in EPOCH_KINDS}


class LogTail(NamedTuple):
    """The last record that there is of a log partition: its offset and its time (ms)."""

    topic: str
    partition: int
    offset: int
    last_ms: int


class AtEnd(NamedTuple):
    """What there is at the end of a log partition: its groups, and each group with a topic of which it has offsets."""

    groups: Iterable[Group] = ()
    committed: Iterable[tuple[str, str]] = ()


def served_until(tail: LogTail, topics: TopicHistory | None) -> int:
    """Return until when (ms) the metadata log shows that the coordinator of a log partition stayed; -1: not at all."""
    if topics is None or tail.last_ms < 0 or not topics.reach.covers(tail.last_ms, tail.last_ms):
        return -1
    brokers, place = topics.brokers, (tail.topic, tail.partition)
    led = brokers.leaders(*place)
    since_ms = tail.last_ms - CLOCK_TOLERANCE_MS
    if not led or led[0].at.timestamp_ms > since_ms:
        return -1
    breaks = [term.at.timestamp_ms for term in led if term.at.timestamp_ms > since_ms]
    breaks += (away.since.timestamp_ms for away in times_away(brokers, *place) if away.overlaps(since_ms, 1 << 62))
    # A coordinator that takes over begins all timers again: nothing is due behind the first break.
    return min([topics.reach.until_ms, *breaks])


def missing_end(tail: LogTail, at_end: Callable[[], AtEnd], topics: TopicHistory | None) -> str | None:
    """Return in words why records are missing behind the last one of a log partition; None: nothing tells that.

    ``at_end`` is asked where the partition ends early enough. Raises nothing.
    """
    until_ms = served_until(tail, topics)
    if topics is None or until_ms < tail.last_ms + SHORTEST_MS:
        return None
    there = at_end()
    of_groups = (each for group in there.groups for each in _due(group, tail.last_ms, until_ms, topics))
    for group_id, due_ms, what in chain(of_groups, _due_of_offsets(there.committed, tail.last_ms, topics)):
        # The two logs were written by two clocks.
        if due_ms + CLOCK_TOLERANCE_MS <= until_ms:
            lasted = duration(until_ms - tail.last_ms)
            return (
                f"{tail.topic}-{tail.partition} ends at {utc(tail.last_ms)}, {lasted} before the metadata log, and "
                f"its end is missing: {what}, so that group {group_id!r} has a record by {utc(due_ms)}"
            )
    return None


def shown_end(tail: LogTail, ends: Iterable[EndOffset], until_ms: int) -> str | None:
    """Return in words which end offset shows that records are missing behind the last one; None: none does.

    One that was read about the time of the last record, or when the logs end (``until_ms``), may be that of records
    which came while the log was copied.
    """
    for end in ends:
        if end.offset > tail.offset + 1 and tail.last_ms + SHORTEST_MS <= end.time_ms <= until_ms - SHORTEST_MS:
            return (
                f"{tail.topic}-{tail.partition} ends at {utc(tail.last_ms)} with offset {tail.offset}, and its end is "
                f"missing: a snapshot of {utc(end.time_ms)} shows the end offset {end.offset}"
            )
    return None


def _due(group: Group, last_ms: int, until_ms: int, topics: TopicHistory) -> Iterator[tuple[str, int, str]]:
    """Yield the id of the group, until when (ms) something of it had to be written, and why."""
    state: Any = group.state
    kind = _KINDS.get(type(state))
    if kind is None:
        return
    session_ms = _longest_session_ms(group, kind, until_ms, topics)
    for member_id, member in state.members.items():
        if member.speaks_classic or member.member_epoch is None:
            continue
        if member.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
            if kind.name == GroupType.CONSUMER:
                yield group.group_id, last_ms + session_ms, f"the static member {member_id} is away"
        elif kind.unrevoked is not None and member.state == kind.unrevoked:
            if (member.rebalance_timeout_ms or 0) > 0:
                due_ms = last_ms + member.rebalance_timeout_ms
                yield group.group_id, due_ms, f"member {member_id} has to give up what it has"
        elif state.assignment_epoch is not None and 0 <= member.member_epoch < state.assignment_epoch:
            what = f"member {member_id} has not reached epoch {state.assignment_epoch}"
            yield group.group_id, last_ms + session_ms, what
    asked_ms = until_ms - session_ms - CLOCK_TOLERANCE_MS
    if _has_other_topics(state, kind, asked_ms, topics):
        yield group.group_id, asked_ms + session_ms, "topics that its members subscribe to have changed"


def _due_of_offsets(
    committed: Iterable[tuple[str, str]], last_ms: int, topics: TopicHistory
) -> Iterator[tuple[str, int, str]]:
    """Yield the same of the groups whose offsets had to be removed, as their topics were deleted since."""
    since_ms = last_ms + CLOCK_TOLERANCE_MS
    # Backwards, so that of several deletions of one name the first stays: what it left was due first.
    gone = {topic: deleted_ms for topic, deleted_ms in reversed(topics.deletions()) if deleted_ms > since_ms}
    for group_id, topic in committed if gone else ():
        if topic in gone:
            yield group_id, gone[topic] + TOPIC_CLEANUP_MS, f"topic {topic} was deleted, of which it has offsets"


def _longest_session_ms(group: Group, kind: EpochKind, at_ms: int, topics: TopicHistory) -> int:
    """Return the highest session timeout that the members can have, as far as it is known."""
    of_type = kind.name.lower()
    most = f"group.{of_type}.max.session.timeout.ms"
    shown = int_setting(topics.snapshots.of_brokers(most, at_ms) or "", 32)
    own = int_setting(topics.group_config(group.group_id, f"{of_type}.session.timeout.ms", at_ms) or "", 32)
    return shown or max(DEFAULTS[most], own or 0)


def _has_other_topics(state: Any, kind: EpochKind, time_ms: int, topics: TopicHistory) -> bool:
    """Whether the topics that members subscribe to were others at a time than those that the epoch was computed from,
    which its metadata hash proves.
    """
    # Their heartbeats make the coordinator look at topics, until their sessions expire.
    asking = (each for each in state.members.values() if not each.speaks_classic and each.member_epoch is not None)
    if not state.metadata_hash or not any(each.member_epoch >= 0 for each in asking):
        return False
    names = kind.subscribed(state, topics)
    used = topics.newest_matching_hash(state.metadata_hash, names, time_ms)
    changes = [] if used is None else topics.changes(names, used.version, topics.version_at(time_ms))
    return any(change.kind != "moved" for change in changes)
