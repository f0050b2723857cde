"""A real cluster of three brokers with racks, whose clients are in racks: a kill, a shutdown, replicas that move."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coordinator_core.records import Family
from jobs.sources.files import find_logs
from jobs.sources.log_reader import by_partition
from jobs.sources.topics import topic_history
from tests.broker.against_admin import Line
from tests.broker.kafka import KAFKA, START_S, Clients, broker, free_ports
from tests.broker.wild.second_broker import REPLICATED, start_second
from tests.commands import rows_of_command

pytestmark = pytest.mark.long

CHANGED = REPLICATED | {
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "2",
    "broker.session.timeout.ms": "6000",
}
MOVED = [("__consumer_offsets", 0, [1, 2]), ("orders", 0, [2, 3]), ("orders", 1, [3, 1])]
"""A partition of the groups' log gets fewer replicas, and two of the topic get other ones."""
ASSIGNORS = {"ranges": "RangeAssignor", "sticky": "StickyAssignor", "coop": "CooperativeStickyAssignor"}
SETTINGS = {"group.protocol": "classic", "metadata.max.age.ms": "2000", "auto.offset.reset": "earliest"}


def join(clients: Clients, name: str, rack: str) -> None:
    for group, assignor in ASSIGNORS.items():
        strategy = f"org.apache.kafka.clients.consumer.{assignor}"
        settings = {**SETTINGS, "client.rack": rack, "partition.assignment.strategy": strategy}
        clients.do("consumer", name=f"{name}-{group}", topics=["orders"], group=group, settings=settings)


@contextmanager
def stopped(processes: dict[int, subprocess.Popen[bytes]]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes.values():
            process.kill()
            process.wait(START_S)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the three brokers have their data."""
    home, ports, others = tmp_path_factory.mktemp("three"), free_ports(2), free_ports(2)
    both, processes = (ports[0], ports[1]), dict[int, subprocess.Popen[bytes]]()

    def start(number: int) -> None:
        rack = f"rack-{'abc'[number - 1]}"
        port = others[number - 2]
        processes[number] = start_second(home, KAFKA, both, port, CHANGED, number=number, rack=rack)

    with broker(home, ports=both, changed={**CHANGED, "broker.rack": "rack-a"}) as first, stopped(processes):
        start(2)
        start(3)
        clients = Clients(f"{first},127.0.0.1:{others[0]},127.0.0.1:{others[1]}", home)
        clients.do("create", topic="orders", partitions=6, replicas=2)
        for name, rack in (("m1", "rack-a"), ("m2", "rack-b"), ("m3", "rack-c")):
            join(clients, name, rack)
            time.sleep(2)
        time.sleep(6)
        processes[3].kill()
        processes[3].wait(START_S)
        time.sleep(12)
        join(clients, "m4", "rack-c")
        time.sleep(6)
        start(3)
        time.sleep(12)
        processes[2].terminate()
        processes[2].wait(START_S)
        time.sleep(6)
        start(2)
        time.sleep(12)
        for topic, partition, replicas in MOVED:
            clients.do("move", topic=topic, partition=partition, replicas=replicas)
        time.sleep(8)
        clients.close()
    return home


def copies(home: Path) -> list[str]:
    return [part for name in ("data", "data-2", "data-3") for part in ("--log", str(home / name))]


def test_no_assignment_is_taken_for_wrong_while_a_broker_is_away(home: Path) -> None:
    rows = [row for row in rows_of_command("audit", *copies(home)) if row["table"] == "target_audits"]
    assert {row["group_id"] for row in rows} == {*ASSIGNORS}
    assert [row for row in rows if row["verdict"] != "identical"] == []
    assert any("without the racks of broker 3" in (row["fitted"] or "") for row in rows)


def test_brokers_that_go_and_come_back_are_causes(home: Path) -> None:
    causes = [cause for row in rows_of_command("rebalances", *copies(home)) for cause in row["causes"]]
    assert [cause for cause in causes if cause["kind"] == "unknown"] == []
    details = {cause["detail"] for cause in causes if cause["kind"] == "rack_changed"}
    assert {f"broker {number} went: racks of its replicas" for number in (2, 3)} <= details
    assert {f"broker {number} came back: racks of its replicas" for number in (2, 3)} <= details


def test_a_kill_is_told_from_a_shutdown(home: Path) -> None:
    files = by_partition(find_logs([home / "data"]))[Family.METADATA][0]
    brokers = topic_history(files, lambda message: None).brokers
    away = [(each.broker, each.is_planned, each.until is not None) for each in brokers.absences()]
    assert (3, False, True) in away
    assert (2, True, True) in away


def test_each_copy_alone_and_all_together_tell_the_same(home: Path) -> None:
    def told(*arguments: str) -> set[tuple[str, int]]:
        return {(row["group_id"], row["to_epoch"]) for row in rows_of_command("rebalances", *arguments)}

    first: list[Line] = rows_of_command("groups", "--log", home / "data")
    assert {row["group"] for row in first if "group" in row} == {*ASSIGNORS}
    assert told(*copies(home)) == told("--log", str(home / "data"))
