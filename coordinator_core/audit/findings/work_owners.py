"""Work with two owners at the same time, although one alone may have it; and work without an owner: partitions and
tasks, and streams groups that are not ready.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, takewhile
from typing import NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import CONNECTOR_OR_TASK, GroupHistory, counted, first_of
from coordinator_core.clients.known_clients import UNKNOWN_CLIENT, notices_within_ms
from coordinator_core.durations import duration
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.streams.readiness import reason
from coordinator_core.groups.streams.topology import TopologyProblem
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.grounds import UNREAD_ASSIGNMENT
from coordinator_core.history.holdings import SHARED_ROLES
from coordinator_core.history.rows import AssignmentRow, GroupEpochRow
from coordinator_core.records import LogPosition, elapsed_ms


class TwoOwners(NamedTuple):
    """What one record gave to a second member: the rows of both members for each unit, and until when both had it."""

    at: LogPosition
    units: tuple[tuple[AssignmentRow, AssignmentRow], ...]
    until: LogPosition | None

    def lasted_ms(self, history: GroupHistory) -> int | None:
        """Return for how long two members had some of it; None without times, or where the end may be lost."""
        if self.until is None:
            return None if history.loses(self.at) else elapsed_ms(self.at.timestamp_ms, history.now_ms)
        return elapsed_ms(self.at.timestamp_ms, self.until.timestamp_ms)

    @property
    def listed(self) -> str:
        """Return the names of the units."""
        return first_of([_name(second) for _, second in self.units])

    @property
    def members(self) -> list[str]:
        """Return the ids of all members that had some of it."""
        return sorted({row.member_id for pair in self.units for row in pair})

    @property
    def counted(self) -> str:
        """Return how many units there are, in words."""
        roles = {second.role for _, second in self.units}
        noun = "partition" if roles == {"partition"} else "task" if roles == {"active"} else CONNECTOR_OR_TASK
        return counted(len(self.units), noun)

    @property
    def meaning(self) -> str:
        """Return what it leads to."""
        if {second.role for _, second in self.units} <= {"partition", "active"}:
            return "records that both read in this time are processed twice"
        return "work that both do in this time is done twice"


def _name(row: AssignmentRow) -> str:
    name = row.topic or row.connector or row.resource
    return name if row.role == "connector" else f"{name}-{row.partition}"


def two_owners_of(history: GroupHistory) -> Iterator[TwoOwners]:
    """Yield what was given to a second member, by the record that gave it."""
    broken = {row.at for row in history.violations if row.rule == Rule.ASSIGNED_TO_TWO}
    if not broken:
        return
    by_unit: dict[tuple[str, str, int], list[AssignmentRow]] = defaultdict(list)
    for row in history.assignments:
        if row.kind == "current" and row.role not in SHARED_ROLES:
            by_unit[row.role, row.resource, row.partition].append(row)
    by_position: dict[LogPosition, list[tuple[AssignmentRow, AssignmentRow]]] = defaultdict(list)
    for _, rows in sorted(by_unit.items()):
        for second in rows:
            first = next((row for row in rows if row.member_id != second.member_id and _had(row, second.since)), None)
            if second.since in broken and first is not None:
                by_position[second.since].append((first, second))
    for at, pairs in sorted(by_position.items()):
        of_pairs = ([end for end in (first.until, second.until) if end is not None] for first, second in pairs)
        ends = [min(of_pair, key=lambda end: end.offset, default=None) for of_pair in of_pairs]
        # Of one record, units may be given back at different times: the span ends with the last of them.
        known = [end for end in ends if end is not None]
        yield TwoOwners(at, tuple(pairs), max(known, key=lambda end: end.offset) if len(known) == len(ends) else None)


def _had(row: AssignmentRow, at: LogPosition) -> bool:
    return row.since.offset < at.offset and (row.until is None or row.until.offset > at.offset)


def two_owners(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each record that gave partitions, tasks or connectors to a second member."""
    for span in two_owners_of(history):
        lasted_ms = span.lasted_ms(history)
        is_open = span.until is None and lasted_ms is not None
        names = " and ".join(str(history.client(member_id)) for member_id in span.members)
        how = "have had two owners for at least" if is_open else "had two owners"
        if lasted_ms is not None:
            how += f"{'' if is_open else ' for'} {duration(max(lasted_ms, 1))}"
        yield history.finding(
            FindingKind.TWO_OWNERS,
            max(lasted_ms or 0, 1),
            f"{span.counted} {how}: {names} had {span.listed}; {span.meaning}",
            [span.at, *([span.until] if span.until is not None else [])],
            is_open=is_open,
        )


