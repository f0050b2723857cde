"""One rebalance in plain sentences, each with the records that prove it."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import takewhile
from operator import itemgetter

from coordinator_core.audit.broker_sentences import (
    about_absence,
    about_assignor,
    about_beginning,
    about_coordinator,
    about_refusals,
    about_silence,
)
from coordinator_core.audit.findings.work_owners import NOT_READY, TwoOwners, two_owners_of
from coordinator_core.audit.folds.group_history import CONNECTOR_OR_TASK, GroupHistory, counted, plural
from coordinator_core.audit.folds.two_logs import by_log, log_topic, time_order
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.sentences import OWN_LOG, Sentence
from coordinator_core.audit.targets.connect_groups import USUAL_STORIES
from coordinator_core.audit.targets.leader_views import NEWEST
from coordinator_core.audit.targets.map_orders import AS_SEEN
from coordinator_core.durations import duration
from coordinator_core.errors import InputError
from coordinator_core.groups.streams.readiness import reason
from coordinator_core.history.causes import MOVED_FROM, READS_ANOTHER, CauseKind
from coordinator_core.history.rows import (
    DOWNGRADED,
    NO_COMPUTING_WORKER,
    REACHED_NOT_READY,
    UPGRADED,
    AssignmentRow,
    GroupEpochRow,
    RebalanceRow,
)
from coordinator_core.records import LogPosition

MOST_MEMBERS = 12
"""Up to this many members, a sentence per member says what it got and gave up."""
MOST_PROOF = 3
"""How many positions prove what one member got and gave up."""


METADATA = "cluster metadata"


CAUSES = {
    CauseKind.MEMBER_JOINED: "{member} joined",
    CauseKind.MEMBER_LEFT_OR_EXPIRED: "{member} left, or its session expired",
    CauseKind.STATIC_MEMBER_LEFT: "static {member} was removed",
    CauseKind.MEMBER_LEFT: "{member} left",
    CauseKind.MEMBER_EXPIRED: "the session of {member} expired",
    CauseKind.MEMBER_TIMED_OUT: "{member} took longer than its rebalance timeout",
    CauseKind.STATIC_MEMBER_RETURNED: "static {member} returned",
    CauseKind.STATIC_MEMBER_REPLACED: "another client took over the instance id of {member}",
    CauseKind.SUBSCRIPTION_CHANGED: "{member} changed its subscription",
    CauseKind.ASSIGNMENT_MISMATCH: "{member} was assigned topics that it does not subscribe to: {topics}",
    CauseKind.ASSIGNMENT_NOT_TAKEN: "{member} did not read all that it was assigned of {topics}",
    CauseKind.ASSIGNOR_CHANGED: "{member} asked for another assignor",
    CauseKind.ASSIGNOR_TIED: "two assignors have equal votes of the members",
    CauseKind.PROTOCOL_CHANGED: "the group's protocol changed",
    CauseKind.TOPIC_CREATED: "topic {topics} was created",
    CauseKind.TOPIC_DELETED: "topic {topics} was deleted",
    CauseKind.TOPIC_GROWN: "topic {topics} got more partitions",
    CauseKind.TOPIC_METADATA_CHANGED: "the metadata of a subscribed topic changed",
    CauseKind.RACK_CHANGED: "racks changed",
    CauseKind.REGEX_RESOLVED: "a subscribed regular expression now matches other topics",
    CauseKind.TOPOLOGY_CHANGED: "the topology changed",
    CauseKind.MEMBER_CHANGED: "{member} changed its metadata",
    CauseKind.LEADER_REJOINED: "{member}, the leader, joined again",
    CauseKind.GROUP_CONFIG_CHANGED: "the group's configuration changed",
    CauseKind.WARMUP_CAUGHT_UP: "a warm-up task of the process of {member} caught up",
    CauseKind.SHARE_STATE_INITIALIZED: "share partitions of {topics} became assignable",
    CauseKind.PARTITIONS_REVOKED: "partitions that the previous rebalance revoked had to be assigned",
    CauseKind.CONNECTORS_CHANGED: "connectors or tasks changed: {topics}",
    CauseKind.CONFIGS_DIFFER: f"{{member}} {READS_ANOTHER}",
    CauseKind.DELAY_ELAPSED: "the group's rebalance delay elapsed",
    CauseKind.GROUP_UPGRADED: "the group moved to the new protocol",
    CauseKind.GROUP_DOWNGRADED: "the group moved back to the classic protocol",
    CauseKind.UNKNOWN: "unknown",
}
ENDINGS = {
    "emptied": "The last member left.",
    "group deleted": "The group was deleted.",
    UPGRADED: "It ended when the group moved to the new protocol.",
    DOWNGRADED: "It ended when the group moved back to the classic protocol.",
    "unknown": "When it ended is not known: members may be missing in the log.",
}
USUAL = (AS_SEEN, NEWEST, *USUAL_STORIES)
"""Assumptions about the input of a recomputed target that are usual, so that no sentence mentions them."""


def find_rebalance(history: GroupHistory, epoch: int | None = None, offset: int | None = None) -> RebalanceRow:
    """Return the last rebalance of a group; with ``epoch`` the last one to that epoch, with ``offset`` the one there.

    Raises:
        InputError: the history has no such rebalance.
    """
    rows = sorted(history.rebalances, key=lambda row: row.at.offset)
    if epoch is not None:
        rows = [row for row in rows if row.to_epoch == epoch]
    if offset is not None:
        rows = [row for row in rows if row.at.offset == offset]
    if not rows:
        which = "" if epoch is None else f" to epoch {epoch}"
        where = "" if offset is None else f" at offset {offset}"
        but = "" if history.lacks is None else f"; {history.lacks}"
        raise InputError(f"group {history.group_id!r} has no rebalance{which}{where} in this log{but}")
    return rows[-1]


def with_log(sentences: Iterable[Sentence], log: str) -> list[Sentence]:
    """Name the log in the sentences: positions say nothing without it where a group lives in two."""
    return [sentence._replace(source=log) if sentence.source == OWN_LOG else sentence for sentence in sentences]


def explain_rebalance(history: GroupHistory, epoch: int | None = None, offset: int | None = None) -> list[Sentence]:
    """Explain the rebalance to an epoch, that with its first record at an offset, or the last one in time.

    A group that lives in two logs is explained by the log of that rebalance, which the sentences name.

    Raises:
        InputError: the group has no such rebalance.
    """
    parts = by_log(history)
    candidates: list[tuple[GroupHistory, RebalanceRow]] = []
    for part in parts:
        with suppress(InputError):
            candidates.append((part, find_rebalance(part, epoch, offset)))
    if not candidates:
        find_rebalance(parts[-1], epoch, offset)
    part, rebalance = max(candidates, key=lambda candidate: time_order(candidate[0], candidate[1].at))
    sentences = [*_of_several(parts, rebalance, epoch), *explain(part, rebalance)]
    return sentences if part is history else with_log(sentences, log_topic(part))


def explain_moment(history: GroupHistory, at_ms: int) -> list[Sentence]:
    """Explain the last rebalance of a group that began up to a time.

    Raises:
        InputError: none had begun.
    """
    begun = [(part, row) for part in by_log(history) for row in part.rebalances if 0 <= row.at.timestamp_ms <= at_ms]
    if not begun:
        raise InputError(f"group {history.group_id!r} had no rebalance up to that time, as far as these logs go")
    part, rebalance = max(begun, key=lambda pair: time_order(pair[0], pair[1].at))
    sentences = explain(part, rebalance)
    return sentences if part is history else with_log(sentences, log_topic(part))


def _of_several(parts: Iterable[GroupHistory], last: RebalanceRow, epoch: int | None) -> Iterator[Sentence]:
    """The number of an epoch comes again when a group is deleted, or moves to the other protocol."""
    others = [row.at for part in parts for row in part.rebalances if row.to_epoch == epoch and row is not last]
    if epoch is not None and others:
        others.sort(key=lambda at: (at.partition, at.offset))
        which = f"The group has {len(others) + 1} rebalances to {epoch}: this is the last one"
        yield Sentence(f"{which}; ask for another one by its PARTITION:OFFSET.", tuple(others))


def explain(history: GroupHistory, rebalance: RebalanceRow) -> list[Sentence]:
    """Return what happened in a rebalance: its epochs, what has two owners since, its causes, target, revocations, end,
    moves and broken rules.
    """
    (sentences,) = explanations(history, [rebalance])
    return sentences


def explanations(history: GroupHistory, rebalances: Iterable[RebalanceRow]) -> Iterator[list[Sentence]]:
    """Yield what happened in each of these rebalances of a history; what all of them need is made once."""
    moves, overlaps = _Moves(history.assignments), list(two_owners_of(history))
    for rebalance in rebalances:
        twice = [overlap for overlap in overlaps if within(rebalance, overlap.at)]
        yield _explained(history, rebalance, moves.within(rebalance), twice)


class _Moves:
    """The assignments of one log by the offsets at which they begin and end: a long history is not searched through."""

    def __init__(self, rows: Sequence[AssignmentRow]) -> None:
        # Sorted by the offset of each end: a rebalance is a range of it, found by two searches.
        ends = [(at.offset, index) for index, row in enumerate(rows) for at in (row.since, row.until) if at is not None]
        self._rows, self._ends = rows, sorted(ends)

    def within(self, rebalance: RebalanceRow) -> list[AssignmentRow]:
        """Return the assignments that begin or end during the rebalance."""
        first = bisect_left(self._ends, rebalance.at.offset, key=itemgetter(0))
        last = rebalance.finished
        end = len(self._ends) if last is None else bisect_right(self._ends, last.offset, key=itemgetter(0))
        return [self._rows[index] for index in sorted({index for _, index in self._ends[first:end]})]


def _explained(
    history: GroupHistory, rebalance: RebalanceRow, changed: Iterable[AssignmentRow], twice: list[TwoOwners]
) -> list[Sentence]:
    """``changed`` are the assignments that begin or end during the rebalance."""
    missing = rebalance.missing
    return [
        *_opening(history, rebalance),
        *_two_owners(history, twice),
        *_sentences(rebalance, about_beginning(rebalance, history.lines)),
        *_why(history, rebalance),
        *_sentences(rebalance, about_silence(rebalance, history.lines)),
        *_readiness(history, rebalance),
        *_target(history, rebalance, has_two_owners=bool(twice)),
        *_sentences(rebalance, about_assignor(rebalance, history.lines)),
        *_revocations(history, rebalance),
        *_ending(history, rebalance),
        *_absence(history, rebalance),
        *_sentences(rebalance, about_refusals(rebalance, history.lines)),
        *_moves(history, rebalance, changed, twice),
        *_broken(history, rebalance),
        *_sentences(rebalance, () if missing is None else [f"Part of it is not known: {missing}."]),
    ]


def _sentences(row: RebalanceRow, texts: Iterable[str]) -> Iterator[Sentence]:
    return (Sentence(text, (row.at,)) for text in texts)


def _absence(history: GroupHistory, row: RebalanceRow) -> Iterator[Sentence]:
    """When the coordinator was away: as a broker's log says, or else the metadata log."""
    told = [*_sentences(row, about_coordinator(row, history.lines))]
    yield from told
    if not told:
        yield from (Sentence(text, proof, METADATA) for text, proof in about_absence(row, history.away))


