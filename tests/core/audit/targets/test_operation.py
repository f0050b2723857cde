"""Where an operation that wrote a target begins, be its batch known or not."""

import pytest

from coordinator_core.audit.targets.operation import TargetOperation, cut
from coordinator_core.groups.record_types import CONSUMER_RECORDS
from coordinator_core.records import AnyRecord, RecordType
from tests.core.builders import GroupLog


def operation_after(log: GroupLog, before: list[AnyRecord]) -> TargetOperation:
    target = log.target("stays", {"orders": [0, 1]})
    return cut(CONSUMER_RECORDS, log.target_epoch(7), [*before, target])


@pytest.mark.parametrize("kind", ["left", "left, the last one with a regular expression", "resolved"])
def test_the_epoch_of_a_departure_is_not_of_the_target_that_a_later_heartbeat_computes(kind: str) -> None:
    """A dump by a consumer does not show that they are two batches; a segment may have both in one."""
    log = GroupLog()
    before = [log.regex("o.*", ["orders"])] if kind == "resolved" else log.gone("leaves")
    if "regular" in kind:
        before.append(log.tombstone(RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, regularExpression="o.*"))
    operation = operation_after(log, [*before, log.epoch(7)])
    assert operation.start == len(before) + 1
    assert operation.epoch is None
    assert len(operation.targets) == 1


def test_the_epoch_of_a_heartbeat_is_of_its_target() -> None:
    log = GroupLog()
    assert operation_after(log, [log.epoch(7)]).start == 0
    assert operation_after(log, [log.member("stays"), log.epoch(7)]).start == 0


def test_a_static_member_that_replaces_another_one_is_of_the_operation() -> None:
    log = GroupLog()
    new = [log.member("stays"), log.target("stays", {"orders": [0]}), log.current("stays", 6, {"orders": [0]})]
    operation = operation_after(log, [*log.gone("before"), *new, log.member("stays"), log.epoch(7)])
    assert (operation.start, operation.replaced) == (0, "before")
