"""The lag at each snapshot from a time on, of a log that lacks what was written for a while; each topic is a case."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_core.records import GROUP_LOG
from jobs.relations.lag import KEY, LAG_SINCE, lag_rows
from jobs.relations.logs import log_reaches
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, RUNS
from jobs.tables.records import OFFSET_COMMITS
from jobs.tables.snapshots import END_OFFSETS, LAG_HISTORY
from tests.jobs.relations.engines import write

SINCE_MS = 40_000
LAST, EDGE_MS = 100, 50_000
"""Up to this offset and time the log is whole; offsets 101 to 199 are missing."""

ENDED_MS = 60_000
Commit = tuple[int, int, int]
"""Offset in the log, time (ms) and committed offset."""
End = tuple[int, int]
"""Time (ms) and end offset."""
RISING: list[Commit] = [(number, number * 1_000, number * 100) for number in range(5)]
ENDS: list[End] = [(0, 500), (SINCE_MS, 1_900), (60_000, 5_000)]
NAMES = ("timestamp_ms", "status", "lag", "consumed", "produced")

CASES: dict[str, tuple[list[Commit], list[End]]] = {
    "stopped": (RISING, ENDS),
    "followed": ([*RISING, (200, 70_000, 1_000)], ENDS),
    "was at the end": (RISING, [(0, 0), (4_500, 400), (SINCE_MS, 1_900)]),
    "at the edge": ([*RISING, (LAST, EDGE_MS, 450)], [(EDGE_MS, 1_900)]),
    "committed at the snapshot": ([*RISING, (LAST - 1, EDGE_MS, 450)], [(ENDED_MS, 1_900)]),
}
TRANSACTION = "committed at the snapshot"
"""Its last commit is in a transaction that ends behind the hole, at the time of the snapshot."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cases, and the same of another cluster, log and partition: later commits of other offsets, other ends."""
    place = {"cluster": "c", "run_id": "run 1", "log_topic": GROUP_LOG, "log_partition": 0}
    other = {"cluster": "other"}
    commits, ends = [], []
    for topic, (of_topic, known) in CASES.items():
        of = {**place, "group_id": "g", "topic": topic, "partition": 0, "is_tombstone": False}
        for at, time_ms, offset in of_topic:
            commit = {**of, "log_offset": at, "timestamp_ms": time_ms, "committed_offset": offset}
            if (topic, at) == (TRANSACTION, LAST - 1):
                commit |= {"outcome": "committed", "producer_id": 7}
            later = {**commit, "log_offset": at + 1, "timestamp_ms": time_ms + 1, "committed_offset": offset + 1}
            commits += [commit, {**later, **other}, {**later, "log_topic": "another log"}, {**commit, "partition": 1}]
        for time_ms, offset in known:
            end = {**place, "topic": topic, "partition": 0, "timestamp_ms": time_ms, "end_offset": offset}
            ends += [end, {**end, **other, "timestamp_ms": time_ms + 1, "end_offset": offset + 7}]
            ends += [{**end, "timestamp_ms": time_ms + 2, "end_offset": None}]
    spans = [
        {**place, "first_offset": first, "last_offset": last, "first_ms": 0, "last_ms": last_ms, "records": 1}
        for first, last, last_ms in ((0, LAST, EDGE_MS), (200, 300, 100_000))
    ]
    marker = {**place, "is_transactional": True, "control_type": "COMMIT", "producer_id": 7, "log_offset": 200}
    markers = [{**marker, "timestamp_ms": ENDED_MS}, {**marker, **other, "log_offset": 150, "timestamp_ms": 55_000}]
    made = tmp_path_factory.mktemp("lag")
    write(made, {OFFSET_COMMITS: commits, END_OFFSETS: ends, LOG_RANGES: spans, LOG_RECORDS: markers, RUNS: []})
    return made


def points(home: Path, since_ms: int) -> dict[str, list[tuple[Any, ...]]]:
    tables, schema = FolderReader(str(home)), LAG_HISTORY.schema
    judged = lag_rows(log_reaches(tables, "c"), schema, cluster="c", run_id="run 1")
    batches = tables.folded(LAG_SINCE, (*KEY, "time_ms"), judged, schema, since=since_ms, cluster="c", log=GROUP_LOG)
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert {row["partition"] for row in rows} == {0}
    return {name: [tuple(row[of] for of in NAMES) for row in rows if row["topic"] == name] for name in CASES}


def test_snapshots_from_a_time_on_say_what_changed_since_the_one_before(home: Path) -> None:
    """What is followed behind the hole may have been followed in it; what is at its edge, by nothing that is there."""
    assert points(home, SINCE_MS) == {
        "stopped": [(SINCE_MS, "STOP", 1_500, 400, 1_400), (60_000, "STOP", 4_600, 0, 3_100)],
        "followed": [(SINCE_MS, "STOP", 1_500, 400, 1_400), (60_000, "UNKNOWN", None, None, 3_100)],
        "was at the end": [(SINCE_MS, "OK", 1_500, 0, 1_500)],
        "at the edge": [(EDGE_MS, "UNKNOWN", 1_450, None, None)],
        TRANSACTION: [(ENDED_MS, "UNKNOWN", 1_450, None, None)],
    }


def test_a_snapshot_before_that_time_is_not_shown(home: Path) -> None:
    found = points(home, SINCE_MS + 1)
    assert [row[0] for of_topic in found.values() for row in of_topic] == [60_000, 60_000, EDGE_MS, ENDED_MS]
