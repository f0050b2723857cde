"""Whether logs that lack something tell when a moment is: only what removes a record beside it hides that."""

import shutil
from pathlib import Path

import pytest

from tests.jobs.conftest import SAMPLE_LOGS
from tests.matrix.moments import ByPartition, Gone, Moment, arguments, gone, moment, times_of
from tests.matrix.other_removals import all_removals
from tests.matrix.removals import cut, segments

REMOVALS = all_removals([0, 1, 3])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "logs"
    shutil.copytree(SAMPLE_LOGS, folder)
    cut(folder)
    return folder


def left_by(removal: str, whole: Path, folder: Path) -> ByPartition:
    left = Path(shutil.copytree(whole, folder / "logs"))
    REMOVALS[removal].change(left)
    return times_of(left, (0, 1, 3))


def what_is_gone(removal: str, asked: Moment, whole: Path, folder: Path) -> Gone:
    return gone(asked, times_of(whole, (0, 1, 3)), left_by(removal, whole, folder))


@pytest.mark.parametrize(
    ("removal", "hides"),
    [
        ("nothing", False),
        ("first segment of 1", False),
        ("fourth segment of 1", True),
        ("last segment of 1", False),
        ("partition 1 absent", True),
        ("partition 1 empty", True),
        ("partition 3 absent", False),
        ("unreadable values in 1", False),
        ("metadata absent", False),
    ],
)
def test_what_lies_beside_the_moment_tells_its_time(whole: Path, tmp_path: Path, removal: str, hides: bool) -> None:
    begin = int(segments(whole, 1)[3].stem)
    assert what_is_gone(removal, {1: begin + 1}, whole, tmp_path).hides_time == hides


@pytest.mark.parametrize(("offset", "hides"), [(1, False), (10**6, True)])
def test_the_last_record_before_the_moment_tells_its_time_where_none_follows(
    whole: Path, tmp_path: Path, offset: int, hides: bool
) -> None:
    assert what_is_gone("last segment of 1", {1: offset}, whole, tmp_path).hides_time == hides


def test_a_damaged_batch_hides_the_time_only_of_what_lies_beside_it(whole: Path, tmp_path: Path) -> None:
    before, after = times_of(whole, [1]), left_by("damaged batch in 1", whole, tmp_path)
    hidden = [offset for offset in range(1000) if gone({1: offset}, before, after).hides_time]
    assert hidden == list(range(hidden[0], hidden[-1] + 1))
    assert 0 < hidden[0] < hidden[-1] < 100


def test_a_moment_is_one_time_in_all_partitions(whole: Path) -> None:
    times = times_of(whole, (0, 1, 3))
    asked = moment(times)
    assert asked.keys() == {0, 1, 3}
    assert arguments({1: 7}) == ["1:7"]
    assert gone(asked, times, times) == (False, False)


@pytest.mark.parametrize(
    ("removal", "loses"),
    [
        ("first segment of 1", False),
        ("cut off in 1", True),
        ("end of 1", True),
        ("1 compacted with tombstones", False),
        ("a FIFO among the segments", True),
    ],
)
def test_a_partition_ends_earlier_where_its_last_record_is_gone(
    whole: Path, tmp_path: Path, removal: str, loses: bool
) -> None:
    assert what_is_gone(removal, {0: 5, 1: 5}, whole, tmp_path).loses_end == loses