def _opening(history: GroupHistory, row: RebalanceRow) -> Iterator[Sentence]:
    word = "generation" if row.group_type in ("CLASSIC",) else "epoch"
    other = next((MOVED_FROM[each.kind] for each in row.causes if each.kind in MOVED_FROM and each.detail), word)
    is_same = row.from_epoch is None or (other == word and row.from_epoch == row.to_epoch)
    from_ = "" if is_same else f" from {other} {row.from_epoch}"
    text = f"The {row.group_type.lower()} group {history.group_id} rebalanced{from_} to {word} {row.to_epoch}."
    if row.members_after is not None:
        before = "" if row.members_before is None else f" had {counted(row.members_before, 'member')} before,"
        text += f" It{before or ' has'} {counted(row.members_after, 'member')} in the new {word}."
    yield Sentence(text, (row.at,))
    if row.began_after_ms is not None and row.began_after_ms != row.began_before_ms:
        yield Sentence(f"The log does not say when it began: {_began(row, row.began_after_ms)}.", (row.at,))
    if row.skipped_generations:
        count, verb = counted(row.skipped_generations, "generation"), "is" if row.skipped_generations == 1 else "are"
        yield Sentence(f"{count} in between never completed, or {verb} not in the log.", (row.at,))


def _two_owners(history: GroupHistory, twice: Iterable[TwoOwners]) -> Iterator[Sentence]:
    """The gravest that a rebalance can do."""
    for overlap in twice:
        names = " and ".join(_member(history, member_id) for member_id in overlap.members)
        lasted_ms = overlap.lasted_ms(history)
        if lasted_ms is None:
            lasted = "for some time"
        else:
            lasted = "they still do" if overlap.until is None else f"for {duration(lasted_ms)}"
        yield Sentence(
            f"Two owners: it gave {overlap.counted} to a second member: {names} both had {overlap.listed} ({lasted}); "
            f"{overlap.meaning}.",
            (overlap.at, *([overlap.until] if overlap.until is not None else [])),
        )


