"""A watch of a folder whose segments grow: what it tells is what the questions say of the whole log."""

import os
import shutil
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import crc32c
import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.errors import InputError
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import Family, LogPosition
from coordinator_core.wire.batch_writer import encode_batch
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import FIRST_SEGMENT, LogFile, find_logs
from jobs.sources.log_reader import LogReader
from jobs.watch import followed_groups, growing_logs
from jobs.watch.events import RebalanceBegan, RebalanceEnded
from jobs.watch.followed_log import LastRow, Reached
from jobs.watch.growing_logs import LISTING_S, SILENT_S, GrowingLogs
from jobs.watch.new_rows import LogPlace
from tests.core.wire.segments import records
from tests.jobs.logs import batch, write_segment
from tests.jobs.sources.test_topics import FOLDER, topic, write_snapshot
from tests.jobs.watch.samples import SAMPLES, followed, growing
from tests.matrix.removals import cut, segments

TOPICS = ((101, 400), (105, 600))
"""Offsets and times of records of the metadata log; the first one is in the snapshot."""


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


def test_groups_that_were_read_before_there_were_topics_are_judged_by_them(tmp_path: Path) -> None:
    groups, source, judged = followed(), GrowingLogs([tmp_path], pytest.fail), set[str]()
    groups.begin()
    for _ in growing(tmp_path):
        metadata = tmp_path / "__cluster_metadata-0"
        if not groups.groups:
            shutil.move(metadata, tmp_path / "later")
        for new in source.poll():
            groups.feed(new)
        known = set(groups.groups)
        if not metadata.exists():
            before = known
            shutil.move(tmp_path / "later", metadata)
        ended = (event for event in groups.events() if isinstance(event, RebalanceEnded) and event.key in before)
        judged |= {event.verdict.verdict for event in ended if event.verdict is not None}
    assert "identical" in judged


def test_a_metadata_log_without_its_beginning_begins_with_the_snapshot(tmp_path: Path) -> None:
    folder, groups, source = tmp_path / FOLDER, followed(), GrowingLogs([tmp_path], pytest.fail)
    first, more = (batch(topic(offset, "new", time_ms), family=Family.METADATA) for offset, time_ms in TOPICS)
    write_segment(folder, [first], 100)
    write_snapshot(folder, 102, name="old")
    known = []
    for batches in ([first], [first, more]):
        write_segment(folder, batches, 100)
        for new in source.poll():
            groups.feed(new)
        assert groups.topics is not None
        known.append([sorted(groups.topics.image_at(time_ms).by_name) for time_ms in (500, 700)])
    assert known == [[["old"], ["old"]], [["old"], ["new", "old"]]]


@pytest.mark.parametrize("comes_later", [False, True])
def test_the_metadata_log_of_another_cluster_is_refused(tmp_path: Path, comes_later: bool) -> None:
    seconds = [0.0]
    groups, source = followed(), GrowingLogs([tmp_path], pytest.fail, lambda: seconds[-1])
    logs = [batch(topic(0, name, 400), family=Family.METADATA) for name in ("old", "old", "new")]
    for number, log in enumerate(logs):
        if number == 2 and comes_later:
            for new in source.poll():
                groups.feed(new)
            seconds.append(LISTING_S)
        write_segment(tmp_path / f"broker-{number}" / FOLDER, [log])
    with pytest.raises(InputError, match="it is of another cluster; give the logs of one cluster at a time"):
        list(source.poll())


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


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Segment:
    """A segment that is written while a watch reads it."""

    def __init__(self, folder: Path) -> None:
        self.warned: list[str] = []
        self.clock = Clock()
        self.source = GrowingLogs([folder], self.warned.append, self.clock)
        self.file = folder / "__consumer_offsets-0" / FIRST_SEGMENT
        self.file.parent.mkdir(parents=True)

    def read(self, data: bytes) -> list[int]:
        """Return the offsets that a poll gives once the segment has these bytes."""
        self.file.write_bytes(data)
        return [row.offset for new in self.source.poll() for row in new.rows]


BATCHES = [encode_batch(records(first, 3)) for first in (0, 3, 6, 9)]
WITH_A_LONG_LENGTH = BATCHES[1][:9] + b"\1" + BATCHES[1][10:]
"""The second batch, as if it went on for 64 kB more."""