EMPTY = "EMPTY"
STABLE = "STABLE"
NOT_READY = "NOT_READY"
MOST_LISTED = 5
"""How many partitions or tasks without an owner a finding names."""


def not_ready(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for each time during which a streams group had members and was not ready.

    A group without tasks writes nothing, so that its log may end soon after. What lasts to the end of the log is a
    finding at once, unless only internal topics are missing: the broker creates them. What was lost within an epoch may
    have ended it.
    """
    for state, rows in groupby(history.epochs, lambda row: None if history.loses(row.opened, row.ended) else row.state):
        run = list(rows)
        if state != NOT_READY:
            continue
        since, ended = run[0].opened, run[-1].ended
        until_ms = history.now_ms if ended is None else ended.timestamp_ms
        lasted = until_ms - since.timestamp_ms
        threshold = limits.not_ready_ms
        topology = run[-1].topology
        heals_itself = topology is not None and topology.status == TopologyProblem.MISSING_INTERNAL_TOPICS.value
        if ended is None and not heals_itself:
            threshold = min(threshold, lasted)
        if lasted >= threshold:
            members = counted(len(run[-1].members or ()), "member")
            how = "has not been ready for at least" if ended is None else "was not ready for"
            detail = f"the group {how} {duration(lasted)}: {members} without tasks; {_reasons(run)}"
            yield history.finding(
                FindingKind.NOT_READY,
                lasted,
                detail,
                [*(row.opened for row in run), *((ended,) if ended is not None else ())],
                threshold=threshold,
                until_ms=until_ms,
                is_open=ended is None,
                complete=all(row.history_complete for row in run),
            )


def _reasons(run: Sequence[GroupEpochRow]) -> str:
    """The reasons in order, each with the epoch in which it began; the last one first, as it is the one that lasts."""
    reasons = [(why, next(rows).epoch) for why, rows in groupby(run, lambda row: reason(row.topology))]
    last, epoch = reasons.pop()
    before = "".join(f"; from epoch {number}: {why}" for why, number in reasons)
    return f"from epoch {epoch}: {last}{before}"


def unassigned(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield findings for the partitions of subscribed topics, or tasks of subtopologies, that no member has now.

    Partitions count that each topic had all the time in which the group should have assigned them, up to the end of its
    own logs: the metadata log may go on. A group that is not stable has time to assign them. So has a share group in
    any state, as it assigns partitions once their state was initialized, and a classic group whose members gave them up
    in its present generation: under a cooperative protocol (KIP-429) they join again, and the next generation assigns
    them. Classic groups of Kafka Streams are left out: their topology, which is not logged, decides which partitions
    they read, and those of which an assignment cannot be read.
    """
    present = history.present
    if present is None or present.missing == UNREAD_ASSIGNMENT or not _is_due(history, present, limits):
        return
    waiting = _given_up_now(history, present, limits)
    for unit in _all_units(history, present, limits):
        unit.owned.update(number for topic, number in waiting if topic == unit.subject and number < unit.units)
        missing = unit.units - len(unit.owned)
        if missing > 0:
            first = list(islice((number for number in range(unit.units) if number not in unit.owned), MOST_LISTED))
            listed = ", ".join(f"{unit.prefix}{number}" for number in first)
            listed += ", ..." if missing > len(first) else ""
            since = present.target or present.opened
            yield history.finding(
                FindingKind.UNASSIGNED_PARTITIONS,
                missing,
                f"{missing} of {unit.units} {unit.noun} have no owner: {listed}",
                [since],
                subject=unit.subject,
                since_ms=max(since.timestamp_ms, _grown_ms(history, unit.subject, first[0])),
                is_open=True,
                complete=history.topics.reach.covers_end(history.now_ms),
            )


def _grown_ms(history: GroupHistory, topic: str | None, partition: int) -> int:
    """Return when the topic got a partition that it had not from the start, by its last change; else 0."""
    changes = history.topics.earlier.get(topic or "", ())
    return changes[-1][0] if changes and changes[-1][1] <= partition else 0


def _is_due(history: GroupHistory, present: GroupEpochRow, limits: Thresholds) -> bool:
    """Whether everything should have an owner by now: not in what a downgrade writes, from which members join again."""
    if present.state == STABLE and history.group_type != "SHARE":
        return all(cause.kind != CauseKind.GROUP_DOWNGRADED for cause in present.causes)
    if present.state in (None, EMPTY) or history.group_type in ("CLASSIC", "CONNECT"):
        return False
    return history.has_lasted(_settling_since(history, present).timestamp_ms, limits.slow_rebalance_ms)


def _given_up_now(
    history: GroupHistory, present: GroupEpochRow, limits: Thresholds
) -> frozenset[tuple[str | None, int]]:
    """Return the partitions of a classic group that members who stayed gave up in the present generation, by topic
    name; none once it has lasted for slow_rebalance_ms.
    """
    if history.group_type != "CLASSIC" or history.has_lasted(present.opened.timestamp_ms, limits.slow_rebalance_ms):
        return frozenset()
    here = {row.member_id for row in history.memberships if row.is_open}
    return frozenset(
        (row.topic, row.partition)
        for row in history.assignments
        if row.kind == "current" and row.until == present.opened and row.member_id in here
    )


def _settling_since(history: GroupHistory, present: GroupEpochRow) -> LogPosition:
    """When the first of the present epochs began that have members and never were stable: one that was is not any more
    once a static member goes away.
    """
    if present.state == STABLE:
        return present.target or present.opened
    over = {row.at for row in history.rebalances if row.outcome == "converged"}
    over |= {row.opened for row in history.epochs if row.state in (None, STABLE, EMPTY)}
    run = list(takewhile(lambda row: row.opened not in over, reversed(history.epochs)))
    return run[-1].opened if run else present.opened


class _Units(NamedTuple):
    """The partitions of a topic or the tasks of a subtopology: their number, what they are called, and those with an
    owner. The count is never walked: a log may claim any.
    """

    subject: str
    units: int
    noun: str
    owned: set[int]
    prefix: str = ""


def _all_units(history: GroupHistory, present: GroupEpochRow, limits: Thresholds) -> Iterator[_Units]:
    """Yield each topic or subtopology."""
    members = [row for row in history.memberships if row.is_open]
    current = [row for row in history.assignments if row.is_open and row.kind == "current"]
    if history.group_type == "STREAMS":
        active = _by_name((row.subtopology, row.partition) for row in current if row.role == "active")
        tasks = present.topology.tasks if present.topology is not None else None
        for subtopology, count in (tasks or ()) if members else ():
            owned = _within(active.get(subtopology), count)
            noun = f"tasks of subtopology {subtopology}"
            yield _Units(f"subtopology {subtopology}", count, noun, owned, f"{subtopology}_")
    elif history.group_type in ("CLASSIC", "CONSUMER", "SHARE") and not history.is_streams:
        notice_ms = limits.slow_rebalance_ms
        if history.group_type == "CLASSIC":
            # Of new partitions it hears only when its leader refreshes its metadata.
            leader = next((row.client for row in members if row.member_id == present.leader), "")
            notice_ms += notices_within_ms(leader or UNKNOWN_CLIENT.name, limits.metadata_age_ms)
        read = _by_name((row.topic, row.partition) for row in current if row.role == "partition")
        for topic in sorted({name for row in members for name in row.subscribed_topics}):
            count = history.topics.fewest_partitions(topic, history.has_lasted, notice_ms)
            yield _Units(topic, count, f"partitions of {topic}", _within(read.get(topic), count))


def _by_name(units: Iterable[tuple[str | None, int]]) -> dict[str | None, set[int]]:
    numbers: dict[str | None, set[int]] = {}
    for name, number in units:
        numbers.setdefault(name, set()).add(number)
    return numbers


def _within(numbers: set[int] | None, count: int) -> set[int]:
    return {number for number in numbers or () if 0 <= number < count}