def _began(row: RebalanceRow, after_ms: int) -> str:
    """When a rebalance began of which the log has the end."""
    most, least = (max(row.at.timestamp_ms - begin_ms, 0) for begin_ms in (after_ms, row.began_before_ms))
    bounds = f"between {duration(most)} and {duration(least)}" if least else f"at most {duration(most)}"
    return f"{bounds} before it completed"


def _why(history: GroupHistory, row: RebalanceRow) -> Iterator[Sentence]:
    if not row.causes:
        yield Sentence("No cause is known.", (row.at,))
    for cause in row.causes:
        text = CAUSES[CauseKind(cause.kind)].format(
            member=_member(history, cause.member_id), topics=", ".join(cause.topics) or "unknown"
        )
        extra = "; ".join(part for part in (cause.detail, cause.hint) if part)
        yield Sentence(f"Cause: {text}{f' ({extra})' if extra else ''}.", (cause.at,), cause.source)


def _readiness(history: GroupHistory, row: RebalanceRow) -> Iterator[Sentence]:
    """Why a streams group could not run in this epoch."""
    epoch = history.epoch_of(row)
    if epoch is None or epoch.state != NOT_READY:
        return
    yield Sentence("The group is not ready in this epoch: its members get no tasks.", (epoch.opened,))
    seen = (epoch.topics_at, METADATA) if epoch.topics_at is not None else (epoch.opened, OWN_LOG)
    yield Sentence(f"Why the group is not ready: {reason(epoch.topology)}".removesuffix(".") + ".", (seen[0],), seen[1])
    rest = (other for other in history.epochs if other.opened.offset > epoch.opened.offset)
    later = sorted(rest, key=lambda other: other.opened.offset)
    run = [epoch, *takewhile(lambda other: other.state == NOT_READY, later)]
    ended = run[-1].ended
    until_ms = history.now_ms if ended is None else ended.timestamp_ms
    how = "has had no tasks for at least" if ended is None else "had no tasks for"
    at = () if ended is None else (ended,)
    yield Sentence(
        f"The group {how} {duration(until_ms - epoch.opened.timestamp_ms)} from then on.", (epoch.opened, *at)
    )


