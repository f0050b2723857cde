"""A watch of a folder whose segments grow: what it tells is what the questions say of the whole log."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.errors import InputError
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import LogPosition
from coordinator_core.wire.batch_writer import encode_batch
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import LogFile, find_logs
from jobs.watch import followed_groups, growing_logs
from jobs.watch.events import RebalanceBegan, RebalanceEnded
from jobs.watch.growing_logs import GrowingLogs, whole_batches
from tests.core.wire.segments import records
from tests.jobs.watch.samples import SAMPLES, followed, growing
from tests.matrix.removals import cut, segments


def rebalances() -> set[RebalanceRow]:
    histories = group_histories(find_logs([SAMPLES]), pytest.fail, audit=AuditSettings())
    return {row for history in histories for row in history.rebalances if row.group_type != "SHARE"}


def test_each_rebalance_is_told_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    groups, source = followed(), GrowingLogs([tmp_path], pytest.fail)
    groups.begin()
    began: list[RebalanceRow] = []
    ended: list[RebalanceRow] = []
    for _ in growing(tmp_path):
        for new in source.poll():
            groups.feed(new)
        for event in groups.events():
            if isinstance(event, RebalanceBegan):
                began.append(event.row)
            elif isinstance(event, RebalanceEnded):
                ended.append(event.row)
    expected = rebalances()
    of_groups = [row for row in ended if row.group_type != "SHARE"]
    assert len(of_groups) == len(set(of_groups))
    assert set(of_groups) == {row for row in expected if not row.is_open}
    assert {(row.group_id, row.at) for row in began if row.group_type != "SHARE"} == {
        (row.group_id, row.at) for row in expected
    }


def test_printed_records_are_not_followed_and_it_is_said_what_is(tmp_path: Path) -> None:
    (tmp_path / "offsets.jsonl").write_text('{"key":{"type":2,"data":{"group":"g"}},"value":null}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"offsets\.jsonl: records that were printed: a watch follows the segments"):
        list(GrowingLogs([tmp_path], pytest.fail).poll())


def test_what_is_there_at_the_beginning_is_not_told(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES, tmp_path / "logs")
    groups, source = followed(), GrowingLogs([tmp_path / "logs"], pytest.fail)
    for new in source.poll():
        groups.feed(new)
    groups.begin()
    assert list(groups.events()) == []
    assert len(groups) > 10


def test_a_storm_of_many_groups_that_is_there_at_the_beginning_ends_no_storm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of each group is covered, which is no end of it."""

    def one_storm(history: GroupHistory, limits: Thresholds) -> list[FindingRow]:
        place = LogPosition(0, 1, 1_795_257_000_000)
        return [history.finding(FindingKind.REBALANCE_STORM, 50, "stormy", [place], threshold=10, is_open=True)]

    monkeypatch.setattr(followed_groups, "findings", one_storm)
    shutil.copytree(SAMPLES, tmp_path / "logs")
    groups = followed()
    for new in GrowingLogs([tmp_path / "logs"], pytest.fail).poll():
        groups.feed(new)
    groups.begin()
    assert [row.kind for row in groups.of_cluster if row.is_open] == [FindingKind.REBALANCE_STORM]
    groups.resume()
    assert list(groups.events()) == []


def test_a_batch_is_read_once_it_is_whole() -> None:
    file = max(SAMPLES.rglob("__consumer_offsets-*/*.log"), key=lambda each: each.stat().st_size)
    data = file.read_bytes()
    ends = {whole_batches(lambda at, size: data[at : at + size], 0, cut) for cut in range(0, len(data), 97)}
    ends.add(whole_batches(lambda at, size: data[at : at + size], 0, len(data)))
    assert max(ends) == len(data)
    for end in ends:
        assert end == 0 or whole_batches(lambda at, size: data[at : at + size], 0, end) == end


def test_a_segment_that_goes_between_listing_and_reading_is_found_where_it_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker compacts it into the one before it."""
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLES, logs)
    cut(logs)
    before, gone = segments(logs, 1)[1:3]
    listed = []

    def find(paths: Sequence[Path]) -> list[LogFile]:
        found = find_logs(paths)
        if not listed:
            before.write_bytes(before.read_bytes() + gone.read_bytes())
            gone.unlink()
        listed.append(found)
        return found

    monkeypatch.setattr(growing_logs, "find_logs", find)
    offsets = [
        row.offset
        for new in GrowingLogs([logs], pytest.fail).poll()
        if str(new.place) == "__consumer_offsets-1"
        for row in new.rows
    ]
    assert offsets == list(range(len(offsets)))
    assert len(listed) == 2
    assert max(offsets) > int(gone.stem)


@pytest.mark.parametrize("polls", [1, 2], ids=["at once", "in two polls"])
def test_what_a_damaged_batch_had_is_lost_between_its_neighbours(tmp_path: Path, polls: int) -> None:
    batches = [encode_batch(records(first, 3)) for first in (0, 3, 6)]
    damaged = batches[1][:-1] + bytes([batches[1][-1] ^ 1])
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    groups, source = followed(lambda _: None), GrowingLogs([tmp_path], lambda _: None)
    for until in range(4 - polls, 4):
        (folder / f"{0:020}.log").write_bytes(b"".join([batches[0], damaged, batches[2]][:until]))
        for new in source.poll():
            groups.feed(new)
    (log,) = groups.logs.values()
    assert log.lost == [(3, 5), (8, 8)], "record 8 has no key"


def test_a_segment_that_is_missing_is_lost_and_not_compacted(tmp_path: Path) -> None:
    """A key that came twice before it proves that compaction has not been there, as in log files."""
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLES, logs)
    cut(logs)
    groups, source, here = followed(), GrowingLogs([logs], pytest.fail), segments(logs, 1)
    here[2].unlink()
    here[4].rename(tmp_path / "later")
    for _ in range(2):
        for new in source.poll():
            groups.feed(new)
        if not here[4].exists():
            (tmp_path / "later").rename(here[4])
    lost = {str(place): log.lost for place, log in groups.logs.items() if log.lost}
    assert lost == {"__consumer_offsets-1": [(int(here[2].stem), int(here[3].stem) - 1)]}
