"""The lag relation over random logs: both engines, and the log files, say the same; each part of its text matters."""

import json
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from coordinator_core.audit.offsets.burrow import UNREAD, LagPoint, point_order
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import GROUP_LOG, LogPosition
from jobs.api import CoordinatorAudit
from jobs.queries.from_logs.answers import LogAnswers
from jobs.relations.lag import COMMITS_OF_GROUP, KEY, LAG_AT, LAG_SINCE, NO_END, lag_rows, stored_lag
from jobs.relations.logs import log_reaches
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, RUNS
from jobs.tables.records import OFFSET_COMMITS
from jobs.tables.snapshots import END_OFFSETS, LAG_HISTORY
from tests.jobs.frames import assert_rows
from tests.jobs.queries.unreadable_logs import newer_value, rewritten
from tests.jobs.relations.engines import through_spark, write
from tests.jobs.relations.random_commits import GROUPS, write_logs
from tests.jobs.relations.tables_of_logs import CLUSTER, fill

NAMES = [f"{name}{partition}" for name in GROUPS for partition in (0, 1)]
SCHEMA = LAG_HISTORY.schema
VALUES = {"cluster": CLUSTER, "log": GROUP_LOG}


class Log:
    """Random logs with their end offsets, the tables of them, and the lag that the files give."""

    def __init__(self, place: Path, seed: int, unread_every: int = 0) -> None:
        self.home = str(place / "tables")
        self.ends = write_logs(place / "logs", seed, holes=seed % 2 == 1)
        if unread_every:
            for segment in sorted((place / "logs").rglob("*.log")):
                rewritten(segment, newer_value, unread_every)
        fill(place / "tables", place / "logs")
        names = ("topic", "partition", "timestamp_ms", "end_offset", "topic_id")
        # In every second log the topics are made again.
        made_ms = sorted(time_ms for _, _, time_ms, _ in self.ends)[len(self.ends) // 2] if seed % 2 else 0
        self.ends = [(*end, ("old" if end[2] < made_ms else "new") if made_ms else None) for end in self.ends]
        rows = [{"cluster": CLUSTER, "run_id": "run 1", **dict(zip(names, end, strict=True))} for end in self.ends]
        write(place / "tables", {END_OFFSETS: rows})
        self.file = place / "ends.jsonl"
        self.file.write_text("\n".join(json.dumps(dict(zip(names, end, strict=True))) for end in self.ends))
        self.warnings: list[str] = []
        self.files = LogAnswers(find_logs([place / "logs"]), self.warnings.append, load)
        of_partition = defaultdict(list)
        for topic, partition, *end in self.ends:
            of_partition[TopicPartition(topic, partition)].append(EndOffset(*end))
        self.points = [point for name in NAMES for point in self.files.lag(name, of_partition)]
        self.reaches = log_reaches(FolderReader(self.home), CLUSTER)
        self.stored = self.here()

    def here(self, text: str = LAG_SINCE, since_ms: int = 0) -> list[LagPoint]:
        """What this process finds."""
        judged = lag_rows(self.reaches, SCHEMA, cluster=CLUSTER, run_id="run 1")
        rows = FolderReader(self.home).folded(text, (*KEY, "time_ms"), judged, SCHEMA, since=since_ms, **VALUES)
        return in_order(row for batch in rows for row in batch.to_pylist())

    def in_spark(self, spark: SparkSession, since_ms: int = 0) -> DataFrame:
        """What Spark finds."""
        judged = lag_rows(self.reaches, SCHEMA, cluster=CLUSTER, run_id="run 1")
        reader = through_spark(spark, Path(self.home))
        rows = reader.folded(LAG_SINCE, KEY, ("time_ms",), judged, SCHEMA, since=since_ms, **VALUES)
        return rows.select(*LagPoint._fields)


def in_order(rows: Iterable[dict[str, Any]]) -> list[LagPoint]:
    points = []
    for row in rows:
        at = None if row["committed"] is None else LogPosition(**row["committed"])
        points.append(LagPoint(**{**{name: row[name] for name in LagPoint._fields}, "committed": at}))
    return sorted(points, key=lambda point: (point.group_id, *point_order(point)))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Log]:
    return [Log(tmp_path_factory.mktemp("lag"), seed) for seed in range(2)]