@pytest.mark.parametrize("zeros", [0, 500], ids=["as it grows", "preallocated"])
def test_a_batch_is_read_once_it_is_whole(tmp_path: Path, zeros: int) -> None:
    segment, data = Segment(tmp_path), b"".join(BATCHES)
    read: list[int] = []
    for end in range(0, len(data) + 1, 7):
        segment.clock.now += 0.5
        read += segment.read(data[:end] + bytes(zeros))
        # The last byte of these batches is zero, as what follows in a preallocated file.
        there = end + (zeros > 0)
        assert len(read) == 3 * sum(there >= behind for behind in accumulate(map(len, BATCHES)))
    assert segment.warned == []


@pytest.mark.parametrize("behind", [BATCHES[2], None], ids=["a batch", "a segment"])
def test_a_damaged_length_is_told_once_something_is_behind_it(tmp_path: Path, behind: bytes | None) -> None:
    segment, damaged = Segment(tmp_path), BATCHES[0] + WITH_A_LONG_LENGTH
    assert segment.read(damaged) == [0, 1, 2]
    assert segment.warned == []
    if behind is None:
        segment.file.with_name(f"{6:020}.log").write_bytes(BATCHES[2])
    assert segment.read(damaged + (behind or b"")) == [6, 7, 8]
    (told,) = segment.warned
    assert f"{FIRST_SEGMENT} at byte {len(BATCHES[0])}: " in told
    assert f"({len(BATCHES[1])} bytes left out)" in told
    assert segment.read(segment.file.read_bytes()) == []
    assert len(segment.warned) == 1


@pytest.mark.parametrize("start", [0, 1], ids=["of a log", "behind a batch"])
@pytest.mark.parametrize("end", [WITH_A_LONG_LENGTH, bytes([1] * 40)], ids=["length", "no batch"])
def test_what_cannot_be_read_for_long_is_told_once(tmp_path: Path, start: int, end: bytes) -> None:
    segment, data = Segment(tmp_path), b"".join([*BATCHES[:start], end])
    segment.read(data)
    segment.clock.now += SILENT_S - 1
    segment.read(data)
    assert segment.warned == []
    for _ in range(3):
        segment.clock.now += SILENT_S
        segment.read(data)
    (told,) = segment.warned
    assert f"{FIRST_SEGMENT} at byte {len(BATCHES[0]) * start}: " in told
    assert told.endswith(": nothing behind it can be read, waiting for more")


def test_a_log_that_was_cut_and_goes_on_with_other_records_is_refused(tmp_path: Path) -> None:
    """A broker cuts what was not replicated when another one leads (KIP-101): what was told of it never happened."""
    segment = Segment(tmp_path)
    segment.read(b"".join(BATCHES))
    other = encode_batch([record._replace(value=b"another") for record in records(9, 3)])
    with pytest.raises(InputError, match="another record is there"):
        segment.read(b"".join([*BATCHES[:3], other, encode_batch(records(12, 3))]))


def test_a_log_that_was_cut_is_refused(tmp_path: Path) -> None:
    segment = Segment(tmp_path)
    segment.read(b"".join(BATCHES))
    with pytest.raises(InputError, match="the log ends before"):
        segment.read(b"".join(BATCHES[:3]))


def test_folders_of_other_topics_are_looked_through_only_where_some_come_and_at_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment, looked = Segment(tmp_path / "disk"), list[int]()
    walk = os.walk
    monkeypatch.setattr(os, "walk", lambda top, **how: looked.append(top == str(tmp_path / "disk")) or walk(top, **how))
    other = segment.file.parent.with_name("orders-0")
    other.mkdir()
    read: list[int] = []

    def looks(number: int) -> int:
        looked.clear()
        read.extend(segment.read(b"".join(BATCHES[:number])))
        return sum(looked)

    assert [looks(number) for number in (1, 2, 2)] == [1, 0, 0]
    os.utime(segment.file.parent.parent, ns=(0, 0))  # as it is with another folder
    assert [looks(number) for number in (3, 3)] == [1, 0]
    segment.clock.now += LISTING_S
    assert [looks(number) for number in (4, 4)] == [1, 0]
    assert read == list(range(12))


def test_a_partition_whose_folder_goes_is_told_and_goes_on_in_another(tmp_path: Path) -> None:
    """A broker moves it to another disk, or gives it to another broker."""
    segment = Segment(tmp_path)
    other = tmp_path / "__consumer_offsets-1" / FIRST_SEGMENT
    other.parent.mkdir()
    other.write_bytes(BATCHES[0])
    segment.read(b"".join(BATCHES[:2]))
    segment.file.parent.rename(tmp_path / "__consumer_offsets-0.0123456789abcdef-delete")
    for _ in range(2):
        assert [*segment.source.poll()] == []
    (told,) = segment.warned
    assert told == "__consumer_offsets-0: its folder is not there any more, and nothing else of it is read until it is"
    segment.file = tmp_path / "disk2" / "__consumer_offsets-0" / FIRST_SEGMENT
    segment.file.parent.mkdir(parents=True)
    assert segment.read(b"".join(BATCHES)) == [6, 7, 8, 9, 10, 11]
    assert len(segment.warned) == 1


