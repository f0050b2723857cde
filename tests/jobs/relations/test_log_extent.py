"""What the tables hold of log partitions at a moment, each from a few rows: at the end, at a time, below an offset."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coordinator_core.groups.certainty import LogGaps
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, SHARE_LOG, RecordType
from coordinator_core.wire.batch_writer import NewRecord, encode_batch, frame, record_bytes
from coordinator_core.wire.record_codec import encode_key
from jobs.queries.from_logs.answers import replay
from jobs.queries.from_tables.stored_moment import StoredMoment
from jobs.relations import log_extent
from jobs.relations.log_extent import Extents, StoredLogExtent, _add_missing_ends, extents_at
from jobs.relations.moment import AsOf
from jobs.sources.files import FIRST_SEGMENT, find_logs
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from tests.jobs.logs import write_segment
from tests.jobs.relations.engines import write
from tests.jobs.relations.tables_of_logs import CLUSTER, fill

Row = dict[str, Any]
FIRST, LATER = f"/log/{FIRST_SEGMENT}", "/log/00000000000000000900.log"
AT_MS = 100
"""The time that is asked for."""


def row(offset: int | None, time_ms: int | None = 0, batch: tuple[int, int] | None = None, **given: Any) -> Row:
    """A record of a segment, in a batch of its own unless another is given."""
    base, last = batch or (offset, offset)
    at = {"log_offset": offset, "timestamp_ms": time_ms, "batch_base": base, "batch_last": last, "place": offset}
    return {"run_id": "run 1", "kind": "record", "source": LATER, **at, **given}


def empty(base: int, last: int) -> Row:
    return row(last, None, (base, last), kind="empty")


def damaged(place: int, batch: tuple[int, int] | None = None, source: str = LATER) -> Row:
    """Bytes of which only a header may tell the offsets."""
    return {**row(None, None, batch, kind="damaged", source=source), "place": place, "stray": f"{source}#{place}"}


def seen(offset: int) -> Row:
    """A record as a consumer sees it."""
    return row(offset) | {"batch_base": None, "batch_last": None}


def gaps(missing: int = -1, lost: int = -1, *, later: bool = False, at_end: bool = True) -> dict[str, LogGaps]:
    return {"gaps": LogGaps(missing, lost, later, at_end)}


WHOLE = gaps()
CUT = gaps(at_end=False)
START = {"from_start": True}
UNKNOWN = {"transactions_are_known": False}


class Case(NamedTuple):
    """The rows of a log partition, and what is known of it: at its end, at ``AT_MS``, and below an offset.

    ``unreadable``: the offset of a record whose key cannot be decoded.
    """

    rows: list[Row]
    at_end: dict[str, Any]
    at_time: dict[str, Any]
    offset: int
    below: dict[str, Any]
    unreadable: int | None = None


def both(
    rows: list[Row], at_end: dict[str, Any], offset: int, below: dict[str, Any], unreadable: int | None = None
) -> Case:
    """A case that ends before the time."""
    return Case(rows, at_end, at_end, offset, below, unreadable)


LOG = [row(0, 10, leader_epoch=0), row(1, 100, leader_epoch=0), row(2, 300, leader_epoch=1)]
EPOCHS = {"from_start": True, "epochs": [(0, 0), (2, 1)]}
OF_LOG = {"asked": 1, "end": 1, "last": 0, "last_ms": 10, "left_out": 1, "left_out_ms": 100}
BEHIND = {"last": 1, "last_ms": 0, "left_out": 5, "left_out_ms": 0}
KEYS = [row(0, key_hash=1), row(1, key_hash=1)]

CASES: dict[str, Case] = {
    "whole": Case(
        [*LOG, row(3, 200, leader_epoch=1, kind="control")],
        {**EPOCHS, **WHOLE},
        {**EPOCHS, **CUT, "end": 2},
        1,
        {**EPOCHS, **CUT, **OF_LOG},
    ),
    "a later time before an earlier one": Case(
        [row(0, 10), row(1, 300), row(2, 20), row(3, 200)],
        {**START, **WHOLE},
        {**START, **CUT, "end": 1},
        3,
        {**START, **CUT, "asked": 3, "end": 3, "last": 2, "last_ms": 20, "left_out": 3, "left_out_ms": 200},
    ),
    "compacted, from the start": both(
        [row(2, 5, (0, 2), source=FIRST, leader_epoch=4), row(3)],
        {**START, "epochs": [(2, 4)], **gaps(1)},
        2,
        {**START, "epochs": [(2, 4)], **gaps(1, at_end=False), "asked": 2, "end": 2, "left_out": 2, "left_out_ms": 5},
    ),
    "not from the start": both(
        [row(7, 7, (5, 7)), row(8, 8)],
        gaps(6, 4),
        8,
        {**gaps(6, 4, at_end=False), "asked": 8, "end": 8, "last": 7, "last_ms": 7, "left_out": 8, "left_out_ms": 8},
    ),
    "not from the start, with a transaction": both(
        [row(7, 7, (5, 7), is_transactional=True), row(8, 8, is_transactional=False)],
        {**gaps(6, 4), **UNKNOWN},
        9,
        {**gaps(6, 4), **UNKNOWN, "asked": 9, "last": 8, "last_ms": 8},
    ),
    "by a consumer": both(
        [seen(0), seen(2)],
        {**START, **gaps(1), **UNKNOWN, "may_hide_ends": True},
        5,
        {**START, **gaps(4, 4), **UNKNOWN, "may_hide_ends": True, "asked": 5, "last": 2, "last_ms": 0},
    ),
    "an empty batch behind": both(
        [row(0), empty(1, 4)], {**START, **gaps(4)}, 5, {**START, **gaps(4), "asked": 5, "last": 0, "last_ms": 0}
    ),
    "an empty batch before": both(
        [empty(0, 4), row(5, source=FIRST)],
        {**START, **gaps(4)},
        3,
        {**START, **gaps(2, at_end=False), "asked": 3, "end": 3, "left_out": 5, "left_out_ms": 0},
    ),
    "the end of its last batch is gone": both(
        [row(0), row(1, 9, (1, 4))], {**START, **WHOLE}, 5, {**START, **WHOLE, "asked": 5, "last": 1, "last_ms": 9}
    ),
    "damage before": both(
        [damaged(0, source=FIRST), row(3, 5, (2, 3), source=FIRST)],
        {**START, **gaps(2, 1)},
        2,
        {**START, **gaps(1, 1, at_end=False), "asked": 2, "end": 2, "left_out": 3, "left_out_ms": 5},
    ),
    "damage behind a batch whose end is gone": both(
        [row(0), row(1, 0, (1, 3)), damaged(2), row(6, 6)],
        {**START, **gaps(5, 5)},
        4,
        {**START, **gaps(3, later=True, at_end=False), "asked": 4, "end": 4, "last": 1, "last_ms": 0}
        | {"left_out": 6, "left_out_ms": 6},
    ),
    "damage before a batch whose beginning is gone": both(
        [row(0), damaged(3, source=FIRST), row(6, 6, (4, 6), source=FIRST), row(7, 7, source=FIRST)],
        {**START, **gaps(5, 3)},
        8,
        {**START, **gaps(5, 3), "asked": 8, "last": 7, "last_ms": 7},
    ),
    "damage behind": both(
        [row(0), damaged(1, (1, 3))],
        {**START, **gaps(3, 3)},
        1,
        {**START, **WHOLE, "asked": 1, "last": 0, "last_ms": 0},
    ),
    "a key twice before a hole": both(
        [*KEYS, row(5)],
        {**START, **gaps(4, 4)},
        3,
        {**START, **gaps(2, 2, later=True, at_end=False), "asked": 3, "end": 3, "last": 1, "last_ms": 0}
        | {"left_out": 5, "left_out_ms": 0},
    ),
    "keys twice before each of two holes": both(
        [*KEYS, row(5, key_hash=5), row(6, key_hash=5), row(9)],
        {**START, **gaps(8, 8)},
        5,
        {**START, **gaps(4, 4, later=True, at_end=False), **BEHIND, "asked": 5, "end": 5},
    ),
    "a key twice, once in a control record": both(
        [row(0, key_hash=2), row(1, key_hash=2, kind="control"), row(5)],
        {**START, **gaps(4)},
        6,
        {**START, **gaps(4), "asked": 6, "last": 5, "last_ms": 0},
    ),
    "no key twice": both(
        [row(0), row(1), row(5)],
        {**START, **gaps(4)},
        4,
        {**START, **gaps(3, at_end=False), **BEHIND, "asked": 4, "end": 4},
    ),
    "a key twice behind a hole": both(
        [row(0, key_hash=3), *(row(at, key_hash=4) for at in (5, 6))],
        {**START, **gaps(4)},
        1,
        {**START, **CUT, "asked": 1, "end": 1, "last": 0, "last_ms": 0, "left_out": 5, "left_out_ms": 0},
    ),
    "unreadable": both(
        [row(0), row(1)],
        {**START, **gaps(1, 1)},
        1,
        {**START, **CUT, "asked": 1, "end": 1, "last": 0, "last_ms": 0, "left_out": 1, "left_out_ms": 0},
        unreadable=1,
    ),
    "unreadable, with a transaction": both(
        [row(0, is_transactional=True), row(1), row(2)],
        {**START, **gaps(1, 1), **UNKNOWN},
        3,
        {**START, **gaps(1, 1), **UNKNOWN, "asked": 3, "last": 2, "last_ms": 0},
        unreadable=1,
    ),
}
NUMBERS = {name: number for number, name in enumerate(CASES)}


def others() -> Iterator[Row]:
    """Rows that must not count: of another cluster, another log, and without a place in one."""
    for number in range(len(CASES)):
        for offset in range(10):
            of_other = row(offset, 150, leader_epoch=8, is_transactional=True, source=FIRST, key_hash=offset % 3)
            yield {**of_other, "cluster": "other", "log_partition": number}
            yield {**of_other, "log_topic": SHARE_LOG, "log_partition": number}
        beside = {"cluster": "other", "log_partition": number}
        yield {**damaged(5, (4, 6)), **beside}
        for source in (FIRST, LATER):
            yield from ({**row(offset, source=source), **beside, "place": 99 - offset} for offset in (1, 99))
    yield row(3, 150, log_partition=None)
    yield row(None, 150, log_partition=len(CASES))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases in one table: each is a log partition. The rows that must not count are before and behind them."""
    made = tmp_path_factory.mktemp("extents")
    rows = [{**row, "log_partition": NUMBERS[name]} for name, case in CASES.items() for row in case.rows]
    unreadable = [
        {**row(case.unreadable), "part": "key", "log_partition": NUMBERS[name]}
        for name, case in CASES.items()
        if case.unreadable is not None
    ]
    tables = {LOG_RECORDS: [*others(), *rows, *others()], QUARANTINE: unreadable, LOG_RANGES: [], RUNS: []}
    of_all = {"cluster": "c", "log_topic": GROUP_LOG}
    write(made, {table: [{**of_all, **row} for row in of_table] for table, of_table in tables.items()})
    return made


