"""Metrics that a watch serves: what the command prints of the same log, as Prometheus reads it."""

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as families

from coordinator_core.errors import InputError, UsageError
from jobs.cli.watch import watched_facts
from jobs.metrics.families import GroupFacts, MetricNames
from jobs.metrics.server import served
from jobs.settings import load
from jobs.watch.followed_groups import FollowedGroups
from jobs.watch.growing_logs import GrowingLogs
from tests.commands import run_command
from tests.jobs.watch.samples import SAMPLES, followed, growing
from tests.matrix.removals import share_damaged, share_hole, share_part, share_unreadable
from tests.shared_data import ROOT

CLUSTER = load(environment={}).cluster


def samples(text: str, parse=families) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> FollowedGroups:
    folder = tmp_path_factory.mktemp("logs")
    groups, source = followed(), GrowingLogs([folder], pytest.fail)
    for number, _ in enumerate(growing(folder)):
        for new in source.poll():
            groups.feed(new)
        if number == 0:
            groups.begin()
    for key in groups.groups:
        list(groups._look(key))
    list(groups._cluster_findings())
    return groups


def scrape(port: int, accept: str = "") -> str:
    request = Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept} if accept else {})
    with urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def test_a_watch_serves_what_the_command_prints(watched: FollowedGroups) -> None:
    asked = [argument for name in MetricNames for argument in ("--names", name)]
    printed = run_command("metrics", "--log", SAMPLES, *asked).stdout
    with served("127.0.0.1:0", lambda: watched_facts(watched, CLUSTER, list(MetricNames))) as port:
        text = scrape(port)
        openmetrics = scrape(port, "application/openmetrics-text")
    assert samples(text) == samples(printed)
    assert len(samples(text)) > 500
    assert samples(openmetrics, openmetrics_families) == samples(text)


def test_the_port_is_free_again_once_it_is_over(watched: FollowedGroups) -> None:
    def facts() -> GroupFacts:
        return watched_facts(watched, CLUSTER, [])

    with served("127.0.0.1:0", facts) as port:
        busy = rf"--listen 127.0.0.1:{port}: Address already in use"
        with pytest.raises(InputError, match=busy), served(f"127.0.0.1:{port}", facts):
            pass
    socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.parametrize("address", ["9000", "host", "host:", ":70000", ":-1", ":9o"])
def test_another_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="use HOST:PORT, or :PORT for all addresses"), served(address, pytest.fail):
        pass


@pytest.mark.parametrize("host", ["h" * 64, "a..b"])
def test_a_host_that_is_no_name_of_dns_is_an_error(host: str) -> None:
    with pytest.raises(InputError, match=f"--listen {host}:0: .*label"), served(f"{host}:0", pytest.fail):
        pass


def test_a_busy_port_is_an_error_of_the_command(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run_command("watch", "--log", SAMPLES, "--listen", f"127.0.0.1:{port}")
    assert result.exit_code == 1
    assert f"--listen 127.0.0.1:{port}: Address already in use" in result.stderr


def found_by_command(logs: Path) -> set[tuple[Any, ...]]:
    printed = run_command("findings", "--log", logs, "--json").stdout
    rows = map(json.loads, printed.splitlines())
    names = ("group_id", "kind", "subject", "value", "detail", "history_complete")
    return {tuple(row[name] for name in names) for row in rows}


def found_by_watch(watched: FollowedGroups) -> set[tuple[Any, ...]]:
    rows = watched.findings()
    return {(row.group_id, row.kind, row.subject, row.value, row.detail, row.history_complete) for row in rows}


def test_a_watch_finds_what_findings_finds(watched: FollowedGroups) -> None:
    expected = found_by_command(SAMPLES)
    assert found_by_watch(watched) == expected
    assert {"coordinator_away", "offsets_expired", "offsets_reset"} <= {kind for _, kind, *_ in expected}


SHARE_CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda folder: None,
    "a hole": share_hole(0),
    "its first half": share_part(0, 0.5, 1),
    "a damaged batch": share_damaged(0),
    "unreadable records": share_unreadable(0),
}


@pytest.mark.parametrize("lost", SHARE_CHANGES)
def test_a_watch_finds_what_share_state_shows(tmp_path: Path, lost: str) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(ROOT / "data" / "samples" / "share_delivery" / "logs", logs)
    SHARE_CHANGES[lost](logs)
    groups, source = followed(lambda message: None), GrowingLogs([logs], lambda message: None)
    for new in source.poll():
        groups.feed(new)
    groups.begin()
    expected = found_by_command(logs)
    assert found_by_watch(groups) == expected
    assert all(is_complete for *_, is_complete in expected) == (lost == "nothing")


@pytest.mark.parametrize("port", ["", "x", "-1", "65536", "9" * 5_000])
def test_a_port_is_a_number_of_16_bits(port):
    result = run_command("watch", "--log", SAMPLES, "--listen", f"127.0.0.1:{port}")
    assert result.exit_code == 2
    assert "invalid --listen" in result.stderr
