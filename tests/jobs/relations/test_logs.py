"""What was read of the logs: the texts in both engines, against plain Python over generated logs."""

import random
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.folds.group_history import ShareLogs
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS, TopicsAtEnd
from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.history.lost_records import LogExtent, LostRecords
from coordinator_core.records import GROUP_LOG, SHARE_LOG, Family
from jobs.pipeline.log_ranges import NEW
from jobs.relations.logs import (
    OF_RANGE,
    RANGES,
    LogFacts,
    counted_lives,
    has_orphans,
    last_times,
    lost_records,
    times_of_groups,
    whole_from_ms,
    without_times,
)
from jobs.relations.moment import NEVER_MS
from jobs.relations.share_state import rests_on_share_state
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, HISTORY, TOPIC_HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.table import Table
from tests.jobs.relations.engines import of_both, write
from tests.shared_data import ROOT

CASES = 60
"""Log partitions, each with a history of its own."""

PLACELESS = (("log_offset",), ("log_partition",), ("log_offset", "log_partition"))
"""What rows lack that have no place in a log."""
GIVEN = {"cluster": "c", "done": "run 0", "upto": "run 2", "block": 8}
TEXT = RANGES.format(which=NEW)

OF_LOG = {"cluster": "c", "log_topic": GROUP_LOG, "log_partition": 0}

Row = dict[str, Any]


def log_of(chance: random.Random, partition: int) -> Iterator[Row]:
    """Some rows of a log partition: long whole stretches and long holes, several runs and leader epochs."""
    offset, epoch, run = chance.choice([0, 0, 3]), chance.choice([None, 0]), "run 1"
    for _ in range(chance.randrange(1, 12)):
        size = chance.choice([1, 2, 3, 9, 30])
        if chance.random() < 0.3:
            offset += size
            continue
        if chance.random() < 0.4:
            run = chance.choice(["run 1", "run 2"])
        if chance.random() < 0.2 and epoch is not None:
            epoch += 1
        source = chance.choice(["dump.parquet", f"{offset:020}.log", f"{offset - offset % 1000:020}.log"])
        for at in range(offset, offset + size):
            place = {"log_topic": "log", "log_partition": partition, "log_offset": at, "leader_epoch": epoch}
            times = {"timestamp_ms": chance.choice([None, -1, at, 1000 - at])}
            kind = chance.choice(["record"] * 6 + ["control", "empty"])
            yield {"cluster": "c", "run_id": run, "source": source, "kind": kind, **place, **times}
        offset += size


def expected_ranges(rows: list[Row]) -> list[tuple[Any, ...]]:
    """The ranges, record by record."""
    read = [row for row in rows if row["kind"] in ("record", "control")]
    found = []

    def key(row: Row) -> tuple[str, ...]:
        return tuple(repr(row[name]) for name in OF_RANGE)

    for _, mine in groupby(sorted(read, key=lambda row: (key(row), row["log_offset"])), key):
        parts: list[list[Row]] = []
        for row in mine:
            if not parts or parts[-1][-1]["log_offset"] != row["log_offset"] - 1:
                parts.append([])
            parts[-1].append(row)
        for part in parts:
            times = [row["timestamp_ms"] for row in part if row["timestamp_ms"] not in (None, -1)]
            has_start = any(row["log_offset"] == 0 or row["source"] == f"{0:020}.log" for row in part)
            bounds = part[0]["log_offset"], part[-1]["log_offset"]
            span = min(times, default=None), max(times, default=None)
            found.append((*(part[0][name] for name in OF_RANGE), *bounds, *span, len(part), has_start))
    return sorted(found, key=repr)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    chance = random.Random(7)
    return [row for partition in range(CASES) for row in log_of(chance, partition)]


