"""What a watch tells: rebalances, findings, and lag."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level, make_finding
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


class FindingEvent(NamedTuple):
    """What happened with a finding: it was not there before; one that was reported has grown much since, or goes on
    again; or one that went on is over.
    """

    key: GroupKey
    row: FindingRow
    change: Literal["began", "grew", "ended"]


class LagStatusRow(NamedTuple):
    """The lag of a group when its status changed."""

    group_id: Annotated[str, "the group"]
    status: Annotated[str, "Burrow's status of a group: OK, WARN or ERR"]
    before: Annotated[str | None, "the status that was reported before; null: none was known"]
    timestamp_ms: Annotated[int, "when the end offsets were read, ms since the epoch"]
    lag: Annotated[int, "records between committed offsets and ends, summed over partitions where it is known"]
    partitions: Annotated[int, "number of partitions with a committed offset"]
    worst: Annotated[tuple[LagPoint, ...], "the partitions furthest behind, of those not OK; known ones first"]


class LagChanged(NamedTuple):
    """The status of a group's lag changed."""

    key: GroupKey
    row: LagStatusRow


WatchEvent = RebalanceBegan | RebalanceEnded | FindingEvent | LagChanged

GROWTH: Final = 2
"""A finding has grown much once its value is this many times the value that was reported last."""
LEAST_GROWTH_MS: Final = 60_000
"""One whose value is a time grows by itself as long as it goes on: it has grown much by this at least."""


class ReportedFinding(NamedTuple):
    """What is kept of a finding that was reported; ``value`` and ``level`` are those of the last report."""

    kind: str
    subject: str | None
    group_type: str | None
    level: str
    value: int
    threshold: int
    since_ms: int
    until_ms: int
    is_open: bool
    detail: str
    history_complete: bool

    @classmethod
    def of(cls, row: FindingRow) -> "ReportedFinding":
        """Return what is kept of a finding."""
        return cls(*(getattr(row, name) for name in cls._fields))

    def ended(self, key: GroupKey, now_ms: int) -> FindingRow:
        """Return the finding as it was when it was seen last, over by ``now_ms``."""
        group_id = None if key == CLUSTER else key[1]
        kept = {name: value for name, value in self._asdict().items() if name not in ("kind", "until_ms", "is_open")}
        level, complete = Level(kept.pop("level")), kept.pop("history_complete")
        return make_finding(
            FindingKind[self.kind.upper()],
            **kept,
            evidence=(),
            level=level,
            group_id=group_id,
            until_ms=now_ms,
            complete=complete,
        )

    def is_same(self, row: FindingRow) -> bool:
        """Whether a row of the same kind and subject is this finding: both share time."""
        return row.since_ms <= self.until_ms and self.since_ms <= row.until_ms

    def has_grown(self, row: FindingRow) -> bool:
        """Whether the row has grown much since the last report, or goes on again."""
        least = LEAST_GROWTH_MS if FindingKind[self.kind.upper()].counts_milliseconds else 0
        has_grown = row.value >= max(GROWTH * max(self.value, 1), self.value + least)
        is_graver = Level(row.level).rank < Level(self.level).rank
        return is_graver or has_grown or (row.is_open and not self.is_open)


@dataclass(slots=True)
class Reported:
    """What was reported of a group.

    ``began`` and ``ended`` are offsets of rebalances: those of a group follow each other. ``findings`` has the last
    finding of each kind and subject: one that began later than it was seen is another one. ``lag`` is the last status.
    """

    began: int = -1
    ended: int = -1
    findings: dict[tuple[str, str | None], ReportedFinding] = field(default_factory=dict)
    lag: str | None = None

    def note(self, event: WatchEvent) -> None:
        """Note that an event was reported."""
        match event:
            case RebalanceBegan():
                self.began = max(self.began, event.row.at.offset)
            case RebalanceEnded():
                self.ended = max(self.ended, event.row.at.offset)
            case FindingEvent():
                self.findings[event.row.kind, event.row.subject] = ReportedFinding.of(event.row)
            case LagChanged():
                self.lag = event.row.status

    def changes(self, key: GroupKey, rows: Iterable[FindingRow], now_ms: int) -> Iterator[FindingEvent]:
        """Yield what changed with the findings of a group that are ``rows`` now; it counts as reported then."""
        there = set()
        # Oldest first: of one kind and subject the last finding stays, and an earlier one must end before it begins.
        for row in sorted(rows, key=lambda row: (row.since_ms, -row.score, row.kind, row.subject or "")):
            name = row.kind, row.subject
            known = self.findings.get(name)
            if known is None or row.since_ms > known.until_ms:
                if known is not None and known.is_open:
                    yield from self._noted(key, known.ended(key, known.until_ms), "ended")
                yield from self._noted(key, row, "began")
            elif not known.is_same(row):  # an earlier one
                continue
            elif known.is_open and not row.is_open:
                yield from self._noted(key, row, "ended")
            elif known.has_grown(row):
                yield from self._noted(key, row, "grew")
            else:
                # Value and level stay those of the last report: else slow growth would never be much since the last
                # look.
                self.findings[name] = ReportedFinding.of(row)._replace(level=known.level, value=known.value)
            there.add(name)
        for name, known in list(self.findings.items()):
            if known.is_open and name not in there:
                yield from self._noted(key, known.ended(key, max(now_ms, known.until_ms)), "ended")

    def _noted(
        self, key: GroupKey, row: FindingRow, change: Literal["began", "grew", "ended"]
    ) -> Iterator[FindingEvent]:
        event = FindingEvent(key, row, change)
        self.note(event)
        yield event

    def forget(self, before_ms: int) -> None:
        """Forget findings that were last seen before a time."""
        self.findings = {name: known for name, known in self.findings.items() if known.until_ms >= before_ms}
