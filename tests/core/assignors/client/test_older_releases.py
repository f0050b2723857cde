"""Sticky assignors of older releases: what the classes of kafka-clients 2.4.1, 2.6.3, 2.8.2, 3.3.2 and 3.6.2 gave."""

import json

import pytest

from coordinator_core.assignors.case_files.case_types import run_case
from coordinator_core.assignors.client.clients import JAVA, JAVA_CLIENTS
from tests.core.assignors.cases import comparable
from tests.shared_data import ROOT

LINES = (ROOT / "tests" / "data" / "vectors" / "older-clients.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_equals_the_classes_of_that_release(case: dict) -> None:
    assert comparable(run_case(case)) == comparable(case["expected"])


def test_each_release_has_cases_that_others_assign_otherwise() -> None:
    for client in JAVA_CLIENTS:
        of_client = [case for case in CASES if case["client"] == client]
        for other in set(JAVA_CLIENTS) - {client, JAVA}:
            made = [comparable(run_case(case | {"client": other})) for case in of_client]
            assert client == JAVA or made != [comparable(case["expected"]) for case in of_client], other
