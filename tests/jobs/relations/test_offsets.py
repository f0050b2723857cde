"""The offsets of groups: both engines say what the cases prove, and each part of the text matters to one of them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.records import GROUP_LOG, SHARE_LOG
from jobs.api import CoordinatorAudit
from jobs.pipeline import offsets
from jobs.relations.offsets import OFFSETS, ROWS, WITH_ENDS, WITHOUT_ENDS, newest_ends
from jobs.sources.files import SHARE_TOPICS
from jobs.sources.spark_end_offsets import ends_in_spark
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import TOPIC_HISTORY
from jobs.tables.log import RUNS
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.snapshots import END_OFFSETS
from jobs.tables.table import COMMIT, Table
from tests.jobs.relations.engines import of_both, write

CLUSTER = "c"
Row = dict[str, Any]


def commit(at: int, offset: int, producer_id: int = -1, outcome: str | None = None) -> Row:
    names = {"log_offset": at, "committed_offset": offset, "producer_id": producer_id, "outcome": outcome}
    return dict.fromkeys(COMMIT) | names


def share(at: int, start: int, delivered: int, epoch: int = 0, kind: str = "share_snapshot") -> Row:
    """A record of a share partition; in an update -1 means that the field does not change."""
    value = {"startOffset": start, "leaderEpoch": epoch, "deliveryCompleteCount": delivered}
    return {"at": at, "is_tombstone": False, "kind": kind, "value": value}


def no_share(at: int) -> Row:
    return {"at": at, "is_tombstone": True, "kind": "share_snapshot", "value": None}


Offset = tuple[str, bool, int | None, int | None]
"""Status, whether it is stable, offset and lag."""

COMMITS: dict[str, tuple[Row, list[Offset]]] = {
    "committed": ({"committed": commit(5, 10)}, [("committed", True, 10, 90)]),
    "removed": ({"committed": commit(5, 10), "ended": 6}, []),
    "committed again": ({"committed": commit(7, 10), "ended": 6}, [("committed", True, 10, 90)]),
    "removed and opened": ({"ended": 6, "pending": [commit(5, 1, 8, "open"), commit(8, 2, 7, "open")]}, [
        ("pending", False, 2, 98)
    ]),
    "two transactions": (
        {"committed": commit(5, 10),
         "pending": [commit(6, 1, 7, "open"), commit(7, 3, 7, "open"), commit(8, 2, 8, "open")]},
        [("committed", False, 10, 90), ("pending", False, 2, 98), ("pending", False, 3, 97)],
    ),
    "end of a transaction lost": (
        {"committed": commit(5, 10), "pending": [commit(6, 1, 7, "unknown")]}, [("committed", True, 10, 90)]
    ),
    "behind the end": ({"committed": commit(5, 150)}, [("committed", True, 150, 0)]),
    "beyond a younger end": (
        {"committed": commit(5, 150) | {"timestamp_ms": 5}}, [("committed", True, 150, -50)]
    ),
    "at the beginning": ({"committed": commit(5, 0)}, [("committed", True, 0, 100)]),
    "no offset": ({"committed": commit(5, -1)}, [("committed", True, -1, None)]),
    "no end": ({"committed": commit(5, 10)}, [("committed", True, 10, None)]),
}  # fmt: skip

SHARES: dict[str, tuple[list[Row], list[Offset]]] = {
    "started": ([share(0, 5, 0), share(1, 8, 2)], [("share", True, 8, 90)]),
    "not started": ([share(0, -1, 0)], [("share", True, None, None)]),
    "moved by an update": ([share(0, 5, 0), share(1, 9, 1, -1, "share_update")], [("share", True, 9, 90)]),
    "an update of counts": ([share(0, 5, 0), share(1, -1, 3, -1, "share_update")], [("share", True, 5, 92)]),
    "new leader": (
        [share(0, 5, 0), share(1, 5, 0, 5, "share_update"), share(2, 5, 0, -1, "share_update")],
        [("share", True, 5, 95)],
    ),
    "counts nothing": ([share(0, 5, -1)], [("share", True, 5, None)]),
    "deleted": ([share(0, 5, 0), no_share(1)], []),
    "deleted twice": ([share(0, 5, 0), no_share(1), share(2, 6, 0), no_share(3)], []),
    "created again": ([share(0, 5, 0), no_share(1), share(2, 6, 0)], [("share", True, 6, 94)]),
    "unnamed": ([share(0, 5, 0)], [("share", True, 5, None)]),
}
EXPECTED = sorted(
    [(name, *each) for cases in (COMMITS, SHARES) for name, (_, found) in cases.items() for each in found], key=repr
)
WITHOUT = sorted({(*each[:4], None) for each in EXPECTED}, key=repr)


def rows() -> Iterator[tuple[Table, list[Row]]]:
    """Each case is a topic; the topic id is the name with "id" before it."""
    place = {"cluster": CLUSTER, "log_topic": "log", "log_partition": 0, "group_id": "g", "partition": 0}
    yield COMMIT_SUMMARIES, [{**place, "run_id": "1", "topic": name, **row} for name, (row, _) in COMMITS.items()]
    of_share = {**place, "log_topic": "shares"}
    del of_share["partition"]
    yield (
        GROUP_RECORDS,
        [
            {**of_share, "log_offset": row["at"], "timestamp_ms": row["at"], "is_tombstone": row["is_tombstone"],
             row["kind"]: {"key": {"topicId": f"id {name}", "partition": 0}, "value": row["value"]}}
            for name, (of_case, _) in SHARES.items() for row in of_case
        ] + [
            {**of_share, "log_offset": 9, "is_tombstone": False},  # of another type
            {**of_share, "log_offset": 9, "log_partition": None, "is_tombstone": False,
             "share_snapshot": {"key": {"topicId": "id started", "partition": 0}, "value": share(9, 1, 1)["value"]}},
        ],
    )  # fmt: skip
    named = [name for name in SHARES if name != "unnamed"]
    yield TOPIC_HISTORY, [{"cluster": CLUSTER, "topic": name, "topic_id": f"id {name}"} for name in named * 2]
    topics = [name for name in (*COMMITS, *SHARES) if name != "no end"]
    yield (
        END_OFFSETS,
        [
            {"cluster": cluster, "run_id": "1", "topic": name, "partition": 0, "timestamp_ms": at, "end_offset": end}
            for name in topics
            for cluster, at, end in ((CLUSTER, 1, 50), (CLUSTER, 3, 100), (CLUSTER, 4, None), ("other", 9, 999))
        ]
        + [
            {
                "cluster": CLUSTER,
                "run_id": "1",
                "topic": "beyond a younger end",
                "partition": 0,
                "timestamp_ms": 20_000,
                "end_offset": 100,
            }
        ],
    )
    yield RUNS, [{"cluster": CLUSTER, "run_id": "1", "job": "decode", "records": 1}]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("offsets")
    write(made, dict(rows()))
    return made


CHOSEN = ("topic", "status", "is_stable", "committed_offset", "lag")


def named(found: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return sorted((("unnamed" if topic is None else topic, *values) for topic, *values in found), key=repr)


def test_offsets_and_lag(spark: SparkSession, home: Path) -> None:
    assert named(of_both(spark, home, WITH_ENDS, CHOSEN, run="1")) == EXPECTED
    without = FolderReader(str(home)).rows(WITHOUT_ENDS, run="1")
    assert named({tuple(row[name] for name in CHOSEN) for row in without}) == WITHOUT


def test_offsets_of_commits_are_those_of_one_cluster(spark: SparkSession, tmp_path: Path) -> None:
    of = {"log_topic": "log", "log_partition": 0, "group_id": "g", "topic": "t", "partition": 0}
    of |= {"committed": commit(5, 10), "pending": [commit(6, 1, 7, "open"), commit(7, 3, 7, "open")]}
    write(tmp_path, {COMMIT_SUMMARIES: [{**of, "cluster": name} for name in (CLUSTER, "other")]})
    found = of_both(spark, tmp_path, OFFSETS, ("cluster", *CHOSEN[:4]), cluster=CLUSTER)
    assert found == [(CLUSTER, "t", "committed", False, 10), (CLUSTER, "t", "pending", False, 3)]


def test_rows_that_are_looked_at_are_partitions_with_commits_and_records_of_share_partitions(tmp_path: Path) -> None:
    partitions = [{"cluster": CLUSTER, "hour_ms": hour_ms} for hour_ms in (None, None, 0, 1, 2)]
    records = [{"cluster": CLUSTER, "log_topic": topic} for topic in (SHARE_LOG, GROUP_LOG, GROUP_LOG)]
    write(tmp_path, {COMMIT_SUMMARIES: partitions, GROUP_RECORDS: records})
    assert list(FolderReader(str(tmp_path)).tuples(ROWS, topics=SHARE_TOPICS)) == [(3,)]


NEWEST = ("started", "new leader")


def test_offsets_of_shares_have_the_leader_epoch_and_time_of_their_newest_records(home: Path) -> None:
    found = {row["topic"]: row for row in FolderReader(str(home)).rows(WITH_ENDS, run="1")}
    newest = [[found[of][name] for name in ("log_offset", "timestamp_ms", "leader_epoch")] for of in NEWEST]
    assert newest == [[1, 1, 0], [2, 2, 5]]


def test_given_ends_change_offsets_that_are_stored(spark: SparkSession, home: Path) -> None:
    """The lag of a night's offsets is computed again from a file that is given later."""
    audit = CoordinatorAudit(spark, str(home), CLUSTER)
    assert offsets.run(audit.tables) == len(EXPECTED)
    file = home / "given.jsonl"
    file.write_text(json.dumps({"topic": "committed", "partition": 0, "timestamp_ms": 9, "end_offset": 1_000}))
    stored = "SELECT lag FROM $group_offsets WHERE topic = 'committed'"
    lags = [next(FolderReader(str(home)).rows(stored))["lag"]]
    assert offsets.run(audit.tables, ends_in_spark(spark, str(file), CLUSTER)) == len(EXPECTED)
    lags += [row["lag"] for row in FolderReader(str(home)).rows(stored)]
    assert lags == [90, 990]


