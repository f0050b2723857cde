"""Answers name the client libraries of a group: who leads, and how many members each has."""

import pytest

from tests.commands import text_of_command
from tests.core.real_logs import unpacked

LOGS = str(unpacked("clients") / "kafka_go_leads" / "logs")
GROUP = "mix-roundrobin-golead"


def answer(*arguments: str) -> str:
    return text_of_command(*arguments, "--log", LOGS)


@pytest.fixture(scope="module")
def timeline() -> list[str]:
    return [line for line in answer("history", GROUP).splitlines() if "\tclients\t" in line]


def test_a_history_says_when_another_client_leads(timeline: list[str]) -> None:
    mixtures = [line.split("\t")[2].partition("; ")[2] for line in timeline]
    assert mixtures[2] == "1 aiokafka, 1 kafka-go, 1 kafka-python"
    assert all("leader gomember@vm" in line and "(kafka-go); " in line for line in timeline)


def test_a_rebalance_is_explained_with_its_clients() -> None:
    text = answer("explain", f"{GROUP}@3")
    assert "Its clients: 1 aiokafka, 1 kafka-go, 1 kafka-python." in text
    assert "leader member gomember@vm" in text


def test_a_description_and_metrics_count_clients(timeline: list[str]) -> None:
    moment = timeline[0].split("\t")[0]
    heads, fields = (line.split("\t") for line in answer("describe", GROUP, "--at", moment).splitlines()[1:3])
    described = dict(zip(heads, fields, strict=True))
    assert described["leader"].endswith("(kafka-go)")
    assert described["clients"].startswith("1 ")
    samples = answer("metrics", "--at", moment)
    assert f'coordinator_audit_group_leader_client{{client="kafka-go",cluster_name="default",group="{GROUP}"' in samples