def found(home: Path, moment: AsOf) -> Extents:
    return extents_at(FolderReader(str(home)), "c", moment, [GROUP_LOG])


def expected(name: str, fields: dict[str, Any]) -> dict[tuple[str, int], StoredLogExtent]:
    return {(GROUP_LOG, NUMBERS[name]): StoredLogExtent(**fields)}


def of_all(attribute: str) -> Extents:
    return {
        place: extent
        for name, case in CASES.items()
        for place, extent in expected(name, getattr(case, attribute)).items()
    }


def test_partitions_at_their_end(home: Path) -> None:
    assert found(home, AsOf()) == of_all("at_end")


def test_partitions_at_a_time(home: Path) -> None:
    assert found(home, AsOf(time_ms=AT_MS)) == of_all("at_time")


def test_partitions_below_offsets(home: Path) -> None:
    offsets = {NUMBERS[name]: case.offset for name, case in CASES.items()}
    assert found(home, AsOf(offsets=offsets)) == of_all("below")


@pytest.mark.parametrize("names", [["whole"], ["whole", "a later time before an earlier one"]])
def test_other_partitions_are_taken_to_their_end(home: Path, names: list[str]) -> None:
    moment = AsOf(offsets={NUMBERS[name]: CASES[name].offset for name in names})
    extents = of_all("at_end")
    for name in names:
        extents |= expected(name, CASES[name].below)
    assert found(home, moment) == extents


