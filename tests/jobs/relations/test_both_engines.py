"""Each function that reads a relation returns the same from both engines: of logs that lack much, of two clusters."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from coordinator_core.audit.offsets.burrow import EndOffset
from coordinator_core.broker_log.events import EventKind
from coordinator_core.cluster.snapshot_settings import METADATA_VERSION, MISSING, ResourceKind
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import LOG_TOPICS, Family
from jobs.relations import (
    brokers,
    commit_runs,
    commit_sums,
    gaps,
    given_partitions,
    groups,
    lag,
    log_extent,
    logs,
    offsets,
    replay,
    sessions,
    settings,
    share_state,
    snapshot_news,
    topics,
    unreadable,
    up_to_date,
)
from jobs.relations.moment import AsOf
from jobs.sources.files import GROUP_TOPICS, METADATA_TOPIC, REPLAYED_TOPICS, SHARE_TOPICS
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import HISTORY
from jobs.tables.reader import TableReader
from jobs.tables.spark_reader import SparkReader
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.relations.engines import through_spark
from tests.jobs.relations.tables_of_logs import CLUSTER, append, fill
from tests.matrix.removals import both, damaged, metadata_hole, newer_key, newer_value, share_hole, share_unreadable
from tests.matrix.removals import unreadable as made_unreadable
from tests.shared_data import ROOT

GROUP_LOG, SHARE_LOG = LOG_TOPICS[Family.GROUP], LOG_TOPICS[Family.SHARE]
GROUP = "A-coop-a2d7"
Ask = Callable[[TableReader], Any]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of the samples with holes, damage and records that cannot be decoded, and some rows of another cluster."""
    folder = tmp_path_factory.mktemp("both")
    shutil.copytree(SAMPLE_LOGS, folder / "logs")
    both(
        damaged(0, 4, -2, cut_off=True),
        made_unreadable(1, newer_value, 13),
        made_unreadable(1, newer_key, 40),
        metadata_hole,
        share_hole(1),
        share_unreadable(0),
    )(folder / "logs")
    tables = folder / "both"
    fill(tables, folder / "logs", topics=(*REPLAYED_TOPICS, METADATA_TOPIC))
    append(tables, "log_ranges", [{"cluster": "timeless", "log_topic": GROUP_LOG, "log_partition": 0}])
    for name, rows in rows_beside().items():
        append(tables, name, [{"cluster": CLUSTER, **row} for row in rows])
    shutil.copytree(tables, folder / "alone")
    for place in sorted(tables.iterdir()):
        rows = pa.table(DeltaTable(place).to_pyarrow_table())
        if "cluster" in rows.column_names and rows.num_rows:
            append(tables, place.name, of_another_cluster(rows[:40].to_pylist()))
    return tables


