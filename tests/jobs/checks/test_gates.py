"""What gates count: the level, what is new, what is accepted until a day and for a reason."""

from datetime import date, timedelta
from typing import Any

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level, make_finding
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.errors import UsageError
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation
from coordinator_core.records import LogPosition
from jobs import settings
from jobs.checks.gates import Gate

TODAY = date(2026, 11, 28)
AT = LogPosition(0, 5, 1_000)


def gate(*accepted: dict[str, Any], level: str = "warning") -> Gate:
    entries = [{"until": TODAY, "reason": "known"} | entry for entry in accepted]
    flags = {"gates.accepted": entries, "gates.min_level": level}
    return Gate(settings.load(environment={}, flags=flags).gates, TODAY)


def finding(kind: FindingKind, group_id: str | None = "g", value: int = 1) -> FindingRow:
    return make_finding(kind, value, 1, "", [AT], group_id=group_id, since_ms=1, until_ms=1, complete=True)


def test_any_finding_means_alarms_and_warnings_and_a_named_kind_counts_at_any_level() -> None:
    alarm, warning, notice = (
        finding(FindingKind.TWO_OWNERS),
        finding(FindingKind.REBALANCE_STORM),
        finding(FindingKind.ZOMBIE_GROUP),
    )
    assert [gate().counts(row) for row in (alarm, warning, notice)] == [True, True, False]
    assert [gate(level="alarm").counts(row) for row in (alarm, warning, notice)] == [True, False, False]
    assert gate().counts(notice, ["zombie_group"])
    assert gate(level="alarm").counts(notice, least=Level.NOTICE)


def test_what_is_accepted_does_not_count_until_its_day_is_over() -> None:
    row = finding(FindingKind.TWO_OWNERS, "batch-1")
    assert not gate({"groups": "batch-*", "names": ["two_owners"]}).counts(row)
    assert not gate({"until": TODAY}).counts(row)
    assert gate({"until": TODAY - timedelta(days=1)}).counts(row)
    assert gate({"groups": "other-*"}).counts(row)
    assert gate({"names": ["rules_broken"]}).counts(row)
    assert gate({"max_score": row.score - 1}).counts(row)
    assert not gate({"max_score": row.score}).counts(row)


def test_broken_rules_and_verdicts_are_accepted_by_their_name_or_by_that_of_their_finding() -> None:
    broken = Violation(Rule.ASSIGNED_TO_TWO, AT, "g", None, "")
    target = TargetAuditRow("g", "CONSUMER", 3, AT, AT, "divergent", "assignor")
    assert gate().counts_violation(broken)
    assert gate().counts_verdict(target)
    for name in ("assigned_to_two", "rules_broken"):
        assert not gate({"names": [name]}).counts_violation(broken)
    for name in ("divergent", "targets_wrong"):
        assert not gate({"names": [name]}).counts_verdict(target)
    assert gate({"names": ["invalid"]}).counts_verdict(target)


def test_a_gate_says_what_it_accepted_and_what_it_no_longer_does() -> None:
    known = {"groups": "g", "names": ["two_owners"], "until": "2027-01-31", "reason": "moves in January"}
    over = {"groups": "h", "until": "2026-11-27", "reason": "was a test"}
    unused = {"groups": "i", "until": "2027-01-31", "reason": "not met"}
    of = gate(known, over, unused)
    assert not of.counts(finding(FindingKind.TWO_OWNERS))
    assert of.notes() == [
        "accepted until 2027-01-31: two_owners of g: moves in January",
        "no longer accepted since 2026-11-27: everything of h: was a test",
    ]


@pytest.mark.parametrize("lacking", ["until", "reason"])
def test_nothing_is_accepted_without_a_day_and_a_reason(lacking: str) -> None:
    entry = {"until": "2027-01-31", "reason": "x"}
    del entry[lacking]
    with pytest.raises(UsageError, match=lacking):
        settings.load(environment={}, flags={"gates.accepted": [entry]})
