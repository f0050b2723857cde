"""Changes of one record of the small real log: the rules or the verdicts notice them."""

import random
from collections import Counter
from itertools import islice

from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.rows import WRONG, TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.groups.violations import Violation
from coordinator_core.records import CoordinatorRecord, Family
from tests.core.audit.record_change import changed_logs
from tests.core.audit.record_mutations import RECORD_MUTATIONS
from tests.core.recorded import EVERYTHING, sample

PER_GROUP = 2


def complaints(group_id: str, records: list[CoordinatorRecord]) -> Counter[str]:
    """The rules that are broken, and the verdicts that are wrong."""
    topics = sample()[1]
    audit = GroupAudit.begin(group_id, Family.GROUP, topics, EVERYTHING, AuditSettings(), from_start=True)
    rows = [row for record in records for row in audit.feed(record)] + audit.open_rows()
    broken = [str(row.rule) for row in rows if isinstance(row, Violation)]
    return Counter(
        broken + [str(row.verdict) for row in rows if isinstance(row, TargetAuditRow) and row.verdict in WRONG]
    )


def test_what_kafka_would_not_write_is_noticed() -> None:
    seen, caught = Counter[str](), Counter[str]()
    missed = []
    for group_id, records in sample()[0].items():
        assert complaints(group_id, records) == Counter()
        for mutation in RECORD_MUTATIONS:
            for changed in islice(changed_logs(mutation, records, random.Random(mutation.name)), PER_GROUP):
                seen[mutation.name] += 1
                if complaints(group_id, changed):
                    caught[mutation.name] += 1
                else:
                    missed.append((mutation.name, group_id))
    print(f"\ncaught {caught.total()} of {seen.total()}; missed: {missed}")
    assert caught.total() >= 0.98 * seen.total() > 300
    proven = ("consumers: swapped", "consumers: listed twice", "workers: listed twice", "workers: doubled")
    # Its leader has a client id of its own, and writes what any client may.
    assert {group_id for name, group_id in missed if name in proven} <= {"G-kafka-python"}
    assert all(caught[name] > 0 for name in proven)
