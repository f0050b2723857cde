"""All rows of one group's history, by table: the command ``history`` prints them, the Python API returns them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_core.audit.findings.resets import OffsetReset
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.two_logs import by_log
from coordinator_core.audit.offsets.steps import CommitStep, StepKind
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.groups.violations import Violation
from coordinator_core.history.rows import SHARE_PARTITIONS, TABLES, HistoryRow, SharePartitionRow
from jobs.queries.group_steps import group_steps
from jobs.queries.interface import Answers

TABLE_OF: Final[dict[type, str]] = {
    **{table.row: table.name for table in (*TABLES, SHARE_PARTITIONS)},
    OffsetReset: "offset_resets",
    CommitStep: "commit_steps",
    BrokerEvent: "broker_events",
}
"""The name of the table of each kind of rows.

Resets and steps of committed offsets are rows of no stored table: they are found among the commits when they are asked
for.
"""

FORWARD: Final = frozenset((StepKind.FORWARD, StepKind.UNMOVED))
"""Steps that a history leaves out: consumers that work make many of them. The command ``commits`` has them."""

SAID_BY_NO_RECORD: Final = {
    EventKind.REBALANCE_BEGAN: "rebalance begins",
    EventKind.LEADER_LATE: "leader late",
    EventKind.STATIC_MEMBER_FENCED: "client turned away",
    EventKind.STATIC_MEMBER_REPLACED: "static member replaced",
    EventKind.CONVERSION_REFUSED: "conversion refused",
    EventKind.REQUEST_DENIED: "request denied",
    EventKind.WRITE_FAILED: "write failed",
    EventKind.COORDINATOR_UNLOADED: "coordinator away",
    EventKind.COORDINATOR_STOPPED: "broker stops",
    EventKind.COORDINATOR_LOADED: "coordinator back",
    EventKind.COORDINATOR_FAILED: "coordinator cannot read its log",
    EventKind.COORDINATOR_RELOADS: "coordinator reads its log again",
}
"""Lines of brokers' application logs that are rows of a history, with their names in a timeline. What other lines say
is in the rows of their records.
"""

FoldedRow = HistoryRow | SharePartitionRow | Violation
GroupRow = FoldedRow | OffsetReset | CommitStep | BrokerEvent


def group_rows(answers: Answers, known: GroupHistory) -> Iterator[GroupRow]:
    """Yield the rows of a group's history; ``TABLE_OF`` names the table of each."""
    for part in by_log(known):
        yield from folded_rows(part)
    yield from answers.resets(known)
    yield from steps_not_forward(answers, known)
    yield from own_lines(known)


def folded_rows(known: GroupHistory) -> list[FoldedRow]:
    """Return what the replay of a group's records made."""
    return [
        *known.epochs,
        *known.rebalances,
        *known.memberships,
        *known.assignments,
        *known.initializations,
        *known.share_partitions,
        *known.violations,
    ]


def steps_not_forward(answers: Answers, known: GroupHistory) -> list[CommitStep]:
    """Return how committed offsets began, went back, were set or removed."""
    return [step for step in group_steps(answers, known).rows if step.kind not in FORWARD]


def own_lines(known: GroupHistory) -> list[BrokerEvent]:
    """Return the lines about a group, and its log partition, that no record says."""
    return [line for line in known.events if line.kind in SAID_BY_NO_RECORD]
