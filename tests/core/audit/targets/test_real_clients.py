"""Verdicts on assignments that other clients than Kafka's made, on a real broker: each is what its client computes."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from coordinator_core.audit.rows import Basis, Verdict
from coordinator_core.audit.settings import AuditSettings
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs
from tests.core.real_logs import histories, unpacked
from tests.shared_data import CORPUS

SOON_MS = 1_000
"""A client says what it has up to so long before or after the record of it."""
NEVER_MS = 2**60


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


def test_verdicts_on_groups_with_racks() -> None:
    """Three brokers in racks; kafka-go walks over their racks in the order of Go's maps.

    In three of the groups the sticky assignor of librdkafka moves partitions between members with and without racks.
    """
    assert verdicts(unpacked("racks") / "racks" / "logs") == {
        "cooperative-sticky identical": 127,
        "rack-affinity identical": 29,
        "rack-affinity sound": 13,
        "range identical": 62,
        "sticky identical": 10,
    }


def test_verdicts_where_franz_go_balances_racks() -> None:
    """Its option BalanceRacks: the racks of the partitions' leaders, which no group's record has, change its range."""
    assert verdicts(unpacked("racks") / "racks" / "balance_racks" / "logs") == {
        "cooperative-sticky sound": 15,
        "range identical": 2,
        "range sound": 8,
        "sticky sound": 10,
    }


def test_members_in_racks_have_what_they_said() -> None:
    had = defaultdict(list)
    for history in histories(unpacked("racks") / "racks" / "logs").values():
        for row in history.assignments:
            if row.kind == "current":
                until_ms = row.until.timestamp_ms if row.until else NEVER_MS
                had[row.member_id, f"{row.topic}-{row.partition}"].append((row.since.timestamp_ms, until_ms))
    said = (unpacked("racks") / "racks" / "truth.jsonl").read_text().splitlines()
    assert len(said) > 400
    for line in map(json.loads, said):
        for name in line["assigned"]:
            times = had[line["member"], f"{line['group']}.{name}"]
            assert any(since - SOON_MS <= line["t"] <= until + SOON_MS for since, until in times), line


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
