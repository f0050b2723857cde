"""A value that no list of this project has is told as new, and nobody is blamed for it: releases go on."""

from copy import deepcopy
from typing import Any

import pytest

from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.snapshot_settings import ResourceKind, SettingRun, SnapshotSettings
from coordinator_core.groups.consumer.state import ConsumerMemberState
from coordinator_core.groups.rules import Rule, Severity
from coordinator_core.groups.streams.state import StreamsMemberState
from coordinator_core.groups.violations import Violation
from coordinator_core.records import CoordinatorRecord, Family, Fields, RecordType
from tests.core.recorded import EVERYTHING, sample

T = RecordType
NEW_STATE = 1 + max(*ConsumerMemberState, *StreamsMemberState)

FIELDS: dict[str, tuple[tuple[RecordType, ...], str, Any, str | None]] = {
    "state of a member": (
        (
            T.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            T.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            T.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        ),
        "state",
        NEW_STATE,
        "unknown_member_state",
    ),
    "assignor of brokers": ((T.CONSUMER_GROUP_MEMBER_METADATA,), "serverAssignor", "balanced", None),
    "assignor of clients": ((T.GROUP_METADATA,), "protocol", "balanced", None),
    "protocol type": ((T.GROUP_METADATA,), "protocolType", "newer", None),
    "assignor of a streams group": (
        (T.STREAMS_GROUP_METADATA,),
        "lastAssignmentConfigs",
        [{"key": "assignor.name", "value": "balanced"}],
        None,
    ),
    "configuration of the assignment": (
        (T.STREAMS_GROUP_METADATA,),
        "lastAssignmentConfigs",
        [{"key": "a.later.one", "value": "x"}],
        None,
    ),
}
"""What is closed here and open in Kafka: in which records, the field, a value that is not known, and the rule that
tells it.
"""

BLAMING = (Verdict.INVALID, Verdict.DIVERGENT)


def with_value(fields: Fields, field: str, value: Any) -> Fields:
    """The same fields with another value, or with one more in a list."""
    return {**fields, field: [*fields[field], *value] if isinstance(value, list) else value}


def audit(records: list[CoordinatorRecord], topics: Any) -> tuple[list[Violation], list[TargetAuditRow]]:
    first = records[0]
    followed = GroupAudit.begin(first.group_id, Family.GROUP, topics, EVERYTHING, AuditSettings(), from_start=True)
    rows = [row for record in records for row in followed.feed(record)]
    rows += followed.open_rows()
    return (
        [row for row in rows if isinstance(row, Violation)],
        [row for row in rows if isinstance(row, TargetAuditRow)],
    )


@pytest.mark.parametrize("name", FIELDS)
def test_a_new_value_of_a_field_is_no_fault(name: str) -> None:
    types, field, value, rule = FIELDS[name]
    groups, topics = sample()
    changes = 0
    for records in groups.values():
        changed = [
            each._replace(value=with_value(each.value, field, value))
            if each.type in types and each.value and each.value.get(field) is not None
            else each
            for each in records
        ]
        if changed == list(records):
            continue
        changes += 1
        violations, judged = audit(changed, topics)
        assert {Rule(row.rule).severity for row in violations} <= {Severity.NOTICE}, violations
        assert {row.rule for row in violations} <= {rule}
        assert bool(violations) == (rule is not None)
        assert not [row for row in judged if row.verdict in BLAMING]
    assert changes


@pytest.mark.parametrize("setting", ["group.consumer.assignors", "group.share.assignors", "group.streams.assignors"])
def test_a_new_assignor_that_brokers_are_set_to_is_no_fault(setting: str) -> None:
    groups, topics = deepcopy(sample())
    run = SettingRun(ResourceKind.BROKER, "1", setting, "balanced,uniform,simple,sticky", 0, 1 << 60)
    topics.snapshots = SnapshotSettings.of([], [run])
    for records in groups.values():
        violations, judged = audit(list(records), topics)
        assert not violations
        assert not [row for row in judged if row.verdict in BLAMING]