def test_given_ends_of_one_cluster_leave_the_lag_of_another(spark: SparkSession, tmp_path: Path) -> None:
    of = {"log_topic": "log", "log_partition": 0, "group_id": "g", "topic": "t", "partition": 0}
    both = ("c", "other")
    tables = {
        COMMIT_SUMMARIES: [{**of, "cluster": name, "run_id": "1", "committed": commit(5, 10)} for name in both],
        GROUP_RECORDS: [],
        TOPIC_HISTORY: [],
        END_OFFSETS: [
            {"cluster": name, "run_id": "1", "topic": "t", "partition": 0, "timestamp_ms": 3, "end_offset": 100}
            for name in both
        ],
        RUNS: [{"cluster": name, "run_id": "1", "job": "decode", "records": 1} for name in both],
    }
    write(tmp_path, tables)
    file = tmp_path / "given.jsonl"
    file.write_text(json.dumps({"topic": "t", "partition": 0, "timestamp_ms": 9, "end_offset": 1_000}))
    offsets.run(CoordinatorAudit(spark, str(tmp_path), CLUSTER).tables, ends_in_spark(spark, str(file), CLUSTER))
    rows = FolderReader(str(tmp_path)).rows("SELECT cluster, lag FROM $group_offsets")
    assert {row["cluster"]: row["lag"] for row in rows} == {"c": 990, "other": 90}


