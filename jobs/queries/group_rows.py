"""All rows of one group's history, by table: the command ``history`` prints them, the Python API returns them; and the
steps of its committed offsets, the same from log files and from tables.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from coordinator_core.audit.findings.resets import OffsetReset
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.two_logs import by_log
from coordinator_core.audit.offsets.steps import CommitStep, LifeReaders, StepKind, commit_steps
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.violations import Violation
from coordinator_core.history.rows import SHARE_PARTITIONS, TABLES, HistoryRow, SharePartitionRow
from coordinator_core.records import GROUP_LOG, LogPosition
from jobs.queries.interface import Answers
from jobs.queries.ownership import owned_by
from jobs.relations.moment import AsOf

NO_ENDS_SHOWN: Final = (
    "whether its commits hold: the dump shows no transactions, one of which may have been aborted; give the segments"
)


class GroupSteps(NamedTuple):
    """``left_out``: number of commits of transactions that are open, or whose end is lost. ``unseen_ends``: tombstones
    of the group before the first record that says what it was.
    """

    rows: list[CommitStep]
    left_out: int
    unseen_ends: Sequence[LogPosition] = ()


class StreamsLife(NamedTuple):
    """A time over which a group was a streams group: its first offset, and a moment near its end."""

    since: int
    moment: AsOf


def group_steps(answers: Answers, history: GroupHistory) -> GroupSteps:
    """Return the steps of every partition of a group, by topic and partition, each in the order of the log."""
    commits = answers.commits(history.group_id)
    topics = {run.partition.topic for run in commits.runs}
    readers = []
    for life in streams_lives(history):
        groups = [then.group for then in answers.at(life.moment, history.group_id).groups()]
        owned = {topic: owned_by(topic, groups).subtopologies for topic in topics}
        by_topic = {topic: tasks.get(history.group_id, frozenset()) for topic, tasks in owned.items()}
        readers.append(LifeReaders(life.since, by_topic))
    rows = commit_steps(history, commits, readers)
    blind = frozenset(answers.knowledge().without_ends)
    told = [_doubted(row) if _log_of(row) in blind else row for row in rows]
    return GroupSteps(told, commits.left_out, [end for end in commits.group_ends if _is_unseen(end, history)])


def _is_unseen(end: LogPosition, history: GroupHistory) -> bool:
    """Return whether no record before the tombstone of a group says what the group was; it may only have committed."""
    shown = [row.opened for row in history.epochs]
    return not any(at.partition == end.partition and at.offset <= end.offset for at in shown)


def _log_of(row: CommitStep) -> str:
    return f"{GROUP_LOG}-{row.since.partition}"


def _doubted(row: CommitStep) -> CommitStep:
    """Return a step of a dump that does not show how transactions ended."""
    return row._replace(history_complete=False, missing="; ".join(filter(None, (row.missing, NO_ENDS_SHOWN))))


def streams_lives(history: GroupHistory) -> Iterator[StreamsLife]:
    """Yield the lives of a group as a streams group, in their order: brokers up to 4.4 take no other topology while a
    group lives. Where records are lost, what is behind them counts as another life: it may be one.

    The moment is behind the record that opens the last epoch of a life; of one that lasts it is the end of the log.
    """
    since = 0
    for row in history.epochs:
        is_last, partition = row.ended_by != "next epoch", row.opened.partition
        moment = AsOf(offsets={partition: row.opened.offset + 1})
        if row.group_type == GroupType.STREAMS:
            ended = None if row.ended is None else row.ended.offset
            lost = history.lost.first_within(GROUP_LOG, partition, row.opened.offset + 1, ended)
            if lost is not None:
                yield StreamsLife(since, moment)
                since, moment = lost, moment if ended is None else AsOf(offsets={partition: ended})
            if is_last:
                yield StreamsLife(since, AsOf() if row.is_open else moment)
        if is_last and row.ended is not None:
            since = row.ended.offset


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
    yield from (step for step in group_steps(answers, known).rows if step.kind not in FORWARD)
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


def own_lines(known: GroupHistory) -> list[BrokerEvent]:
    """Return the lines about a group, and its log partition, that no record says."""
    return [line for line in known.events if line.kind in SAID_BY_NO_RECORD]
