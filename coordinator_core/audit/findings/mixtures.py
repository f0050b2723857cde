"""Clients in one classic group that do not work together: what they lose by it, and what they may still lose."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted, first_of
from coordinator_core.audit.folds.witness import is_between
from coordinator_core.broker_log.events import EventKind
from coordinator_core.clients.known_clients import (
    FAILS_WITH_OTHER_TOPICS,
    Consequence,
    Mixture,
    clients_named,
    mixtures_of,
)
from coordinator_core.durations import duration
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.grounds import UNREAD_ASSIGNMENT
from coordinator_core.history.rows import NEXT_EPOCH, AssignmentRow, GroupEpochRow, MembershipRow
from coordinator_core.records import LogPosition

REMEDY = "let all members of the group be of one client"
OTHER_ASSIGNOR = f"{REMEDY}, or give the group the assignor range or roundrobin"
SAME_TOPICS = "let all members subscribe to the same topics, or use another assignor"
MOST_PAIRS = 5
"""A finding names at most this many pairs of a leader and a member."""


class _Pair(NamedTuple):
    """Two members of a group that do not work together if the first one leads."""

    leader: MembershipRow
    member: MembershipRow
    mixture: Mixture


def not_taken(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for each member that did not read all that it was given."""
    times: dict[str, list[LogPosition]] = defaultdict(list)
    details: dict[str, str] = {}
    for row in history.rebalances:
        for cause in row.causes:
            if cause.kind == CauseKind.ASSIGNMENT_NOT_TAKEN and cause.member_id is not None:
                # Two positions each time: the count is half of them.
                times[cause.member_id] += [cause.at, row.at]
                details[cause.member_id] = cause.detail or ""
    last = history.rebalances[-1].at if history.rebalances else None
    there = {row.member_id for row in history.memberships if row.is_open}
    for member_id, positions in times.items():
        count = len(positions) // 2
        yield history.finding(
            FindingKind.ASSIGNMENT_NOT_TAKEN,
            count,
            f"{_who(history, member_id)} did not read all that it was assigned, {counted(count, 'time')}; last "
            f"{details[member_id]}; {OTHER_ASSIGNOR}",
            positions,
            subject=history.client(member_id),
            is_open=positions[-1] == last and member_id in there,
        )


