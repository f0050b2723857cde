"""Every verdict, broken rule, cause, outcome and state of the recorded logs, counted.

``python -m tests.differential.tallies [LOG ...]`` prints them as JSON; without names, those of all logs, one by one.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs
from tests.differential.logs_by_group import LOGS
from tests.shared_data import CORPUS, ROOT

SAMPLES = {"samples": ROOT / "data" / "samples", "share_delivery": ROOT / "data" / "samples" / "share_delivery"}
EVERY_LOG = (*SAMPLES, *LOGS)


class Tallies(NamedTuple):
    """What the history and the audit of one log say, and how often."""

    groups: Counter[str]
    verdicts: Counter[str]
    missing: Counter[str]
    rules: Counter[str]
    causes: Counter[str]
    outcomes: Counter[str]
    states: Counter[str]

    @classmethod
    def of(cls, histories: Iterable[GroupHistory]) -> "Tallies":
        """Count the rows of all groups."""
        counted = cls(*(Counter[str]() for _ in cls._fields))
        for history in histories:
            counted.groups.update({epoch.group_type for epoch in history.epochs})
            counted.verdicts.update(f"{row.group_type} {row.basis} {row.verdict}" for row in history.targets)
            counted.missing.update(_missing(row) for row in history.targets if row.verdict == Verdict.UNKNOWN)
            counted.rules.update(f"{each.rule} in {each.group_id}" for each in history.violations)
            counted.causes.update(f"{row.group_type} {each.kind}" for row in history.rebalances for each in row.causes)
            counted.outcomes.update(f"{row.group_type} {row.outcome}" for row in history.rebalances)
            counted.states.update(f"{epoch.group_type} {epoch.state or 'unknown'}" for epoch in history.epochs)
        return counted


def _missing(row: TargetAuditRow) -> str:
    return f"{row.group_id}: {row.missing}"


def logs_of(name: str) -> Path:
    """Return the folder with the log files of a recorded log, or of the samples."""
    return SAMPLES.get(name, CORPUS / name) / "logs"


def tallies(name: str) -> Tallies:
    """Count what the files of a log say. Raise ValueError if some of them cannot be read."""
    return Tallies.of(group_histories(find_logs([logs_of(name)]), _refuse, audit=AuditSettings()))


def _refuse(text: str) -> None:
    """The broker of the log of share delivery wrote nothing into the metadata log while nothing changed."""
    if not text.startswith("the metadata log ends at 2026-11-22T08:54:13.671Z, 5.7 s before"):
        raise ValueError(text)


def main(names: list[str]) -> None:
    """Print the tallies of these logs."""
    for name in names or EVERY_LOG:
        counted = {of: dict(sorted(counts.items())) for of, counts in tallies(name)._asdict().items()}
        print(json.dumps({"log": name, **counted}, indent=1), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
