"""The coordinator model does, step by step, what Kafka 4.3.1's coordinator did in the recorded traces."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from coordinator_core.coordinator.traces.compare import Difference
from coordinator_core.coordinator.traces.run import run_traces
from tests.shared_data import TRACES

STEPS = {
    "classic": 5320,
    "consumer": 4893,
    "migration": 4926,
    "share": 5066,
    "streams": 4915,
    "failover-classic": 2213,
    "failover-consumer": 2270,
    "failover-migration": 2256,
    "failover-share": 2266,
    "failover-streams": 1888,
    "names-classic": 2230,
    "names-consumer": 2162,
    "names-migration": 2122,
    "names-share": 2106,
    "names-streams": 2141,
}
"""How many steps a file has, all of which have to be equal."""


def read(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(TRACES / f"{name}.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


def is_of_recorder(difference: Difference) -> bool:
    """Whether a difference is only the order of the supported assignors in the message of UNSUPPORTED_ASSIGNOR.

    The recorder checked this field in the place of the coordinator's service, and named them as configured. A broker
    keeps their names in a set: the transcript ``requests_consumer`` has the message of its own service.
    """
    if difference.part != "error":
        return False
    of_both = (difference.expected, difference.actual)
    if any(error is None or error["code"] != "UNSUPPORTED_ASSIGNOR" for error in of_both):
        return False
    expected, actual = (
        {**error, "message": sorted(error["message"].rstrip(".").replace(",", "").split())} for error in of_both
    )
    return bool(expected == actual)


@pytest.mark.parametrize("name", STEPS)
def test_every_step_is_equal(name: str) -> None:
    tally: Counter[tuple[str, bool]] = Counter()
    for result in run_traces(read(name)):
        tally[result.operation, all(map(is_of_recorder, result.differences))] += 1
    assert {operation: count for (operation, equal), count in tally.items() if not equal} == {}
    assert tally.total() == STEPS[name]
