"""Everything from end to end: a real broker and real clients, its log taken in live, twice, and held against Admin."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.broker.against_admin import differences, like
from tests.broker.kafka import Clients, Line, broker
from tests.broker.scenario import PAID, Event, Scenario, first_half, second_half
from tests.commands import rows_of_command
from tests.shared_data import ROOT

KEPT = ("__consumer_offsets-*", "__cluster_metadata-*", "__share_group_state-*")


@dataclass
class Recorded:
    """What was done, what Admin said, and what there is of it: the broker's files, and the tables after each night."""

    events: list[Event]
    seen: list[Line]
    logs: Path
    tables: Path
    nights: list[list[Line]]
    stored: list[tuple[Line, list[Line]]]


def copied(home: Path, to: Path) -> Path:
    """The broker's segments of the logs that matter, as they are now."""
    for pattern in KEPT:
        for folder in (home / "data").glob(pattern):
            shutil.copytree(folder, to / folder.name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.swap"))
    return to


def separately(*command: str) -> list[Line]:
    """The JSON lines of a command in a process, and a session, of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "jobs", *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    home, tables = tmp_path_factory.mktemp("broker"), tmp_path_factory.mktemp("tables")
    nights: list[list[Line]] = []
    stored: list[tuple[Line, list[Line]]] = []
    with broker(home) as servers:
        clients = Clients(servers, home)
        run = Scenario(clients, servers, home)
        try:
            for half in (first_half, second_half):
                half(run)
                metadata = copied(home, home / "night") / "__cluster_metadata-0"
                live = f"kafka://{servers}/__consumer_offsets"
                nights.append(separately("nightly", live, str(metadata), "--tables", str(tables), "--json"))
                described = separately("describe", "--tables", str(tables), "--all", "--json")
                stored.append((run.settled(half.__name__), described))
        finally:
            clients.close()
    return Recorded(run.events, run.seen, copied(home, home / "copy"), tables, nights, stored)


def test_every_group_at_every_moment_is_what_admin_said(recorded):
    assert len(recorded.seen) == len(recorded.events)
    for admin in recorded.seen:
        ends = [f"--at-offset={partition}:{end}" for partition, end in admin["ends"].items()]
        moment = ["--at", str(admin["at_ms"]), *ends]
        described = rows_of_command("describe", "--log", recorded.logs, "--all", *moment)
        assert differences(admin["groups"], described) == [], admin["what"]


def test_both_nights_end_with_what_admin_said(recorded):
    for steps in recorded.nights:
        assert {each["ended"] for each in steps} <= {"done", "skipped"}
    for admin, described in recorded.stored:
        # A consumer of the log does not see how transactions ended, and the nights take in no log of share state.
        said = {
            group_id: {part: value for part, value in parts.items() if part != "share_offsets"}
            for group_id, parts in admin["groups"].items()
            if group_id != PAID
        }
        assert differences(said, [each for each in described if each["group"] != PAID]) == [], admin["what"]


def test_tables_and_segments_tell_the_same_history(recorded):
    from_tables = separately("rebalances", "--tables", str(recorded.tables), "--json")
    from_segments = rows_of_command("rebalances", "--log", recorded.logs)
    # A consumer does not get the records that end transactions. So it cannot know whether these offsets had records.
    with_holes = {row["logPartition"] for row in rows_of_command("offsets", PAID, "--log", recorded.logs)}
    doubtful = [row for row in from_tables if row["missing"] is not None]
    assert {row["at"]["partition"] for row in doubtful} <= with_holes
    places = [row["at"] for row in doubtful]
    from_tables, from_segments = (
        [row for row in rows if row["at"] not in places] for rows in (from_tables, from_segments)
    )
    # The nights also took snapshots, which show the session timeout of the consumer group.
    hints = [cause.pop("hint") for rows in (from_tables, from_segments) for row in rows for cause in row["causes"]]
    assert any("its session timeout is" in hint for hint in hints if hint is not None)
    assert like(from_tables, from_segments) == like(from_segments, from_segments)
    assert len(from_segments) > 2 * len(doubtful)


def test_rebalances_have_the_causes_of_the_script(recorded):
    rebalances = rows_of_command("rebalances", "--log", recorded.logs)
    explained = 0
    for event in recorded.events:
        during = [each for each in rebalances if event.began_ms <= each["at"]["timestamp_ms"] <= event.ended_ms]
        assert {each["group_id"] for each in during} == set(event.groups), event
        assert {cause["kind"] for each in during for cause in each["causes"]} <= event.causes, event
        explained += len(during)
    assert explained == len(rebalances)


def test_a_static_member_bounces_without_a_rebalance(recorded):
    rows = rows_of_command("history", "orders", "--log", recorded.logs)
    lives = [each for each in rows if each["table"] == "memberships" and each["instance_id"] == "till-3"]
    first, second = lives
    assert (first["came_by"], first["went_by"]) == ("join", "static replacement")
    assert (second["came_by"], second["replaces"]) == ("static replacement", first["member_id"])


def test_all_targets_are_identical_and_no_rule_fires(recorded):
    rows = rows_of_command("audit", "--log", recorded.logs)
    assert [each for each in rows if each["table"] == "violations"] == []
    verdicts = Counter(each["verdict"] for each in rows if each["table"] == "target_audits")
    assert verdicts.keys() == {"identical"}
    assert verdicts["identical"] > len(recorded.events) / 2


@pytest.mark.parametrize("group", ["orders", "reports", "thumbnails", "word-count"])
def test_the_history_of_a_group(recorded, group):
    rows = rows_of_command("history", group, "--log", recorded.logs)
    tables = {each["table"] for each in rows}
    assert {"group_epochs", "rebalances", "memberships", "assignments"} <= tables
    assert [each for each in rows if each["table"] == "violations"] == []
