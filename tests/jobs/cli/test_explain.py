"""The story of a rebalance and the findings, from segment files to what is printed."""

import json
from pathlib import Path

import pytest

from coordinator_core.audit.explain import CAUSES, explain
from coordinator_core.history.causes import CauseKind
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs
from tests.commands import rows_of_command, run_command
from tests.core.builders import GroupLog, at_once
from tests.jobs.logs import batch, write_segment

TOPIC = "b3JkZXJzIHRvcGljIGlkIQ"
LOGS = Path(__file__).resolve().parents[3] / "data" / "samples" / "logs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A consumer group of one to which a second member comes; the first has to give up a partition."""
    log = GroupLog("payments")
    first = at_once(log.join("a", 2, {TOPIC: [0, 1]}))
    second = [
        log.member("b"),
        log.epoch(3),
        log.target("a", {TOPIC: [0]}),
        log.target("b", {TOPIC: [1]}),
        log.target_epoch(3),
        log.current("b", 3, state=2, previousMemberEpoch=0),
    ]
    asked = log.current("a", 2, {TOPIC: [0]}, {TOPIC: [1]}, state=1, previousMemberEpoch=2)
    given = log.current("a", 3, {TOPIC: [0]}, previousMemberEpoch=2)
    taken = log.current("b", 3, {TOPIC: [1]}, previousMemberEpoch=3)
    batches = [batch(*first), batch(*at_once(second)), batch(asked), batch(given), batch(taken)]
    write_segment(tmp_path / "__consumer_offsets-0", batches)
    return tmp_path


def test_the_story_of_a_rebalance_says_why_what_and_how_long(folder: Path) -> None:
    story = [line["text"] for line in rows_of_command("explain", "payments@3", "--log", folder)]
    assert story[0].startswith("The consumer group payments rebalanced from epoch 2 to epoch 3. It had 1 member before")
    text = "\n".join(story)
    assert "Cause: member b (client-b at 10.0.0.1, unknown client) joined." in text
    first = "Member a (client-a at 10.0.0.1, unknown client)"
    assert f"{first} was asked to give up 1 partition and did so after 1.0 s." in text
    assert "Its clients: 2 unknown." in text
    assert "All members reached the target" in text
    assert "1 partition moved from one member to another" in text
    assert f"Member b (client-b at 10.0.0.1, unknown client) got {TOPIC} 1." in text


def test_every_sentence_names_the_records_that_prove_it(folder: Path) -> None:
    lines = run_command("explain", "payments", "--log", folder).stdout.splitlines()
    assert lines
    assert all("[0:" in line for line in lines)


def test_a_rebalance_is_found_by_group_by_epoch_and_by_position(folder: Path) -> None:
    by_group, by_epoch, by_position = (
        run_command("explain", what, "--log", folder).stdout for what in ("payments", "payments@3", "0:6")
    )
    assert by_group == by_epoch == by_position != ""


@pytest.mark.parametrize("what", ["nobody", "payments@9", "0:999"])
def test_what_is_not_there_is_said_so(folder: Path, what: str) -> None:
    result = run_command("explain", what, "--log", folder)
    assert result.exit_code == 1
    assert "rebalance" in result.stderr


def test_every_rebalance_of_the_sample_log_has_a_story() -> None:
    types = set()
    for history in group_histories(find_logs([LOGS]), pytest.fail):
        for rebalance in history.rebalances:
            story = explain(history, rebalance)
            assert all(sentence.text[-1] in ".]" and "None" not in sentence.text for sentence in story)
            assert sum(bool(sentence.evidence) for sentence in story) >= len(story) - 1
            types.add(rebalance.group_type)
    assert types == {"CLASSIC", "CONSUMER", "SHARE", "STREAMS"}


def test_every_cause_has_words() -> None:
    assert set(CAUSES) == set(CauseKind)


def test_findings_of_the_sample_log_come_by_urgency() -> None:
    rows = rows_of_command("findings", "--log", LOGS)
    levels = ["alarm", "warning", "notice"]
    assert rows == sorted(rows, key=lambda row: (levels.index(row["level"]), -row["score"]))
    assert {row["kind"] for row in rows}.isdisjoint({"rules_broken", "targets_wrong"})
    assert all(row["value"] >= row["threshold"] and row["evidence"] for row in rows)
    assert run_command("findings", "--log", LOGS).exit_code == 0


def test_a_lower_threshold_finds_more(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("findings:\n  slow_rebalance_ms: 1\n")
    of_group = ("findings", "--group", "payments", "--log", folder)
    assert rows_of_command(*of_group) == []
    assert [row["kind"] for row in rows_of_command(*of_group, "--config", config)] == ["slow_rebalance"]


def test_a_moment_is_explained_by_the_last_rebalance_that_began_before_it() -> None:
    rows = rows_of_command("rebalances", "--log", LOGS, "--group", "A-coop-a2d7")
    second, third = (row["at"] for row in rows[1:3])
    for at_ms in (second["timestamp_ms"], third["timestamp_ms"] - 1):
        said = rows_of_command("explain", "A-coop-a2d7", "--log", LOGS, "--at", at_ms)
        assert said == rows_of_command("explain", f"{second['partition']}:{second['offset']}", "--log", LOGS)
    refused = run_command("explain", "A-coop-a2d7", "--log", LOGS, "--at", rows[0]["at"]["timestamp_ms"] - 1)
    assert refused.exit_code == 1
    assert "had no rebalance up to that time" in refused.stderr


def test_findings_are_limited_to_a_time_and_a_level() -> None:
    every = rows_of_command("findings", "--log", LOGS)
    assert rows_of_command("findings", LOGS) == every, "a folder as an argument is as with --log"
    middle = every[len(every) // 2]["since_ms"]
    later = rows_of_command("findings", "--log", LOGS, "--since", middle)
    assert later == [row for row in every if row["until_ms"] >= middle]
    assert 0 < len(later) < len(every)
    before = rows_of_command("findings", "--log", LOGS, "--until", middle)
    assert before == [row for row in every if row["since_ms"] <= middle]
    pressing = rows_of_command("findings", "--log", LOGS, "--min-level", "warning")
    assert pressing == [row for row in every if row["level"] != "notice"]
    assert run_command("findings", "--log", LOGS, "--new").exit_code == 2
    assert run_command("findings", "--log", LOGS, "--fail-on", "any", "--min-level", "warning").exit_code == 3


def test_a_report_of_some_hours_has_their_findings(tmp_path: Path) -> None:
    middle = rows_of_command("findings", "--log", LOGS)[0]["until_ms"]
    page = tmp_path / "report.html"
    assert run_command("report", "--log", LOGS, "--out", page, "--since", middle).exit_code == 0
    made = json.loads(page.with_suffix(".json").read_text())
    assert made["since_ms"] == middle
    assert 0 < made["findings_seen"] < len(rows_of_command("findings", "--log", LOGS))
    assert all(row["until_ms"] >= middle for row in made["findings"])
