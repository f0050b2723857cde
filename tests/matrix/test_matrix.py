"""Parts of the samples taken away: no answer says another thing than on the whole log. ``python -m tests.matrix`` tells
the tallies over all removals and questions.
"""

import re
import shutil
from pathlib import Path

import pytest

from coordinator_core.groups.log_partition import log_partition_of
from tests.jobs.conftest import SAMPLE_LOGS
from tests.matrix.answers import Question, questions
from tests.matrix.judge import judge
from tests.matrix.other_removals import all_removals, nights
from tests.matrix.removals import NothingToRemoveError, Removal, cut, segments
from tests.matrix.sources import Files, NeedsSparkError, StoredTables, ThisProcess

PARTITIONS = 4
QUICK = ("partition 1 absent", "unreadable values in 1")
REMOVALS = all_removals([0, 1, 3])
OF_FILES = [name for name, removal in REMOVALS.items() if not removal.is_of_tables]
OF_TABLES = [name for name, removal in REMOVALS.items() if not removal.is_tail]
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
ASKS = questions(["D-share-38"], "d-1", [])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "logs"
    shutil.copytree(SAMPLE_LOGS, folder)
    cut(folder)
    return folder


def asked_of(removal: Removal) -> list[str]:
    return [name for name in ASKED if re.search(removal.questions, name)]


def left(removal: Removal, whole: Path, folder: Path) -> tuple[Path, list[list[Path]]]:
    """Return the logs that are true, and what each night is given of them.

    The test is skipped where the samples do not have what is taken away.
    """
    if removal.ends is not None:
        shutil.copytree(whole, folder / "ended")
        whole = folder / "ended"
        removal.ends(whole)
    shutil.copytree(whole, folder / "logs")
    try:
        return whole, nights(removal, folder / "logs")
    except NothingToRemoveError as error:
        pytest.skip(str(error))


def check(whole: Path, given: Files | StoredTables, removal: Removal, question: Question) -> None:
    def is_touched(group: str | None) -> bool:
        return removal.others or group is None or log_partition_of(group, PARTITIONS) in removal.partitions

    found = judge(question, Files([whole]).ask(question), given.ask(question), removal, is_touched)
    assert (found.wrong, found.unreasoned, found.needless) == ([], [], []), question.arguments


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in OF_FILES]
)
def test_an_answer_from_files_is_the_same_or_unknown(whole: Path, tmp_path: Path, name: str) -> None:
    removal = REMOVALS[name]
    true, given = left(removal, whole, tmp_path)
    for question in ("groups",) if name in QUICK else () if removal.is_tail else asked_of(removal):
        check(true, Files(given[0]), removal, ASKS[question])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in OF_TABLES]
)
def test_an_answer_from_tables_is_the_same_or_unknown(
    whole: Path, tmp_path: Path, request: pytest.FixtureRequest, name: str
) -> None:
    removal = REMOVALS[name]
    true, given = left(removal, whole, tmp_path)
    try:
        tables = StoredTables(ThisProcess(), tmp_path / "tables", given)
    except NeedsSparkError:
        tables = StoredTables(request.getfixturevalue("spark"), tmp_path / "tables in Spark", given)
    for question in ("groups",) if name in QUICK else asked_of(removal):
        check(true, tables, removal, ASKS[question])


def test_a_removal_says_where_the_logs_have_nothing_for_it(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "logs")
    for file in segments(tmp_path / "logs", 1)[1:]:
        file.unlink()
    for name in ("middle segment of 1", "marker lost in 1"):
        with pytest.raises(NothingToRemoveError):
            REMOVALS[name].change(tmp_path / "logs")
