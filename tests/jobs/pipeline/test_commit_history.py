"""Commits summarised by Spark and by the core: the same rows for generated logs of many groups."""

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from coordinator_core.audit.folds.commits import CommitFold, OpenTransaction, PartitionCommits
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.record_fields.offset_commit import OffsetCommitRecord
from coordinator_core.records import CoordinatorRecord, LogPosition, RecordType
from jobs.pipeline import commit_summaries
from jobs.queries.from_tables.commits import CommitsThen, GroupCommitsThen, commits_then, read_offsets, read_records
from jobs.queries.from_tables.selection import Selection
from jobs.relations.commit_sums import Summary, sums_of_group, topic_ends
from jobs.relations.groups import SUMS, given, rows_of
from jobs.relations.log_extent import StoredLogExtent
from jobs.relations.offsets import OFFSETS
from jobs.relations.up_to_date import has_all_commits
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import TOPIC_HISTORY
from jobs.tables.log import LOG_RECORDS, RUNS
from jobs.tables.reader import TableReader
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.spark_reader import SparkReader
from jobs.tables.table import few

GROUPS, EVENTS = 100, 40
LOG_TOPIC, CLUSTER = "__consumer_offsets", "c"
TOPICS = {"orders": ["id-1", "id-2", None], "payments": [None]}
PRODUCERS = (7, 8)
TOPIC_DELETED_MS = 20_000

Row = dict[str, Any]


@dataclass
class CommitLog:
    """The log partition of one group, both as rows of the tables and as the fold of the core has read it."""

    partition: int
    rng: random.Random
    fold: CommitFold = field(default_factory=CommitFold)
    rows: dict[str, list[Row]] = field(default_factory=lambda: {table.name: [] for table in TABLES})
    open: dict[int, list[Row]] = field(default_factory=dict)
    offset: int = 0
    time_ms: int = 1_000

    @property
    def group_id(self) -> str:
        return f"group-{self.partition}"

    def next_place(self) -> LogPosition:
        self.offset += self.rng.choice((1, 1, 3))
        self.time_ms += self.rng.choice((0, 0, 10, 2_000))
        return LogPosition(self.partition, self.offset, self.time_ms)

    def row(self, at: LogPosition, **columns: Any) -> Row:
        place = {"log_topic": LOG_TOPIC, "log_partition": at.partition, "log_offset": at.offset}
        return {"cluster": CLUSTER, **place, "timestamp_ms": at.timestamp_ms, **columns}

    def commit(self, *, tombstone: bool) -> None:
        at, topic = self.next_place(), self.rng.choice(list(TOPICS))
        partition, committed = self.rng.randrange(2), self.rng.randrange(20)
        producer = None if tombstone else self.rng.choice((None, None, *PRODUCERS))
        topic_id, expires = self.rng.choice(TOPICS[topic]), self.rng.choice((None, -1, self.time_ms + 5_000))
        row = self.row(at, group_id=self.group_id, topic=topic, partition=partition, is_tombstone=tombstone)
        value: dict[str, Any] | None = None
        if not tombstone:
            value = {"offset": committed, "metadata": "", "commitTimestamp": at.timestamp_ms}
            value |= {"topicId": topic_id} if topic_id else {}
            value |= {"expireTimestamp": expires} if expires is not None else {}
            row |= {"committed_offset": committed, "metadata": "", "commit_timestamp": at.timestamp_ms}
            row |= {"topic_id": topic_id, "expire_timestamp": expires, "producer_id": -1}
        if producer is not None:
            row |= {"producer_id": producer, "outcome": "open"}
            self.open.setdefault(producer, []).append(row)
        self.rows[OFFSET_COMMITS.name].append(row)
        key = {"group": self.group_id, "topic": topic, "partition": partition}
        record: OffsetCommitRecord = CoordinatorRecord(
            at, RecordType.OFFSET_COMMIT, key, value, None if tombstone else 3, at.offset
        )
        self.fold.feed(record, producer)

    def end_transaction(self) -> None:
        producer, committed, at = self.rng.choice(PRODUCERS), self.rng.random() < 0.7, self.next_place()
        marker = {"kind": "control", "is_transactional": True, "control_type": "COMMIT" if committed else "ABORT"}
        self.rows[LOG_RECORDS.name].append(self.row(at, producer_id=producer, **marker))
        for row in self.open.pop(producer, ()):
            row["outcome"] = "committed" if committed else "aborted"
        self.fold.end_transaction(producer, committed=committed)

    def delete_group(self) -> None:
        at = self.next_place()
        ended = {"group_id": self.group_id, "record_type": int(RecordType.GROUP_METADATA), "is_tombstone": True}
        self.rows[GROUP_RECORDS.name].append(self.row(at, **ended))
        self.fold.group_deleted(at)

    def write(self) -> None:
        for _ in range(self.rng.randrange(1, EVENTS)):
            kind = self.rng.choices(("commit", "tombstone", "marker", "group"), (10, 3, 3, 1))[0]
            if kind == "marker":
                self.end_transaction()
            elif kind == "group":
                self.delete_group()
            else:
                self.commit(tombstone=kind == "tombstone")
        self.fold.topic_deleted("orders", TOPIC_DELETED_MS)


