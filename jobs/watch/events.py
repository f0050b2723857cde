"""What a watch tells: rebalances, findings, and lag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.offsets.burrow import LagPoint
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import Family

GroupKey = tuple[Family, str]
"""The log that a group is in, and its id."""

CLUSTER: GroupKey = (Family.METADATA, "")
"""In place of a group: the cluster."""


class RebalanceBegan(NamedTuple):
    """A rebalance began; ``row`` has its causes. A classic group is logged when a generation is complete."""

    key: GroupKey
    row: RebalanceRow


class RebalanceEnded(NamedTuple):
    """A rebalance is over, with the verdict on its target if it was judged."""

    key: GroupKey
    row: RebalanceRow
    verdict: TargetAuditRow | None


class FindingArose(NamedTuple):
    """A finding that was not there before."""

    key: GroupKey
    row: FindingRow


class LagStatusRow(NamedTuple):
    """The lag of a group when its status changed."""

    group_id: Annotated[str, "the group"]
    status: Annotated[str, "Burrow's status of a group: OK, WARN or ERR"]
    before: Annotated[str | None, "the status that was reported before; null: none was known"]
    timestamp_ms: Annotated[int, "when the end offsets were read, ms since the epoch"]
    lag: Annotated[int, "records between committed offsets and ends, summed over partitions where it is known"]
    partitions: Annotated[int, "number of partitions with a committed offset"]
    worst: Annotated[tuple[LagPoint, ...], "the partitions that are furthest behind, of those that are not OK"]


class LagChanged(NamedTuple):
    """The status of a group's lag changed."""

    key: GroupKey
    row: LagStatusRow


WatchEvent = RebalanceBegan | RebalanceEnded | FindingArose | LagChanged


class ReportedFinding(NamedTuple):
    """A finding that was reported, and the time (ms) up to which it was seen to last."""

    kind: str
    subject: str | None
    until_ms: int


@dataclass(slots=True)
class Reported:
    """What was reported of a group.

    ``began`` and ``ended`` are offsets of rebalances: those of a group follow each other. ``findings`` has the last
    time (ms) of each finding: one of the same kind and subject is another one if it began later. ``lag`` is the last
    status.
    """

    began: int = -1
    ended: int = -1
    findings: dict[tuple[str, str | None], int] = field(default_factory=dict)
    lag: str | None = None

    def note(self, event: WatchEvent) -> None:
        """Note that an event was reported."""
        match event:
            case RebalanceBegan():
                self.began = max(self.began, event.row.at.offset)
            case RebalanceEnded():
                self.ended = max(self.ended, event.row.at.offset)
            case FindingArose():
                self.see(event.row)
            case LagChanged():
                self.lag = event.row.status

    def knows(self, finding: FindingRow) -> bool:
        """Whether a finding was reported that shares its time."""
        until_ms = self.findings.get((finding.kind, finding.subject))
        return until_ms is not None and finding.since_ms <= until_ms

    def see(self, finding: FindingRow) -> None:
        """Note up to when a finding that was reported lasts."""
        key = finding.kind, finding.subject
        self.findings[key] = max(self.findings.get(key, 0), finding.until_ms)

    def forget(self, before_ms: int) -> None:
        """Forget findings that were last seen before a time."""
        self.findings = {key: until_ms for key, until_ms in self.findings.items() if until_ms >= before_ms}

    def parts(self) -> Iterator[ReportedFinding]:
        """Yield the findings as they are stored."""
        return (ReportedFinding(*key, until_ms) for key, until_ms in self.findings.items())
