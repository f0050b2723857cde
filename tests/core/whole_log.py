"""All records of one group in one pass: their history, and the rules that they break."""

from collections.abc import Iterable, Iterator

from coordinator_core.audit.rules.rule_fold import RuleFold
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.rows import HistoryRow
from coordinator_core.records import AnyRecord


def fold(
    records: Iterable[AnyRecord], group: Group, topics: TopicHistory | None = None, coverage: Coverage | None = None
) -> Iterator[HistoryRow]:
    """Yield all rows of one group: final ones as soon as they are final, open ones at the end."""
    history = GroupFold(group, None, topics, coverage)
    for record in records:
        yield from history.feed(record)
    yield from history.open_rows()


def judge(
    records: Iterable[AnyRecord],
    group: Group,
    coverage: Coverage | None = None,
    leader_epoch: int | None = None,
    topics: TopicHistory | None = None,
    settings: AuditSettings = AuditSettings(),  # noqa: B008 (it is frozen)
) -> Iterator[Violation]:
    """Yield all violations in a group's records; ``leader_epoch`` is that of all records."""
    rules = RuleFold(group, None, coverage, topics, settings)
    for record in records:
        yield from rules.feed(record, leader_epoch)
    yield from rules.open_rows()
