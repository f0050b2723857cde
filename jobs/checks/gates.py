"""What a gate counts: what is new or goes on, and is not accepted. Every gate asks here."""

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.groups.violations import Violation
from jobs.relations.news import News
from jobs.settings import Accepted, GateSettings


@dataclass(slots=True)
class Gate:
    """What counts of the findings, broken rules and verdicts of one cluster.

    ``today`` decides which entries of the settings are accepted still. ``used`` are those that something met.
    """

    settings: GateSettings
    today: date
    news: News = field(default_factory=News)
    used: dict[int, Accepted] = field(default_factory=dict)

    def counts(self, row: FindingRow, named: Sequence[str] = (), *, least: Level | None = None) -> bool:
        """Return whether a finding counts. Kinds that are ``named`` do at any level, others from ``least`` on (None:
        the level of the settings).
        """
        least = self.settings.min_level if least is None else least
        if row.kind not in named and Level(row.level).rank > least.rank:
            return False
        return self.news.has_finding(row) and not self.accepts(row.group_id, row.kind, score=row.score)

    def counts_violation(self, row: Violation) -> bool:
        """Return whether a broken rule counts."""
        return self.news.has_violation(row) and not self.accepts(row.group_id, row.rule, FindingKind.RULES_BROKEN)

    def counts_verdict(self, row: TargetAuditRow) -> bool:
        """Return whether a verdict counts."""
        return self.news.has_verdict(row) and not self.accepts(row.group_id, row.verdict, FindingKind.TARGETS_WRONG)

    def accepts(self, group_id: str | None, *names: str, score: float | None = None) -> bool:
        """Return whether the settings accept what has one of these names, today."""
        for number, entry in enumerate(self.settings.accepted):
            is_named = not entry.names or any(name in entry.names for name in names)
            is_low = entry.max_score is None or (score is not None and score <= entry.max_score)
            if is_named and is_low and self.today <= entry.until and _matches(entry.groups, group_id or ""):
                # By place in the settings, in whose order the notes are.
                self.used[number] = entry
                return True
        return False

    def notes(self) -> list[str]:
        """Return in words what was accepted, and which entries of the settings have expired."""
        used = [f"accepted until {each.until}: {_words(each)}: {each.reason}" for _, each in sorted(self.used.items())]
        expired = [each for each in self.settings.accepted if each.until < self.today]
        return [*used, *(f"no longer accepted since {each.until}: {_words(each)}: {each.reason}" for each in expired)]


def _words(entry: Accepted) -> str:
    return f"{', '.join(map(str, entry.names)) or 'everything'} of {entry.groups}"


def _matches(pattern: str, group_id: str) -> bool:
    return re.match(fnmatch.translate(pattern), group_id) is not None
