"""A segment that is not there although its index is: the end of the log partition is missing."""

import shutil
from pathlib import Path

import pytest

from coordinator_core.records import GROUP_LOG
from jobs.queries.from_logs.answers import LogAnswers
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.sources.absent_segments import with_absent
from jobs.sources.files import ABSENT, find_logs
from tests.core.builders import GroupLog
from tests.jobs.logs import batch, write_segment

LOG = GroupLog()
RECORDS = [*LOG.join("a", 1, {}), *LOG.join("b", 2, {})]
END = len(RECORDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition of two segments with their indexes, and what else a broker keeps beside them."""
    partition = tmp_path / "logs" / f"{GROUP_LOG}-0"
    for first, some in ((0, RECORDS[:3]), (3, RECORDS[3:])):
        write_segment(partition, [batch(each) for each in some], first)
        for suffix in ("index", "timeindex"):
            (partition / f"{first:020}.{suffix}").write_bytes(b"")
    (partition / f"{END:020}.snapshot").write_bytes(b"")
    return partition


def said(*folders: Path) -> list[str]:
    warnings: list[str] = []
    answers = LogAnswers(with_absent(find_logs(folders)), warnings.append, lambda: load(environment={}), None)
    answers.at(AsOf()).groups()
    return [warning for warning in warnings if ABSENT in warning]


def test_a_log_without_the_segment_that_was_written_to_lacks_its_end(folder: Path) -> None:
    assert said(folder) == []
    (folder / f"{3:020}.log").unlink()
    assert said(folder) == [f"{folder}/{3:020}.timeindex: {ABSENT}"]
    logs = with_absent(find_logs([folder]))
    answers = LogAnswers(logs, lambda _: None, lambda: load(environment={}), None)
    then = answers.at(AsOf())
    (group,) = then.groups()
    assert not group.certainty.exists
    assert then.knowledge().gaps[f"{GROUP_LOG}-0"].lost == 3
    assert answers.at(AsOf(offsets={0: 3})).knowledge().gaps[f"{GROUP_LOG}-0"].lost == -1


@pytest.mark.parametrize(("start", "is_told"), [(0, False), (END, False), (END + 1, True)])
def test_a_log_reached_the_first_offset_of_each_leader_epoch(folder: Path, start: int, *, is_told: bool) -> None:
    (folder / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n3 {start}\n")
    assert said(folder) == ([f"{folder}/leader-epoch-checkpoint: {ABSENT}"] if is_told else [])


def test_a_log_that_grew_since_it_was_listed_lacks_nothing(folder: Path) -> None:
    """A new leader notes where its epoch begins, which is behind records that came after the listing."""
    logs = find_logs([folder])
    more = GroupLog()
    more.offset = END
    with (folder / f"{3:020}.log").open("ab") as last:
        last.write(batch(more.epoch(3)))
    (folder / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n3 {END + 1}\n")
    assert with_absent(logs) == logs


def test_a_log_reached_each_snapshot_of_producers(folder: Path) -> None:
    for file in folder.glob(f"{3:020}.*"):
        file.unlink()
    assert said(folder) == [f"{folder}/{END:020}.snapshot: {ABSENT}"]
    (folder / f"{END:020}.snapshot").rename(folder / f"{3:020}.snapshot")
    assert said(folder) == []


def test_damage_at_the_end_leaves_open_where_it_is(folder: Path) -> None:
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n3 9\n")
    last = folder / f"{3:020}.log"
    last.write_bytes(last.read_bytes()[:-3])
    assert said(folder) == []


def test_an_index_before_the_last_segment_tells_nothing_of_the_end(folder: Path) -> None:
    """A cleaner puts segments together."""
    (folder / f"{2:020}.index").write_bytes(b"")
    assert said(folder) == []


def test_a_segment_that_was_not_named_is_there(folder: Path) -> None:
    assert said(folder / f"{0:020}.log") == []


def test_of_several_copies_none_tells_of_its_end(folder: Path) -> None:
    copy = folder.parent.parent / "copy" / folder.name
    shutil.copytree(folder, copy)
    (folder / f"{3:020}.log").unlink()
    assert said(folder, copy) == []


def test_a_folder_of_indexes_alone_is_no_log(folder: Path) -> None:
    for file in folder.glob("*.log"):
        file.write_bytes(b"")
    (folder / f"{3:020}.log").unlink()
    (folder / f"{0:020}.log").unlink()
    write_segment(folder.parent / f"{GROUP_LOG}-1", [batch(GroupLog().epoch(1))])
    assert said(folder.parent) == []
