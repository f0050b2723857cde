"""Folds as a later run finds them: their state written as JSON and read again."""

from typing import TypeVar

from coordinator_core.audit.rules.known_facts import KnownFacts
from coordinator_core.audit.rules.rule_fold import RuleFold
from coordinator_core.audit.targets.audit_state import TargetAuditState
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.state_json import StateForm

T = TypeVar("T")

GROUP, HISTORY = StateForm(Group, "group"), StateForm(OpenHistory, "history")
RULES, TARGETS = StateForm(KnownFacts, "state of the rules"), StateForm(TargetAuditState, "target audit")


def again(form: StateForm[T], state: T) -> T:
    return form.decode(form.encode(state))


def next_history(fold: GroupFold, topics: TopicHistory | None = None) -> GroupFold:
    return GroupFold(again(GROUP, fold.group), again(HISTORY, fold.open_history), topics)


def next_rules(rules: RuleFold, coverage: Coverage) -> RuleFold:
    return RuleFold(again(GROUP, rules.group), again(RULES, rules.facts), coverage)


def next_auditor(auditor: TargetAuditor, topics: TopicHistory | None, coverage: Coverage) -> TargetAuditor:
    return TargetAuditor(again(GROUP, auditor.group), again(TARGETS, auditor.memory), topics, coverage=coverage)
