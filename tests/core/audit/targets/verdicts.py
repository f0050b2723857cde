"""All verdicts on one group, as one pass over its records gives them."""

from collections.abc import Iterable, Iterator

from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import AnyRecord


def audit_group(
    records: Iterable[AnyRecord],
    group: Group,
    topics: TopicHistory | None = None,
    settings: AuditSettings | None = None,
    coverage: Coverage | None = None,
) -> Iterator[TargetAuditRow]:
    auditor = TargetAuditor(group, None, topics, settings, coverage)
    for record in records:
        yield from auditor.feed(record)