def of_another_cluster(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same rows at other places and times of the logs of another cluster, earlier ones and later ones."""
    for number, row in enumerate(rows):
        shift = (1_000_000, -1_000_000)[number % 2]
        names = [name for name, value in row.items() if isinstance(value, int) and name.endswith(("offset", "_ms"))]
        yield {**row, **{name: row[name] + shift for name in names}, "cluster": "other"}


@pytest.fixture(scope="module")
def here(home: Path) -> FolderReader:
    return FolderReader(str(home))


@pytest.fixture(scope="module")
def alone(home: Path) -> FolderReader:
    """The tables without the other cluster."""
    return FolderReader(str(home.parent / "alone"))


@pytest.fixture(scope="module")
def in_spark(spark: SparkSession, home: Path) -> SparkReader:
    return through_spark(spark, home)


def rows_beside() -> dict[str, list[dict[str, Any]]]:
    """Rows of the tables that no log fills by itself."""
    feature = {"resource_type": ResourceKind.SUPPORTED_FEATURES, "name": METADATA_VERSION, "timestamp_ms": 1_000}
    setting = {"resource_type": "group", "resource": GROUP, "name": settings.USED_SETTINGS[0]}
    line = {"file": "server.log", "line": 1, "group_id": GROUP, "kind": EventKind.GROUP_DELETED, "timestamp_ms": 9}
    ends = [
        {"run_id": run, "topic": "t", "partition": number, "timestamp_ms": time_ms, "end_offset": time_ms + number}
        for run, time_ms in (("run 1", 5), ("run 2", 9))
        for number in range(2)
    ]
    counts = ((GROUP_LOG, 6), (SHARE_LOG, 3), ("gone", 1))
    at = {"partition": 0, "offset": 7, "timestamp_ms": 7}
    stays = [
        {"group_id": GROUP, "member_id": f"m{number}", "joined": {**at, "offset": offset, "timestamp_ms": offset}}
        | {"left": left, "went_by": "leave or expiry" if left else None, "history_complete": True}
        for number in range(3)
        for offset, left in ((1, at), (8 + number, None))
    ]
    return {
        "memberships": stays,
        "group_states": [
            {"group_id": name, "log_topic": topic, "log_partition": 0, "run_id": "run 0"}
            for name, topic in ((GROUP, GROUP_LOG), ("orphan", SHARE_LOG))
        ],
        "share_initializations": [{"group_id": "shared", "phase": "initialized", "since": at, "topic": "t"}],
        "topic_history": [
            {"topic": topic, "topic_id": f"id {topic}", "partitions": number, "until": at if topic == "gone" else None}
            | {"ended_by": "deleted" if topic == "gone" else None}
            for topic, number in counts
        ],
        "dumped_files": [{"path": f"/dump/{GROUP_LOG}-5/00000000000000000000.log"}],
        "end_offsets": ends,
        "snapshot_settings": [
            {**feature, "run_id": "run 1", "value": "7"},
            {**feature, "run_id": "run 1", "name": MISSING, "value": "no answer"},
            {**feature, "run_id": "run 2", "timestamp_ms": 2_000, "value": "9"},
            *({**setting, "run_id": "run 2", "timestamp_ms": ms, "value": str(ms // 2)} for ms in (1, 2, 3)),
        ],
        "broker_events": [line, {**line, "line": 2, "group_id": None, "timestamp_ms": None}],
        "leases": [{"owner": "a night", "acquired_at": NOW, "expires_at": NOW}],
        "replayed": [],
        "lag_history": [
            {"group_id": GROUP, "topic": "t", "partition": 0, "timestamp_ms": ms, "status": "OK", "log_partition": 0}
            for ms in (5, 9)
        ],
        **{name: [] for name in HISTORY if name not in ("memberships", "share_initializations", "topic_history")},
    }


def commits_of(tables: TableReader) -> tuple[Any, ...]:
    found = commit_runs.stored_commits(tables, CLUSTER, GROUP)
    return vars(found.coverage), *(part for part in found if part is not found.coverage)


def topics_of(tables: TableReader, *, is_checked: bool = False) -> tuple[Any, ...]:
    found = topics.stored_topics(tables, CLUSTER)
    assert found is not None
    if is_checked:
        topics.require_one_cluster(tables, CLUSTER, found)
    return list(found.intervals()), found.given, found.gaps, found.snapshots


NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = (GROUP_LOG, 0)
ENDS = {TopicPartition("a-coop-x8", number): [EndOffset(1_795_257_500_000, 10_000, None)] for number in range(3)}
BEFORE = "log_offset < 400"
MOMENTS = {"end": AsOf(), "time": AsOf(time_ms=1_795_257_100_000), "offset": AsOf(offsets={0: 150, 1: 300})}
ASKED: dict[Callable[..., Any], Ask] = {
    brokers.has_lines: brokers.has_lines,
    brokers.lines_of_groups: lambda tables: list(brokers.lines_of_groups(tables, CLUSTER, [GROUP])),
    brokers.other_lines: lambda tables: brokers.other_lines(tables, CLUSTER),
    brokers.silent_lines: lambda tables: brokers.silent_lines(tables, CLUSTER),
    brokers.lines_about_removals: lambda tables: brokers.lines_about_removals(tables, CLUSTER),
    commit_runs.stored_commits: lambda tables: commits_of(tables),
    commit_sums.topic_ends: lambda tables: commit_sums.topic_ends(tables, CLUSTER),
    gaps.summary: lambda tables: gaps.summary(tables, CLUSTER, {PLACE: 0, (GROUP_LOG, 1): 0}),
    gaps.gaps_below: lambda tables: [gaps.gaps_below(tables, CLUSTER, PLACE, end, []) for end in (None, 200)],
    gaps.damage_of: lambda tables: gaps.damage_of(tables, CLUSTER, PLACE),
    given_partitions.given: given_partitions.given,
    given_partitions.stored_given: lambda tables: given_partitions.stored_given(tables, CLUSTER),
    given_partitions.partition_counts: given_partitions.partition_counts,
    given_partitions.absent: lambda tables: given_partitions.absent(tables, GROUP_LOG, None),
    groups.one_history: lambda tables: groups.one_history(tables, CLUSTER, GROUP),
    groups.report_histories: lambda tables: list(groups.report_histories(tables, CLUSTER)),
    lag.stored_lag: lambda tables: lag.stored_lag(tables, CLUSTER, GROUP),
    lag.lag_of_group: lambda tables: lag.lag_of_group(tables, CLUSTER, GROUP, ENDS),
    log_extent.extents_at: lambda tables: [
        log_extent.extents_at(tables, CLUSTER, moment, list(REPLAYED_TOPICS)) for moment in MOMENTS.values()
    ],
    logs.partition_counts: lambda tables: logs.partition_counts(tables, CLUSTER),
    logs.has_orphans: lambda tables: [logs.has_orphans(tables, CLUSTER, of) for of in (None, "orphan", GROUP)],
    logs.times_of_groups: lambda tables: logs.times_of_groups(tables, CLUSTER),
    logs.last_times: lambda tables: logs.last_times(tables, CLUSTER),
    logs.without_times: lambda tables: logs.without_times(tables, "timeless"),
    logs.lost_records: lambda tables: logs.lost_records(tables, CLUSTER, REPLAYED_TOPICS),
    logs.log_reaches: lambda tables: logs.log_reaches(tables, CLUSTER),
    logs.LogFacts.read: lambda tables: logs.LogFacts.read(tables, CLUSTER),
    offsets.newest_ends: lambda tables: [offsets.newest_ends(tables, CLUSTER, until) for until in (None, 7)],
    replay.has_replayed_all: lambda tables: [replay.has_replayed_all(tables, of) for of in (CLUSTER, "new")],
    replay.unfinished_run: lambda tables: replay.unfinished_run(tables, NOW),
    sessions.stored_lost_sessions: lambda tables: list(sessions.stored_lost_sessions(tables, CLUSTER)),
    settings.read_settings: lambda tables: settings.read_settings(tables, CLUSTER),
    settings.settings_news_ms: lambda tables: settings.settings_news_ms(tables, CLUSTER, "run 1"),
    share_state.given_share_state: lambda tables: share_state.given_share_state(tables, CLUSTER),
    share_state.rests_on_share_state: lambda tables: [
        share_state.rests_on_share_state(tables, CLUSTER, of) for of in (None, "shared", "orphan", GROUP)
    ],
    snapshot_news.snapshot_news: lambda tables: [
        snapshot_news.snapshot_news(tables, "end_offsets", CLUSTER, after) for after in ("", "run 1", "run 2")
    ],
    topics.stored_topics: lambda tables: topics_of(tables),
    topics.require_one_cluster: lambda tables: topics_of(tables, is_checked=True),
    topics.snapshot: lambda tables: [topics.snapshot(tables, CLUSTER)],
    topics.topics_given: lambda tables: topics.topics_given(tables, CLUSTER),
    topics.first_hole: lambda tables: topics.first_hole(tables, CLUSTER),
    topics.topic_news_ms: lambda tables: topics.topic_news_ms(tables, CLUSTER, "", "run 1"),
    topics.shown_ms: lambda tables: topics.shown_ms(tables, CLUSTER, "", "run 1"),
    unreadable.unreadable_of_groups: lambda tables: unreadable.unreadable_of_groups(tables, CLUSTER),
    unreadable.unplaced_records: lambda tables: unreadable.unplaced_records(tables, CLUSTER, "run 1"),
    unreadable.last_unplaced: lambda tables: unreadable.last_unplaced(tables, CLUSTER, GROUP_TOPICS, BEFORE),
    unreadable.places: lambda tables: list(unreadable.places(tables, CLUSTER, GROUP_TOPICS, BEFORE)),
    unreadable.first_offsets: lambda tables: unreadable.first_offsets(tables, CLUSTER, SHARE_TOPICS, "TRUE"),
    unreadable.unread_commits: lambda tables: unreadable.unread_commits(tables, CLUSTER),
    unreadable.last_of_keys: lambda tables: sorted(unreadable.last_of_keys(tables, CLUSTER, "TRUE", None)),
    up_to_date.has_all_commits: lambda tables: up_to_date.has_all_commits(tables, CLUSTER),
    up_to_date.has_all_records: lambda tables: up_to_date.has_all_records(tables, CLUSTER),
}
"""What each function is asked; those of whole histories are asked through others."""
THROUGH_OTHERS = {
    "commit_sums.rewinds_of_group": "its text is asked of both engines in test_commit_runs",
    "groups.histories": "report_histories",
    "groups.kinds": "one_history",
    "groups.merged": "report_histories",
    "groups.rows_of": "one_history",
    "knowledge.missing_of_shares": "rests_on_share_state",
    "knowledge.stored_knowledge": "its parts",
}
"""Functions that have no text of their own, and what is asked instead."""


def readers() -> Iterator[str]:
    """The public functions of the relations that read tables."""
    for path in (ROOT / "jobs" / "relations").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                types = [ast.unparse(arg.annotation) for arg in node.args.args if arg.annotation is not None]
                if "TableReader" in types:
                    yield f"{path.stem}.{node.name}"


def name_of(reader: Callable[..., Any]) -> str:
    return f"{reader.__module__.rpartition('.')[2]}.{reader.__name__}"


def test_each_function_is_asked() -> None:
    assert {*map(name_of, ASKED)} - {"logs.read"} == {*readers()} - THROUGH_OTHERS.keys()


@pytest.mark.parametrize("reader", ASKED, ids=name_of)
def test_both_engines_say_the_same(reader: Callable[..., Any], here: FolderReader, in_spark: TableReader) -> None:
    found = ASKED[reader](here)
    assert found not in (None, False, [], {}, ())
    assert found == ASKED[reader](in_spark)


OF_ALL_CLUSTERS = {given_partitions.given, given_partitions.partition_counts, given_partitions.absent}


@pytest.mark.parametrize("reader", [reader for reader in ASKED if reader not in OF_ALL_CLUSTERS], ids=name_of)
def test_rows_of_another_cluster_change_nothing(
    reader: Callable[..., Any], here: FolderReader, alone: FolderReader
) -> None:
    assert ASKED[reader](here) == ASKED[reader](alone)