def _target(history: GroupHistory, row: RebalanceRow, *, has_two_owners: bool) -> Iterator[Sentence]:
    epoch, verdict = history.epoch_of(row), history.target_of(row)
    used = verdict.assignor if verdict is not None and verdict.verdict == Verdict.IDENTICAL else None
    assignor = used or (epoch and epoch.assignor) or (verdict and verdict.assignor)
    by = f" by {assignor}" if assignor else ""
    leader = "" if epoch is None or epoch.leader is None else f", leader {_member(history, epoch.leader)}"
    if row.target is None:
        if row.members_after != 0:
            yield Sentence("No target assignment was installed for it.", (row.at,))
        if epoch is not None and epoch.assignment_error == NO_COMPUTING_WORKER:
            text = "No worker could compute one: none supports the versions of all others (FATAL)."
            yield Sentence(text, (row.at,))
        return
    if row.members_after != 0:  # nothing is assigned to a group without members
        when = "" if row.time_to_target_ms is None else f" {duration(row.time_to_target_ms)} after it opened"
        yield Sentence(f"The assignment was made{by}{when}{leader}.", (row.target,))
    if epoch is not None and (clients := history.clients_of(epoch, with_leader=False)) is not None:
        yield Sentence(f"Its clients: {clients}.", (row.target,))
    yield from _topics(epoch)
    if epoch is not None and epoch.assignment_error:
        text = f"The assignor reported error {epoch.assignment_error}: the workers keep what they run."
        yield Sentence(text, (row.target,))
    if verdict is not None:
        yield Sentence(_verdict(verdict, has_two_owners=has_two_owners), (verdict.at,))
    if epoch is not None and epoch.unassigned:
        verb = "is" if epoch.unassigned == 1 else "are"
        text = f"{counted(epoch.unassigned, CONNECTOR_OR_TASK)} {verb} in no worker's target."
        yield Sentence(text, (row.target,))