def test_a_partition_that_went_while_no_watch_ran_is_told(tmp_path: Path) -> None:
    segment = Segment(tmp_path)
    gone = LogPlace("__consumer_offsets", Family.GROUP, 7)
    segment.source.begin({gone: Reached(LastRow(5, 1, 2), from_start=True)})
    assert segment.read(b"".join(BATCHES)) == list(range(12))
    assert segment.warned == [
        "__consumer_offsets-7: its folder is not there any more, and nothing else of it is read until it is"
    ]


def test_a_segment_that_another_file_replaced_goes_on_behind_what_was_read(tmp_path: Path) -> None:
    """Compaction may have emptied it meanwhile, so that the next batch is elsewhere."""
    segment = Segment(tmp_path)
    segment.read(b"".join(BATCHES[:2]))
    assert segment.read(b"".join(BATCHES[1:])) == [6, 7, 8, 9, 10, 11]
    assert segment.warned == []


def test_copies_of_a_partition_that_grow_beside_each_other_are_read_as_one(tmp_path: Path) -> None:
    """Two brokers have it: what one of them has got already is in the middle of being written by the other."""
    data, read = b"".join(BATCHES), list[int]()
    first, second = Segment(tmp_path / "1"), Segment(tmp_path / "2")
    source = GrowingLogs([tmp_path / "1", tmp_path / "2"], pytest.fail)
    for end in range(1, len(data) + 101, 9):
        first.file.write_bytes(data[: max(end - 100, 0)])
        second.file.write_bytes(data[:end])
        read += [row.offset for new in source.poll() for row in new.rows]
    assert read == list(range(12))


def test_a_segment_that_goes_between_listing_and_reading_is_found_where_it_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker compacts it into the one before it."""
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLES, logs)
    cut(logs)
    before, gone = segments(logs, 1)[1:3]
    listed = []

    def find(paths: Sequence[Path], *, snapshots: bool) -> list[LogFile]:
        found = find_logs(paths, snapshots=snapshots)
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


def with_wrong_crc(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def with_another_count(batch: bytes) -> bytes:
    """Of 77 records, with the right CRC."""
    data = batch[:57] + (77).to_bytes(4, "big") + batch[61:]
    return data[:17] + crc32c.crc32c(data[21:]).to_bytes(4, "big") + data[21:]


@pytest.mark.parametrize("damage", [with_wrong_crc, with_another_count])
@pytest.mark.parametrize("polls", [1, 2], ids=["at once", "in two polls"])
def test_what_a_damaged_batch_had_is_lost_between_its_neighbours(
    tmp_path: Path, polls: int, damage: Callable[[bytes], bytes]
) -> None:
    batches = [encode_batch(records(first, 3)) for first in (0, 3, 6)]
    damaged = damage(batches[1])
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    groups, source = followed(lambda _: None), GrowingLogs([tmp_path], lambda _: None)
    for until in range(4 - polls, 4):
        (folder / f"{0:020}.log").write_bytes(b"".join([batches[0], damaged, batches[2]][:until]))
        for new in source.poll():
            groups.feed(new)
    (log,) = groups.logs.values()
    assert (log.lost, log.folds.unreadable.unplaced) == ([(3, 5)], (8, 8)), "record 8 has no key"
    reader = LogReader(find_logs([tmp_path]), lambda _: None)
    assert [rows.column("offset").to_pylist() for rows in reader.batches()] == [[0, 1, 2], [6, 7, 8]]
    assert reader.gaps.lost == [(3, 5, "damaged")]


def test_what_a_damaged_batch_at_the_end_had_is_lost(tmp_path: Path) -> None:
    write_segment(tmp_path / "__consumer_offsets-0", [BATCHES[0], with_another_count(BATCHES[1])])
    reader = LogReader(find_logs([tmp_path]), lambda _: None)
    assert [rows.column("offset").to_pylist() for rows in reader.batches()] == [[0, 1, 2]]
    assert reader.gaps.lost == [(3, 5, "damaged")]


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
