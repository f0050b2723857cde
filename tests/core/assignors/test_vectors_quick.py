"""A few recorded cases a kind, small enough for every run; tests/differential has them all."""

import json
from pathlib import Path

import pytest

from coordinator_core.assignors.case_files.case_types import RUNNERS, run_case
from tests.core.assignors.cases import comparable
from tests.shared_data import ROOT

OWN_TEST = {
    "streams-highly-available",
    "client-RoundRobinAssigner",
    "client-rack-affinity",
    "older-clients",
    "recorded-clients",
}
"""Compared by ``streams/test_kafka_cases.py``, and in ``client/`` by tests of clients and of their older releases."""
FILES = [file for file in sorted((ROOT / "tests" / "data" / "vectors").glob("*.jsonl")) if file.stem not in OWN_TEST]


def test_every_kind_has_some():
    assert {file.stem for file in FILES} == set(RUNNERS) - OWN_TEST


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_equals_kafka(file: Path) -> None:
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        presented = any("presented" in step for step in case["expected"].get("steps", ()))
        assert comparable(run_case(case, presented=presented)) == comparable(case["expected"]), case["id"]
