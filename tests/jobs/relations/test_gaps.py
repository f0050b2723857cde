"""Gaps and their causes, each from a few rows of a log, in both engines."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.relations import gaps
from jobs.relations.gaps import GAPS, NEVER_COMPACTED, OF_PLACE, listed, summary
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RECORDS
from tests.jobs.relations.engines import of_both, write

Row = dict[str, Any]


def record(offset: int, key: str = "", batch: tuple[int, int] | None = None, kind: str = "record") -> Row:
    """A record that a segment holds, in a batch of its own unless said; its key is its own unless given."""
    base, last = batch or (offset, offset)
    return {
        "log_offset": None if kind == "damaged" else offset,
        "key": (key or f"key-{offset}").encode(),
        "kind": kind,
        "batch_base": base,
        "batch_last": last,
        "stray": "file#0" if kind == "damaged" else None,
        "record_type": 1,
        "source": "file",
        "place": offset,
    }


def seen(offset: int, key: str = "") -> Row:
    """The same as a consumer sees it."""
    return record(offset, key) | {"batch_base": None, "batch_last": None}


def untold(place: int) -> Row:
    """Damaged bytes that do not even tell which offsets they had."""
    return record(place, kind="damaged") | {"batch_base": None, "batch_last": None}


Gap = tuple[int, int, str]

CASES: dict[str, tuple[list[Row], list[Gap]]] = {
    "none": ([record(5), record(6), record(7)], []),
    "within a batch": (
        [record(0, batch=(0, 5)), record(3, batch=(0, 5)), record(6)],
        [(1, 2, "compaction"), (4, 5, "compaction")],
    ),
    "within batches that hold one key twice": (
        [record(0, "a", (0, 3)), record(1, "a", (0, 3)), record(6, "b", (5, 6))],
        [(2, 3, "compaction"), (4, 4, "missing"), (5, 5, "compaction")],
    ),
    "an empty batch": ([record(0), record(4, batch=(1, 4), kind="empty"), record(5)], []),
    "each key once before it": (
        [record(0, "a"), record(1, "b"), record(9, "a"), record(10, "a")],
        [(2, 8, "compaction")],
    ),
    "a key twice before it": ([record(0, "a"), record(1, "a"), record(9, "b")], [(2, 8, "missing")]),
    "a damaged batch in it": (
        [record(0, "a"), record(1, "a"), record(2, batch=(2, 8), kind="damaged"), record(9)],
        [(2, 8, "damaged")],
    ),
    "two damaged batches in it": (
        [record(0), record(1), *(record(at, batch=(at, at + 3), kind="damaged") for at in (2, 6)), record(10)],
        [(2, 9, "damaged")],
    ),
    "only a part of a batch before it": (
        [record(0, "a"), record(1, "a", (1, 4)), record(7)],
        [(2, 4, "compaction"), (5, 6, "missing")],
    ),
    "keys twice before each of two": (
        [record(0, "a"), record(1, "a"), record(5, "b"), record(6, "b"), record(9)],
        [(2, 4, "missing"), (7, 8, "missing")],
    ),
    "bytes in it that tell no offset": ([record(0, "a"), record(1, "b"), untold(2), record(9)], [(2, 8, "damaged")]),
    "such bytes before the first record of their file": (
        [record(0, "a"), record(8, "b"), *(row | {"source": "g"} for row in (untold(3), record(12, "c"), record(13)))],
        [(1, 7, "compaction"), (9, 11, "damaged")],
    ),
    "such bytes behind a batch whose end is gone": (
        [record(0, "a"), record(1, "b", (1, 3)), untold(2), record(9)],
        [(2, 3, "compaction"), (4, 8, "damaged")],
    ),
    "such bytes before a batch whose beginning is gone": (
        [record(0, "a"), *(row | {"source": "g"} for row in (untold(3), record(9, "c", (7, 9))))],
        [(1, 6, "damaged"), (7, 8, "compaction")],
    ),
    "a key twice between two": (
        [record(0, "a"), record(3, "b"), record(4, "b"), record(9)],
        [(1, 2, "compaction"), (5, 8, "missing")],
    ),
    "a key twice, once in a control record": (
        [record(0, "a"), record(1, "a", kind="control"), record(9)],
        [(2, 8, "compaction")],
    ),
    "a consumer behind a segment": ([record(0, "a"), record(1, "a"), seen(3)], [(2, 2, "unknown")]),
    "a consumer and one offset more than markers": ([seen(0, "a"), seen(1, "a"), seen(5)], [(2, 4, "missing")]),
    "markers of an earlier hole": (
        [seen(0, "a"), seen(1, "a"), seen(3), seen(7)],
        [(2, 2, "unknown"), (4, 6, "missing")],
    ),
    "a row that has no place in it": ([record(0), record(4) | {"stray": "x"}, record(6, "d")], [(1, 5, "compaction")]),
    "__cluster_metadata": ([record(0), record(9)], [(1, 8, "missing")]),
    "a consumer and one marker": ([seen(0, "a"), seen(1, "a"), seen(3)], [(2, 2, "unknown")]),
    "a consumer and more than markers": ([seen(0, "a"), seen(1, "a"), seen(9)], [(2, 8, "missing")]),
    "two holes, one behind each commit": (
        [seen(0, "a"), seen(2, "a"), seen(4)],
        [(1, 1, "unknown"), (3, 3, "unknown")],
    ),
}

EXPECTED = sorted(((name, 0, *gap) for name, (_, found) in CASES.items() for gap in found), key=repr)
BEGINS, VALUES = listed({(name, 0): 0 for name in CASES})
GIVEN = {"cluster": "c", "never": NEVER_COMPACTED, **VALUES}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases in one table: each is a log partition."""
    rows = [
        {"cluster": "c", "log_topic": name, "log_partition": 0, "key_hash": hash(row["key"]) >> 1, **row}
        for name, (log, _) in CASES.items()
        for row in reversed(log)
    ]
    made = tmp_path_factory.mktemp("gaps")
    write(made, {LOG_RECORDS: [{**row, "source": f"{row['log_topic']}/{row['source']}"} for row in rows]})
    return made


