"""History, broken rules and verdicts of a real log, folded night by night, are those of one pass."""

from __future__ import annotations

import random

import pytest

from coordinator_core.audit.fold import GroupAudit
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.errors import StateFormatError
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import Family
from tests.differential.logs_by_group import corpus_log
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS

SETTINGS = AuditSettings()


def test_nights_give_the_rows_of_one_pass() -> None:
    log, topics = corpus_log("scenarios"), topic_history(CORPUS / "scenarios" / "logs")
    rng, verdicts = random.Random(7), 0
    for (_, group_id), records in log.groups.items():
        whole = GroupAudit.begin(group_id, Family.GROUP, topics, log.coverage, SETTINGS, from_start=True)
        pieces = GroupAudit.begin(group_id, Family.GROUP, topics, log.coverage, SETTINGS, from_start=True)
        nights = {rng.randrange(len(records)) for _ in range(3)}
        for index, record in enumerate(records):
            if index in nights:
                pieces = GroupAudit.resume(pieces.state(), topics, log.coverage, SETTINGS)
            rows = whole.feed(record, 0)
            assert pieces.feed(record, 0) == rows
            assert not any(isinstance(row, Violation) for row in rows)
            verdicts += sum(isinstance(row, TargetAuditRow) for row in rows)
        assert pieces.open_rows() == whole.open_rows()
    assert verdicts > 300


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"history": "{}", "rules": "{}", "targets": null}'])
def test_a_state_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(StateFormatError):
        GroupAudit.resume(text, None, Coverage({}), SETTINGS)