def test_the_lag_of_log_files_is_that_of_the_tables(logs: list[Log]) -> None:
    for log in logs:
        assert log.warnings == []
        assert log.stored == in_order([dict(row) for row in map(as_row, log.points)])
    assert {point.status for log in logs for point in log.points} >= {"OK", "STOP", "REWIND", "UNKNOWN"}


def test_the_lag_behind_a_commit_that_cannot_be_decoded_is_open_in_both(tmp_path: Path) -> None:
    log = Log(tmp_path, 0, unread_every=3)
    assert log.stored == in_order([dict(row) for row in map(as_row, log.points)])
    assert {point.missing == UNREAD for point in log.points} == {True, False}


def as_row(point: LagPoint) -> dict[str, Any]:
    return {**point._asdict(), "committed": None if point.committed is None else point.committed._asdict()}


def test_spark_finds_the_same_from_any_time_on(spark: SparkSession, logs: list[Log]) -> None:
    log = logs[0]
    times = sorted({point.timestamp_ms for point in log.points})
    middle = times[len(times) // 2]
    expected = [point for point in log.stored if point.timestamp_ms >= middle]
    assert log.here(since_ms=middle) == expected
    assert_rows(log.in_spark(spark, middle), map(as_row, expected))


# --- at a time, as the Python API asks --------------------------------------------------------------------------------

AT_MS = 60_000
Commit = tuple[int, int | None] | tuple[int, int | None, str]
"""Time (ms), offset (None: a tombstone) and outcome of its transaction."""

RISING = [(each * 1_000, each * 100) for each in range(5)]
ENDS = [(0, 500), (59_000, 1_900), (61_000, 5_000)]
ONE = "a second commit: Burrow's rules compare commits"

Expected = tuple[int, str, int | None, str, str, str | None]
"""Time, status and lag, and the activity; what is missing for the status, and for the activity."""

CASES: dict[str, tuple[list[Commit], list[tuple[int, int]], Expected]] = {
    "stopped": ([*RISING], ENDS, (59_000, "STOP", 1_500, "SILENT", "", None)),
    "at the end": ([*RISING], [(59_000, 400)], (59_000, "OK", 0, "SILENT", "", None)),
    "one commit": ([(0, 0)], ENDS, (59_000, "UNKNOWN", 1_900, "UNKNOWN", ONE, ONE)),
    "end lost": ([*RISING, (50_000, 1_900, "unknown")], ENDS, (59_000, "STOP", 1_500, "SILENT", "", None)),
    "removed": ([*RISING, (30_000, None), (40_000, 7)], ENDS, (59_000, "UNKNOWN", 1_893, "UNKNOWN", ONE, ONE)),
    "stalled": (
        [(each * 10_000, 50) for each in range(7)],
        [(0, 500), (60_000, 500)],
        (60_000, "STALL", 450, "IDLE_OR_STALLED", "", None),
    ),
    "went back": ([(0, 50), (40_000, 10), (59_000, 11)], ENDS, (59_000, "REWIND", 1_889, "REWIND", "", None)),
    "was at the end": ([*RISING], [(0, 0), (4_500, 400), (59_000, 1_900)], (59_000, "OK", 1_500, "SILENT", "", None)),
    "no end offset": ([*RISING], [(61_000, 500)], (AT_MS, "UNKNOWN", None, "SILENT", NO_END, None)),
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each case is a topic. The log was compacted between all commits and AT_MS: what holds is what is not followed."""
    home = tmp_path_factory.mktemp("cases")
    place = {"cluster": CLUSTER, "run_id": "run 1", "log_topic": GROUP_LOG, "log_partition": 0}
    commits, ends = [], []
    for topic, (of_topic, known, _) in CASES.items():
        for time_ms, offset, *transaction in of_topic:
            outcome = {"outcome": transaction[0], "producer_id": 7} if transaction else {}
            of = {"log_offset": len(commits), "group_id": "g", "topic": topic, "partition": 0, "timestamp_ms": time_ms}
            commits.append({**place, **of, **outcome, "committed_offset": offset, "is_tombstone": offset is None})
        of_cluster = {"cluster": CLUSTER, "run_id": "run 1", "topic": topic, "partition": 0}
        ends += [{**of_cluster, "timestamp_ms": time_ms, "end_offset": end} for time_ms, end in known]
    spans = [
        {**place, "first_offset": first, "last_offset": last, "first_ms": 0, "last_ms": last_ms, "records": 1}
        for first, last, last_ms in ((0, 1_000, AT_MS - 500), (2_000, 2_000, 100_000))
    ]
    runs = [{"cluster": CLUSTER, "job": "ingest", "log_topic": GROUP_LOG, "log_partition": 0}]
    tables = {RUNS: runs, OFFSET_COMMITS: commits, LOG_RECORDS: [], LOG_RANGES: spans, END_OFFSETS: ends}
    write(home, tables)
    (home / "ends.jsonl").write_text("\n".join(json.dumps({**row, "cluster": CLUSTER}) for row in ends))
    return home


def test_the_api_judges_lag_as_the_command_does(spark: SparkSession, cases: Path) -> None:
    """A consumer that stopped is STOP; a commit counts only if its transaction is known to be committed."""
    audit = CoordinatorAudit(spark, str(cases), CLUSTER)
    expected = [(name, *of[:3], of[4] or None) for name, (_, _, of) in CASES.items()]
    for ends in (None, str(cases / "ends.jsonl")):
        rows = audit.lag(ends, AT_MS)
        assert_rows(rows.select("topic", "timestamp_ms", "status", "lag", "missing"), expected)


def test_the_api_says_what_commits_alone_show(spark: SparkSession, cases: Path) -> None:
    rows = CoordinatorAudit(spark, str(cases), CLUSTER).activity(AT_MS)
    expected = [(name, of[3], of[5]) for name, (_, _, of) in CASES.items()]
    assert_rows(rows.select("topic", "activity", "missing"), expected)


def at_a_time(home: Path, text: str = LAG_AT) -> list[tuple[Any, ...]]:
    reaches = log_reaches(FolderReader(str(home)), CLUSTER)
    schema = SCHEMA
    judged = lag_rows(reaches, schema, cluster=CLUSTER, run_id="run 1")
    batches = FolderReader(str(home)).folded(text, (*KEY, "time_ms"), judged, schema, at=AT_MS, **VALUES)
    found = [row for batch in batches for row in batch.to_pylist()]
    names = ("topic", "timestamp_ms", "status", "lag", "missing", "consumed")
    return sorted(
        (tuple(row[name] if name != "missing" else row[name] or "" for name in names) for row in found), key=repr
    )


MUTATIONS = [
    ("CASE WHEN outcome = 'committed' THEN producer_id END AS producer_id", "CAST(NULL AS BIGINT) AS producer_id"),
    ("control_type IN ('ABORT', 'COMMIT')", "control_type IN ('ABORT')"),
    ("m.producer_id = e.producer_id AND", ""),
    ("m.log_offset < e.marker", "TRUE"),
    ("min(named_struct('marker', e", "max(named_struct('marker', e"),
    ("coalesce(n.first_marker.marker_ms, m.timestamp_ms)", "m.timestamp_ms"),
    ("newest_before < log_offset", "TRUE"),
    ("lag(end_offset) OVER", "lead(end_offset) OVER"),
    ("PARTITION BY topic, partition, topic_id", "PARTITION BY topic, partition"),
    ("ORDER BY held_ms, is_end DESC", "ORDER BY held_ms DESC, is_end DESC"),
    ("ORDER BY held_ms, is_end ROWS", "ORDER BY held_ms DESC, is_end ROWS"),
    ("ORDER BY held_ms, log_offset ROWS BETWEEN 9", "ORDER BY held_ms, log_offset ROWS BETWEEN 8"),
    ("ORDER BY held_ms, log_offset ROWS BETWEEN 9", "ORDER BY log_offset DESC ROWS BETWEEN 9"),
    ("ORDER BY time_ms, is_end, log_offset", "ORDER BY time_ms, is_end DESC, log_offset"),
    ("is_end = 1", "TRUE"),
    ("e.topic_id AS topic_id", "'other' AS topic_id"),
    ("e.previous_ms AS previous_ms", "NULL AS previous_ms"),
]
"""Parts of the text of which each matters to a random log."""

MUTATIONS_OF_GROUP = [
    ("AND group_id = :group_id", ""),
    ("outcome IN ('open', 'aborted') OR (outcome = 'unknown'", "outcome IN ('aborted') OR (outcome = 'unknown'"),
    ("m.log_offset < e.marker", "TRUE"),
    ("coalesce(n.first_marker.marker_ms, m.timestamp_ms)", "m.timestamp_ms"),
    ("newest_before < log_offset", "TRUE"),
]
"""Parts of the text of one group, of whose commits the lag at other end offsets is found."""


@pytest.mark.parametrize(("part", "instead"), MUTATIONS_OF_GROUP, ids=[part for part, _ in MUTATIONS_OF_GROUP])
def test_a_mutated_text_of_one_group_is_found(logs: list[Log], part: str, instead: str) -> None:
    assert part in COMMITS_OF_GROUP
    mutated = COMMITS_OF_GROUP.replace(part, instead)
    assert any(commits_of(log, mutated) != commits_of(log, COMMITS_OF_GROUP) for log in logs)


def commits_of(log: Log, text: str) -> list[tuple[Any, ...]]:
    tables = FolderReader(log.home)
    return [row for group in NAMES for row in sorted(tables.tuples(text, group_id=group, **VALUES), key=repr)]


MUTATIONS_AT = [
    ("time_ms < max(", "time_ms > max("),
    ("outcome IN ('open', 'aborted') OR (outcome = 'unknown'", "outcome IN ('open', 'aborted') OR (outcome = 'x'"),
    ("e.time_ms <= :at AND", ""),
    ("e.next_ms > :at", "FALSE"),
    ("e.second_ms > :at", "FALSE"),
    ("WHERE time_ms <= :at", ""),
    ("min(end_offset) OVER", "max(end_offset) OVER"),
    (
        "UNION ALL SELECT DISTINCT topic, partition, CAST(:at",
        "UNION ALL SELECT DISTINCT topic, partition + 1, CAST(:at",
    ),
    ("end_offset IS NOT NULL", "end_offset IS NULL"),
]


@pytest.mark.parametrize(("part", "instead"), MUTATIONS, ids=[str(number) for number in range(len(MUTATIONS))])
def test_a_mutated_text_is_found(logs: list[Log], part: str, instead: str) -> None:
    assert part in LAG_SINCE
    assert any(is_found(log, LAG_SINCE.replace(part, instead)) for log in logs)


def is_found(log: Log, text: str) -> bool:
    """Whether a text gives other points, or none that can be judged."""
    try:
        return log.here(text) != log.stored
    except TypeError:
        return True


@pytest.mark.parametrize(("part", "instead"), MUTATIONS_AT, ids=[str(number) for number in range(len(MUTATIONS_AT))])
def test_a_mutated_text_of_a_time_is_found(cases: Path, part: str, instead: str) -> None:
    assert part in LAG_AT
    found = at_a_time(cases)
    assert [row[:-1] for row in found] == sorted((name, *of[:3], of[4]) for name, (_, _, of) in CASES.items())
    assert [row[-1] for row in found if row[0] == "was at the end"] == [0]  # nothing consumed since the snapshot before
    with suppress(TypeError):  # it finds no end offset where there must be one
        assert at_a_time(cases, LAG_AT.replace(part, instead)) != found


def test_the_lag_of_a_group_is_read_in_the_order_of_partitions_and_times(tmp_path: Path) -> None:
    of_group = {"cluster": CLUSTER, "group_id": "g", "topic": "t", "partition": 0, "status": "OK", "log_partition": 0}
    rows = [{**of_group, "timestamp_ms": time_ms} for time_ms in (9, 5)]
    others = [{**rows[0], **other} for other in ({"cluster": "other"}, {"group_id": "another"})]
    write(tmp_path, {LAG_HISTORY: [*rows, *others]})
    assert [point.timestamp_ms for point in stored_lag(FolderReader(str(tmp_path)), CLUSTER, "g")] == [5, 9]