MUTATIONS = [
    ("AND committed.log_offset > coalesce(ended, -1)", ""),
    ("pending_commit.outcome = 'open' AND", ""),
    ("AND pending_commit.log_offset > coalesce(ended, -1)", ""),
    ("p.pending_commit.log_offset DESC", "p.pending_commit.log_offset"),
    (", p.pending_commit.producer_id ORDER", " ORDER"),
    ("u_cluster IS NULL AS is_stable", "TRUE AS is_stable"),
    ("opened WHERE nth = 1", "opened"),
    ("OR share_update['key'] IS NOT NULL", ""),
    ("NOT is_tombstone AND (is_snapshot OR start_offset <> -1)", "NOT is_tombstone"),
    ("max(CASE WHEN is_tombstone THEN log_offset END)", "min(CASE WHEN is_snapshot THEN log_offset END)"),
    ("WHERE log_offset > coalesce(ended, -1)\n", "\n"),
    ("CASE WHEN s.newest_start.value <> -1 THEN", "CASE WHEN TRUE THEN"),
    ("LEFT JOIN names", "JOIN names"),
    ("SELECT DISTINCT cluster AS n_cluster", "SELECT cluster AS n_cluster"),
    ("ORDER BY timestamp_ms DESC", "ORDER BY timestamp_ms"),
    ("$end_offsets WHERE end_offset IS NOT NULL", "$end_offsets"),
    ("WHERE nth = 1) AS e", ") AS e"),
    ("cluster = e_cluster AND", ""),
    ("end_offset IS NOT NULL AND committed_offset", "committed_offset"),
    ("committed_offset >= 0 AND delivered >= 0", "delivered >= 0"),
    ("committed_offset >= 0 AND delivered >= 0", "committed_offset >= 0"),
    ("- committed_offset - delivered", "- committed_offset"),
    ("greatest(0,", "greatest(-1000,"),
]


@pytest.mark.parametrize(("part", "instead"), MUTATIONS, ids=[str(number) for number in range(len(MUTATIONS))])
def test_a_mutated_text_is_found(home: Path, part: str, instead: str) -> None:
    """Each part of the text matters to one of the cases."""
    assert part in WITH_ENDS
    found = FolderReader(str(home)).rows(WITH_ENDS.replace(part, instead), run="1")
    assert named(tuple(row[name] for name in CHOSEN) for row in found) != EXPECTED


def test_newest_ends_are_those_that_are_not_later(tmp_path: Path) -> None:
    known = [("t", 0, 5, 50), ("t", 0, 7, 70), ("t", 1, 6, 60), ("t", 0, 8, None), ("u", 0, 9, 90)]
    names = ("topic", "partition", "timestamp_ms", "end_offset")
    rows = [{"cluster": CLUSTER, **dict(zip(names, end, strict=True))} for end in known]
    write(tmp_path, {END_OFFSETS: [*rows, {**rows[0], "cluster": "other", "timestamp_ms": 6, "end_offset": 1}]})
    expected = {4: {}, 6: {"t-0": 50, "t-1": 60}, 7: {"t-0": 70, "t-1": 60}, None: {"t-0": 70, "t-1": 60, "u-0": 90}}
    for until, ends in expected.items():
        found = newest_ends(FolderReader(str(tmp_path)), CLUSTER, until)
        assert {f"{topic}-{partition}": end.offset for (topic, partition), end in found.items()} == ends