def _verdict(row: TargetAuditRow, *, has_two_owners: bool) -> str:
    if row.verdict == Verdict.IDENTICAL:
        how = "" if row.fitted in (None, *USUAL) else f" ({row.fitted})"
        if has_two_owners:
            return f"The assignor itself gives them to two: computed again from the same input, it does so, too{how}."
        return f"The recomputed assignment is identical to the recorded one{how}."
    if row.verdict == Verdict.UNKNOWN:
        return f"It cannot be verified whether the assignment is right. Missing: {row.missing}."
    whose = "of its client cannot be recomputed" if row.group_type == "CLASSIC" else f"{row.assignor} is not reproduced"
    if row.verdict == Verdict.SOUND:
        return f"The assignor {whose}; the assignment breaks no rule that holds for every assignor."
    more = row.more_differences
    listed = "; ".join(row.differences) + (f"; {more} more" if more > 0 else "")
    if row.verdict == Verdict.INVALID and row.fitted is not None:
        return f"The assignment is what the client of its leader computes ({row.fitted}), and breaks a rule: {listed}."
    if row.basis == Basis.INVARIANTS:
        return f"The assignor {whose}; the assignment breaks a rule that holds for every assignor: {listed}."
    return f"Compared with the recomputed assignment it is {row.verdict}: {listed}."


def _topics(epoch: GroupEpochRow | None) -> Iterator[Sentence]:
    if epoch is None or epoch.topics_at is None:
        return
    if epoch.topics_proven:
        yield Sentence("The metadata hash proves which topics it was computed from.", (epoch.topics_at,), METADATA)
    elif epoch.topics_proven is False:
        yield Sentence("No known version of the topics has the group's metadata hash.", (epoch.topics_at,), METADATA)


def _revocations(history: GroupHistory, row: RebalanceRow) -> Iterator[Sentence]:
    unit = CONNECTOR_OR_TASK if history.is_connect else "task" if row.group_type == "STREAMS" else "partition"
    for revocation in row.revocations:
        who = _capital(_member(history, revocation.member_id))
        request = f"{who} was asked to give up {counted(revocation.units, unit)}"
        if revocation.given is not None:
            yield Sentence(
                f"{request} and did so after {duration(revocation.duration_ms or 0)}.",
                (revocation.asked, revocation.given),
            )
        elif row.group_type == "CLASSIC":
            yield Sentence(f"{request}; when it did is not logged.", (revocation.asked,))
        else:
            yield Sentence(f"{request} and did not do so within this rebalance.", (revocation.asked,))


def _ending(history: GroupHistory, row: RebalanceRow) -> Iterator[Sentence]:
    at = (row.finished,) if row.finished is not None else ()
    if row.outcome in ("converged", REACHED_NOT_READY):
        time = row.duration_min_ms if row.outcome == REACHED_NOT_READY else row.time_to_converge_ms
        took = "" if time is None else f" after {duration(time)}"
        waited = row.delayed_by is not None and row.members_after != 1
        last = f"; it waited longest for {_member(history, row.delayed_by)}" if waited else ""
        whom = "Its one member" if row.members_after == 1 else "All members"
        empty = ", which has no tasks," if row.outcome == REACHED_NOT_READY else ""
        yield Sentence(f"{whom} reached the target{empty}{took}{last}.", at)
    elif row.outcome == "open":
        yield Sentence(f"It is in progress: {_behind(history, row)}.", (row.at,))
    elif row.outcome == "superseded":
        behind = f": {_behind(history, row)}" if row.members_behind else ""
        yield Sentence(f"The next rebalance began before this one completed{behind}.", at)
    else:
        yield Sentence(ENDINGS[row.outcome], at)
    if row.delay_ms:
        wait = f"for {duration(row.delay_ms)}, in case it returns (scheduled.rebalance.max.delay.ms)"
        yield Sentence(f"Connectors and tasks of a worker that left stay unassigned {wait}.", (row.at,))


def _behind(history: GroupHistory, row: RebalanceRow) -> str:
    if row.members_behind is None:
        return "which members had not reached it is not known"
    if not row.members_behind:
        return "no member is behind"
    names = ", ".join(_member(history, member_id) for member_id in row.behind[:3])
    more = row.members_behind - min(len(row.behind), 3)
    return f"{names}{f' and {more} more' if more else ''} had not reached the target"


