"""Queries about groups. Two implementations answer them: from log files in this process, and from the tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from coordinator_core.errors import InputError
from coordinator_core.records import CONNECT_LOG, GROUP_LOG
from jobs.relations.moment import AsOf

if TYPE_CHECKING:  # half of the core, of which one question needs little
    from coordinator_core.audit.finding_rows import FindingRow
    from coordinator_core.audit.findings.resets import OffsetReset
    from coordinator_core.audit.folds.group_history import GroupHistory
    from coordinator_core.audit.offsets.burrow import LagPoint
    from coordinator_core.audit.offsets.runs import GroupCommits
    from coordinator_core.audit.rows import TargetAuditRow
    from coordinator_core.audit.targets.rounds import Round
    from coordinator_core.cluster.image import TopicImage
    from coordinator_core.cluster.topic_changes import TopicInterval
    from coordinator_core.groups.certainty import LogGaps
    from coordinator_core.groups.describe import Surroundings
    from coordinator_core.groups.end_offsets import NewestEnds
    from coordinator_core.groups.proven_state import GroupThen
    from coordinator_core.groups.violations import Violation
    from coordinator_core.history.knowledge import Knowledge
    from coordinator_core.history.rows import AssignmentRow, RebalanceRow
    from jobs.relations.news import News
    from jobs.sources.end_offsets import EndOffsets


class RebalanceFilter(NamedTuple):
    """Selects rebalances: by group (None: all), earliest time (-1: all, also without one), cause, and number of the
    slowest ones.
    """

    group_id: str | None = None
    since_ms: int = -1
    cause: str | None = None
    slowest: int | None = None

    def choose(self, rows: Iterable[RebalanceRow]) -> list[RebalanceRow]:
        """Return those of the group's rows that are selected, in order of time, or the slowest first."""
        chosen = sorted(
            (
                row
                for row in rows
                if row.at.timestamp_ms >= self.since_ms
                and (self.cause is None or any(cause.kind == self.cause for cause in row.causes))
            ),
            key=by_time,
        )
        if self.slowest is None:
            return chosen
        # The sort is stable: those that are equally slow stay in the order of time.
        return sorted(chosen, key=lambda row: -(row.duration_min_ms or 0))[: self.slowest]


def by_time(row: RebalanceRow | TargetAuditRow) -> tuple[int, int, int, str]:
    """Return the order of rows: the type of the group decides where two logs have one at the same time and offset."""
    return row.at.timestamp_ms, row.at.partition, row.at.offset, row.group_type


def violation_order(row: Violation) -> tuple[int, int, int, str, str]:
    """Return the order of violations."""
    return row.at.timestamp_ms, row.at.partition, row.at.offset, row.rule, row.detail


NO_ENDS = (
    "the log has no end offsets of topics: take snapshots of the cluster (coordinator-audit snapshot kafka://HOST:PORT "
    "--out FILE), and give them with --end-offsets FILE, or take them into the tables with the command ingest"
)
"""What an answer about lag says without end offsets."""

NO_LOG_OF_GROUPS = (
    f"there is no log of groups here: give partitions of {GROUP_LOG} (or {CONNECT_LOG}), "
    "an empty one if it has no record"
)
"""What every question about groups says where there is nothing to look at."""

CURRENT = "current"
"""The kind of interval in which a member had what it names; the other kind is its target."""


class OwnedBy(NamedTuple):
    """Selects intervals of ownership: of a topic (by name or id) or connector, and of the tasks that read the topic.

    ``subtopologies`` are those that read it, by streams group.
    """

    name: str
    subtopologies: Mapping[str, frozenset[str]]

    def has(self, row: AssignmentRow) -> bool:
        """Return whether the interval is one of these."""
        if row.kind != CURRENT:
            return False
        if row.subtopology is not None:
            return row.subtopology in self.subtopologies.get(row.group_id, ())
        return self.name in (row.topic, row.topic_id, row.connector, row.resource)


class GroupsThen(Protocol):
    """The state of the groups at a moment."""

    def groups(self) -> Iterator[GroupThen]:
        """Yield every group that existed, may have existed, or has committed offsets, by group id."""

    def named(self) -> Collection[str]:
        """Return the ids of all groups of which a record up to the moment tells, be it a tombstone."""

    def gaps(self) -> Mapping[str, LogGaps]:
        """Return what is missing in each partition of the group logs, by the name of the partition."""

    def knowledge(self) -> Knowledge:
        """Return what the logs lack, as seen from the moment."""

    def image(self) -> TopicImage | None:
        """Return the topics at the moment; None if they are unknown."""

    def lives(self, topic: str) -> Sequence[TopicInterval] | None:
        """Return the times over which a topic stayed as it was, also after the moment; None if topics are unknown."""

    def span(self) -> tuple[int | None, int | None]:
        """Return the times (ms) of the first and of the last record in the logs of groups.

        The first is None where there is none, the last also where records lie beyond the moment.
        """

    def surroundings(self) -> Surroundings:
        """Return the facts outside a group that its description needs."""


