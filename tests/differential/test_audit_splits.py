"""History, broken rules and verdicts of a real log, folded night by night, are those of one pass."""

import random

import pytest

from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.errors import StateFormatError
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import Family
from tests.differential.logs_by_group import LOGS, TRULY_BROKEN, corpus_log
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS

SETTINGS = AuditSettings()
NIGHTS = 20
WITHOUT_TARGETS = ("churn/full", "churn/after_compaction")
"""Logs with so many targets that recomputing them, piece by piece, is left to the test of targets."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in WITHOUT_TARGETS else []) for name in LOGS]
)
def test_nights_give_the_rows_of_one_pass(name: str) -> None:
    log, topics = corpus_log(name), topic_history(CORPUS / name / "logs")
    rng, verdicts = random.Random(name), 0
    settings = None if name in WITHOUT_TARGETS else SETTINGS
    for (_, group_id), records in log.groups.items():
        whole = GroupAudit.begin(group_id, Family.GROUP, topics, log.coverage, settings, from_start=True)
        pieces = GroupAudit.begin(group_id, Family.GROUP, topics, log.coverage, settings, from_start=True)
        nights = {*rng.sample(range(len(records)), min(NIGHTS, len(records)))}
        for index, record in enumerate(records):
            if index in nights:
                assert pieces.open_rows() == whole.open_rows()
                pieces = GroupAudit.resume(pieces.state(), topics, log.coverage, SETTINGS)
            rows = whole.feed(record, 0)
            assert pieces.feed(record, 0) == rows
            broken = [(row.rule, row.at.offset) for row in rows if isinstance(row, Violation)]
            assert set(broken) <= set(TRULY_BROKEN.get((name, group_id), []))
            verdicts += sum(isinstance(row, TargetAuditRow) for row in rows)
        assert pieces.open_rows() == whole.open_rows()
        assert pieces.state() == whole.state()
    assert (verdicts > 0) is (settings is not None)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"group": {}, "history": {}, "rules": {}, "targets": null}'])
def test_a_state_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(StateFormatError):
        GroupAudit.resume(text, None, Coverage({}), SETTINGS)