def test_a_gap_has_the_cause_that_the_rows_around_it_prove(spark: SparkSession, home: Path) -> None:
    assert of_both(spark, home, GAPS.format(begins=BEGINS), **GIVEN) == EXPECTED


PLACED = [
    record(0),
    record(1, batch=(1, 4)),
    record(7),
    record(12, batch=(10, 12)),
    record(25, batch=(20, 25), kind="empty"),
    record(40),
    record(50, batch=(42, 50)),
    record(60, batch=(60, 65)),
    record(64, batch=(60, 65)),
    record(71, batch=(70, 71), kind="empty") | {"control_type": "COMMIT"},
    record(75) | {"log_topic": "u"},
    record(76) | {"log_partition": 1},
    record(15) | {"cluster": "other"},
]
"""Rows of one log partition, and of others."""
BETWEEN = [(5, 6), (8, 9), (13, 19), (26, 39), (41, 41), (51, 59), (66, 69)]
LACKING = {2: None, 3: 2, 5: 4, 11: 10, 22: 21, 40: 25, 45: 44, 61: 49, 62: 61, 1_000: 65}
"""By an end: the last offset below it that a batch lacks."""


def test_holes_of_a_place_lie_between_batches_or_within_one(spark: SparkSession, tmp_path: Path) -> None:
    of_place: dict[str, Any] = {"cluster": "c", "topic": "t", "partition": 0}
    write(tmp_path, {LOG_RECORDS: [{"cluster": "c", "log_topic": "t", "log_partition": 0, **row} for row in PLACED]})
    for end, lacking in LACKING.items():
        rows = FolderReader(str(tmp_path)).rows(OF_PLACE, end=end, **of_place)
        found = {(row["first_offset"], row["last_offset"]) for row in rows}
        assert found == {*BETWEEN, (None, lacking)}
    assert len(of_both(spark, tmp_path, OF_PLACE, end=1_000, **of_place)) == len(BETWEEN) + 1


