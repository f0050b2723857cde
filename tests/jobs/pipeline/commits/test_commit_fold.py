"""The pass over commits against the fold of the core: the same sums for generated logs, in chunks and nights."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from coordinator_core.audit.folds.commits import CommitFold, OpenTransaction, PartitionCommits, Removal, Rewind
from coordinator_core.audit.folds.removals import how_removed
from coordinator_core.record_fields.offset_commit import OffsetCommitRecord
from coordinator_core.records import CoordinatorRecord, LogPosition, RecordType
from jobs.pipeline.commits.fold import INPUT, STATE, PassOver, What, summarizer

LOG_TOPIC, CLUSTER = "__consumer_offsets", "c"
TOPICS = {"orders": ["id-1", "id-2", None], "payments": [None]}
PRODUCERS = (7, 8)
EVENTS = 60
GROUPS = ("group-a", "group-b")
NUMBERS = {"what": pa.int8(), "is_tombstone": pa.bool_(), "partition": pa.int32(), "leader_epoch": pa.int32()}
TEXTS = ("group_id", "topic", "metadata", "topic_id", "outcome", "state")
SCHEMA = pa.schema([(name, pa.string() if name in TEXTS else NUMBERS.get(name, pa.int64())) for name in INPUT])

Row = dict[str, Any]


@dataclass
class GeneratedLog:
    """A log partition of two groups, as rows of the input and as the folds of the core have read it."""

    rng: random.Random
    folds: dict[str, CommitFold] = field(default_factory=lambda: {name: CommitFold() for name in GROUPS})
    rows: list[Row] = field(default_factory=list)
    open: dict[int, list[Row]] = field(default_factory=dict)
    offset: int = 0
    time_ms: int = 3_590_000

    def next_place(self) -> LogPosition:
        self.offset += self.rng.choice((1, 1, 3))
        self.time_ms += self.rng.choice((0, 0, 10, 9_000))
        return LogPosition(3, self.offset, self.time_ms)

    def row(self, at: LogPosition, what: What, **columns: Any) -> Row:
        place = {"log_partition": at.partition, "log_offset": at.offset, "timestamp_ms": at.timestamp_ms}
        made = dict.fromkeys(INPUT) | place | {"what": int(what), "run": 0} | columns
        self.rows.append(made)
        return made

    def commit(self, *, tombstone: bool) -> None:
        group, at, topic = self.rng.choice(GROUPS), self.next_place(), self.rng.choice(list(TOPICS))
        partition, committed = self.rng.randrange(2), self.rng.randrange(20)
        producer = None if tombstone else self.rng.choice((None, None, *PRODUCERS))
        topic_id, expires = self.rng.choice(TOPICS[topic]), self.rng.choice((None, -1, self.time_ms + 5_000))
        row = self.row(at, What.COMMIT, group_id=group, topic=topic, partition=partition, is_tombstone=tombstone)
        value: Row | None = None
        if not tombstone:
            value = {"offset": committed, "metadata": str(at.offset), "commitTimestamp": at.timestamp_ms}
            value |= {"topicId": topic_id} if topic_id else {}
            value |= {"expireTimestamp": expires} if expires is not None else {}
            row |= {"committed_offset": committed, "commit_timestamp": at.timestamp_ms, "metadata": str(at.offset)}
            row |= {"topic_id": topic_id, "expire_timestamp": expires, "producer_id": -1}
        if producer is not None:
            row |= {"producer_id": producer, "outcome": "open"}
            self.open.setdefault(producer, []).append(row)
        key = {"group": group, "topic": topic, "partition": partition}
        record: OffsetCommitRecord = CoordinatorRecord(
            at, RecordType.OFFSET_COMMIT, key, value, None if tombstone else 3, at.offset
        )
        self.folds[group].feed(record, producer)

    def end_transaction(self) -> None:
        producer, committed, at = self.rng.choice(PRODUCERS), self.rng.random() < 0.7, self.next_place()
        self.row(at, What.MARKER, producer_id=producer)
        for row in self.open.pop(producer, ()):
            row["ended"] = (at.offset, "committed" if committed else "aborted")
        for fold in self.folds.values():
            fold.end_transaction(producer, committed=committed)

    def write(self) -> None:
        for _ in range(self.rng.randrange(1, EVENTS)):
            kind = self.rng.choices(("commit", "tombstone", "marker", "record"), (10, 2, 2, 1))[0]
            if kind == "marker":
                self.end_transaction()
            elif kind == "record":
                self.row(self.next_place(), What.RECORD, group_id=self.rng.choice(GROUPS))
            else:
                self.commit(tombstone=kind == "tombstone")

    def input(self, begin: int, end: int, states: list[Row]) -> list[Row]:
        """The rows between two offsets, with outcomes as of the end; those that were pending come with theirs."""
        rows = []
        for row in self.rows:
            ended_at, said = row.get("ended", (None, None))
            now = row if ended_at is None or ended_at >= end else row | {"outcome": said}
            if begin <= row["log_offset"] < end:
                rows.append(now)
            elif row["log_offset"] < begin and ended_at is not None and begin <= ended_at < end:
                rows.append(now | {"what": int(What.SETTLED)})
        return [*states, *rows]


def summarized(log: GeneratedLog, rows: list[Row], chunk: int, run: str = "run") -> list[Row]:
    batches = [
        pa.RecordBatch.from_pylist([{name: row[name] for name in INPUT} for row in rows[at : at + chunk]], SCHEMA)
        for at in range(0, len(rows), chunk)
    ]
    return [row for batch in summarizer(PassOver(CLUSTER, LOG_TOPIC, [run]))(batches) for row in batch.to_pylist()]


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


def state_row(row: Row) -> Row:
    """A row of all commits as the next run gets it: Spark leaves null out of JSON."""
    state = without_null({name: row[name] for name in STATE})
    names = ("log_partition", "group_id", "topic", "partition")
    found = dict.fromkeys(INPUT) | {name: row[name] for name in names}
    return found | {"what": int(What.STATE), "log_offset": -1, "state": json.dumps(state)}


def at(place: Row) -> LogPosition:
    return LogPosition(**place)


def commits_of(row: Row) -> PartitionCommits:
    """A row of all commits as the findings take it; without the metadata log no removal has another cause."""
    return PartitionCommits(
        row["topic"],
        row["partition"],
        row["commits"],
        at(row["first"]),
        at(row["last"]),
        row["committed"] and row["committed"]["committed_offset"],
        tuple(
            Rewind(at(each["at"]), each["before"], each["after"], each["metadata"], each["log_offset_before"])
            for each in row["rewinds"]
        ),
        tuple(
            Removal(at(each["at"]), each["offset"], how_removed(each["age_ms"], past_expiry=bool(each["past_expiry"])))
            for each in row["removals"]
        ),
        topic_id=row["committed"] and row["committed"]["topic_id"],
    )


def transactions_of(rows: list[Row]) -> list[OpenTransaction]:
    found: dict[int, list[tuple[LogPosition, str, int]]] = {}
    for row in rows:
        for each in row["pending"]:
            if each["log_offset"] > (row["ended"] or -1):
                place = LogPosition(3, each["log_offset"], each["timestamp_ms"])
                found.setdefault(each["producer_id"], []).append((place, row["topic"], row["partition"]))
    return sorted(
        OpenTransaction(producer, min(mine)[0], len({each[1:] for each in mine})) for producer, mine in found.items()
    )


@pytest.mark.parametrize("nights", [1, 3])
@pytest.mark.parametrize("seed", range(60))
def test_the_pass_sums_up_as_the_core_does(seed: int, nights: int) -> None:
    rng = random.Random(seed)
    log = GeneratedLog(rng)
    log.write()
    ends = [*sorted(rng.randrange(log.offset + 2) for _ in range(nights - 1)), log.offset + 1]
    begin, states, hours = 0, [], []
    for number, end in enumerate(ends):
        found = summarized(log, log.input(begin, end, [state_row(row) for row in states]), rng.choice((1, 7, 1000)))
        states = [row for row in found if row["hour_ms"] is None]
        hours += [row | {"run_id": f"run {number}"} for row in found if row["hour_ms"] is not None]
        begin = end
    for group in GROUPS:
        mine = [row for row in states if row["group_id"] == group]
        assert sorted(map(commits_of, (row for row in mine if row["commits"]))) == list(log.folds[group].partitions())
        assert transactions_of(mine) == sorted(log.folds[group].transactions())
    for row in states:
        same = [each for each in hours if all(each[name] == row[name] for name in ("group_id", "topic", "partition"))]
        for name in ("commits", "written", "tombstones", "rewind_count", "removal_count"):
            assert sum(each[name] for each in same) == row[name], name
        steps = sorted((step for each in same for step in each["rewinds"]), key=lambda step: step["at"]["offset"])
        assert steps == row["rewinds"]
        assert row["committed"] is None or row["committed"]["metadata"] == str(row["committed"]["log_offset"])


@pytest.mark.parametrize("seed", range(30))
def test_commits_beside_records_hold_the_ends_of_each_stretch(seed: int) -> None:
    rng = random.Random(seed)
    log = GeneratedLog(rng)
    log.write()
    found = summarized(log, log.input(0, log.offset + 1, []), rng.choice((1, 5, 1000)))
    beside = {each["log_offset"] for row in found for each in row["beside"] or ()}
    stretches: dict[tuple[Any, ...], list[int]] = {}
    records = dict.fromkeys(GROUPS, 0)
    for row in log.rows:
        if row["what"] == What.RECORD:
            records[row["group_id"]] += 1
        elif row["what"] == What.COMMIT and not row["is_tombstone"]:
            names = (row["group_id"], row["topic"], row["partition"], row["topic_id"])
            stretches.setdefault((*names, records[row["group_id"]]), []).append(row["log_offset"])
    assert {end for mine in stretches.values() for end in (mine[0], mine[-1])} <= beside
    assert beside <= {row["log_offset"] for row in log.rows if row["what"] == What.COMMIT}
