"""Verdicts on the recorded logs: what brokers and Java clients assigned comes out identical, in one piece or many."""

import random
from collections import Counter

import pytest

from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.groups.group import Group
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs
from tests.core.audit.targets.verdicts import audit_group
from tests.core.stored import next_auditor
from tests.differential.logs_by_group import corpus_log
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS

IDENTICAL = Verdict.IDENTICAL
EXPECTED = {
    "scenarios": {IDENTICAL: 394, Verdict.UNKNOWN: 4},
    "scenarios/compacted_keep": {IDENTICAL: 41, Verdict.UNKNOWN: 11},
    "scenarios/compacted_drop": {IDENTICAL: 41, Verdict.UNKNOWN: 11},
    "upgrade": {IDENTICAL: 28},
    "misc": {IDENTICAL: 23},
    "wild": {IDENTICAL: 1473},
    "churn/full": {IDENTICAL: 2214},
    "churn/after_compaction": {IDENTICAL: 585, Verdict.UNKNOWN: 39},
}
"""Unknown are the generations of classic Kafka Streams, and what depends on records that compaction took."""


def verdicts(name: str) -> list[TargetAuditRow]:
    logs = find_logs([CORPUS / name / "logs"])
    return [row for history in group_histories(logs, pytest.fail, audit=AuditSettings()) for row in history.targets]


@pytest.mark.parametrize("name", EXPECTED)
def test_verdicts_on_a_recorded_log(name: str) -> None:
    assert Counter(row.verdict for row in verdicts(name)) == EXPECTED[name]


def test_leaders_that_did_not_know_a_topic_yet_are_told_by_its_name() -> None:
    told = [row.fitted for row in verdicts("wild") if row.fitted is not None and "did not know" in row.fitted]
    assert len(told) == 15
    assert all(" w-" in each for each in told)


def test_targets_of_older_brokers_are_those_of_their_assignor() -> None:
    older = [row for row in verdicts("upgrade") if row.fitted and "kafka-" in row.fitted]
    named = Counter((row.fitted or "").rpartition(", ")[2] for row in older)
    # Brokers of 3.9.1, then of 4.0.0, which two of the targets do not tell apart from 4.0.1, then of 4.3.1.
    assert named == {
        "kafka-3.9 on Java 17": 4,
        "kafka-4.0 on Java 17": 2,
        "kafka-4.0.1 on Java 17": 2,
        "kafka-4.3.1 on Java 17": 7,
    }
    assert all(row.topics_proven is None for row in older if "4.3.1" not in row.fitted)


def test_without_topics_the_verdict_says_what_to_supply() -> None:
    log = corpus_log("misc")
    rows = [
        row
        for (_, group_id), records in log.groups.items()
        for row in audit_group(records, Group(group_id, from_start=True), coverage=log.coverage)
    ]
    assert rows
    assert {row.verdict for row in rows} == {Verdict.UNKNOWN}
    assert all("supply the cluster metadata log" in (row.missing or "") for row in rows)


@pytest.mark.parametrize("name", ["scenarios", "scenarios/compacted_keep", "upgrade", "churn/after_compaction"])
def test_a_log_in_pieces_gives_the_same_rows(name: str) -> None:
    """The state goes through JSON now and then, inside of operations too."""
    rng, log, topics = random.Random(name), corpus_log(name), topic_history(CORPUS / name / "logs")
    for (_, group_id), records in log.groups.items():
        whole = list(audit_group(records, Group(group_id, from_start=True), topics, coverage=log.coverage))
        auditor = TargetAuditor(Group(group_id, from_start=True), None, topics, coverage=log.coverage)
        pieces = []
        for record in records:
            if rng.random() < 0.1:
                auditor = next_auditor(auditor, topics, log.coverage)
            pieces += auditor.feed(record)
        assert pieces == whole