def test_damage_behind_a_compacted_batch_is_loss_in_files_and_tables(tmp_path: Path) -> None:
    """The last records of the batch before were compacted, so that the offset behind its last record is not lost."""
    first, last = (
        [NewRecord(offset, 1, encode_key(RecordType.GROUP_METADATA, {"group": f"group {offset}"}), None)]
        for offset in (0, 9)
    )
    rest = record_bytes(first[0], 0, 0)
    cut = frame(rest, base_offset=0, last_offset=3, count=1, base_timestamp=1, max_timestamp=1)
    write_segment(tmp_path / "logs" / f"{GROUP_LOG}-0", [cut, b"\xab" * 500, encode_batch(last)])
    fill(tmp_path / "tables", tmp_path / "logs")
    tables = FolderReader(str(tmp_path / "tables"))
    for moment in (AsOf(), AsOf(offsets={0: 9})):
        stored, replayed = StoredMoment(tables, CLUSTER, moment), replay(find_logs([tmp_path / "logs"]), moment, print)
        assert stored.gaps() == replayed.gaps()
        assert stored.gaps()[f"{GROUP_LOG}-0"].lost == 8


# --- at the end, as ``log_ranges`` knows it --------------------------------------------------------------------------

PLACES = [(CONNECT_LOG, 0), *((log, number) for log in (GROUP_LOG, SHARE_LOG) for number in range(3))]
DOUBTFUL = [
    *([PLACES[number]] for number in (1, 4)),
    *([PLACES[1], PLACES[number]] for number in (2, 4)),
    *(PLACES[:2], PLACES[1:4], [PLACES[number] for number in (0, 2, 5)], PLACES[3:6], PLACES[4:6], PLACES),
]
WHY: dict[str, tuple[list[Row], dict[str, Any]]] = {
    "it lacks offsets": ([], {}),
    "it has damage": ([damaged(9, (3, 4))], gaps(4, 4)),
    "it has an empty batch": ([empty(3, 4)], gaps(4)),
}


