"""The samples' log as a folder whose segments grow."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.settings import AuditSettings
from jobs.settings import load
from jobs.sources.bounded_warnings import Warn
from jobs.watch.followed_groups import FollowedGroups
from tests.shared_data import ROOT

SAMPLES = ROOT / "data" / "samples" / "logs"
LIMITS = load(environment={}).findings
PIECES = 7


def followed(warn: Warn = pytest.fail) -> FollowedGroups:
    """Groups of which nothing was read. Their clock stands still: all findings are made in the first round."""
    return FollowedGroups(AuditSettings(), LIMITS, None, warn, lambda: 0.0)


def rows_of(histories: Iterable[GroupHistory]) -> Counter[object]:
    """Return the rows of groups that folds make."""
    return Counter(
        row
        for each in histories
        for row in (*each.epochs, *each.rebalances, *each.memberships, *each.assignments, *each.violations)
    )


def growing(folder: Path, pieces: int = PIECES, logs: Path | None = None) -> Iterator[None]:
    """Copy the logs (None: the samples) piece by piece: a piece may end within a batch, and a segment begins when its
    former one is whole. The metadata log goes ahead.
    """
    partitions = sorted(each for each in (logs or SAMPLES).iterdir() if each.is_dir())
    for piece in range(1, pieces + 1):
        for partition in partitions:
            files = sorted(partition.glob("*.log"))
            left = sum(file.stat().st_size for file in files)
            left = left if partition.name.startswith("__cluster") else left * piece // pieces
            for file in files:
                data = file.read_bytes()[:left]
                left -= len(data)
                if data:
                    (folder / partition.name).mkdir(parents=True, exist_ok=True)
                    (folder / partition.name / file.name).write_bytes(data)
        yield
