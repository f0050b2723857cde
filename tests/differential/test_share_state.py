"""The share state logs of the corpora: no rule is broken, and no finding of share groups is raised."""

import pytest

from coordinator_core.audit.findings.all_findings import findings
from jobs.queries.from_logs.history import group_histories
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.shared_data import CORPUS

LIMITS = load(environment={}).findings
ROWS = {"scenarios": 34, "wild": 92}
"""How many rows of share partitions there are."""


@pytest.mark.parametrize("name", ROWS)
def test_share_state_of_the_corpora_raises_nothing(name: str) -> None:
    histories = list(group_histories(find_logs([CORPUS / name / "logs"]), lambda message: None))
    rows = [row for history in histories for row in history.share_partitions]
    assert len(rows) == ROWS[name]
    assert all(row.history_complete for row in rows)
    assert [row for history in histories for row in history.violations if row.rule.startswith("share_")] == []
    assert [row for history in histories for row in findings(history, LIMITS) if row.kind.startswith("share_")] == []