class AllHistories(NamedTuple):
    """What all groups went through: rebalances, verdicts, violations and findings, each in its order."""

    rebalances: Sequence[RebalanceRow]
    verdicts: Sequence[TargetAuditRow]
    violations: Sequence[Violation]
    findings: Sequence[FindingRow]


class Answers(Protocol):
    """Answers to queries about groups."""

    @property
    def cluster_name(self) -> str:
        """Return the name of the cluster that the answers are about."""

    def at(self, moment: AsOf, group_id: str | None = None) -> GroupsThen:
        """Return the groups at a moment, or one group."""

    def history(self, group_id: str) -> GroupHistory | None:
        """Return the history of a group, from tables without its commits; None if the group is unknown."""

    def resets(self, history: GroupHistory) -> list[OffsetReset]:
        """Return when the offsets of the group of that history were set back while it had no members."""

    def commits(self, group_id: str) -> GroupCommits:
        """Return the commits of a group that hold, as runs."""

    def lag(self, group_id: str | None, ends: EndOffsets | None) -> list[LagPoint]:
        """Return the lag of a group, or of all (None), at each snapshot of the end offsets, by group, topic, partition
        and time.

        ``ends`` None: at the snapshots that the tables have.

        Raises:
            InputError: no end offsets are known.
        """

    def newest_ends(self, until_ms: int | None) -> NewestEnds:
        """Return the newest end offset of each partition up to a time (None: any), as far as the source has any."""

    def rebalances(self, wanted: RebalanceFilter) -> Sequence[RebalanceRow]:
        """Return rebalances in order of time, or the slowest first."""

    def members(self, groups: Collection[str]) -> Mapping[str, str]:
        """Return the names of the clients behind the members of groups, with their ids; by member id."""

    def owned(self, wanted: OwnedBy) -> Sequence[AssignmentRow]:
        """Return the intervals over which members had partitions of a topic, or a connector and its tasks."""

    def group_of(self, partition: int, offset: int) -> str | None:
        """Return the id of the group with a rebalance at this log position; None if there is none."""

    def verdicts(self, group_id: str | None, since_ms: int) -> Iterable[TargetAuditRow]:
        """Return the verdicts on target assignments of one group or all, from a time on (-1: all), in order of time."""

    def violations(self, group_id: str | None, since_ms: int) -> Iterable[Violation]:
        """Return the violations of one group or all, from a time on (-1: all), in order of time."""

    def findings(self, group_id: str | None, ends: NewestEnds | None = None) -> Sequence[FindingRow]:
        """Return the findings about one group or all, most urgent first.

        ``ends``: end offsets that were given beside log files; tables have their own.
        """

    def news(self, night: str | None) -> News:
        """Return what is new since a night (its id, or a time; None: the newest night).

        Raises:
            UsageError: ``night`` is neither.
        """

    def histories(self, ends: NewestEnds | None = None) -> AllHistories:
        """Return what all groups went through, as the questions one by one answer it; ``ends``: see ``findings``."""

    def knowledge(self) -> Knowledge:
        """Return what the logs lack, as seen from their end."""

    def lacks_of_shares(self, group_id: str | None) -> Sequence[str]:
        """Return what is missing of the share state log where a group (None: any) rests on it, in words."""

    def rounds(self, group_id: str) -> list[Round]:
        """Return the assignments of a group, with the inputs of its assignor."""


def no_history(answers: Answers, group_id: str) -> InputError:
    """Return the error about a group that the logs do not mention, with what they lack."""
    missing = lacking(answers, group_id)
    doubt = f", which does not prove that there was none: {'; '.join(missing)}" if missing else ""
    return InputError(f"these logs have no history of group {group_id!r}{doubt}")


def lacking(answers: Answers, group_id: str, history: GroupHistory | None = None) -> list[str]:
    """Return what is missing where the ``history`` of a group (None: it has none) does not show what was asked for.

    Compaction may have removed it, too, which is named where nothing else is missing.
    """
    known = answers.knowledge()
    lacks = [] if history is None or history.lacks is None else [history.lacks]
    return [*known.about_group(group_id), *lacks] or known.about_past(group_id)


@contextmanager
def told_what_is_missing(answers: Answers, history: GroupHistory) -> Iterator[None]:
    """Add what is missing to an InputError that says that a history does not show what was asked for."""
    try:
        yield
    except InputError as error:
        said = str(error)
        more = (each for each in lacking(answers, history.group_id, history) if each not in said)
        raise InputError("; ".join([said, *more])) from None
