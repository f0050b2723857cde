"""Without the metadata log nothing says how many partitions a log of groups has: its groups prove it, or it is said."""

import shutil
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.jobs.conftest import SAMPLE_LOGS

LISTS = [["groups"], ["describe", "--all"], ["metrics"], ["findings"], ["rebalances"]]


def said(command: list[str], logs: Path) -> str:
    result = run_command(*command, "--log", logs)
    assert result.exit_code == 0, result.stderr
    return " ".join(result.stderr.split())


def copied(home: Path, partitions: list[int], *others: str) -> Path:
    for name in [*(f"__consumer_offsets-{number}" for number in partitions), *others]:
        shutil.copytree(SAMPLE_LOGS / name, home / name)
    return home


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_groups_prove_that_a_higher_partition_is_absent(command: list[str], tmp_path: Path) -> None:
    assert "1 of 4 partitions of __consumer_offsets were not given (3)" in said(command, copied(tmp_path, [0, 1, 2]))


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_a_list_of_an_unknown_number_of_partitions_is_not_whole(command: list[str], tmp_path: Path) -> None:
    stderr = said(command, copied(tmp_path, [0]))
    assert "no metadata log says how many partitions __consumer_offsets has" in stderr
    assert "groups in partition 1 or higher, if there are any, are missing from this answer" in stderr


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_a_log_whose_groups_prove_that_it_is_whole_lists_all(command: list[str], tmp_path: Path) -> None:
    assert "partitions of __consumer_offsets" not in said(command, copied(tmp_path, [0, 1, 2, 3]))


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_a_segment_that_does_not_tell_its_partition_may_be_one_of_many(command: list[str], tmp_path: Path) -> None:
    (segment, *_) = sorted((SAMPLE_LOGS / "__consumer_offsets-0").iterdir())
    shutil.copy(segment, tmp_path)
    assert "do not say which partitions of __consumer_offsets they are" in said(command, tmp_path)


def test_share_partitions_prove_that_a_part_of_their_state_is_absent(tmp_path: Path) -> None:
    stderr = said(["rebalances"], copied(tmp_path, [0, 1, 2, 3], "__share_group_state-1"))
    assert "1 of 2 partitions of __share_group_state were not given (0)" in stderr
    assert "how many partitions" not in stderr


def test_how_many_partitions_share_state_has_may_not_be_known(tmp_path: Path) -> None:
    stderr = said(["rebalances"], copied(tmp_path, [0, 1, 2, 3], "__share_group_state-0"))
    assert "no metadata log says how many partitions __share_group_state has" in stderr
