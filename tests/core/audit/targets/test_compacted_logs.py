"""Verdicts on compacted logs: what was removed is not compared with, and nothing is not identical to nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, RecordType
from tests.core.audit.targets.verdicts import audit_group
from tests.core.compacted import compacted
from tests.core.recorded import EVERYTHING, sample

TARGETS = frozenset(
    (
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
        RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
    )
)


def audited(records: list[CoordinatorRecord], coverage: Coverage) -> list[TargetAuditRow]:
    group = Group(records[0].group_id if records else "gone", from_start=True)
    return list(audit_group(records, group, sample()[1], None, coverage))


def targets_of(row: TargetAuditRow, records: list[CoordinatorRecord]) -> list[int]:
    """The offsets of the target records of a row's operation."""
    return [
        each.at.offset
        for each in records
        if each.type in TARGETS and row.opened.offset <= each.at.offset <= row.at.offset
    ]


@pytest.mark.parametrize("tombstones", [True, False])
def test_a_verdict_on_a_compacted_log_is_that_of_the_whole_one_or_unknown(tombstones: bool) -> None:
    """What compaction removed of a target is never passed over, and no verdict is worse than the truth."""
    seen: Counter[str] = Counter()
    for records in sample()[0].values():
        truth = {row.at: row for row in audited(records, EVERYTHING)}
        for until in {row.at.offset + behind for row in truth.values() for behind in (1, 40)}:
            left, coverage = compacted(records, until, tombstones=tombstones)
            for row in audited(left, coverage):
                assert row.verdict in (Verdict.UNKNOWN, truth[row.at].verdict)
                if row.verdict is Verdict.IDENTICAL and row.basis is Basis.ASSIGNOR:
                    assert targets_of(row, left) == targets_of(truth[row.at], records)
                    assert (row.expected, row.recorded) in (
                        (None, None),
                        (truth[row.at].expected, truth[row.at].recorded),
                    )
                seen[row.verdict] += 1
    assert seen[Verdict.IDENTICAL] > 1_000
    assert seen[Verdict.UNKNOWN] > 50


def test_an_unknown_verdict_states_no_figure_and_says_what_is_missing() -> None:
    for records in sample()[0].values():
        left, coverage = compacted(records, records[-1].at.offset + 1, tombstones=False)
        for row in audited(left, coverage):
            if row.verdict is Verdict.UNKNOWN and row.basis is Basis.ASSIGNOR:
                assert row.missing is not None
                assert "the log was compacted or cut" in row.missing
                assert (row.expected, row.recorded, row.difference_count, row.members) == (None, None, None, None)
                assert row.differences == ()
