"""The model of a share group does what Kafka's own coordinator does, in random scripts that both are given."""

from collections import Counter
from pathlib import Path

from coordinator_core.coordinator.traces.run import run_traces
from tests.broker.share_group import kafkas_coordinator
from tests.broker.share_group.scripts import record_trace

TRACES, STEPS = 100, 150


def test_random_scripts_are_equal_step_by_step(tmp_path: Path) -> None:
    with kafkas_coordinator(tmp_path) as do:
        lines = [line for seed in range(TRACES) for line in record_trace(seed, STEPS, do)]
    tally = Counter((each.operation, each.equal) for each in run_traces(lines))
    assert {operation for operation, equal in tally if not equal} == set()
    assert tally.total() == TRACES * STEPS
