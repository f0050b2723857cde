"""Targets that the traced coordinator made: each is identical, whatever clients, topics and faults did around it."""

from collections import Counter, defaultdict

import pytest

from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.groups.group import Group
from tests.core.audit.targets.verdicts import audit_group
from tests.differential.logs_by_group import EVERYTHING, TraceLog, traces

MADE_BY_BROKER = {
    "consumer": {Basis.ASSIGNOR: 609},
    "share": {Basis.ASSIGNOR: 729},
    "streams": {Basis.ASSIGNOR: 539},
    "classic": {},
    "migration": {Basis.ASSIGNOR: 382, Basis.UPGRADE: 43, Basis.DOWNGRADE: 12},
    "failover-consumer": {Basis.ASSIGNOR: 265},
    "failover-share": {Basis.ASSIGNOR: 352},
    "failover-streams": {Basis.ASSIGNOR: 164},
    "failover-migration": {Basis.ASSIGNOR: 190, Basis.UPGRADE: 15, Basis.DOWNGRADE: 12},
    "names-consumer": {Basis.ASSIGNOR: 276},
    "names-share": {Basis.ASSIGNOR: 281},
    "names-streams": {Basis.ASSIGNOR: 233},
    "names-migration": {Basis.ASSIGNOR: 167, Basis.UPGRADE: 15, Basis.DOWNGRADE: 12},
}
"""Targets by what they are compared with. Assignments of the traces' classic leaders are inventions of their script."""
IN_ANOTHER_ORDER = {"failover-migration": 1, "names-migration": 2}
"""Targets whose records come in another order: members of a group that was upgraded online share a bucket."""


def audited(trace: TraceLog) -> list[TargetAuditRow]:
    groups = defaultdict(list)
    for record in trace.records:
        groups[record.group_id].append(record)
    settings = AuditSettings(default_assignor=trace.default_assignor)
    return [
        row
        for group_id, records in groups.items()
        for row in audit_group(records, Group(group_id, from_start=True), trace.topics, settings, EVERYTHING)
    ]


@pytest.mark.parametrize("name", MADE_BY_BROKER)
def test_targets_of_the_traced_coordinator_are_identical(name: str) -> None:
    seen: Counter[str] = Counter()
    reordered = 0
    for trace in traces(name):
        for row in audited(trace):
            if row.basis in (Basis.ASSIGNOR, Basis.UPGRADE, Basis.DOWNGRADE):
                reordered += row.verdict is Verdict.EQUIVALENT
                assert row.verdict in (Verdict.IDENTICAL, Verdict.EQUIVALENT), f"trace {trace.seed}: {row}"
                seen[row.basis] += 1
    assert seen == MADE_BY_BROKER[name]
    assert reordered == IN_ANOTHER_ORDER.get(name, 0)
