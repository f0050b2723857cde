"""The audit of every target in a group's log: feed it the records in log order, take the verdicts as rows."""

from __future__ import annotations

from coordinator_core.audit.epoch_targets import EpochTargetAudit, GroupView
from coordinator_core.audit.operation import KIND_OF_TARGET_EPOCH, KINDS, RecordTypes, cut
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.epochs import EpochGroup
from coordinator_core.groups.group import Group
from coordinator_core.records import CoordinatorRecord, RecordType

_NO_ROWS: list[TargetAuditRow] = []
_KIND_OF: dict[int, RecordTypes] = {
    record_type: kind for kind in KINDS for record_type in (kind.member, kind.epoch, kind.target_epoch, kind.target)
} | {RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: KINDS[0]}


class TargetAuditor:
    """The audit of one group's targets."""

    def __init__(self, group: Group, history: TopicHistory | None, settings: AuditSettings) -> None:
        """``group`` without records of its own, or as an earlier run left it."""
        self.group = group
        self.history = history
        self.settings = settings
        self.view: GroupView | None = None
        self.operation = (-1, -1)
        self.pending: list[CoordinatorRecord] = []

    def feed(self, record: CoordinatorRecord) -> list[TargetAuditRow]:
        """The verdicts that this record completes; raises nothing."""
        if record.type <= RecordType.OFFSET_COMMIT:
            return _NO_ROWS
        operation = (record.at.timestamp_ms, record.batch)
        if operation != self.operation:
            self._settle(len(self.pending))
            self.operation = operation
        self.group.apply(record)
        rows = _NO_ROWS
        kind = KIND_OF_TARGET_EPOCH.get(record.type)
        if kind is not None and record.value is not None:
            rows = self._audit(kind, record)
        self.pending.append(record)
        return rows

    def _audit(self, kind: RecordTypes, end: CoordinatorRecord) -> list[TargetAuditRow]:
        operation = cut(kind, end, self.pending)
        first = self.pending[operation.start] if operation.start < len(self.pending) else end
        self._settle(operation.start)
        if operation.copied:
            return _NO_ROWS
        if self.view is None or self.view.kind is not kind:
            self.view = GroupView.of(kind, self.settings.jdk or 17)
        state = self.group.state
        assert isinstance(state, EpochGroup)
        audit = EpochTargetAudit(self.view, state, operation, self.history, self.settings, None)
        return [audit.row(first)]

    def _settle(self, count: int) -> None:
        """Take in the first pending records: no target that comes can be of an operation with them."""
        for record in self.pending[:count]:
            kind = _KIND_OF.get(record.type)
            if kind is None:
                continue
            if record.type == kind.epoch and record.value is None:
                self.view = None
                continue
            if self.view is None or self.view.kind is not kind:
                self.view = GroupView.of(kind, self.settings.jdk or 17)
            self.view.apply(record)
        del self.pending[:count]
