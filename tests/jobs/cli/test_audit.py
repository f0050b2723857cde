"""The commands that judge and suppose, on the small real log."""

import json
from pathlib import Path

import pytest
from typer.testing import Result

from tests.commands import run_command

SAMPLES = Path(__file__).resolve().parents[3] / "data" / "samples" / "logs"


def run(*arguments: object) -> Result:
    return run_command(*arguments, env={"COLUMNS": "300"})


def rows(*arguments: object) -> list[dict[str, object]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_every_verdict_as_json_and_the_tally_for_people() -> None:
    judged = rows("audit", "--log", SAMPLES)
    assert {row["table"] for row in judged} == {"target_audits"}
    assert {row["verdict"] for row in judged if row["assignor"] != "stream"} == {"identical"}
    text = run("audit", "--log", SAMPLES).stdout
    assert "assignments by verdict" in text
    assert "identical" in text


def test_the_release_of_the_brokers_can_be_given() -> None:
    wrong = run("audit", "--log", SAMPLES, "--profile", "kafka-9")
    assert wrong.exit_code == 2
    assert "no profile 'kafka-9'; there are kafka-3.9," in wrong.stderr
    tables = run("findings", "--tables", "nowhere", "--profile", "kafka-4.4")
    assert tables.exit_code == 2
    assert "--profile goes with --log" in tables.stderr
    assert {row["verdict"] for row in rows("audit", "--log", SAMPLES, "--profile", "kafka-4.3.1")} >= {"identical"}


def test_one_group_and_from_a_time_on() -> None:
    judged = rows("audit", "--log", SAMPLES)
    group, last = judged[-1]["group_id"], max(row["at"]["timestamp_ms"] for row in judged)
    assert {row["group_id"] for row in rows("audit", "--log", SAMPLES, "--group", group)} == {group}
    assert all(row["at"]["timestamp_ms"] == last for row in rows("audit", "--log", SAMPLES, "--since", last))


def test_exit_code_3_for_what_fail_on_names() -> None:
    assert run("audit", "--log", SAMPLES, "--fail-on", "invalid,divergent,violation").exit_code == 0
    assert run("audit", "--log", SAMPLES, "--fail-on", "identical").exit_code == 3
    wrong = run("audit", "--log", SAMPLES, "--fail-on", "bad")
    assert wrong.exit_code == 2
    assert "--fail-on 'bad'" in wrong.stderr


@pytest.fixture(scope="module")
def group() -> str:
    """The consumer group with the most targets."""
    found = [row["group_id"] for row in rows("audit", "--log", SAMPLES) if row["group_type"] == "CONSUMER"]
    return str(max(set(found), key=found.count))


def test_nothing_changed_moves_what_moved(group: str) -> None:
    """The rounds again under the same assignor: as many, and balanced alike."""
    actual, repeated, _ = rows("whatif", group, "--eager", "--log", SAMPLES)
    assert actual["rebalances"] == repeated["rebalances"] > 1
    assert actual["imbalance"] == repeated["imbalance"]


def test_a_change_without_effect_is_not_printed_as_a_second_line(group: str) -> None:
    (assignor,) = {row["assignor"] for row in rows("audit", "--log", SAMPLES, "--group", group) if "assignor" in row}
    result = run("whatif", group, "--assignor", assignor, "--log", SAMPLES)
    assert "hypothetical" not in result.stdout
    assert result.stdout.rstrip().endswith("The change makes no difference to these rebalances.")
    changed = run("whatif", group, "--static", 3_600_000, "--log", SAMPLES)
    assert "hypothetical" in changed.stdout
    assert changed.stdout.splitlines()[-1].startswith("With the change: ")


def test_something_must_be_changed(group: str) -> None:
    result = run("whatif", group, "--log", SAMPLES)
    assert result.exit_code == 2
    assert "nothing to change" in result.stderr


def test_eager_stops_more_than_cooperative(group: str) -> None:
    *_, eager = rows("whatif", group, "--eager", "--log", SAMPLES)
    *_, cooperative = rows("whatif", group, "--cooperative", "--log", SAMPLES)
    assert eager["moved"] == cooperative["moved"] == cooperative["stopped"]
    assert eager["stopped"] > cooperative["stopped"]


def test_static_members_spare_rebalances(group: str) -> None:
    actual, *_, static = rows("whatif", group, "--static", 3_600_000, "--log", SAMPLES)
    assert static["rebalances"] <= actual["rebalances"]


def test_what_cannot_be_supposed_is_said(group: str) -> None:
    assert "'best'" in run("whatif", group, "--assignor", "best", "--log", SAMPLES).stderr
    assert "'x': use TOPIC=N" in run("whatif", group, "--partitions", "x", "--log", SAMPLES).stderr
    assert "'nobody' has no assignment" in run("whatif", "nobody", "--eager", "--log", SAMPLES).stderr
