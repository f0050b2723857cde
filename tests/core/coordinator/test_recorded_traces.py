"""Short traces of Kafka 4.3.1's own coordinator in situations where the model once did something else.

For each type of group one trace with fail-overs, and one whose names share a bucket in Java's collections.
"""

from copy import deepcopy
from pathlib import Path

import pytest

from coordinator_core.coordinator.traces.run import run_traces
from tests.core.small_traces import TRACES, lines_of, name_of
from tests.differential.traced_states import compared


@pytest.mark.parametrize("trace", TRACES, ids=name_of)
def test_the_model_does_what_the_coordinator_did(trace: Path) -> None:
    results = list(run_traces(lines_of(trace)))
    assert results
    assert [(each.number, each.operation, each.differences) for each in results if not each.equal] == []


@pytest.mark.parametrize("trace", TRACES, ids=name_of)
def test_its_records_lead_to_the_state_that_it_had(trace: Path) -> None:
    assert compared(lines_of(trace))["equal"]


@pytest.mark.parametrize("of", ["classic", "consumer", "migration", "share", "streams"])
def test_coordinators_fail_over_to_whole_and_to_compacted_logs(of: str) -> None:
    (trace,) = (each for each in TRACES if name_of(each) == f"{of}-fail-overs")
    assert {step["compacted"] for step in lines_of(trace) if step.get("op") == "fail_over"} == {True, False}


@pytest.mark.parametrize(("listed", "is_equal"), [("range, uniform", 1), ("uniform, range", 1), ("range, other", 0)])
def test_supported_assignors_may_be_listed_in_any_order(listed: str, is_equal: bool) -> None:
    """Java's immutable sets have another order in each process; another name is a difference."""
    (trace,) = (each for each in TRACES if name_of(each) == "migration-static-member-expired-and-came-anew")
    header, *steps = map(deepcopy, lines_of(trace))
    header["config"]["group.consumer.assignors"] = ["range", "uniform"]  # the first one is the default, as before
    (refused,) = (step for step in steps if "Supported assignors" in str(step.get("error")))
    refused["request"]["data"]["serverAssignor"] = "bad"
    refused["error"]["message"] = f"ServerAssignor bad is not supported. Supported assignors: {listed}."
    assert [each.number for each in run_traces([header, *steps]) if not each.equal] == [refused["i"]] * (1 - is_equal)
