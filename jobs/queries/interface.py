"""What commands ask about groups, whoever answers: log files read in this process, or the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from coordinator_core.audit.findings.group_history import GroupHistory
from coordinator_core.audit.findings.rows import FindingRow
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.targets.rounds import Round
from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.groups.violations import Violation
from coordinator_core.history.rows import RebalanceRow


@dataclass(frozen=True, slots=True)
class AsOf:
    """Up to where logs are replayed.

    ``time_ms``: of each log, the records before the first one later than that. ``offsets``: of a partition of the
    coordinator log, the records below that offset, so that an end offset names what was there when it was taken. Both
    None: all there is.

    Offsets that leave records out, without a time, bound the moment between two records. Topics are those at the first:
    their end may be what the second is about. Share state, which groups do not follow, goes on until the second.
    """

    time_ms: int | None = None
    offsets: Mapping[int, int] = field(default_factory=dict)


class RebalanceFilter(NamedTuple):
    """Which rebalances: of one group (None: all), from a time on, with a cause, and only so many of the slowest."""

    group_id: str | None = None
    since_ms: int = 0
    cause: str | None = None
    slowest: int | None = None


class GroupsThen(Protocol):
    """The groups at a moment."""

    def groups(self) -> Iterator[GroupThen]:
        """Every group that was there or may have been, or that offsets were committed for, by group id."""

    def gaps(self) -> Mapping[str, LogGaps]:
        """What is missing of each partition of the logs of groups, by its name."""

    def image(self) -> TopicImage | None:
        """The topics at the moment, None where nothing is known of them."""

    def surroundings(self) -> Surroundings:
        """What descriptions need beyond the group."""


class Answers(Protocol):
    """What is known of groups."""

    def at(self, moment: AsOf, group_id: str | None = None) -> GroupsThen:
        """The groups at a moment, or only that one."""

    def history(self, group_id: str) -> GroupHistory | None:
        """All that a group went through, but for its commits; None where nothing is known of it."""

    def rebalances(self, wanted: RebalanceFilter) -> Sequence[RebalanceRow]:
        """Rebalances in order of time, or the slowest first."""

    def group_of(self, partition: int, offset: int) -> str | None:
        """The group with a rebalance at that position of the log."""

    def verdicts(self, group_id: str | None, since_ms: int) -> Iterable[TargetAuditRow]:
        """Verdicts on targets of one group or all, from a time on, in order of time."""

    def violations(self, group_id: str | None, since_ms: int) -> Iterable[Violation]:
        """Broken rules of one group or all, from a time on, in order of time."""

    def findings(self, group_id: str | None) -> Sequence[FindingRow]:
        """What an operator should look at, the most urgent first."""

    def rounds(self, group_id: str) -> list[Round]:
        """The assignments of a group, with what its assignor was given."""
