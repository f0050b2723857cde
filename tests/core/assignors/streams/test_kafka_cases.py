"""``highly_available`` against recorded results of Kafka Streams' own assignor, process by process, order aside."""

import json

import pytest

from tests.core.assignors.streams.kafka_cases import (
    DOCUMENTED,
    UNBOUNDED,
    assigned,
    differences,
    documented,
    recorded,
    union,
)
from tests.shared_data import ROOT

FILE = ROOT / "tests" / "data" / "vectors" / "streams-highly-available.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
DIFFERENCES = differences(CASES)
BY_ID = {case["id"]: case for case in CASES}
ALL_COPIES = ("standby", "warmup")


@pytest.mark.parametrize("case_id", BY_ID)
def test_gives_each_process_what_kafka_streams_gives(case_id):
    given = BY_ID[case_id]["input"]
    assert (documented(given) == given) == (case_id + DOCUMENTED not in BY_ID)
    assert DIFFERENCES[case_id] == []


def departing(case_id: str) -> bool:
    """Whether some process gets other tasks than Kafka's client gives for the very same input."""
    ours, kafka = assigned(BY_ID[case_id]["input"]), recorded(BY_ID[case_id]["expected"])
    return any(
        ours[process]["active"] != kafka[process]["active"]
        or union(ours[process], ALL_COPIES) != union(kafka[process], ALL_COPIES)
        for process in kafka
    )


def test_every_departure_is_recorded():
    read_otherwise = {case_id: BY_ID[case_id]["input"] for case_id in BY_ID if case_id + DOCUMENTED in BY_ID}
    departs = {case_id for case_id in BY_ID if departing(case_id)}
    assert departs <= read_otherwise.keys()
    bounded = {case_id for case_id, given in read_otherwise.items() if given["acceptable_recovery_lag"] == UNBOUNDED}
    assert departs & bounded, "no end is known, any lag is acceptable"
    assert departs - bounded, "an offset is beyond the end"
    made = {
        case_id
        for case_id, case in BY_ID.items()
        for process, roles in assigned(case["input"]).items()
        if roles["warmup"] & recorded(case["expected"])[process]["waiting"]
    }
    assert made, "a standby task is a warm-up"
