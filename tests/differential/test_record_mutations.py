"""How many changes of one record of real logs the rules or the verdicts notice, of those that Kafka would not make."""

import random
from collections import Counter
from functools import cache
from itertools import islice

import pytest

from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.rows import WRONG, TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.groups.violations import Violation
from coordinator_core.records import CoordinatorRecord, Family
from tests.core.audit.record_change import changed_logs
from tests.core.audit.record_mutations import RECORD_MUTATIONS
from tests.differential.logs_by_group import corpus_log
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS

LOGS = ("scenarios", "upgrade", "misc", "wild")
PER_KIND = 16
GroupKey = tuple[str, tuple[int, str]]


def complaints(of: GroupKey, records: list[CoordinatorRecord]) -> Counter[str]:
    """The rules that are broken, and the verdicts that are wrong."""
    name, (_, group_id) = of
    topics, coverage = topic_history(CORPUS / name / "logs"), corpus_log_of(name).coverage
    audit = GroupAudit.begin(group_id, Family.GROUP, topics, coverage, AuditSettings(), from_start=True)
    rows = [row for record in records for row in audit.feed(record)] + audit.open_rows()
    broken = [str(row.rule) for row in rows if isinstance(row, Violation)]
    return Counter(
        broken + [str(row.verdict) for row in rows if isinstance(row, TargetAuditRow) and row.verdict in WRONG]
    )


corpus_log_of = cache(corpus_log)


@pytest.mark.long
def test_what_kafka_would_not_write_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    groups = {(name, key): records for name in LOGS for key, records in corpus_log_of(name).groups.items()}
    known: dict[GroupKey, Counter[str]] = {}
    seen, caught = Counter[str](), Counter[str]()
    missed: list[tuple[str, GroupKey]] = []
    for mutation in RECORD_MUTATIONS:
        rng = random.Random(mutation.name)
        for of in rng.sample(sorted(groups), len(groups)):
            for changed in islice(changed_logs(mutation, groups[of], rng), 3):
                if seen[mutation.name] == PER_KIND:
                    break
                if of not in known:
                    known[of] = complaints(of, groups[of])
                seen[mutation.name] += 1
                if complaints(of, changed) - known[of]:
                    caught[mutation.name] += 1
                else:
                    missed.append((mutation.name, of))
    with capsys.disabled():
        print(f"\ncaught {caught.total()} of {seen.total()} ({caught.total() / seen.total():.1%}); missed: {missed}")
    assert set(seen) == {mutation.name for mutation in RECORD_MUTATIONS}
    assert caught.total() >= 0.98 * seen.total()
