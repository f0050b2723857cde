"""Folds as a later run finds them: their state written as JSON and read again."""

from __future__ import annotations

from coordinator_core.audit.rules.rule_fold import RuleFold
from coordinator_core.audit.rules.state_json import watch_from_json, watch_to_json
from coordinator_core.audit.state_json import memory_from_json, memory_to_json
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.state_json import decode_group, encode_group, read_json, write_json
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.state_json import ledger_from_json, ledger_to_json


def next_history(fold: GroupFold, topics: TopicHistory | None = None) -> GroupFold:
    ledger = read_json(write_json(ledger_to_json(fold.ledger)), "history")
    return GroupFold(decode_group(encode_group(fold.group)), ledger_from_json(ledger), topics)


def next_rules(rules: RuleFold, coverage: Coverage) -> RuleFold:
    watch = read_json(write_json(watch_to_json(rules.watch)), "state of the rules")
    return RuleFold(decode_group(encode_group(rules.group)), watch_from_json(watch), coverage)


def next_auditor(auditor: TargetAuditor, topics: TopicHistory | None, coverage: Coverage) -> TargetAuditor:
    memory = read_json(write_json(memory_to_json(auditor.memory)), "target audit")
    return TargetAuditor(decode_group(encode_group(auditor.group)), memory_from_json(memory), topics, coverage=coverage)
