"""How often things occurred in a group, counted as its rows become final: what metrics count."""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.groups.violations import Violation
from coordinator_core.history.rows import RebalanceRow

RATE_WINDOW_MS: Final = 60_000
"""Brokers measure rates over two windows of 30 s (metrics.num.samples, metrics.sample.window.ms)."""

Counts = dict[str, int]


@dataclass(slots=True)
class GroupTallies:
    """Numbers of one group. Rebalances are counted by type of the group, and then by outcome and by cause.

    ``longest_ms`` is by type the longest time that a rebalance lasted at least, ``begun_ms`` when those began that
    began within ``RATE_WINDOW_MS`` of the newest one.
    """

    outcomes: dict[str, Counts] = field(default_factory=dict)
    kinds: dict[str, Counts] = field(default_factory=dict)
    verdict_counts: Counts = field(default_factory=dict)
    rule_counts: Counts = field(default_factory=dict)
    longest_ms: Counts = field(default_factory=dict)
    begun_ms: dict[str, list[int]] = field(default_factory=dict)

    def note(self, row: object) -> None:
        """Count a row of the group: a rebalance, a verdict, or a violation. Each row counts once."""
        if isinstance(row, RebalanceRow):
            self._note_rebalance(row, str(row.group_type))
        elif isinstance(row, TargetAuditRow):
            _add(self.verdict_counts, str(row.verdict), 1)
        elif isinstance(row, Violation):
            _add(self.rule_counts, row.rule.value, 1)

    def _note_rebalance(self, row: RebalanceRow, group_type: str) -> None:
        _add(self.outcomes.setdefault(group_type, {}), row.outcome, 1)
        for kind in {str(cause.kind) for cause in row.causes}:
            _add(self.kinds.setdefault(group_type, {}), kind, 1)
        if row.duration_min_ms is not None:
            self.longest_ms[group_type] = max(self.longest_ms.get(group_type, 0), row.duration_min_ms)
        self._note_begun(group_type, [row.at.timestamp_ms])

    def _note_begun(self, group_type: str, times_ms: Iterable[int]) -> None:
        known = self.begun_ms.setdefault(group_type, [])
        for time_ms in times_ms:
            insort(known, time_ms)
        del known[: bisect_right(known, known[-1] - RATE_WINDOW_MS)]

    def rebalances(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Yield the number of rebalances by type of the group and outcome."""
        return _flat(self.outcomes)

    def causes(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Yield the number of rebalances that have a cause, by type of the group and cause."""
        return _flat(self.kinds)

    def verdicts(self) -> Iterator[tuple[tuple[str], int]]:
        """Yield the number of targets by verdict."""
        return (((verdict,), count) for verdict, count in self.verdict_counts.items())

    def violations(self) -> Iterator[tuple[tuple[str], int]]:
        """Yield how often each rule was broken."""
        return (((rule,), count) for rule, count in self.rule_counts.items())

    def rebalances_of(self, group_type: str) -> int:
        """Return the number of rebalances while the group was of a type."""
        return sum(self.outcomes.get(group_type, {}).values())

    def begun_after(self, group_type: str, time_ms: int) -> int:
        """Return how many of them began after a time, at most ``RATE_WINDOW_MS`` before the newest record."""
        return sum(begun_ms > time_ms for begun_ms in self.begun_ms.get(group_type, ()))

    def with_rows(self, rows: Iterable[object]) -> "GroupTallies":
        """Return the tallies with more rows counted; these stay as they are."""
        tallies = GroupTallies().joined(self)
        for row in rows:
            tallies.note(row)
        return tallies

    def joined(self, other: "GroupTallies") -> "GroupTallies":
        """Return the tallies of both, such as those of a group in two logs."""
        tallies = GroupTallies()
        for part in (self, other):
            for name in ("outcomes", "kinds"):
                for group_type, counts in getattr(part, name).items():
                    _add_all(getattr(tallies, name).setdefault(group_type, {}), counts)
            _add_all(tallies.verdict_counts, part.verdict_counts)
            _add_all(tallies.rule_counts, part.rule_counts)
            for group_type, longest_ms in part.longest_ms.items():
                tallies.longest_ms[group_type] = max(tallies.longest_ms.get(group_type, 0), longest_ms)
            for group_type, times_ms in part.begun_ms.items():
                tallies._note_begun(group_type, times_ms)
        return tallies


def tallies_of(*rows: Iterable[Any]) -> dict[str, GroupTallies]:
    """Return the tallies of rows of many groups, by group id."""
    tallies: dict[str, GroupTallies] = defaultdict(GroupTallies)
    for some in rows:
        for row in some:
            tallies[row.group_id].note(row)
    return tallies


def _flat(counts: dict[str, Counts]) -> Iterator[tuple[tuple[str, str], int]]:
    return (((group_type, value), count) for group_type, some in counts.items() for value, count in some.items())


def _add(counts: Counts, key: str, number: int) -> None:
    counts[key] = counts.get(key, 0) + number


def _add_all(counts: Counts, others: Counts) -> None:
    for key, number in others.items():
        _add(counts, key, number)