def left_out(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for each member that got nothing because the leader's client cannot read its subscription."""
    spans: dict[str, list[GroupEpochRow]] = defaultdict(list)
    leaders: dict[str, MembershipRow] = {}
    held: dict[str, list[AssignmentRow]] = defaultdict(list)
    for row in history.assignments:
        if row.kind == "current" and row.role == "partition":
            held[row.member_id].append(row)
    for epoch, leader, members in _generations(history):
        if leader is None or epoch.missing == UNREAD_ASSIGNMENT:
            continue
        for pair in _pairs_of(leader, members, epoch.assignor):
            if pair.mixture.consequence is Consequence.LEFT_OUT and not _had(held[pair.member.member_id], epoch):
                spans[pair.member.member_id].append(epoch)
                leaders[pair.member.member_id] = pair.leader
    for member_id, epochs in spans.items():
        ends = [history.now_ms if epoch.ended is None else epoch.ended.timestamp_ms for epoch in epochs]
        lasted_ms = sum(end - epoch.opened.timestamp_ms for epoch, end in zip(epochs, ends, strict=True))
        yield history.finding(
            FindingKind.MEMBER_LEFT_OUT,
            max(lasted_ms, 1),
            f"{_who(history, member_id)} got nothing in {counted(len(epochs), 'generation')} ({duration(lasted_ms)}): "
            f"the leader, {_who(history, leaders[member_id].member_id)}, cannot read its subscription; {REMEDY}",
            [epoch.opened for epoch in epochs],
            subject=history.client(member_id),
            until_ms=ends[-1],
            is_open=epochs[-1].ended is None,
        )


def failed_generations(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for each time during which a group completed no generation: their numbers go on without it.

    A large group that starts, or stops, is none: each member that comes while the leader assigns begins a new one.
    """
    for before, after in pairwise(history.epochs):
        skipped, changed = after.epoch - before.epoch - 1, len({*(before.members or ())} ^ {*(after.members or ())})
        is_classic = before.ended_by == NEXT_EPOCH and after.group_type == GroupType.CLASSIC and after.history_complete
        if not is_classic or skipped < max(limits.failed_generations, changed + 1):
            continue
        since_ms, until_ms = before.opened.timestamp_ms, after.opened.timestamp_ms
        # Members that failed join again when the group works: those that come within as long again may be they.
        members = _around(history, before, 2 * until_ms - since_ms)
        protocol = before.assignor or after.assignor
        pairs = _one_of_each(
            [pair for pair in _pairs(members, protocol) if pair.mixture.consequence is Consequence.FAILS]
        )
        why = "; ".join(_sentence(history, pair) for pair in pairs[:MOST_PAIRS])
        alone = next((row for row in members if (row.client, protocol) in FAILS_WITH_OTHER_TOPICS), None)
        failed = history.lines.of_kind[EventKind.WRITE_FAILED]
        unwritten = next((line for line in failed if is_between(line, since_ms, until_ms)), None)
        if unwritten is not None:
            why = f"a broker could not write: {unwritten.reason} ({unwritten.place})"
        elif why:
            why = f"{why}; {REMEDY}"
        elif alone is not None and len({row.subscribed_topics for row in members}) > 1:
            who = _who(history, alone.member_id)
            why = f"the {protocol} of {who} fails where members subscribe to different topics; {SAME_TOPICS}"
        else:
            why = "which member failed is not in the coordinator's log"
        yield history.finding(
            FindingKind.GENERATIONS_FAILED,
            skipped,
            f"generations {before.epoch + 1} to {after.epoch - 1} were not completed, within "
            f"{duration(until_ms - since_ms)}: "
            f"the members joined again and again without an assignment; {why}",
            [before.opened, after.opened],
            threshold=limits.failed_generations,
        )


def cannot_work_together(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for members that do not work together, whichever of them leads one day: over when they are no
    longer in the group together.
    """
    pairs: list[_Pair] = []
    epochs: list[GroupEpochRow] = []
    for epoch, _, members in _generations(history):
        there = list(_pairs(members, epoch.assignor))
        if there:
            pairs += there
            epochs.append(epoch)
    if pairs:
        named = first_of([_sentence(history, pair) for pair in _one_of_each(pairs)], MOST_PAIRS)
        ended = epochs[-1].ended
        yield history.finding(
            FindingKind.CLIENTS_CLASH,
            len({pair.member.member_id for pair in pairs}),
            f"{named}; {REMEDY}",
            [row.opened for row in epochs],
            until_ms=None if ended is None else ended.timestamp_ms,
            is_open=ended is None,
        )


def _generations(history: GroupHistory) -> Iterator[tuple[GroupEpochRow, MembershipRow | None, list[MembershipRow]]]:
    """Yield each generation of a classic group with its leader and its members, as far as they are known."""
    by_id = {row.member_id: row for row in history.memberships}
    for epoch in history.epochs:
        if epoch.group_type == GroupType.CLASSIC:
            members = [by_id[member_id] for member_id in epoch.members or () if member_id in by_id]
            yield epoch, by_id.get(epoch.leader or ""), members


def _pairs(members: Sequence[MembershipRow], protocol: str | None) -> Iterator[_Pair]:
    # Each pair of members is looked at: large groups, most of them of one client, are passed over.
    if len({row.client for row in members}) > 1:
        for leader in members:
            yield from _pairs_of(leader, members, protocol)


def _pairs_of(leader: MembershipRow, members: Sequence[MembershipRow], protocol: str | None) -> Iterator[_Pair]:
    leads = clients_named(leader.client)
    for member in members:
        if member.client != leader.client:
            clients, topics = clients_named(member.client), len(member.subscribed_topics)
            for mixture in mixtures_of(leads, clients, protocol, topics, member.client_release):
                yield _Pair(leader, member, mixture)


def _one_of_each(pairs: Sequence[_Pair]) -> list[_Pair]:
    """Return one pair of members for each pair of clients and what happens to them."""
    kinds: dict[tuple[str, str, Mixture], _Pair] = {}
    for pair in pairs:
        kinds.setdefault((pair.leader.client, pair.member.client, pair.mixture), pair)
    return list(kinds.values())


def _around(history: GroupHistory, before: GroupEpochRow, until_ms: int) -> list[MembershipRow]:
    """Return the members of a generation, those that it lost, and those that came since then: a member that was in the
    group meanwhile is not logged, and may come back under another id as soon as a generation is completed.
    """
    there = before.members or ()
    since = before.opened.offset
    return [
        row
        for row in history.memberships
        if row.member_id in there
        or (row.left is not None and row.left.offset == since)
        or (row.joined.offset > since and row.joined.timestamp_ms <= until_ms)
    ]


def _sentence(history: GroupHistory, pair: _Pair) -> str:
    leader, member = (_who(history, row.member_id) for row in (pair.leader, pair.member))
    return (
        f"if {leader} leads with {member} in the group, {pair.mixture.consequence.value}: the leader {pair.mixture.why}"
    )


def _who(history: GroupHistory, member_id: str) -> str:
    """Return a member by its id, its client id and host, and its client."""
    row = next(row for row in reversed(history.memberships) if row.member_id == member_id)
    name = history.client(member_id)
    known = row.client if name == member_id else f"{name}, {row.client}"
    return f"member {member_id} ({known})"


def _had(rows: Sequence[AssignmentRow], epoch: GroupEpochRow) -> bool:
    """Whether a member had something in a generation."""
    at = epoch.opened.offset
    return any(row.since.offset <= at and (row.until is None or row.until.offset > at) for row in rows)
