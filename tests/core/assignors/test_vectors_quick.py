"""A few recorded cases a kind, small enough for every run; tests/differential has them all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coordinator_core.assignors.cases.kinds import run_case
from tests.shared_data import ROOT

FILES = sorted((ROOT / "tests" / "data" / "vectors").glob("c*.jsonl"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_equals_kafka(file: Path) -> None:
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        assert run_case(case) == case["expected"], case["id"]
