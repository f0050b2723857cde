"""Verdicts on assignments that other clients than Kafka's made, on a real broker: each is what its client computes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from coordinator_core.audit.rows import Basis, Verdict
from coordinator_core.audit.settings import AuditSettings
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs
from tests.core.real_logs import unpacked
from tests.shared_data import CORPUS


def verdicts(logs: Path) -> Counter[str]:
    """Count the verdicts of classic groups by assignor."""
    counted: Counter[str] = Counter()
    for history in group_histories(find_logs([logs]), lambda message: None, audit=AuditSettings()):
        for row in history.targets:
            if row.group_type == "CLASSIC":
                counted[f"{row.assignor} {row.verdict}"] += 1
                assert (row.verdict == Verdict.SOUND) <= (row.basis == Basis.INVARIANTS)
    return counted


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("kafka_go_leads", {"range identical": 7, "roundrobin identical": 6}),
        ("topic_listed_twice", {"cooperative-sticky identical": 34, "cooperative-sticky sound": 15}),
    ],
)
def test_verdicts_on_the_groups_of_other_clients(run: str, expected: dict[str, int]) -> None:
    assert verdicts(unpacked("clients") / run / "logs") == expected


@pytest.mark.skipif(not (CORPUS / "clients").is_dir(), reason="needs ../shared")
def test_verdicts_on_the_groups_of_ten_clients() -> None:
    """What sarama and franz-go make of Go's maps, and one assignor of an application, cannot be computed again.

    The round robin of platformatic gives partitions to members that do not want them.
    """
    assert verdicts(CORPUS / "clients" / "logs") == {
        "EvenOddAssigner sound": 15,
        "RoundRobinAssigner identical": 14,
        "cooperative-sticky identical": 118,
        "cooperative-sticky sound": 76,
        "rack-affinity identical": 9,
        "range identical": 200,
        "roundrobin identical": 174,
        "roundrobin invalid": 9,
        "sticky identical": 64,
        "sticky sound": 45,
    }
