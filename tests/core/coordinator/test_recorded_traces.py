"""Short traces of Kafka 4.3.1's own coordinator in situations where the model once did something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coordinator_core.coordinator.traces.run import run_traces
from tests.differential.decoded import Line
from tests.differential.traced_states import compared

TRACES = sorted((Path(__file__).parents[2] / "data" / "traces").glob("*.jsonl"))


def steps(trace: Path) -> list[Line]:
    return [json.loads(line) for line in trace.read_text().splitlines()]


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_the_model_does_what_the_coordinator_did(trace: Path) -> None:
    results = list(run_traces(steps(trace)))
    assert results
    assert [(each.number, each.operation, each.differences) for each in results if not each.equal] == []


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_its_records_lead_to_the_state_that_it_had(trace: Path) -> None:
    assert compared(steps(trace))["equal"]
