"""A watch of two real brokers: one is killed and comes back, clients join, crash and lag, and the watch is killed."""

import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from coordinator_core.groups.log_partition import log_partition_of
from tests.broker.kafka import KAFKA, START_S, Clients, broker, free_ports
from tests.broker.test_watch import Line, Watch
from tests.broker.wild.second_broker import REPLICATED, start_second
from tests.commands import rows_of_command

LOG_PARTITIONS = 4
GROUPS = [
    next(name for number in range(100) if log_partition_of(name := f"group-{number}", LOG_PARTITIONS) == partition)
    for partition in range(LOG_PARTITIONS)
]
"""One in each partition of the log: of each broker some are led."""
SETTINGS = {"group.protocol": "consumer", "auto.commit.interval.ms": "500", "auto.offset.reset": "earliest"}


def epochs(lines: list[Line], event: str, *, is_sure: bool = False) -> Counter[tuple[str, int]]:
    return Counter(
        (line["group_id"], line["to_epoch"])
        for line in lines
        if line["event"] == event and not (is_sure and "repeated" in line)
    )


def join(clients: Clients, name: str) -> None:
    for group in GROUPS:
        clients.do("consumer", name=f"{name}-{group}", topics=["orders"], group=group, settings=SETTINGS)


def of_each_group(number: int, event: str) -> Any:
    return lambda lines: all(
        sum(1 for found, _ in epochs(lines, event) if found == group) >= number for group in GROUPS
    )


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Line], list[Line], str, Path]:
    """What the watch printed, the rebalances in the log afterwards, what it served, and its folder."""
    home, ports, (second_port, metrics) = tmp_path_factory.mktemp("two"), free_ports(2), free_ports(2)
    both = (ports[0], ports[1])
    options = ["--state", str(home / "state.db"), "--listen", f"127.0.0.1:{metrics}"]
    with broker(home, ports=both, changed=REPLICATED) as first:
        second = start_second(home, KAFKA, both, second_port, REPLICATED)
        servers = f"{first},127.0.0.1:{second_port}"
        staying, crashing = Clients(servers, home), Clients(servers, home)
        staying.do("create", topic="orders", partitions=4)
        staying.do("produce", topic="orders", count=20)
        join(staying, "stays")
        time.sleep(8)
        watch = Watch(servers, home, *options)
        watch.until_it_watches()
        join(crashing, "crashes")
        watch.until(of_each_group(1, "rebalance_ended"))
        second.kill()
        second.wait(START_S)
        crashing.kill()
        watch.until(of_each_group(2, "rebalance_began"))
        watch.process.kill()
        watch.process.wait(START_S)
        second = start_second(home, KAFKA, both, second_port, REPLICATED)
        again = Watch(servers, home, *options)
        again.until(of_each_group(2, "rebalance_ended"))
        for _ in range(4):  # each gives commits: Burrow's rules compare some
            staying.do("produce", topic="orders", count=40)
            time.sleep(1.5)
        staying.kill()
        last = Clients(servers, home)
        last.do("produce", topic="orders", count=40)
        again.until(of_each_group(3, "rebalance_ended"))
        again.until(lambda lines: {line["group_id"] for line in lines if line["event"] == "lag"} >= {*GROUPS})
        with urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=10) as answer:
            served = answer.read().decode()
        again.stop()
        last.close()
        second.terminate()
        second.wait(START_S)
    return again.lines(), rows_of_command("rebalances", "--log", home / "data"), served, home


def test_nothing_is_lost_or_told_twice_over_a_fail_over_and_a_kill(watched) -> None:
    lines, rows, _, _ = watched
    for event in ("rebalance_began", "rebalance_ended"):
        told = epochs(lines, event)
        assert max(epochs(lines, event, is_sure=True).values()) == 1
        for group in GROUPS:
            first = min(epoch for found, epoch in told if found == group)
            expected = {
                (group, row["to_epoch"])
                for row in rows
                if row["group_id"] == group and row["to_epoch"] >= first
                if not (event == "rebalance_ended" and row["is_open"])
            }
            assert {each for each in told if each[0] == group} == expected


def test_a_broker_that_goes_away_does_not_end_the_watch(watched) -> None:
    _, _, _, home = watched
    assert "Error" not in (home / "watch.err").read_text()


def test_groups_that_stop_are_told_of(watched) -> None:
    lines, _, _, _ = watched
    last = {line["group_id"]: line for line in lines if line["event"] == "lag"}
    for group in GROUPS:
        assert last[group]["status"] == "ERR"
        assert last[group]["lag"] > 0
        assert {point["status"] for point in last[group]["worst"]} == {"STOP"}


def test_the_metrics_have_the_lag(watched) -> None:
    lines, _, served, _ = watched
    lag = {
        sample.labels["group"]: sample.value
        for family in text_string_to_metric_families(served)
        for sample in family.samples
        if sample.name == "kafka_consumergroup_group_sum_lag"
    }
    assert {group: lag[group] for group in GROUPS} == {
        line["group_id"]: line["lag"] for line in lines if line["event"] == "lag"
    }
