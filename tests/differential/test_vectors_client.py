"""Every recorded case of the assignors that clients run: Kafka 4.3.1's own results, lists in order."""

from __future__ import annotations

import gzip
import json

import pytest

from coordinator_core.assignors.cases.kinds import run_case
from coordinator_core.assignors.profiles import profile
from tests.shared_data import VECTORS

UNSTABLE_MESSAGES = {"NullPointerException", "NoSuchElementException", "IllegalStateException"}

FILES = [
    ("client-range", 17),
    ("client-roundrobin", 17),
    ("client-sticky", 17),
    ("client-cooperative-sticky", 17),
    ("connect-eager", 17),
    ("connect-incremental", 17),
    ("connect-incremental", 21),
]


def comparable(expected: dict) -> list[dict]:
    """Steps of a result, without the messages that differ from one JVM to the next."""
    return [{"error": step["error"]} if step.get("error") in UNSTABLE_MESSAGES else step for step in expected["steps"]]


@pytest.mark.parametrize(("kind", "jdk"), FILES)
def test_equals_kafka(kind: str, jdk: int) -> None:
    folder = VECTORS if jdk == 17 else VECTORS / f"jdk{jdk}"
    with gzip.open(folder / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    differing = [
        case["id"] for case in cases if comparable(run_case(case, profile(jdk=jdk))) != comparable(case["expected"])
    ]
    assert cases
    assert not differing, f"{len(differing)} of {len(cases)} differ: {differing[:10]}"
