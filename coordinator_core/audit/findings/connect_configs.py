"""Connect workers of one group that do not read the same config topic: two clusters with one group.id."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.history.causes import READS_ANOTHER, CauseKind
from coordinator_core.history.rows import Cause


def differing(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each worker that came back without what it was assigned, by its name."""
    causes: dict[str | None, list[Cause]] = defaultdict(list)
    for rebalance in history.rebalances:
        for cause in rebalance.causes:
            if cause.kind == CauseKind.CONFIGS_DIFFER:
                causes[history.client(cause.member_id)].append(cause)
    for name, seen in causes.items():
        if len(seen) >= limits.configs_differ_times:
            detail = f"{name} {READS_ANOTHER}: {len(seen)} times, at last: {seen[-1].detail}"
            at = [cause.at for cause in seen]
            yield history.finding(
                FindingKind.CONFIGS_DIFFER, len(seen), detail, at, threshold=limits.configs_differ_times, subject=name
            )
