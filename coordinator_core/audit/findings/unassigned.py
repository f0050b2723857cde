"""Work that nobody does: partitions and tasks without an owner, and streams groups that are not ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile

from coordinator_core.audit.findings.group_history import GroupHistory, counted
from coordinator_core.audit.findings.rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.groups.streams.readiness import reason
from coordinator_core.groups.streams.topology import TopologyProblem
from coordinator_core.history.rows import GroupEpochRow
from coordinator_core.records import LogPosition

EMPTY = "EMPTY"
STABLE = "STABLE"
NOT_READY = "NOT_READY"
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
            detail = f"the group {how} {lasted} ms: {members} without tasks; {_reasons(run)}"
            yield history.finding(
                FindingKind.NOT_READY,
                lasted,
                threshold,
                detail,
                [*(row.opened for row in run), *((ended,) if ended is not None else ())],
                until_ms=until_ms,
                complete=all(row.history_complete for row in run),
            )


def _heals_itself(row: GroupEpochRow) -> bool:
    return row.topology is not None and row.topology.status == TopologyProblem.MISSING_INTERNAL_TOPICS.value


def _reasons(run: Sequence[GroupEpochRow]) -> str:
    """The reasons in order, each with the epoch in which it began; the last one first, as it is the one that lasts."""
    found = [(why, next(rows).epoch) for why, rows in groupby(run, lambda row: reason(row.topology))]
    last, epoch = found.pop()
    before = "".join(f"; from epoch {number}: {why}" for why, number in found)
    return f"from epoch {epoch}: {last}{before}"


def unassigned(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield findings for the partitions of subscribed topics, or tasks of subtopologies, that no member has now.

    A group that is not stable has time to assign them. So has a share group in any state, as it assigns partitions once
    their state was initialized. Classic groups of Kafka Streams are left out: their topology, which is not logged,
    decides which partitions they read.
    """
    present = history.present
    if present is None or not _is_due(history, present, limits):
        return
    for subject, units, what, missing in _without_owner(history, present):
        if len(missing) >= limits.unassigned_partitions:
            listed = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
            yield history.finding(
                FindingKind.UNASSIGNED_PARTITIONS,
                len(missing),
                limits.unassigned_partitions,
                f"{len(missing)} of {units} {what} have no owner: {listed}",
                [present.target or present.opened],
                subject=subject,
                until_ms=history.now_ms,
            )


def _is_due(history: GroupHistory, present: GroupEpochRow, limits: Thresholds) -> bool:
    """Whether everything should have an owner by now."""
    if present.state == STABLE and history.group_type != "SHARE":
        return True
    if present.state in (None, EMPTY) or history.group_type not in WITH_EPOCHS:
        return False
    return history.now_ms - _settling_since(history, present).timestamp_ms >= limits.slow_rebalance_ms


def _settling_since(history: GroupHistory, present: GroupEpochRow) -> LogPosition:
    """When the first of the present epochs began that have members and did not become stable."""
    if present.state == STABLE:
        return present.target or present.opened
    newest_first = reversed(history.epochs)
    run = list(takewhile(lambda row: row.state not in (None, STABLE, EMPTY), newest_first))
    return run[-1].opened if run else present.opened


def _without_owner(history: GroupHistory, present: GroupEpochRow) -> Iterator[tuple[str, int, str, list[str]]]:
    """Yield for each topic or subtopology its name, its number of units, what they are, and those without an owner."""
    members = [row for row in history.memberships if row.is_open]
    current = [row for row in history.assignments if row.is_open and row.kind == "current"]
    if history.group_type == "STREAMS":
        active = {(row.subtopology, row.partition) for row in current if row.role == "active"}
        tasks = present.topology.tasks if present.topology is not None else None
        for subtopology, count in (tasks or ()) if members else ():
            missing = [f"{subtopology}_{number}" for number in range(count) if (subtopology, number) not in active]
            yield f"subtopology {subtopology}", count, f"tasks of subtopology {subtopology}", missing
    elif history.group_type in ("CLASSIC", "CONSUMER", "SHARE") and not history.is_streams:
        owned = {(row.topic, row.partition) for row in current if row.role == "partition"}
        for topic in sorted({name for row in members for name in row.subscribed_topics}):
            count = history.partitions.get(topic, 0)
            missing = [str(number) for number in range(count) if (topic, number) not in owned]
            yield topic, count, f"partitions of {topic}", missing
