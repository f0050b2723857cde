"""Work without an owner: partitions and tasks without an owner, and streams groups that are not ready."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, takewhile
from typing import NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.durations import duration
from coordinator_core.groups.streams.readiness import reason
from coordinator_core.groups.streams.topology import TopologyProblem
from coordinator_core.history.rejoins import METADATA_AGE_MS
from coordinator_core.history.rows import GroupEpochRow
from coordinator_core.records import LogPosition

EMPTY = "EMPTY"
STABLE = "STABLE"
NOT_READY = "NOT_READY"
MOST_LISTED = 5
"""How many partitions or tasks without an owner a finding names."""
WITH_EPOCHS = frozenset(("CONSUMER", "SHARE", "STREAMS"))


def not_ready(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for each time during which a streams group had members and was not ready.

    A group without tasks writes nothing, so that its log may end soon after. What lasts to the end of the log is a
    finding at once, unless only internal topics are missing: the broker creates them.
    """
    for state, rows in groupby(history.epochs, lambda row: row.state):
        run = list(rows)
        if state != NOT_READY:
            continue
        since, ended = run[0].opened, run[-1].ended
        until_ms = history.now_ms if ended is None else ended.timestamp_ms
        lasted = until_ms - since.timestamp_ms
        threshold = limits.not_ready_ms
        if ended is None and not _heals_itself(run[-1]):
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


def _heals_itself(row: GroupEpochRow) -> bool:
    return row.topology is not None and row.topology.status == TopologyProblem.MISSING_INTERNAL_TOPICS.value


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
    they read.
    """
    present = history.present
    if present is None or not _is_due(history, present, limits):
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
    """Whether everything should have an owner by now."""
    if present.state == STABLE and history.group_type != "SHARE":
        return True
    if present.state in (None, EMPTY) or history.group_type not in WITH_EPOCHS:
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


def _notice_ms(history: GroupHistory, limits: Thresholds) -> int:
    """Return how long a group has to assign partitions that are new: after slow_rebalance_ms everything should have an
    owner. A classic group hears of them only when its leader refreshes its metadata.
    """
    return limits.slow_rebalance_ms + (METADATA_AGE_MS if history.group_type == "CLASSIC" else 0)


def _settling_since(history: GroupHistory, present: GroupEpochRow) -> LogPosition:
    """When the first of the present epochs began that have members and did not become stable."""
    if present.state == STABLE:
        return present.target or present.opened
    newest_first = reversed(history.epochs)
    run = list(takewhile(lambda row: row.state not in (None, STABLE, EMPTY), newest_first))
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
        notice_ms = _notice_ms(history, limits)
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
