"""A question about a time before or after the logs, or to tables that are not there: it is said."""

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.jobs.conftest import SAMPLE_LOGS
from tests.matrix.removals import metadata_hole, metadata_of_another_cluster
from tests.shared_data import ROOT

LOG = ["--log", str(SAMPLE_LOGS)]


@pytest.mark.parametrize("command", [["groups"], ["offsets", "A-coop-a2d7"], ["describe", "--all"]])
@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("1999-01-01", "the moment 1999-01-01T00:00:00.000+00:00 is before the first record"),
        ("2030", "the moment 1970-01-01T00:00:02.030+00:00 is before the first record"),  # ms since the epoch
        ("2030-01-01", "the log ends at 2026-11-21T10:39:30.295Z, before that moment: what was written since"),
        ("2026-11-21T10:30", ""),
    ],
)
def test_a_moment_outside_of_the_logs_is_named(command: list[str], at: str, says: str) -> None:
    result = run_command(*command, *LOG, "--at", at)
    if says:
        assert says in result.stderr.replace("\n", " ")
    else:
        assert "the moment" not in result.stderr


@pytest.mark.parametrize(
    "command", [["groups"], ["describe", "A-coop-a2d7"], ["offsets", "A-coop-a2d7"], ["owners", "t"]]
)
def test_a_moment_in_a_log_partition_that_is_not_there_is_refused(command: list[str]) -> None:
    """The partitions that are there would be answered as of their end."""
    result = run_command(*command, *LOG, "--at-offset", "99:5")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--at-offset names partition 99, which these logs of groups do not have" in result.stderr


@pytest.mark.parametrize("command", [["rebalances"], ["audit"], ["audit", "--fail-on", "violation"]])
def test_nothing_is_said_of_times_after_the_end_of_the_logs(command: list[str]) -> None:
    """An empty answer, or a gate that passes, would say that nothing happened."""
    result = run_command(*command, *LOG, "--since", "2030-01-01")
    assert (result.exit_code, result.stdout) == (1, "")
    assert (
        "does not prove that there is nothing: the log ends at 2026-11-21T10:39:30.295Z, before 2030" in result.stderr
    )


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["history", "A-coop-a2d7", "--since", "2030-01-01"], "the log ends at 2026-11-21T10:39:30.295Z, before 2030"),
        (["commits", "A-coop-a2d7", "--since", "2030-01-01"], "the log ends at 2026-11-21T10:39:30.295Z, before 2030"),
        (["commits", "A-coop-a2d7", "--until", "1999-01-01"], "is before the first record of these logs"),
        (["commits", "A-coop-a2d7", "--since", "1999-01-01"], ""),
    ],
)
def test_a_window_outside_of_the_logs_is_named(command: list[str], says: str) -> None:
    result = run_command(*command, *LOG)
    assert result.exit_code == 0
    assert says in result.stderr if says else "the log ends" not in result.stderr


def test_a_topic_that_lost_records_may_tell_of_is_not_denied(tmp_path: Path) -> None:
    whole = run_command("owners", "d-nowhere", *LOG)
    assert "no topic or connector 'd-nowhere' at the end of these logs" in whole.stderr
    shutil.copytree(SAMPLE_LOGS, tmp_path / "logs")
    metadata_hole(tmp_path / "logs")
    result = run_command("owners", "d-nowhere", "--log", tmp_path / "logs")
    assert result.exit_code == 1
    assert "no trace of a topic or connector 'd-nowhere'" in result.stderr
    assert "which does not prove that there was none: " in result.stderr
    assert "the metadata log has a hole" in result.stderr


def test_a_metadata_log_of_another_cluster_breaks_no_rule(tmp_path: Path) -> None:
    """Its topics have other ids, and the same names: nothing of it counts, and every answer about topics says so."""
    shutil.copytree(SAMPLE_LOGS, tmp_path / "logs")
    metadata_of_another_cluster()(tmp_path / "logs")
    logs = ["--log", str(tmp_path / "logs")]
    result = run_command("audit", *logs, "--fail-on", "violation,divergent,invalid", "--json")
    true = run_command("audit", *LOG, "--json")
    broken = [[line for line in each.stdout.splitlines() if '"violations"' in line] for each in (result, true)]
    assert (result.exit_code, broken[0]) == (0, broken[1])
    assert "the metadata log is of another cluster, and not used: it has none of the " in result.stderr
    described = run_command("describe", "C-consumer", *logs, "--json")
    assert "-0" in json.loads(described.stdout)["describe_consumer"]["members"][0]["assignment"]["topicPartitions"][0]


TABLE_QUESTIONS = (
    ["groups"],
    ["findings"],
    ["explain", "g"],
    ["offsets", "g"],
    ["metrics"],
    ["audit"],
    ["owners", "t"],
    ["commits", "g"],
    ["history", "g"],
    ["rebalances"],
    ["describe", "--all"],
    ["whatif", "g", "--assignor", "range"],
    ["trend"],
)


@pytest.mark.parametrize("command", TABLE_QUESTIONS, ids=lambda command: command[0])
def test_tables_that_are_not_there_are_one_clear_error(command: list[str], tmp_path: Path) -> None:
    place = tmp_path / "nosuch"
    result = run_command(*command, "--tables", place)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [f"error: there are no tables at {place}: the folder does not exist"]


def test_a_group_that_is_not_ready_is_not_told_as_done() -> None:
    """The members reached a target without tasks within seconds, and the group did not run for 15 minutes."""
    result = run_command("explain", "pricing", "--log", ROOT / "data" / "samples" / "shop")
    assert "The group has had no tasks for at least 14 min 43 s from then on." in result.stdout
    assert "All members reached the target, which has no tasks," in result.stdout
    assert "at most 3.7 s for one by then, and stay so." in result.stdout