@pytest.fixture(scope="module")
def home(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows, and others: of another cluster, of runs before and behind, and without a place."""
    made = tmp_path_factory.mktemp("logs")
    some = {**rows[0], "kind": "record"}
    others = [{**some, **of} for of in ({"cluster": "other"}, {"run_id": "run 0"}, {"run_id": "run 3"})]
    placeless = [{**some, **dict.fromkeys(names)} for names in PLACELESS]
    tables: dict[Table, list[Row]] = {LOG_RECORDS: [*rows, *others, *placeless]}
    write(made, tables)
    return made


def test_ranges(spark: SparkSession, home: Path, rows: list[Row]) -> None:
    """With blocks of 8 offsets, ranges begin and end within blocks and between them, and span many."""
    assert of_both(spark, home, TEXT, **GIVEN) == expected_ranges(rows)


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ("kind IN ('record', 'control')", "kind = 'record'"),
        ("(log_offset = 0 OR ", "("),
        ("OR source LIKE", "OR source NOT LIKE"),
        ("timestamp_ms >= 0", "timestamp_ms > 0"),
        ("timestamp_ms >= 0", "TRUE"),
        ("WHERE records = last_offset", "WHERE records <= last_offset"),
        ("WHERE records < last_offset", "WHERE records <= last_offset"),
        ("p.block = b.block AND ", ""),
        ("IS NOT DISTINCT FROM b.leader_epoch", "= b.leader_epoch"),
        ("AND (p.run_id IS NOT DISTINCT FROM b.run_id)", ""),
        ("= first_offset - 1", "= first_offset"),
        ("PARTITION BY cluster, run_id, log_topic, log_partition, leader_epoch", "PARTITION BY log_partition"),
        ("max(last_ms) AS last_ms, sum", "min(last_ms) AS last_ms, sum"),
        ("min(first_ms) AS first_ms,\n", "max(first_ms) AS first_ms,\n"),
        ("sum(records)", "count(records)"),
        ("bool_or(has_start)", "bool_and(has_start)"),
    ],
)
def test_a_mutated_text_is_found(home: Path, rows: list[Row], part: str, instead: str) -> None:
    """Each part of the text matters to one of the cases."""
    assert part in TEXT
    found = (tuple(row.values()) for row in FolderReader(str(home)).rows(TEXT.replace(part, instead), **GIVEN))
    assert sorted(found, key=repr) != expected_ranges(rows)


def range_of(log: str, partition: int | None, first: int = 0, time_ms: int | None = 0, **fields: Any) -> Row:
    of = {"cluster": "c", "run_id": "run 1", "log_topic": log, "log_partition": partition, "has_start": False}
    return {**of, "first_offset": first, "last_offset": first, "first_ms": time_ms, "last_ms": time_ms, **fields}


def test_times_of_groups_are_those_of_their_logs_and_cluster(tmp_path: Path) -> None:
    rows = [range_of(GROUP_LOG, 0), *(range_of(GROUP_LOG, 1, first, -1) for first in (0, 5))]
    rows += [range_of("another", 2, time_ms=-1), range_of(GROUP_LOG, 3, time_ms=-1, cluster="other")]
    rows += [range_of(GROUP_LOG, None, time_ms=-1), range_of(GROUP_LOG, 4, time_ms=None)]
    rows += [range_of(GROUP_LOG, number, leader_epoch=-1) for number in (5, 6)]
    of_log = {"cluster": "c", "log_topic": GROUP_LOG, "kind": "record", "timestamp_ms": 0, "log_offset": 0}
    kinds = [(0, "CreateTime"), (5, "InValue")]
    records = [{**of_log, "log_partition": number, "timestamp_type": kind} for number, kind in kinds]
    records += [{**of_log, "log_partition": 6, "timestamp_ms": -1}, {**of_log, "cluster": "other", "log_partition": 7}]
    write(tmp_path, {LOG_RANGES: rows, LOG_RECORDS: records})
    tables = FolderReader(str(tmp_path))
    assert times_of_groups(tables, "c") == (0, 0)
    assert last_times(tables, "c") == {(GROUP_LOG, number): 0 for number in (0, 5, 6)}
    assert without_times(tables, "c") == [f"{GROUP_LOG}-{number}" for number in (1, 4, 5, 6)]


def test_logs_of_groups_are_whole_from_the_first_record_behind_their_last_gap(tmp_path: Path) -> None:
    """Gaps of the share state log, and of another cluster, are none of theirs."""
    spans = ((0, 4, 100), (9, 12, 300), (6, 7, 200))
    ranges = [{"first_offset": first, "last_offset": last, "first_ms": time_ms} for first, last, time_ms in spans]
    others = [{**OF_LOG, "log_topic": SHARE_LOG}, {**OF_LOG, "cluster": "other"}]
    later = [{"first_offset": 50, "last_offset": 51, "first_ms": 900, **other} for other in others]
    write(tmp_path, {LOG_RANGES: [*({**OF_LOG, **each} for each in ranges), *later]})
    tables = FolderReader(str(tmp_path))
    assert whole_from_ms(tables, "c", LostRecords({})) == 300
    assert whole_from_ms(tables, "c", LostRecords({(GROUP_LOG, 0): [(8, 8)]})) == 300
    assert whole_from_ms(tables, "c", LostRecords({(GROUP_LOG, 0): [(13, 14)]})) == NEVER_MS


def test_offsets_before_the_first_are_lost_unless_a_range_has_the_start(tmp_path: Path) -> None:
    rows = [*(range_of(GROUP_LOG, 0, first) for first in (5, 10)), range_of(GROUP_LOG, 1, 3, has_start=True)]
    rows += [range_of(GROUP_LOG, 2), *(range_of(GROUP_LOG, 3, first) for first in (0, 8))]
    rows += [range_of(GROUP_LOG, 4, 5, cluster="other"), range_of("another", 5, 5)]
    write(tmp_path, {LOG_RANGES: rows, RUNS: [], QUARANTINE: []})
    assert lost_records(FolderReader(str(tmp_path)), "c").ranges == {(GROUP_LOG, 0): [(0, 4)]}


def test_another_cluster_has_groups_and_topics_of_its_own(tmp_path: Path) -> None:
    """A group of this cluster's share log is an orphan, though the other cluster has a group of that name."""
    states = [{"cluster": "c", "log_topic": SHARE_LOG}, {"cluster": "other", "log_topic": GROUP_LOG}]
    since, until = ({"partition": 0, "offset": time_ms, "timestamp_ms": time_ms} for time_ms in (1, 2))
    topics = [
        {"cluster": name, "topic": f"topic of {name}", "partitions": count, "since": began, "until": ended}
        for name in ("c", "other")
        for count, began, ended in ((3, until, None), (2, since, until))
    ]
    started = {"cluster": "other", "group_id": "another", "was_initialized": True}
    tables = {GROUP_STATES: [{**row, "group_id": "orphan"} for row in states], TOPIC_HISTORY: topics}
    write(tmp_path, {**tables, HISTORY["share_initializations"]: [started]})
    here = FolderReader(str(tmp_path))
    assert has_orphans(here, "c", "orphan")
    assert counted_lives(here, "c") == [("topic of c", 1, 2, 2), ("topic of c", 2, None, 3)]
    assert not rests_on_share_state(here, "c", "another")


def test_what_was_read_of_the_share_state_log(tmp_path: Path) -> None:
    """A log is whole by the sum of all that was read of it; damage of another log or cluster is not its own."""
    ranges = [
        range_of(log, 0, first, last_ms, last_offset=first + 4, records=5, has_start=first == 0)
        for log, times in ((SHARE_LOG, (100, 50)), (GROUP_LOG, (200, 150)))
        for first, last_ms in zip((0, 5), times, strict=True)
    ]
    damaged = {"log_partition": 0, "kind": "damaged"}
    records = [
        {**damaged, "cluster": "another", "log_topic": GROUP_LOG},
        {**damaged, "cluster": "c", "log_topic": SHARE_LOG},
    ]
    orphan = {"cluster": "c", "log_topic": SHARE_LOG, "log_partition": 0, "group_id": "orphan"}
    tables = {RUNS: [], QUARANTINE: [], TOPIC_HISTORY: [], LOG_RANGES: ranges, LOG_RECORDS: records}
    write(tmp_path, {**tables, GROUP_STATES: [orphan], HISTORY["share_initializations"]: []})
    facts = LogFacts.read(FolderReader(str(tmp_path)), "c")
    assert facts.lost.read == {(GROUP_LOG, 0): LogExtent(10, 9, 0)}, "of logs of groups, whatever a range is one of"
    shares = facts.share_logs
    assert shares == ShareLogs({0: 100}, frozenset({0}), {0: 200})


def test_tables_count_the_partitions_of_topics_over_time_as_the_metadata_log_does(tmp_path: Path) -> None:
    logs = [log for log in find_logs([ROOT / "data" / "samples" / "logs"]) if log.family is Family.METADATA]
    history = fold_metadata_log(LogReader(logs, print).records())
    rows = [
        {
            "cluster": "c",
            "topic": row.topic,
            "partitions": row.partitions,
            "since": row.since._asdict(),
            "until": row.until and row.until._asdict(),
        }
        for row in history.intervals()
    ]
    write(tmp_path, {TOPIC_HISTORY: rows})
    counted = NO_TOPICS.counted(counted_lives(FolderReader(str(tmp_path)), "c"))
    expected = TopicsAtEnd.of(history)
    assert (counted.partitions, counted.earlier) == (expected.partitions, expected.earlier)
    assert counted.earlier["a-range-x1"] == ((1_795_256_781_392, 0), (1_795_256_788_377, 3))
