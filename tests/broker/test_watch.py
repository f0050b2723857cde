"""A watch of a real broker: consumers join, leave and crash, and the broker goes away and comes back."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.broker.kafka import Clients, broker, free_ports
from tests.commands import rows_of_command

GROUP = "orders-service"
CONSUMER = {"topics": ["orders"], "group": GROUP, "settings": {"group.protocol": "consumer"}}
LATE_S = 60.0

Line = dict[str, Any]


class Watch:
    """A process of the command; ``lines`` has what it printed so far."""

    def __init__(self, servers: str, home: Path, *options: str) -> None:
        self.out, self.errors = home / "watch.out", home / "watch.err"
        command = [sys.executable, "-m", "coordinator_audit", "watch", f"kafka://{servers}", "--json", *options]
        with self.out.open("a") as out, self.errors.open("a") as errors:
            self.process = subprocess.Popen(command, stdout=out, stderr=errors)

    def lines(self) -> list[Line]:
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    def until(self, condition: Callable[[list[Line]], bool]) -> list[Line]:
        end = time.monotonic() + LATE_S
        while time.monotonic() < end:
            if condition(self.lines()):
                return self.lines()
            time.sleep(0.2)
        raise AssertionError(f"not seen within {LATE_S} s: {self.lines()} {self.errors.read_text()}")

    def until_it_watches(self) -> None:
        end = time.monotonic() + LATE_S
        while time.monotonic() < end and '"watching' not in self.errors.read_text():
            time.sleep(0.2)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(LATE_S) == 0, self.errors.read_text()


def ended(lines: list[Line]) -> list[int]:
    return [line["to_epoch"] for line in lines if line["event"] == "rebalance_ended" and line["group_id"] == GROUP]


def causes(lines: list[Line]) -> list[str]:
    return [
        cause["kind"]
        for line in lines
        if line["event"] == "rebalance_began" and line["group_id"] == GROUP
        for cause in line["causes"]
    ]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Line], list[Line], list[Line], Path]:
    """What a watch printed, what one printed that went on from its state, the rebalances in a copy of the log, and
    the folder of the watch.
    """
    home, ports = tmp_path_factory.mktemp("watched"), free_ports(2)
    state = ["--state", str(home / "state.json")]
    with broker(home, ports=(ports[0], ports[1])) as servers:
        clients = Clients(servers, home)
        clients.do("create", topic="orders", partitions=4)
        clients.do("consumer", name="before", **CONSUMER)
        time.sleep(5)
        watch = Watch(servers, home, *state)
        watch.until_it_watches()
        clients.do("consumer", name="joins", **CONSUMER)
        watch.until(lambda lines: len(ended(lines)) >= 1)
        clients.do("close", name="joins")
        watch.until(lambda lines: len(ended(lines)) >= 2)
        watch.stop()
        first = watch.lines()
        watch.out.write_text("")
        clients.do("consumer", name="while-away", **CONSUMER)
        time.sleep(5)
        again = Watch(servers, home, *state)
        again.until(lambda lines: len(ended(lines)) >= 1)
    with broker(home, ports=(ports[0], ports[1])):
        clients.kill()
        again.until(lambda lines: causes(lines).count("member_left_or_expired") >= 2)
        again.stop()
        second = again.lines()
    rows = rows_of_command("rebalances", "--log", home / "data", "--group", GROUP)
    return first, second, rows, home


def test_a_rebalance_is_told_when_it_begins_and_when_it_ends(watched) -> None:
    first, _, _, _ = watched
    assert causes(first) == ["member_joined", "member_left_or_expired"]
    assert len(ended(first)) == 2


def test_a_watch_goes_on_where_the_former_one_stopped_and_waits_for_the_broker(watched) -> None:
    first, second, rows, home = watched
    told = [*ended(first), *ended(second)]
    assert len(told) == len(set(told))
    later = [row["to_epoch"] for row in rows if row["to_epoch"] >= min(told) and not row["is_open"]]
    assert set(told) >= set(later)
    errors = (home / "watch.err").read_text()
    assert "does not answer" in errors
    assert "answers again" in errors