@pytest.mark.parametrize("why", WHY)
def test_partitions_in_doubt_are_examined_and_no_others(tmp_path: Path, why: str) -> None:
    """Where nothing is in doubt, no record is looked at: here the ranges have other leader epochs than the records."""
    rows, more = WHY[why]
    for number, doubtful in enumerate(DOUBTFUL if not rows else DOUBTFUL[-3:-1]):
        records, ranges = [], []
        for topic, partition in PLACES:
            place = {"cluster": "c", "log_topic": topic, "log_partition": partition}
            records += [{**place, **row(at, leader_epoch=5)} for at in range(3)]
            records += [{**place, **row(at, leader_epoch=4), "cluster": "other"} for at in range(3)]
            span = {**place, "run_id": "run 1", "first_offset": 0, "last_offset": 0, "leader_epoch": 7, "records": 1}
            ranges += [{**span, "has_start": True}]
            ranges += [{**span, "first_offset": 2, "last_offset": 2, "has_start": False}]
            if (topic, partition) in doubtful:
                records += [{**place, **row} for row in rows]
            if why != "it lacks offsets" or (topic, partition) not in doubtful:
                ranges += [{**span, "first_offset": 1, "last_offset": 1, "leader_epoch": 8}]
        beside = {"cluster": "other", "log_topic": GROUP_LOG, "log_partition": 0, "run_id": "run 0"}
        records += [{**beside, **damaged(4)}, {**beside, "cluster": "c", **damaged(4), "log_partition": None}]
        ranges += [{**beside, "first_offset": 9, "last_offset": 9, "records": 1, "has_start": False}]
        home = tmp_path / str(number)
        write(home, {LOG_RECORDS: records, LOG_RANGES: ranges, RUNS: [], QUARANTINE: []})
        topics = sorted({topic for topic, _ in PLACES})
        known = StoredLogExtent(True, [(0, 7), (1, 8)])
        examined = StoredLogExtent(**{**START, "epochs": [(0, 5)], **more})
        assert extents_at(FolderReader(str(home)), "c", AsOf(), topics) == {
            place: examined if place in doubtful else known for place in PLACES
        }


def test_missing_ends_are_asked_for_where_a_log_of_groups_is_asked_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    monkeypatch.setattr(log_extent, "ends_missing", lambda _, cluster: asked.append(cluster) or {})
    for logs, times in (([SHARE_LOG, CONNECT_LOG], 0), ([GROUP_LOG, SHARE_LOG], 1)):
        _add_missing_ends({(log, 0): StoredLogExtent() for log in logs}, FolderReader(str(home)), "c")
        assert len(asked) == times
