"""The documentation's site builds without a warning, and the commands of the tutorial answer."""

import json
import os
import subprocess
import sys

import pytest

from coordinator_core.assignors.case_files.case_types import RUNNERS, run_case
from coordinator_core.coordinator.traces.run import _STEPS
from tests.commands import run_command, text_of_command
from tests.shared_data import ROOT

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
SHOP = (ROOT / "docs" / "shop.md").read_text(encoding="utf-8")
COMMANDS = [line.split()[1:] for line in (TUTORIAL + SHOP).splitlines() if line.startswith("    coordinator-audit ")]


@pytest.mark.long
def test_the_site_builds_strictly(tmp_path):
    """As the workflow ``docs`` builds it."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "tutorial" / "index.html").exists()
    assert "owners_at" in (tmp_path / "api" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_a_command_of_a_tutorial_answers(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    arguments = [str(tmp_path / each) if each.endswith(".html") else each for each in arguments]
    assert "(0)" not in (text_of_command(*arguments) or "(0)").splitlines()[0]


def test_what_the_tutorial_quotes_is_what_the_command_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    said = run_command("explain", "B-range-5175@6", "--log", "data/samples/logs").stdout
    quoted = [line.strip() for line in TUTORIAL.splitlines() if line.startswith("    ") and line.strip().endswith(".")]
    quoted = [line for line in quoted if "B-range-5175" in line and "incident" not in line]
    assert len(quoted) == 3
    assert all(line in said for line in quoted)


BROKER_LOG_PAGES = ("README.md", "docs/tutorial.md", "docs/howto/broker-logs.md")


@pytest.mark.parametrize("page", BROKER_LOG_PAGES)
def test_what_a_page_quotes_of_an_answer_with_broker_logs_is_what_the_command_says(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    command, quoted = None, 0
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith(("    coordinator-audit ", "    $ coordinator-audit ")):
            command = line.split("coordinator-audit ")[1].split()
        elif command and "data/samples/incident/server.log" in command and line.startswith("    "):
            text = run_command(*command).stdout
            assert all(part in text for part in line.strip().removesuffix(" ...]").split("  ")), line
            quoted += 1
        elif line.strip():
            command = None
    assert quoted >= 1


def said(*arguments):
    return text_of_command(*arguments, "--log", "data/samples/shop")


def test_what_the_evening_in_the_shop_quotes_is_what_the_commands_say(monkeypatch):
    monkeypatch.chdir(ROOT)
    explained = said("explain", "pricing") + said("explain", "payments@9")
    quoted = [line.strip() for line in SHOP.splitlines() if line.startswith("    ") and line.endswith(".")]
    assert len(quoted) == 3
    assert all(line in explained for line in quoted)
    found = [json.loads(line) for line in said("findings", "--json").splitlines()]
    assert [each["group_id"] for each in found] == ["pricing", "mailer", "payments", "checkout"]
    assert "payments-0 at" in found[2]["subject"]
    actual, *_, hypothetical = (
        json.loads(line) for line in said("whatif", "checkout", "--static", "45000", "--json").splitlines()
    )
    assert (actual["rebalances"], hypothetical["rebalances"]) == (11, 3)
    assert 3 * hypothetical["idle_ms"] < actual["idle_ms"]
    at = ("--at", "2026-11-27T20:12:00Z", "--json")
    owners = [json.loads(line) for line in said("owners", "orders", "3", *at).splitlines()]
    assert [(each["client_id"], each["role"]) for each in owners] == [
        ("checkout-2", "assigned"),
        ("pricing-2", "active"),
        ("pricing-0", "standby"),
    ]
    verdicts = [json.loads(line)["verdict"] for line in said("audit", "--json").splitlines()]
    assert verdicts == ["identical"] * 44


def test_the_shop_is_what_its_scenario_gives(tmp_path):
    scenario = ROOT / "data" / "scenarios" / "shop-evening.yaml"
    assert run_command("simulate", scenario, "--out", tmp_path).exit_code == 0
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    kept = ROOT / "data" / "samples" / "shop"
    assert made == {path.relative_to(kept): path.read_bytes() for path in kept.rglob("*") if path.is_file()}


def test_the_cases_in_the_documentation_have_the_results_beside_them():
    lines = (ROOT / "docs" / "cases-and-traces.md").read_text(encoding="utf-8").splitlines()
    objects = [json.loads(line) for line in lines if line.startswith("    {")]
    cases = {each["id"]: each for each in objects if "input" in each}
    results = {each["id"]: each["expected"] for each in objects if "expected" in each}
    assert len(cases) == 5
    assert {name: run_case(case) for name, case in cases.items()} == results


def test_the_documentation_names_every_kind_of_case_and_step():
    text = (ROOT / "docs" / "cases-and-traces.md").read_text(encoding="utf-8")
    kinds = RUNNERS.keys() - {"hash-order", "streams-mock"}  # these exist for the project's own tests
    assert [name for name in (*kinds, *_STEPS) if f"`{name}`" not in text] == []
