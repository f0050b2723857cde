"""Logs that are cut, with holes, and with wrong bits, anywhere: nothing right is called wrong."""

import shutil
from pathlib import Path
from random import Random

import pytest

from coordinator_core.history.rows import AssignmentRow, GroupEpochRow, MembershipRow, RebalanceRow
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.queries.damaged_logs import Claims, FromFiles, damaged_anywhere

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 40))]


@pytest.fixture(scope="module")
def truth() -> Claims:
    return Claims.of(FromFiles(SAMPLE_LOGS).answers())


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_right_is_called_wrong(seed: int, truth: Claims, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, folder)
    damaged_anywhere(folder, Random(seed))
    assert Claims.of(FromFiles(folder).answers()).not_in(truth) == []


HistoryRow = GroupEpochRow | RebalanceRow | MembershipRow | AssignmentRow
IDENTITY = {
    GroupEpochRow: ("group_id", "opened"),
    RebalanceRow: ("group_id", "at"),
    MembershipRow: ("group_id", "member_id", "joined"),
    AssignmentRow: ("group_id", "member_id", "kind", "role", "resource", "partition", "since"),
}
MAY_DIFFER = frozenset(
    ("causes", "hint", "missing", "subscribed_topics", "subscribed_regex", "topics_at", "topics_proven")
)
"""Causes name commits. What a member subscribed to is as of the last record of it that is there, and the hash of topics
is compared with that.
"""


def history(folder: Path) -> dict[tuple[object, ...], HistoryRow]:
    """All rows of the histories of groups, by what identifies them."""
    found = group_histories(find_logs([folder]), lambda warning: None)
    rows = (row for each in found for row in (*each.epochs, *each.rebalances, *each.memberships, *each.assignments))
    return {(type(row), *(getattr(row, name) for name in IDENTITY[type(row)])): row for row in rows}


@pytest.fixture(scope="module")
def true_history() -> dict[tuple[object, ...], HistoryRow]:
    return history(SAMPLE_LOGS)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_complete_row_that_is_final_is_that_of_the_whole_log(
    seed: int, true_history: dict[tuple[object, ...], HistoryRow], tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, folder)
    damaged_anywhere(folder, Random(seed))
    complete = {key: row for key, row in history(folder).items() if row.history_complete and not row.is_open}
    assert len(complete) > 100
    for key, row in complete.items():
        for name in set(row._fields) - MAY_DIFFER:
            assert getattr(row, name) in (None, getattr(true_history[key], name)), (name, row)
