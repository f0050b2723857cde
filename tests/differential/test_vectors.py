"""Every recorded case of every assignor: Kafka 4.3.1's own results, order included, on JDK 17 and 21."""

import gzip
import json
from pathlib import Path

import pytest

from coordinator_core.assignors.case_files.case_types import RUNNERS, run_case
from coordinator_core.assignors.profiles import profile
from tests.core.assignors.cases import comparable
from tests.core.assignors.test_vectors_quick import OWN_TEST
from tests.shared_data import VECTORS

FILES = sorted(VECTORS.rglob("*.jsonl.gz"))


def test_every_kind_is_recorded():
    assert {file.name.removesuffix(".jsonl.gz") for file in FILES} == set(RUNNERS) - OWN_TEST


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(VECTORS)).removesuffix(".jsonl.gz"))
def test_equals_kafka(file: Path) -> None:
    behaviour = profile(jdk=21 if file.parent.name == "jdk21" else 17)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    differing = []
    for case in cases:
        presented = any("presented" in step for step in case["expected"].get("steps", ()))
        if comparable(run_case(case, behaviour, presented=presented)) != comparable(case["expected"]):
            differing.append(case["id"])
    assert cases
    assert not differing, f"{len(differing)} of {len(cases)} differ: {differing[:10]}"
