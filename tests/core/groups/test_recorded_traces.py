"""Short traces of Kafka 4.3.1's own coordinator in situations where the model once did something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coordinator_core.audit.traces import run_traces

TRACES = sorted((Path(__file__).parents[2] / "data" / "traces").glob("*.jsonl"))


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_the_model_does_what_the_coordinator_did(trace: Path) -> None:
    results = list(run_traces(json.loads(line) for line in trace.read_text().splitlines()))
    assert results
    assert [(each.number, each.operation, each.differences) for each in results if not each.equal] == []
