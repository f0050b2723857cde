"""Parts of the samples taken away: no answer says another thing than on the whole log. ``python -m tests.matrix`` tells
the tallies over all removals and questions.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from coordinator_core.groups.log_partition import log_partition_of
from tests.jobs.conftest import SAMPLE_LOGS
from tests.matrix.answers import asked, judge, questions
from tests.matrix.removals import cut, removals

PARTITIONS = 4
QUICK = ("partition 1 absent", "unreadable values in 1")
REMOVALS = removals([0, 1, 3])
ASKED = (
    "groups",
    "describe",
    "rebalances",
    "findings",
    "findings gate",
    "audit",
    "metrics",
    "history D-share-38",
    "offsets D-share-38",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "logs"
    shutil.copytree(SAMPLE_LOGS, folder)
    cut(folder)
    return folder


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in REMOVALS]
)
def test_an_answer_is_the_same_or_unknown(whole: Path, tmp_path: Path, name: str) -> None:
    removal = REMOVALS[name]
    shutil.copytree(whole, tmp_path / "logs")
    given = removal.change(tmp_path / "logs") or [tmp_path / "logs"]
    source = [part for each in given for part in ("--log", str(each))]

    def is_touched(group: str | None) -> bool:
        return removal.others or group is None or log_partition_of(group, PARTITIONS) in removal.partitions

    asks = questions(["D-share-38"], "d-1", [])
    for question in ("groups",) if name in QUICK else () if removal.is_tail else ASKED:
        true = asked(asks[question].arguments, ["--log", str(whole)])
        said = asked(asks[question].arguments, source)
        found = judge(asks[question], true, said, removal.reason, is_touched, forgets=removal.forgets)
        assert (found.wrong, found.unreasoned, found.needless) == ([], [], []), question
