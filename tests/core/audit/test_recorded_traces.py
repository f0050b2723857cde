"""Short traces of Kafka 4.3.1's own coordinator in odd situations: no rule fires on what it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.rules.fold import judge
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, LogPosition
from coordinator_core.wire.row import decode_record

TRACES = sorted((Path(__file__).parents[2] / "data" / "traces").glob("*.jsonl"))


def records(trace: Path) -> list[CoordinatorRecord]:
    """What was written, each operation as a batch."""
    found: list[CoordinatorRecord] = []
    for line in trace.read_text().splitlines():
        step = json.loads(line)
        for operation in (step, *step.get("timers", ()), *step.get("tasks", ())):
            batch = len(found)
            for raw in operation.get("records", ()):
                found.append(_record(raw, LogPosition(0, len(found), operation.get("t_ms", step["t_ms"])), batch))
    return found


def _record(raw: dict[str, Any], at: LogPosition, batch: int) -> CoordinatorRecord:
    value = None if raw["value_hex"] is None else bytes.fromhex(raw["value_hex"])
    decoded = decode_record(bytes.fromhex(raw["key_hex"]), value)
    return CoordinatorRecord(at, decoded.type, decoded.key, decoded.value, decoded.value_version, batch)


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_no_rule_fires(trace: Path) -> None:
    written = records(trace)
    assert list(judge(written, Group("g1", from_start=True), Coverage({0: [(0, len(written))]}))) == []
