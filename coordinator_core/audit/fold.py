"""Everything that is made of one group's records in one pass: history, broken rules, verdicts on targets."""

from __future__ import annotations

import json
from typing import Any

from coordinator_core.audit.codec import VERSION as AUDIT_VERSION
from coordinator_core.audit.codec import decode_audit, encode_audit
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.rules.codec import VERSION as RULES_VERSION
from coordinator_core.audit.rules.codec import decode_rules, encode_rules
from coordinator_core.audit.rules.fold import RuleFold
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets import TargetAuditor
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import StateFormatError
from coordinator_core.groups.codec import VERSION as GROUP_VERSION
from coordinator_core.groups.group import Group
from coordinator_core.groups.violations import Violation
from coordinator_core.history.codec import VERSION as HISTORY_VERSION
from coordinator_core.history.codec import decode_history, encode_history
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.fold import GroupFold
from coordinator_core.history.rows import TABLES, HistoryRow, Table
from coordinator_core.records import CoordinatorRecord, Family

STATE_VERSION = f"{HISTORY_VERSION}.{RULES_VERSION}.{AUDIT_VERSION}.{GROUP_VERSION}"
"""Of the form of ``GroupAudit.state``: one of another form is of no use, and the group is folded anew."""

TARGET_AUDITS = Table("target_audits", TargetAuditRow, ("group_id", "at.partition", "at.offset"))
AUDITED_TABLES = (*TABLES, TARGET_AUDITS)
"""Every table whose rows the core makes of the records of groups and topics."""

AuditedRow = HistoryRow | TargetAuditRow


class GroupAudit:
    """The three folds of one group as one; feed each record once, in offset order.

    Connect groups of a log of their own have no targets that could be recomputed.
    """

    __slots__ = ("_history", "_rules", "_targets")

    def __init__(self, history: GroupFold, rules: RuleFold, targets: TargetAuditor | None) -> None:
        self._history = history
        self._rules = rules
        self._targets = targets

    @classmethod
    def begin(
        cls,
        group_id: str,
        family: Family,
        topics: TopicHistory | None,
        coverage: Coverage,
        settings: AuditSettings | None,
        *,
        from_start: bool,
    ) -> GroupAudit:
        """The folds of a group of which nothing was read before; without ``settings`` targets are not judged."""

        def group() -> Group:
            return Group(group_id, from_start=from_start, family=family)

        targets = None
        if settings is not None and family is Family.GROUP:
            targets = TargetAuditor(group(), None, topics, settings, coverage)
        rules = RuleFold(Group(group_id, family=family), None, coverage)
        return cls(GroupFold(group(), None, topics, coverage), rules, targets)

    @classmethod
    def resume(cls, text: str, topics: TopicHistory | None, coverage: Coverage, settings: AuditSettings) -> GroupAudit:
        """The folds as ``state`` wrote them; raises StateFormatError if that was another form."""
        try:
            stored: dict[str, Any] = json.loads(text)
            history, rules, targets = stored["history"], stored["rules"], stored["targets"]
        except (ValueError, TypeError, KeyError) as error:
            raise StateFormatError("not a stored state of a group's audit") from error
        return cls(
            GroupFold(*decode_history(history), topics, coverage),
            RuleFold(*decode_rules(rules), coverage),
            None if targets is None else TargetAuditor(*decode_audit(targets), topics, settings, coverage),
        )

    def feed(self, record: CoordinatorRecord, leader_epoch: int | None = None) -> list[AuditedRow]:
        """The rows that this record makes final; raises nothing."""
        rows: list[AuditedRow] = [row for row in self._history.feed(record) if not isinstance(row, Violation)]
        rows += self._rules.feed(record)
        if self._targets is not None:
            rows += self._targets.feed(record, leader_epoch)
        return rows

    def open_rows(self) -> list[AuditedRow]:
        """Rows of what lasts as of the last record: a later run replaces them by their keys."""
        rows: list[AuditedRow] = [row for row in self._history.open_rows() if not isinstance(row, Violation)]
        return rows + self._rules.open_rows()

    def state(self) -> str:
        """What the next run goes on with, as one JSON text."""
        targets = self._targets
        stored = {
            "history": encode_history(self._history.group, self._history.ledger),
            "rules": encode_rules(self._rules.group, self._rules.watch),
            "targets": None if targets is None else encode_audit(targets.group, targets.memory),
        }
        return json.dumps(stored, separators=(",", ":"))
