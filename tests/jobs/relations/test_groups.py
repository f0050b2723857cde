"""Histories of groups from tables: which groups have one, up to when it goes, and commits over time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.folds.commit_times import HOUR_MS, LENGTHS_MS, fitting_length
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.records import LOG_TOPICS, Family
from jobs.relations import groups
from jobs.relations.groups import COMMITTERS, OWN_TIMES, RowKind, given, one_history, report_histories, rows_of
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, RUNS
from jobs.tables.reader import TableReader
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.snapshots import BROKER_EVENTS
from jobs.tables.table import Table
from tests.jobs.relations.engines import through_spark, write

CLUSTER = "c"
LOG, SHARES = LOG_TOPICS[Family.GROUP], LOG_TOPICS[Family.SHARE]
STATES = [("two", LOG, 1), ("timeless", LOG, 2), ("shared", SHARES, 0), ("shared", LOG, 0), ("alone", SHARES, 0)]
LAST = {(LOG, 0): [100, 400, 300], (LOG, 1): [250], (LOG, 2): [None], (SHARES, 0): [900]}
SELDOM = LENGTHS_MS[3]
LATE_MS = SELDOM * (groups.MOST_INTERVALS - 1)
COMMITS = [("committer", 0, 5), ("committer", None, 5), ("nowhere", None, 7), ("placeless", 1, None)]
"""Group, log partition and offset of commits."""
TIMES = [("often", [1_000, 1_500, 61_000]), ("seldom", [1_000, 2_500, LATE_MS]), ("two", [-1])]
"""When groups wrote commits."""
COUNTED = ("since_ms", "length_ms", "records")
BY_TIME = {
    *(("often", since, LENGTHS_MS[0], records) for since, records in ((1_000, 2), (61_000, 1))),
    *(("seldom", since, SELDOM, records) for since, records in ((0, 2), (LATE_MS, 1))),
}


def of_cluster(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, and the same of another cluster, whose groups and times are others."""
    others = [{**row, "group_id": f"{row.get('group_id')}?", "last_ms": 10**9} for row in rows]
    return [{"cluster": CLUSTER, **row} for row in rows] + [{"cluster": "other", **row} for row in others]


def tables_of(home: Path, more: Mapping[Table, list[dict[str, Any]]]) -> Path:
    states = [{"group_id": name, "log_topic": topic, "log_partition": number} for name, topic, number in STATES]
    ranges = [
        {
            "log_topic": topic,
            "log_partition": number,
            "last_ms": last_ms,
            "records": 1,
            "last_offset": 1,
            "first_offset": 0,
        }
        for (topic, number), times in LAST.items()
        for last_ms in times
    ]
    commits = [
        {"group_id": name, "log_topic": LOG, "log_partition": number, "log_offset": offset, "is_tombstone": False}
        for name, number, offset in COMMITS
    ]
    written = [
        {"group_id": name, "log_topic": LOG, "log_partition": 0, "log_offset": at, "timestamp_ms": at}
        | {"is_tombstone": is_tombstone}
        for name, times in TIMES
        for at in times
        for is_tombstone in (False, True)
    ]
    event = {"group_id": "only in a broker's log", "kind": "member_failed"}
    events = [event, {**event, "group_id": None}]
    filled = {GROUP_STATES: states, LOG_RANGES: ranges, OFFSET_COMMITS: commits + written, BROKER_EVENTS: events}
    empty: dict[Table, list[dict[str, Any]]] = {
        table: [] for table in (*HISTORY.values(), COMMIT_SUMMARIES, GROUP_RECORDS, LOG_RECORDS, RUNS)
    }
    write(home, {table: of_cluster(rows) for table, rows in {**empty, **filled, **more}.items()})
    return home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hours = [{"group_id": "often", "hour_ms": 0, "written": 3}, {"group_id": "often", "hour_ms": -1, "written": 3}]
    return tables_of(tmp_path_factory.mktemp("groups"), {COMMIT_SUMMARIES: hours})


def values(tables: TableReader, kind: RowKind) -> set[tuple[Any, ...]]:
    return {(group_id, *row) for group_id, row in rows_of(tables, kind, **given(CLUSTER))}


OWN = {("two", LOG, 250), ("timeless", LOG, None), ("shared", LOG, 400)}
COMMITTED = {(name, LOG, 400) for name in ("committer", "often", "seldom", "two")}


def test_own_times_are_those_of_the_partitions_of_groups_logs(home: Path) -> None:
    tables = FolderReader(str(home))
    assert values(tables, OWN_TIMES["own_times"]) == OWN
    assert values(tables, COMMITTERS["own_times"]) == COMMITTED


def test_spark_says_the_same(home: Path, spark: SparkSession) -> None:
    tables = through_spark(spark, home)
    assert values(tables, OWN_TIMES["own_times"]) == OWN
    assert values(tables, COMMITTERS["own_times"]) == COMMITTED
    assert values(tables, RowKind(groups.COMMITS_BY_TIME, COUNTED, tuple)) == BY_TIME
    assert values(tables, RowKind(groups.COMMITS_BY_HOUR, COUNTED, tuple)) == {("often", 0, HOUR_MS, 3)}


def history(home: Path, group_id: str) -> GroupHistory | None:
    return one_history(FolderReader(str(home)), CLUSTER, group_id)


def test_a_group_has_a_history_that_a_log_has_records_of(home: Path) -> None:
    known = {name: history(home, name) for name in ("two", "timeless", "shared", "committer")}
    assert {name: each and each.now_ms for name, each in known.items()} == {
        **{"two": 250, "timeless": 0, "shared": 400, "committer": 400}
    }
    assert [history(home, name) for name in ("nowhere", "placeless", "only in a broker's log", "two?")] == [None] * 4