def _moves(
    history: GroupHistory, row: RebalanceRow, changed: Iterable[AssignmentRow], twice: Iterable[TwoOwners]
) -> Iterator[Sentence]:
    current = [assignment for assignment in changed if assignment.kind == "current"]
    got = [assignment for assignment in current if within(row, assignment.since)]
    gave = [assignment for assignment in current if assignment.until is not None and within(row, assignment.until)]
    if row.units_moved is not None:
        noun = _unit_of(history, {assignment.role for assignment in (*got, *gave)})
        second = sum(len(overlap.units) for overlap in twice)
        epoch = history.epoch_of(row)
        goes_on = " by then, and stay so" if epoch is not None and epoch.state == NOT_READY and row.units_lost else ""
        yield Sentence(_balance_of_moves(row, noun, second, goes_on), (row.at,))
    members = sorted({assignment.member_id for assignment in (*got, *gave)})
    for member_id in members[:MOST_MEMBERS]:
        yield _member_moves(history, member_id, got, gave)
    if len(members) > MOST_MEMBERS:
        yield Sentence(f"{len(members) - MOST_MEMBERS} more members got or gave up partitions or tasks.")


def _unit_of(history: GroupHistory, roles: AbstractSet[str]) -> str:
    if history.is_connect or roles & {"connector", "task"}:
        return CONNECTOR_OR_TASK
    return "partition" if roles <= {"partition"} else "task"


def within(row: RebalanceRow, at: LogPosition) -> bool:
    """Return whether a record lies in a rebalance, from its first record to its last one."""
    return row.at.offset <= at.offset and (row.finished is None or at.offset <= row.finished.offset)


def _balance_of_moves(row: RebalanceRow, noun: str, second: int, goes_on: str) -> str:
    text = f"{counted(row.units_moved or 0, noun)} moved from one member to another"
    if second:
        text = f"{counted(second, noun)} got a second owner, {row.units_moved or 0} moved from one member to another"
    if row.units_moved_back:
        text += f", {row.units_moved_back} went back to their former owner"
    if row.units_lost:
        text += f", {row.units_lost} {'was' if row.units_lost == 1 else 'were'} left without an owner"
    if row.idle_ms and row.idle_max_ms is not None:
        least = "at least " if row.group_type == "CLASSIC" else ""
        text += f"; {plural(noun)} were without an owner for {least}{duration(row.idle_ms)} in total"
        text += f", {duration(row.idle_max_ms) if least else f'at most {duration(row.idle_max_ms)}'} for one{goes_on}"
    return f"{text}."


def _member_moves(
    history: GroupHistory, member_id: str, got: Iterable[AssignmentRow], gave: Iterable[AssignmentRow]
) -> Sentence:
    own = [row for row in got if row.member_id == member_id]
    lost = [row for row in gave if row.member_id == member_id]
    parts = [f"got {_units(own)}"] if own else []
    parts += [f"gave up {_units(lost)}"] if lost else []
    proof = sorted({row.since for row in own} | {row.until for row in lost if row.until is not None})
    return Sentence(f"{_capital(_member(history, member_id))} {' and '.join(parts)}.", tuple(proof[:MOST_PROOF]))


def _units(rows: Iterable[AssignmentRow]) -> str:
    """Return what rows assign, in the field's names: ``orders 0,3``, ``active 0_3 0_8``, ``task jdbc-0``."""
    by_resource: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.role, row.topic or row.connector or row.resource, row.partition)):
        if row.role == "partition":
            by_resource[row.topic or row.resource, ","].append(str(row.partition))
        elif row.role == "connector":
            by_resource[row.role, " "].append(row.connector or row.resource)
        else:
            name = f"{row.connector}-" if row.connector is not None else f"{row.subtopology}_"
            by_resource[row.role, " "].append(f"{name}{row.partition}")
    return "; ".join(f"{resource} {between.join(units)}" for (resource, between), units in by_resource.items())


def _broken(history: GroupHistory, row: RebalanceRow) -> Iterator[Sentence]:
    broken = [violation for violation in history.violations if within(row, violation.at)]
    for rule, count in Counter(violation.rule for violation in broken).items():
        first = next(violation for violation in broken if violation.rule == rule)
        times = "" if count == 1 else f" ({count} times)"
        yield Sentence(f"It broke the rule {rule}{times}: {first.detail}.", (first.at,))


def _member(history: GroupHistory, member_id: str | None) -> str:
    if member_id is None:
        return "a member"
    name, library = history.client(member_id), history.library(member_id)
    known = ", ".join(each for each in (None if name == member_id else name, library) if each)
    return f"member {member_id} ({known})" if known else f"member {member_id}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