def test_rows_before_a_floor_are_left_out_but_their_keys_count(home: Path) -> None:
    """The hole behind offset 0 is not looked at; that the key of offset 4 occurred before decides on the next one."""
    begins, values = listed({("two holes, one behind each commit", 0): 2})
    rows = FolderReader(str(home)).rows(GAPS.format(begins=begins), **{**GIVEN, **values})
    assert [(row["first_offset"], row["last_offset"], row["cause"]) for row in rows] == [(3, 3, "unknown")]


def test_the_summary_counts_all_and_lists_what_compaction_does_not_explain(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps, "LISTED", 3)
    offsets = [(0, "a"), (1, "a"), (4, "b"), (15, "c"), (17, "d"), (21, "e"), (23, "f")]
    log = [record(offset, key) for offset, key in offsets] + [record(18, batch=(18, 19), kind="damaged")]
    log[2] |= {"batch_base": 2}
    log = [{"log_partition": 0, **each} for each in log]
    log += [{"log_partition": 1, **record(offset)} for offset in (0, 5)]
    row = {"cluster": "c", "log_topic": "t"}
    write(tmp_path, {LOG_RECORDS: [{**row, **each, "key_hash": hash(each["key"]) >> 1} for each in log]})
    found, compacted = summary(FolderReader(str(tmp_path)), "c", {("t", 0): 0, ("t", 1): 0}).values()
    assert compacted == dict.fromkeys(found, 0) | {"compacted_offsets": 4, "gaps": []}
    counts = {name: found[f"{name}_offsets"] for name in ("compacted", "unknown", "missing", "damaged")}
    assert counts == {"compacted": 2, "unknown": 0, "missing": 12, "damaged": 3}
    assert [tuple(gap.values()) for gap in found["gaps"]] == [
        (5, 14, "missing"),
        (16, 16, "missing"),
        (18, 20, "damaged"),
    ]


BOUNDS = [
    (gaps.FIRST_OF_BATCH, "base"),
    (gaps.FIRST_OF_BATCH, "first"),
    *((gaps.LAST_OF_BATCH, name) for name in ("batch_end", "last")),
]
MUTATIONS = [
    ("WHERE stray IS NULL AND kind", "WHERE kind"),
    ("WHEN kind = 'empty' THEN batch_base ELSE", "WHEN FALSE THEN batch_base ELSE"),
    *((f"{of_batch} AS {name}", f"log_offset AS {name}") for of_batch, name in BOUNDS),
    ("is_blind OR lag(is_blind)", "lag(is_blind)"),
    ("THEN 1 ELSE 0", "THEN 0 ELSE 0"),
    ("- coalesce(lag(commits)", "+ coalesce(lag(commits)"),
    ("last_before + 1 < first", "last_before + 2 < first"),
    ("low - 1 AS last_offset", "low AS last_offset"),
    ("high + 1 AS first_offset", "high AS first_offset"),
    ("OR (kind = 'damaged' AND batch_base IS NULL)", ""),
    ("f.place < d.place", "f.place > d.place"),
    ("f.last END) + 1", "f.last END)"),
    ("f.first END) - 1", "f.first END)"),
    ("f.source = d.source", "TRUE"),
    ("d.damaged_at >= g.first_offset", "d.damaged_at > g.first_offset"),
    ("d.damaged_at <= g.last_offset", "TRUE"),
    ("nth = 2", "nth = 1"),
    ("kind = 'record' AND key_hash", "key_hash"),
    ("+ 1 <= commits", "<= commits"),
    ("g.log_topic IN :never OR", ""),
    ("first_repeat <= g.last_offset", "first_repeat IS NOT NULL"),
]


@pytest.mark.parametrize(("part", "instead"), MUTATIONS, ids=[str(number) for number in range(len(MUTATIONS))])
def test_a_mutated_text_is_found(home: Path, part: str, instead: str) -> None:
    """Each part of the text matters to one of the cases."""
    assert part in GAPS
    text = GAPS.replace(part, instead).format(begins=BEGINS)
    found = (tuple(row.values()) for row in FolderReader(str(home)).rows(text, **GIVEN))
    assert sorted(found, key=repr) != EXPECTED
