"""Short texts of several relations: of a few rows, each is left out for one reason."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, SHARE_LOG, LogPosition
from jobs.relations import given_partitions
from jobs.relations.brokers import silent_lines
from jobs.relations.commit_runs import stored_commits
from jobs.relations.commit_sums import END_TYPES
from jobs.relations.given_partitions import absent, given, log_counts, stored_given
from jobs.relations.groups import SUMS, rows_of
from jobs.relations.groups import given as values_of
from jobs.relations.share_state import given_share_state, rests_on_share_state
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, HISTORY, TOPIC_HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.snapshots import BROKER_EVENTS
from tests.jobs.relations.engines import write

Row = dict[str, Any]
OTHER = {"cluster": "other"}


def test_lines_of_brokers_without_times(tmp_path: Path) -> None:
    line = {"cluster": "c", "timestamp_ms": None}
    write(tmp_path, {BROKER_EVENTS: [line, line, {**line, "timestamp_ms": 1}, {**line, **OTHER}]})
    assert silent_lines(FolderReader(str(tmp_path)), "c") == 2


def test_partitions_that_were_ingested_are_given(tmp_path: Path) -> None:
    run = {"cluster": "c", "job": "ingest", "log_topic": GROUP_LOG, "log_partition": 0}
    others = [{"job": "decode", "log_partition": 1}, {"cluster": None}, {"log_partition": None}, {"log_topic": "t"}]
    topic = {"cluster": "c", "topic": GROUP_LOG, "partitions": 4}
    ended = {**topic, "partitions": 2, "until": {"partition": 0, "offset": 1, "timestamp_ms": 1}}
    topics = [topic, ended, {**topic, "topic": "t"}]
    write(
        tmp_path,
        {
            RUNS: [run, *({**run, **other} for other in others)],
            TOPIC_HISTORY: [*topics, {**topic, **OTHER, "partitions": 9}],
        },
    )
    tables = FolderReader(str(tmp_path))
    assert given(tables) == {"c": {(GROUP_LOG, 0)}}
    assert log_counts(tables, "c", given(tables)["c"], ()) == {GROUP_LOG: 4}


# The hashes of these ids are 100, 98, 97: the first two lie so in a log of 50 partitions.
@pytest.mark.parametrize(
    ("states", "commits", "highest", "count"),
    [
        ([{"group_id": "d", "log_partition": 0}], [{"group_id": "b", "log_partition": 48}], 48, 50),
        ([{"group_id": "d", "log_partition": 0}], [{"group_id": "b", "log_partition": 48, **OTHER}], 49, None),
        ([{"group_id": "d", "log_partition": 0}, {"group_id": "b", "log_partition": 48}], [], 48, 50),
        ([], [{"group_id": "d", "log_partition": 0}, {"group_id": "b", "log_partition": 48}], 48, 50),
        ([], [{"group_id": "d", "log_partition": 0}], 50, 100),
        ([{"group_id": "d", "log_partition": 0}, {"group_id": "a", "log_partition": 50, **OTHER}], [], 50, 100),
        (
            [{"group_id": "d", "log_partition": 0}, {"group_id": "a", "log_partition": 50, "log_topic": "t"}],
            [],
            50,
            100,
        ),
        ([{"group_id": "d", "log_partition": 0}, {"group_id": "a", "log_partition": None}], [], 50, 100),
        ([{"group_id": "d", "log_partition": 0}, {"group_id": None, "log_partition": 3}], [], 50, 100),
    ],
)
def test_groups_prove_how_many_partitions_their_log_has(
    states: list[Row], commits: list[Row], highest: int, count: int | None, tmp_path: Path
) -> None:
    common = {"cluster": "c", "log_topic": GROUP_LOG}
    runs = [{**common, "job": "ingest", "log_partition": number} for number in (0, highest)]
    rows = {GROUP_STATES: states, COMMIT_SUMMARIES: commits}
    write(tmp_path, {RUNS: runs, **{table: [common | row for row in of_table] for table, of_table in rows.items()}})
    tables = FolderReader(str(tmp_path))
    assert log_counts(tables, "c", given(tables)["c"], ()) == ({} if count is None else {GROUP_LOG: count})
    assert stored_given(tables, "c").counts == log_counts(tables, "c", given(tables)["c"], ())
    missing = None if count is None else count - 2
    assert absent(tables, GROUP_LOG, None) == {"c": highest - 1 if count is None else missing}


@pytest.mark.parametrize(("is_whole", "count"), [(True, {GROUP_LOG: 3}), (False, {})])
def test_a_whole_metadata_log_without_the_log_of_groups_was_made(
    *, is_whole: bool, count: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = TopicHistory()
    topics.open_version(LogPosition(0, 0, 0))
    topics.complete = is_whole
    monkeypatch.setattr(given_partitions, "stored_topics", lambda tables, cluster: topics)
    write(tmp_path, {RUNS: [{"cluster": "c", "job": "ingest", "log_topic": GROUP_LOG, "log_partition": 2}]})
    assert log_counts(FolderReader(str(tmp_path)), "c", [(GROUP_LOG, 2)], ()) == count


def test_share_partitions_prove_how_many_partitions_their_log_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each counts once among the most that are read, however many rows it has."""
    monkeypatch.setattr(given_partitions, "MOST_PLACED", 30)
    names = [f"topic-{number}" for number in range(30)]
    shares = [
        {"group_id": "g", "topic_id": name, "partition": 3, "since": {"partition": log_partition_of(f"g:{name}:3", 7)}}
        for name in names
    ]
    run = {"cluster": "c", "job": "ingest", "log_topic": SHARE_LOG, "log_partition": 3}
    rows = [{"cluster": "c", **row} for row in (*[shares[0]] * 30, *shares)]
    write(tmp_path, {RUNS: [run], HISTORY["share_partitions"]: rows})
    assert log_counts(FolderReader(str(tmp_path)), "c", [(SHARE_LOG, 3)], ()) == {SHARE_LOG: 7}
    assert log_counts(FolderReader(str(tmp_path)), "other", [(SHARE_LOG, 3)], ()) == {}


