"""Partitions of the log of groups, and topics, that were not given: an answer says so, and never is empty for it."""

import shutil
from pathlib import Path

import pytest

from jobs.sources.files import METADATA_TOPIC
from tests.commands import run_command
from tests.jobs.conftest import SAMPLE_LOGS
from tests.matrix.removals import metadata_part, without_partition

ABSENT = "were not given"


def ask(logs: Path, *command: str) -> tuple[int, str, str]:
    result = run_command(*command, "--log", logs, "--json")
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def without_groups(tmp_path: Path) -> Path:
    """Of the log of groups only a partition without records is there."""
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, logs)
    for number in (0, 1, 3):
        without_partition(number)(logs)
    return logs


@pytest.mark.parametrize("command", [["groups"], ["describe", "--all"]])
def test_an_empty_list_of_groups_that_proves_nothing_is_an_error(without_groups: Path, command: list[str]) -> None:
    code, rows, said = ask(without_groups, *command)
    assert (code, rows) == (1, "")
    assert "does not prove that there was none" in said
    assert ABSENT in said


def test_a_moment_in_a_partition_that_was_not_given_is_named_as_such(without_groups: Path) -> None:
    code, _, said = ask(without_groups, "groups", "--at-offset", "1:7")
    assert code == 1
    assert "partition 1, which was not given" in said
    assert "which these logs of groups do not have" in ask(without_groups, "groups", "--at-offset", "9:7")[2]
    (without_groups / f"{METADATA_TOPIC}-0").rename(without_groups.parent / "metadata")
    said = ask(without_groups, "groups", "--at-offset", "9:7")[2]
    assert "partition 9, which was not given" in said, "nothing tells how many partitions there are"


def test_owners_over_time_say_that_the_metadata_log_is_short(tmp_path: Path) -> None:
    """Owners of a topic that the short log does not name are known by its id only."""
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, logs)
    metadata_part(0, 0.3)(logs)
    assert "ends" in ask(logs, "owners", "n-1", "--history")[2]
    assert "warning" not in ask(SAMPLE_LOGS, "owners", "n-1", "--history")[2]


@pytest.mark.parametrize("of_what", [[], ["--history"]])
def test_lost_records_may_name_a_connector_or_a_topic_that_is_gone(without_groups: Path, of_what: list[str]) -> None:
    said = ask(without_groups, "owners", "nowhere", *of_what)[2]
    assert "no trace of a topic or connector 'nowhere'" in said
    assert ABSENT in said
    assert "no topic or connector 'nowhere'" in ask(SAMPLE_LOGS, "owners", "nowhere", *of_what)[2]