RUN = "run 1"
HELD = ("log_topic", "log_partition", "group_id", "topic", "partition", "status", "log_offset", "committed_offset")
TABLES = (OFFSET_COMMITS, LOG_RECORDS, GROUP_RECORDS, TOPIC_HISTORY)


def filled(spark: SparkSession, home: Path, rows: dict[str, list[Row]]) -> Tables:
    """Tables with these rows, as one run has decoded them."""
    tables = Tables(spark, str(home))
    rows[RUNS.name] = [{"cluster": CLUSTER, "run_id": RUN, "job": "decode", "records": 1}]
    for table in (*TABLES, RUNS):
        tables.create(table)
        tables.append(table, few(table, ({**row, "run_id": RUN} for row in rows[table.name])), "filled")
    commit_summaries.update(tables)
    return tables


def test_spark_summarises_commits_as_the_core_does(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(1)
    logs = [CommitLog(number, rng) for number in range(GROUPS)]
    for log in logs:
        log.write()
    rows = {table.name: [row for log in logs for row in log.rows[table.name]] for table in TABLES}
    position = LogPosition(0, 5, TOPIC_DELETED_MS)
    ended = {"since": LogPosition(0, 0, 0), "until": position, "ended_by": "deleted"}
    rows[TOPIC_HISTORY.name] = [{"cluster": CLUSTER, "topic": "orders", "topic_id": "id-1", **ended}]
    tables = filled(spark, tmp_path, rows)
    found: dict[str, list[PartitionCommits]] = {log.group_id: [] for log in logs}
    transactions: dict[str, list[OpenTransaction]] = {log.group_id: [] for log in logs}
    reader, summaries = FolderReader(tables.location), defaultdict[str, list[Summary]](list)
    for group_id, summary in rows_of(reader, SUMS["summaries"], **given(CLUSTER)):
        summaries[group_id].append(summary)
    ends = list(rows_of(reader, SUMS["group_ends"], **given(CLUSTER)))
    for group_id, of_group in summaries.items():
        of_ends = [end for name, end in ends if name == group_id]
        sums = list(sums_of_group(of_group, of_ends, topic_ends(reader, CLUSTER)))
        found[group_id] += (row for row in sums if isinstance(row, PartitionCommits))
        transactions[group_id] += (row for row in sums if isinstance(row, OpenTransaction))
    for log in logs:
        assert sorted(found[log.group_id]) == sorted(log.fold.partitions()), log.group_id
        assert sorted(transactions[log.group_id]) == sorted(log.fold.transactions()), log.group_id
    kinds = {removal.how for rows_of in found.values() for row in rows_of for removal in row.removals}
    assert kinds == {"topic deleted", "group deleted", "group deleted or expired", "expired", "deleted"}
    assert any(row.rewinds for rows_of in found.values() for row in rows_of)
    assert any(transactions.values())
    for read in (FolderReader(tables.location), SparkReader(tables.spark, tables.location)):
        answers_are_those_of_all_commits(read)


def answers_are_those_of_all_commits(tables: TableReader) -> None:
    """Answers at the end of the log read summaries; those of a log with gaps say what is not proven."""
    selected = Selection(tables, CLUSTER, [LOG_TOPIC])
    gaps = (LogGaps(), LogGaps(missing=20, lost=10), LogGaps(missing=20))
    extents = {(LOG_TOPIC, number): StoredLogExtent(gaps=gaps[number % 3]) for number in range(GROUPS)}
    assert has_all_commits(tables, CLUSTER)
    summarized = dict(commits_then(selected, extents))
    of_all = dict(CommitsThen(selected, extents).groups())
    assert {key: comparable(each) for key, each in summarized.items()} == {
        key: comparable(each) for key, each in of_all.items()
    }
    assert any(each.about for each in summarized.values())
    held = [of_held(row) for each in of_all.values() for row in each.held]
    assert sorted(map(of_held, tables.rows(OFFSETS, cluster=CLUSTER))) == sorted(held)


def of_held(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in HELD)


def comparable(commits: GroupCommitsThen) -> tuple[Any, ...]:
    return commits.last, read_offsets(commits.held), read_records(commits.about)