@pytest.mark.parametrize(
    ("given_topic", "topics", "count"),
    [
        (GROUP_LOG, [GROUP_LOG], 0),
        (GROUP_LOG, [GROUP_LOG, CONNECT_LOG, SHARE_LOG], 2),
        (CONNECT_LOG, [GROUP_LOG, CONNECT_LOG], 2),
        (CONNECT_LOG, [CONNECT_LOG], None),
    ],
)
def test_a_log_of_groups_of_which_nothing_was_given_is_absent(
    tmp_path: Path, given_topic: str, topics: list[str], count: int | None
) -> None:
    runs = [{"cluster": "c", "job": "ingest", "log_topic": given_topic, "log_partition": number} for number in (0, 1)]
    known = [{"cluster": "c", "topic": topic, "partitions": 2} for topic in topics]
    write(tmp_path, {RUNS: runs, TOPIC_HISTORY: known})
    assert absent(FolderReader(str(tmp_path)), GROUP_LOG, None) == {"c": count}


PLACED: list[Row] = [OTHER, {"job": "decode"}, {"log_topic": GROUP_LOG}, {"log_partition": 0}]


@pytest.mark.parametrize(("other", "is_placed"), [({}, False), *((of_run, True) for of_run in PLACED)])
def test_a_dump_of_share_state_may_not_tell_its_partitions(tmp_path: Path, other: Row, is_placed: bool) -> None:
    run = {"cluster": "c", "job": "ingest", "log_topic": SHARE_LOG, "log_partition": None}
    write(tmp_path, {RUNS: [{**run, **other}], LOG_RANGES: [], QUARANTINE: []})
    assert given_share_state(FolderReader(str(tmp_path)), "c").is_placed == is_placed


def test_groups_rest_on_share_state_that_was_initialized(tmp_path: Path) -> None:
    partitions = [("now", "initialized", False), ("before", "deleting", True), ("never", "initializing", False)]
    rows = [
        {"cluster": "c", "group_id": name, "phase": phase, "was_initialized": before}
        for name, phase, before in partitions
    ]
    write(tmp_path, {HISTORY["share_initializations"]: rows, GROUP_STATES: []})
    tables = FolderReader(str(tmp_path))
    found = {name: rests_on_share_state(tables, "c", name) for name, _, _ in partitions}
    assert found == {"now": True, "before": True, "never": False}


def test_ends_of_groups_are_tombstones_of_their_own_records(tmp_path: Path) -> None:
    end = {"cluster": "c", "group_id": "g", "log_topic": GROUP_LOG, "log_partition": 0, "log_offset": 5}
    end |= {"timestamp_ms": 5, "is_tombstone": True, "record_type": END_TYPES[0]}
    others = [OTHER, {"is_tombstone": False}, {"record_type": -1}, {"log_offset": None}]
    empty: dict[Any, list[Row]] = {
        table: [] for table in (OFFSET_COMMITS, LOG_RANGES, LOG_RECORDS, TOPIC_HISTORY, *HISTORY.values(), RUNS)
    }
    write(tmp_path, {**empty, GROUP_RECORDS: [end, *({**end, **other} for other in others)]})
    tables = FolderReader(str(tmp_path))
    found = rows_of(tables, SUMS["group_ends"]._replace(read=tuple), **values_of("c"))
    assert list(found) == [("g", (GROUP_LOG, 0, 5, 5))]
    assert [tuple(at) for at in stored_commits(tables, "c", "g").group_ends] == [(0, 5, 5)]