def test_the_report_has_each_group_once(home: Path) -> None:
    found = list(report_histories(FolderReader(str(home)), CLUSTER))
    assert [each.group_id for each in found] == ["often", "seldom", "shared", "timeless", "two"]
    assert {(each.group_id, *count) for each in found for count in each.commit_counts} == BY_TIME


FAR_MS = HOUR_MS * groups.MOST_INTERVALS * 24


@pytest.mark.parametrize("is_long", [False, True])
def test_commits_over_a_long_time_are_counted_by_the_hour(tmp_path: Path, is_long: bool) -> None:
    """Hours without commits or times, and those of another cluster, make no time long."""
    hours = [(0, 2), (HOUR_MS, 0), (FAR_MS, int(is_long)), (-FAR_MS, 5)]
    rows = [{"group_id": "often", "hour_ms": hour_ms, "written": written} for hour_ms, written in hours]
    summaries = [*rows, {**rows[0], "hour_ms": 2 * FAR_MS, "cluster": "other"}]
    found = report_histories(FolderReader(str(tables_of(tmp_path, {COMMIT_SUMMARIES: summaries}))), CLUSTER)
    counts = {(each.group_id, *count) for each in found for count in each.commit_counts}
    assert counts == ({("often", 0, HOUR_MS, 2), ("often", FAR_MS, HOUR_MS, 1)} if is_long else BY_TIME)


def test_commits_are_counted_by_the_shortest_interval_that_fits(tmp_path: Path) -> None:
    """A group that has written for one interval more than a chart has bars takes the next length."""
    too_long = {f"{length} ms": length * groups.MOST_INTERVALS for length in LENGTHS_MS[:-1]}
    commits = [
        {"cluster": CLUSTER, "group_id": name, "timestamp_ms": at, "is_tombstone": False}
        for name, last_ms in too_long.items()
        for at in (0, last_ms)
    ]
    write(tmp_path, {OFFSET_COMMITS: commits})
    found = values(FolderReader(str(tmp_path)), RowKind(groups.COMMITS_BY_TIME, COUNTED, tuple))
    lengths = {group_id: length_ms for group_id, _, length_ms, _ in found}
    assert lengths == {name: fitting_length(0, last_ms) for name, last_ms in too_long.items()}
    assert [*lengths.values()].count(LENGTHS_MS[0]) == 0
    assert sum(records for *_, records in found) == len(commits)


OWN_TEXT, COMMITTERS_TEXT = OWN_TIMES["own_times"].text, COMMITTERS["own_times"].text
MUTATIONS = [
    (OWN_TEXT, "max(r.last_ms)", "min(r.last_ms)"),
    (OWN_TEXT, "ON s.cluster = r.cluster AND", "ON"),
    (OWN_TEXT, "s.log_topic = r.log_topic AND", ""),
    (OWN_TEXT, "AND s.log_partition = r.log_partition", ""),
    (OWN_TEXT, "s.cluster = :cluster AND", ""),
    (OWN_TEXT, "s.log_topic IN :topics AND", ""),
    (COMMITTERS_TEXT, "WHERE log_offset IS NOT NULL", ""),
    (groups.COMMITS_BY_TIME, "cluster = :cluster AND", ""),
    (groups.COMMITS_BY_TIME, "NOT is_tombstone AND", ""),
    (groups.COMMITS_BY_TIME, "timestamp_ms >= 0", "TRUE"),
    (groups.COMMITS_BY_TIME, "min(at_ms)", "max(at_ms)"),
    (groups.COMMITS_BY_TIME, "sum(records)", "max(records)"),
    (groups.COMMITS_BY_TIME, f"< {LENGTHS_MS[0] * groups.MOST_INTERVALS} THEN {LENGTHS_MS[0]}", "< 0 THEN 1"),
    (groups.COMMITS_BY_HOUR, "cluster = :cluster AND", ""),
    (groups.COMMITS_BY_HOUR, "hour_ms >= 0", "TRUE"),
    (groups.COMMITS_BY_HOUR, "sum(written)", "count(written)"),
]


@pytest.mark.parametrize(("text", "part", "instead"), MUTATIONS, ids=[part for _, part, _ in MUTATIONS])
def test_a_mutated_text_is_found(home: Path, text: str, part: str, instead: str) -> None:
    """Each part of the texts matters to one of the groups."""
    assert part in text
    columns = ("last_ms",) if text in (OWN_TEXT, COMMITTERS_TEXT) else COUNTED
    tables = FolderReader(str(home))
    assert values(tables, RowKind(text.replace(part, instead), columns, tuple)) != values(
        tables, RowKind(text, columns, tuple)
    )


def test_rows_of_tables_are_those_of_the_groups_of_a_cluster(tmp_path: Path) -> None:
    """Broker's lines may name no group."""
    kinds = {**groups.ROWS, **groups.SHARE_PARTITIONS, **groups.EVENTS}
    of_all = [{"cluster": CLUSTER, "group_id": name} for name in ("g", "h", None)]
    rows = [*of_all, *({"cluster": "other", "group_id": name} for name in "gh")]
    write(tmp_path, dict.fromkeys((*(HISTORY[name] for name in kinds if name in HISTORY), BROKER_EVENTS), rows))
    tables = FolderReader(str(tmp_path))
    for kind in (kind._replace(read=tuple) for kind in kinds.values()):
        for among, expected in (("TRUE", ["g", "h"]), ("group_id IN :groups", ["h"])):
            found = rows_of(tables, kind, among, groups=["h"], **given(CLUSTER))
            assert [group_id for group_id, _ in found] == expected
