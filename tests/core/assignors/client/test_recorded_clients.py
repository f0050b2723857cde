"""What leaders of releases before today's, and of @platformatic/kafka 2.12, gave in groups on real brokers, as sets."""

import json

import pytest

from coordinator_core.assignors.case_files.case_types import run_case
from coordinator_core.assignors.client.clients import CLIENTS, RELEASES
from tests.shared_data import ROOT

LINES = (ROOT / "tests" / "data" / "vectors" / "recorded-clients.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [json.loads(line) for line in LINES]


def given(case: dict) -> dict[str, list]:
    """Return what the members have after the only step of a case, in order; nothing if the assignor fails."""
    work = run_case(case)["steps"][0].get("assignment", {})
    return {member: sorted([topic, sorted(numbers)] for topic, numbers in held) for member, held in work.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_equals_what_a_leader_of_that_release_gave(case: dict) -> None:
    assert given(case) == case["expected"]["steps"][0]["assignment"]


@pytest.mark.parametrize("client", sorted({case["client"] for case in CASES} - {"sarama", "platformatic-2.12"}))
def test_the_client_of_today_assigns_otherwise(client: str) -> None:
    """So that the releases cannot be taken for one."""
    today = client.rpartition("-")[0]
    own = [
        case
        for case in CASES
        if case["client"] == client and case["assignor"].removeprefix("client-") in CLIENTS[today]
    ]
    assert today in RELEASES
    assert any(given(case | {"client": today}) != case["expected"]["steps"][0]["assignment"] for case in own)
