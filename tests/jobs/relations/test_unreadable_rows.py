"""Records that cannot be decoded, as each reader asks for them: random rows, and what Python finds among them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.offsets.burrow import UnreadOfGroups, note_unread
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.history.lost_records import UnknownOffsets, Unreadable
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, SHARE_LOG, LogPosition, RecordType
from coordinator_core.wire.record_codec import encode_key
from jobs.relations import unreadable
from jobs.relations.log_extent import StoredLogExtent, below_ends, followed
from jobs.sources.files import GROUP_TOPICS, REPLAYED_TOPICS, SHARE_TOPICS
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import QUARANTINE
from tests.jobs.relations.engines import through_spark, write

Row = dict[str, Any]
Place = tuple[str, int]
GROUP_PLACES, SHARE_PLACES = ([(log, number) for number in range(4)] for log in (GROUP_LOG, SHARE_LOG))
PLACES = [(CONNECT_LOG, 0), *GROUP_PLACES, *SHARE_PLACES]
OFFSETS = range(12)
UNPLACED, OF_G = range(3), (3, 4, 5, 11)
"""Offsets that each partition has: of records without a readable key, and of one group. Partitions end at some."""
KEYS = {
    **{
        kind: [encode_key(kind, {"group": "g", "topic": "t", "partition": number}) for number in range(2)]
        for kind in (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)
    },
    RecordType.GROUP_METADATA: [encode_key(RecordType.GROUP_METADATA, {"group": name}) for name in "gh"],
}


def row_at(chance: Random, place: Place, offset: int) -> Row:
    kind = chance.choice([*KEYS])
    of_group = {"group_id": chance.choice("gh"), "record_type": kind.value, "key": chance.choice(KEYS[kind])}
    if offset in OF_G:
        of_group["group_id"] = "g"
    has_key = offset in OF_G or (offset not in UNPLACED and chance.random() < 0.6)
    told = of_group | {"part": "value"} if has_key else {"part": "key"}
    at = {"log_topic": place[0], "log_partition": place[1], "log_offset": offset}
    times = {"run_id": chance.choice("123"), "timestamp_ms": chance.choice([None, offset * 10])}
    return {"group_id": None, "record_type": None, "key": None, **at, **times, **told}


def not_counted(chance: Random, row: Row) -> Row:
    """A row that is not a record of the cluster, of these logs, with a place; its offset is lower or higher."""
    moved = {**row, "log_offset": row["log_offset"] + chance.choice([-100, 100])}
    beside = [{"cluster": "other"}, {"part": "damaged"}, {"stray": "a dump#1"}]
    placeless = [{name: None} for name in ("log_offset", "log_partition", "log_topic")]
    return {**moved, **chance.choice([*beside, *placeless])}


def is_commit(row: Row) -> bool:
    return row["log_topic"] == GROUP_LOG and bool(row["group_id"]) and row["record_type"] <= RecordType.OFFSET_COMMIT


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    chance = Random(19)
    return [
        row_at(chance, place, offset)
        for place in PLACES
        for offset in OFFSETS
        if offset in UNPLACED or offset in OF_G or chance.random() < 0.7
    ]


@pytest.fixture(scope="module")
def home(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, chance = tmp_path_factory.mktemp("unreadable"), Random(20)
    others = [not_counted(chance, row) for row in rows for _ in range(2)]
    write(made, {QUARANTINE: [{"cluster": "c", **row} for row in (*rows, *others)]})
    return made


@pytest.fixture(scope="module")
def here(home: Path) -> FolderReader:
    return FolderReader(str(home))


G0, G1, G2, _ = GROUP_PLACES
S0, S1, S2, _ = SHARE_PLACES
ENDED: list[list[Place]] = [
    *([], [G0], [S1], [G0, G1], [G2, S0], [S0, S1]),
    *(PLACES[:3], [G0, G1, G2], [S0, S1, S2], PLACES),
]
"""Which partitions have an end: how many there are changes the text."""
FIRST_ENDS = (0, 3)
"""The end of the first one; each later one has the next offset."""


def ends(places: Sequence[Place], first: int) -> dict[Place, int]:
    return {place: first + number for number, place in enumerate(places)}


def condition(places: Sequence[Place], first: int) -> str:
    extents = {place: StoredLogExtent(end=end) for place, end in ends(places, first).items()}
    return below_ends({(GROUP_LOG, 3): StoredLogExtent(), **extents})


def place_of(row: Row) -> Place:
    return row["log_topic"], row["log_partition"]


def before(rows: list[Row], places: Sequence[Place], first: int, topics: Sequence[str]) -> list[Row]:
    """The rows of these logs before the ends of these partitions."""
    of_places = ends(places, first)
    return [row for row in rows if row["log_topic"] in topics and row["log_offset"] < of_places.get(place_of(row), 99)]


def offsets_by(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row["log_offset"])
    return dict(found)


@pytest.mark.parametrize("topics", [GROUP_TOPICS, SHARE_TOPICS], ids=["groups", "share state"])
@pytest.mark.parametrize("first", FIRST_ENDS)
@pytest.mark.parametrize("places", ENDED, ids=len)
def test_records_before_the_ends_of_partitions(
    here: FolderReader, rows: list[Row], places: list[Place], first: int, topics: Sequence[str]
) -> None:
    some, text = before(rows, places, first, topics), condition(places, first)
    unplaced = offsets_by((row for row in some if row["group_id"] is None), place_of)
    assert unreadable.last_unplaced(here, "c", topics, text) == {place: max(of) for place, of in unplaced.items()}
    of_groups = defaultdict[Place, dict[str, Unreadable]](dict)
    of_state = offsets_by((row for row in some if not is_commit(row)), lambda row: (place_of(row), row["group_id"]))
    for (place, group), of_group in offsets_by(some, lambda row: (place_of(row), row["group_id"])).items():
        if group is not None:
            last_of_state = max(of_state.get((place, group), [-1]))
            of_groups[place][group] = Unreadable(min(of_group), max(of_group), last_of_state)
    found = unreadable.unreadable_of_groups(here, "c", text, topics)
    assert found == (of_groups, {place: (min(of), max(of)) for place, of in unplaced.items()})
    in_order = sorted((row["log_partition"], row["log_offset"]) for row in some)
    assert list(unreadable.places(here, "c", topics, text)) == in_order
    firsts = {number: min(of) for number, of in offsets_by(some, lambda row: row["log_partition"]).items()}
    assert unreadable.first_offsets(here, "c", topics, text) == firsts


def last_of_keys(rows: list[Row], group_id: str | None) -> set[tuple[Any, ...]]:
    groups = ["g", "h"] if group_id is None else [group_id]
    some = (row for row in rows if row["group_id"] in groups and row["log_topic"] in GROUP_TOPICS)
    keys = offsets_by(some, lambda row: (place_of(row), row["group_id"], row["record_type"], row["key"]))
    return {(*key, max(of_key)) for key, of_key in keys.items()}


@pytest.mark.parametrize("group_id", [None, "g"])
@pytest.mark.parametrize("first", FIRST_ENDS)
@pytest.mark.parametrize("places", ENDED, ids=len)
def test_the_last_record_of_each_key(
    here: FolderReader, rows: list[Row], places: list[Place], first: int, group_id: str | None
) -> None:
    expected = last_of_keys(before(rows, places, first, GROUP_TOPICS), group_id)
    assert {*unreadable.last_of_keys(here, "c", condition(places, first), group_id)} == expected


@pytest.mark.parametrize("group_id", [None, "g"])
@pytest.mark.parametrize("first", [4, 11])
@pytest.mark.parametrize("places", [*([place] for place in GROUP_PLACES[:2]), GROUP_PLACES[:2], PLACES], ids=len)
def test_the_last_record_of_each_key_behind_the_ends(
    here: FolderReader, rows: list[Row], places: list[Place], first: int, group_id: str | None
) -> None:
    """Of partitions that lack something before their end; of others it does not matter what follows."""
    of_places = ends(places, first)
    lacking = {place: StoredLogExtent(end=end, gaps=LogGaps(missing=0)) for place, end in of_places.items()}
    condition = followed({(GROUP_LOG, 3): StoredLogExtent(end=2), **lacking})
    behind = [row for row in rows if row["log_offset"] >= of_places.get(place_of(row), 99)]
    assert {*unreadable.last_of_keys(here, "c", condition, group_id)} == last_of_keys(behind, group_id)


def test_commits_by_group_and_partition(here: FolderReader, rows: list[Row]) -> None:
    expected: dict[int, UnreadOfGroups] = {}
    for row in sorted(rows, key=lambda row: (row["log_partition"], row["log_offset"])):
        if is_commit(row):
            partition = TopicPartition("t", KEYS[row["record_type"]].index(row["key"]))
            time_ms = -1 if row["timestamp_ms"] is None else row["timestamp_ms"]
            at = LogPosition(row["log_partition"], row["log_offset"], time_ms)
            note_unread(expected.setdefault(row["log_partition"], {}), row["group_id"], partition, at)
    assert unreadable.unread_commits(here, "c") == expected


def of_replay(rows: list[Row], upto: str) -> dict[Place, list[int]]:
    """The records up to a run that may be about any group; of the share state log it is each."""
    some = (row for row in rows if row["log_topic"] in REPLAYED_TOPICS and row["run_id"] <= upto)
    return offsets_by((row for row in some if row["log_topic"] == SHARE_LOG or row["group_id"] is None), place_of)


@pytest.mark.parametrize("upto", ["", "1", "2", "3"])
def test_records_that_may_be_about_any_group(
    here: FolderReader, rows: list[Row], upto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, bounds = [], []
    for place, offsets in of_replay(rows, upto).items():
        runs = groupby(enumerate(sorted(offsets)), lambda numbered: numbered[1] - numbered[0])
        spans = [[offset for _, offset in run] for _, run in runs]
        expected += [(place, UnknownOffsets(run[0], run[-1], False)) for run in spans]
        bounds.append((place, UnknownOffsets(min(offsets), max(offsets), False)))
    assert sorted(unreadable.unplaced_records(here, "c", upto)) == sorted(expected)
    monkeypatch.setattr(unreadable, "MOST_RUNS", 0)
    assert sorted(unreadable.unplaced_records(here, "c", upto)) == sorted(bounds)


def test_spark_finds_the_same(spark: SparkSession, home: Path, here: FolderReader) -> None:
    in_spark = through_spark(spark, home)
    given = "c", condition([G0, G1], 3), GROUP_TOPICS
    assert unreadable.unreadable_of_groups(here, *given) == unreadable.unreadable_of_groups(in_spark, *given)
    stored, by_spark = (unreadable.unplaced_records(tables, "c", "2") for tables in (here, in_spark))
    assert sorted(stored) == sorted(by_spark)
