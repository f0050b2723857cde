"""Short traces of Kafka 4.3.1's own coordinator in odd situations: neither rules nor targets say it was wrong."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, LogPosition
from coordinator_core.wire.record_codec import decode_record
from tests.core.audit.targets.verdicts import audit_group
from tests.core.small_traces import TRACES, lines_of, name_of
from tests.core.whole_log import judge
from tests.differential.logs_by_group import EVERYTHING, traces_of


def records(trace: Path) -> list[CoordinatorRecord]:
    """What was written, each operation as a batch."""
    found: list[CoordinatorRecord] = []
    for step in lines_of(trace):
        for operation in (step, *step.get("timers", ()), *step.get("tasks", ())):
            batch = len(found)
            for raw in operation.get("records", ()):
                found.append(_record(raw, LogPosition(0, len(found), operation.get("t_ms", step["t_ms"])), batch))
    return found


def _record(raw: dict[str, Any], at: LogPosition, batch: int) -> CoordinatorRecord:
    value = None if raw["value_hex"] is None else bytes.fromhex(raw["value_hex"])
    decoded = decode_record(bytes.fromhex(raw["key_hex"]), value)
    return CoordinatorRecord(at, decoded.type, decoded.key, decoded.value, decoded.value_version, batch)


@pytest.mark.parametrize("trace", TRACES, ids=name_of)
def test_no_rule_fires(trace: Path) -> None:
    written = records(trace)
    assert list(judge(written, Group("g1", from_start=True), Coverage({0: [(0, len(written))]}))) == []


def targets(trace: Path) -> list[TargetAuditRow]:
    """The verdicts on targets that the coordinator made; what leaders of classic groups assign is invented."""
    return [
        row
        for each in traces_of(lines_of(trace))
        for row in audit_group(each.records, Group("g1", from_start=True), each.topics, None, EVERYTHING)
        if row.basis in (Basis.ASSIGNOR, Basis.UPGRADE, Basis.DOWNGRADE)
    ]


@pytest.mark.parametrize("trace", TRACES, ids=name_of)
def test_targets_are_identical_or_say_what_no_record_tells(trace: Path) -> None:
    for row in targets(trace):
        assert row.verdict is Verdict.IDENTICAL or (row.verdict is Verdict.UNKNOWN and row.missing), row


def test_a_heartbeat_that_failed_may_have_left_a_streams_group_without_tasks() -> None:
    (row,) = targets(_trace("streams-failed-heartbeat-configures-the-topology"))
    assert row.verdict is Verdict.UNKNOWN
    assert (row.differences, row.difference_count) == ((), None)
    assert "whether an earlier failed heartbeat saw a topology that was not ready" in (row.missing or "")


@pytest.mark.parametrize(
    ("name", "story"),
    [
        ("migration-topic-deleted-in-the-same-millisecond", "without topics that were deleted"),
        ("migration-static-member-expired-and-came-anew", "had expired and joined again"),
    ],
)
def test_what_an_upgrade_leaves_out_is_explained(name: str, story: str) -> None:
    (row,) = (row for row in targets(_trace(name)) if story in (row.fitted or ""))
    assert row.basis is Basis.UPGRADE
    assert row.verdict is Verdict.IDENTICAL


def _trace(name: str) -> Path:
    return next(each for each in TRACES if name_of(each) == name)
