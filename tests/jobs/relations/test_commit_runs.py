"""Commits of one group in random logs: as runs, as those that went back, and as left out; files and tables agree."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.findings.resets import PartitionRewind
from coordinator_core.audit.offsets.runs import CommitRun, GroupCommits
from coordinator_core.groups.end_offsets import are_two_topics
from coordinator_core.groups.offsets import TopicPartition
from jobs.queries.from_logs.answers import LogAnswers
from jobs.relations.commit_runs import LEFT_OUT, RUNS, stored_commits
from jobs.relations.commit_sums import REWINDS_OF_GROUP, rewinds_of_group
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from jobs.tables.records import OFFSET_COMMITS
from tests.jobs.relations.engines import of_both, write
from tests.jobs.relations.random_commits import GROUPS, write_logs
from tests.jobs.relations.tables_of_logs import CLUSTER, add_another_cluster, append, fill

NAMES = [f"{name}{partition}" for name in GROUPS for partition in (0, 1)]

Runs = dict[TopicPartition, list[CommitRun]]


@dataclass(eq=False)
class Log:
    """Random logs with tables of them, in which owners and epochs of groups begin and end at random positions."""

    place: Path
    tables: FolderReader
    commits: dict[str, GroupCommits]
    """What the log files say of each group."""
    edges: dict[str, list[tuple[int, int | None]]]
    """Of each group: an offset of the log and the partition whose owner changes there; None: all partitions."""

    def stored(self, group: str) -> GroupCommits:
        return stored_commits(self.tables, CLUSTER, group)

    def expected(self, group: str) -> Runs:
        """What the log files say of each commit, joined step by step."""
        found: Runs = defaultdict(list)
        alone: dict[TopicPartition, bool] = {}
        for run in self.commits[group].runs:
            before, partition = run.before, run.partition
            offset = 0 if run.offset is None else run.offset
            is_first = run.offset is None or before is None
            is_alone = (
                is_first or before is None or offset < before.offset or are_two_topics(before.topic_id, run.topic_id)
            )
            joined = found[partition]
            same = joined and self._stretch(group, joined[-1]) == self._stretch(group, run)
            same = same and joined[-1].metadata == run.metadata
            if not is_alone and not alone.get(partition, True) and same:
                last = joined[-1]
                joined[-1] = last._replace(last=run.last, commits=last.commits + 1, offset=run.offset)
            else:
                joined.append(run._replace(held_ms=None))
            alone[partition] = is_alone
        return found

    def _stretch(self, group: str, run: CommitRun) -> int:
        """How many edges lie before the last commit of a run."""
        number = run.partition.partition
        return sum(at <= run.last.offset and of in (None, number) for at, of in self.edges[group])


def by_partition(runs: Sequence[CommitRun]) -> Runs:
    found: Runs = defaultdict(list)
    for run in runs:
        found[run.partition].append(run)
    return found


def log_of(place: Path, seed: int) -> Log:
    write_logs(place / "logs", seed, holes=seed % 2 == 1)
    fill(place / "tables", place / "logs")
    rng, edges = Random(seed), defaultdict(list)
    for group in NAMES:
        log = int(group[-1])

        def position(offset: int, log: int = log) -> dict[str, int]:
            return {"partition": log, "offset": offset, "timestamp_ms": offset}

        append(place / "tables", "memberships", [{"cluster": CLUSTER, "group_id": group, "member_id": "m"}])
        for table, begun, ended in (("assignments", "since", "until"), ("group_epochs", "opened", "ended")):
            since, until = sorted(rng.sample(range(120), 2))
            ends = {begun: position(since), ended: position(until) if rng.random() < 0.7 else None}
            of_partition = {"kind": "current", "partition": rng.randrange(2)} if table == "assignments" else {}
            of = {"cluster": CLUSTER, "group_id": group, **of_partition}
            append(place / "tables", table, [{**of, **ends}])
            of_kind = of_partition.get("partition")
            edges[group] += [(at["offset"], of_kind) for at in ends.values() if at is not None]
            planned = [{**of, "kind": "target", begun: position(offset)} for offset in range(0, 120, 9)]
            append(place / "tables", table, planned if of_partition else [])
    add_another_cluster(place / "tables")
    answers = LogAnswers(find_logs([place / "logs"]), pytest.fail, load)
    commits = {group: answers.commits(group) for group in NAMES}
    return Log(place / "tables", FolderReader(str(place / "tables")), commits, edges)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Log]:
    return [log_of(tmp_path_factory.mktemp("runs"), seed) for seed in range(2)]


@pytest.mark.parametrize("group", NAMES)
def test_runs_are_the_commits_of_the_log_files(logs: list[Log], group: str) -> None:
    for log in logs:
        stored, files = log.stored(group), log.commits[group]
        assert by_partition(stored.runs) == log.expected(group)
        assert vars(stored.coverage) == vars(files.coverage)
        assert stored._replace(runs=(), coverage=files.coverage) == files._replace(runs=())


def test_the_logs_have_runs_of_all_lengths_and_commits_to_leave_out(logs: list[Log]) -> None:
    runs = [run for log in logs for group in NAMES for of in log.expected(group).values() for run in of]
    assert {min(run.commits, 3) for run in runs} == {1, 2, 3}
    assert sum(log.commits[group].left_out for log in logs for group in NAMES) > 10


def test_a_dump_that_shows_no_transactions_leaves_none_out(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs", 1)
    fill(tmp_path / "tables", tmp_path / "logs", by_consumer=True)
    append(tmp_path / "tables", "memberships", [])
    tables = FolderReader(str(tmp_path / "tables"))
    assert [stored_commits(tables, CLUSTER, group).left_out for group in NAMES] == [0] * len(NAMES)


OF = {"cluster": CLUSTER, "group_id": "g", "log_topic": "log", "log_partition": 0, "topic": "t", "partition": 0}
TOMBSTONES = [
    *({"log_offset": offset} for offset in (5, 10)),
    *({"log_offset": 20, name: "another"} for name in ("cluster", "group_id", "log_topic", "topic")),
    *({"log_offset": 20, name: 1} for name in ("log_partition", "partition")),
    *({"log_offset": 6, name: "a third"} for name in ("log_topic", "topic")),
    *({"log_offset": 6, name: 2} for name in ("log_partition", "partition")),
    {"log_offset": None},
]
OPEN_COMMITS = [
    # offset, outcome, producer id
    (7, "open", 0),
    (12, "open", 0),
    (13, "unknown", 8),
    (14, "committed", 0),
    (15, "aborted", 0),
    *((offset, "committed", 0) for offset in (19, 21)),
    (16, "unknown", -1),
    (17, "unknown", None),
    (18, None, 0),
]


def test_commits_of_transactions_without_an_end_are_left_out_unless_a_tombstone_follows(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [{**OF, "is_tombstone": True, **row} for row in TOMBSTONES]
    names = ("log_offset", "outcome", "producer_id")
    commits = [{**OF, "is_tombstone": False, **dict(zip(names, row, strict=True))} for row in OPEN_COMMITS]
    others = [{**commits[1], "log_offset": 30, **of} for of in ({"cluster": "another"}, {"group_id": "another"})]
    commits.append({**commits[1], "topic": "without tombstones"})
    write(tmp_path, {OFFSET_COMMITS: [*rows, *commits, *others]})
    assert of_both(spark, tmp_path, LEFT_OUT, cluster=CLUSTER, group_id="g") == [(3,)], "offset 12 twice, and 13"


def test_rewinds_are_the_runs_that_go_back(logs: list[Log]) -> None:
    for log in logs:
        expected = [
            PartitionRewind(*run.partition, run.before.offset, run.first_offset, run.first)
            for group in NAMES
            for run in log.commits[group].runs
            if run.before is not None and run.first_offset is not None
            if run.first_offset < run.before.offset and not are_two_topics(run.before.topic_id, run.topic_id)
        ]
        stored = [row for group in NAMES for row in rewinds_of_group(log.tables, CLUSTER, group)]
        assert sorted(stored) == sorted(expected)


def test_spark_reads_the_same(spark: SparkSession, logs: list[Log]) -> None:
    """The other texts are asked of both engines in test_both_engines, by ``stored_commits``."""
    assert of_both(spark, logs[0].place, REWINDS_OF_GROUP, cluster=CLUSTER, group_id=NAMES[0])


MUTATIONS = [
    (RUNS, "AND a.kind = 'current'\n", "\n"),
    (
        RUNS,
        "UNION SELECT a.until.partition, a.partition, a.until.offset",
        "UNION SELECT a.until.partition, a.partition, 0",
    ),
    (RUNS, "SELECT e.opened.partition, k.partition, e.opened.offset", "SELECT e.opened.partition, k.partition, 0"),
    (RUNS, "SELECT e.ended.partition, k.partition, e.ended.offset", "SELECT e.ended.partition, k.partition, 0"),
    (RUNS, "ORDER BY log_offset, edge DESC", "ORDER BY log_offset DESC, edge DESC"),
    (RUNS, "ORDER BY log_offset, edge DESC", "ORDER BY log_offset, edge"),
    (RUNS, "AND k.partition = e.partition", ""),
    (RUNS, "WHERE edge = 0 WINDOW", "WINDOW"),
    (RUNS, "WINDOW w AS (PARTITION BY log_topic, log_partition, topic, partition ", "WINDOW w AS ("),
    (RUNS, "is_tombstone OR coalesce(gone_before", "coalesce(gone_before"),
    (RUNS, "coalesce(gone_before, TRUE) OR", "coalesce(gone_before, FALSE) OR"),
    (RUNS, "committed_offset < held_offset", "committed_offset <= held_offset"),
    (RUNS, "coalesce(topic_id <> held_topic_id, FALSE)", "FALSE"),
    (RUNS, "stretch <> stretch_before", "FALSE"),
    (RUNS, "OR lag(is_alone) OVER", "OR lag(FALSE) OVER"),
    (RUNS, "CASE WHEN is_alone OR", "CASE WHEN"),
    (RUNS, "count(*) AS commits, max", "count(*) + 1 AS commits, max"),
    (RUNS, "max(log_offset) AS last_at", "min(log_offset) AS last_at"),
    (RUNS, "f.committed_offset AS first_offset", "l.committed_offset AS first_offset"),
    (RUNS, "ORDER BY s.effective, f.log_offset\n", "ORDER BY s.effective DESC\n"),
    (LEFT_OUT, "AND is_tombstone GROUP BY", "GROUP BY"),
    (LEFT_OUT, "max(log_offset) AS ended", "min(log_offset) AS ended"),
    (LEFT_OUT, "AND c.log_offset > coalesce(t.ended, -1)", ""),
    (LEFT_OUT, "c.outcome NOT IN ('committed', 'aborted')", "c.outcome NOT IN ('committed')"),
    (LEFT_OUT, "c.outcome NOT IN ('committed', 'aborted')", "c.outcome NOT IN ('aborted')"),
    (LEFT_OUT, "AND c.topic = t.topic", ""),
    (LEFT_OUT, "AND c.partition = t.partition", ""),
    (REWINDS_OF_GROUP, "AND hour_ms IS NULL", ""),
    (REWINDS_OF_GROUP, "AND group_id = :group_id", ""),
    (REWINDS_OF_GROUP, "AND cardinality(s.rewinds) > 0", "AND cardinality(s.rewinds) > 1"),
    (REWINDS_OF_GROUP, "s.rewinds END AS rewinds", "s.removals END AS rewinds"),
]


@pytest.mark.parametrize(("text", "part", "instead"), MUTATIONS, ids=[str(number) for number in range(len(MUTATIONS))])
def test_a_mutated_text_is_found(logs: list[Log], text: str, part: str, instead: str) -> None:
    """Each part of the texts matters to one of the logs."""
    assert part in text
    mutated = text.replace(part, instead)
    assert any(rows(log, text, group) != rows(log, mutated, group) for log in logs for group in NAMES)


@cache
def rows(log: Log, text: str, group: str) -> list[tuple[Any, ...]]:
    return list(log.tables.tuples(text, cluster=CLUSTER, group_id=group))
