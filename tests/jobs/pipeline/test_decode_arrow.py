"""Decoding of Arrow batches: the same as the plain decoder, and every row in one output or among the faulty."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from coordinator_core.records import Family
from coordinator_core.wire.record_codec import decode_record, encode_key, encode_value
from jobs.pipeline import decode_arrow
from jobs.sources.files import FAMILIES, find_logs
from jobs.sources.segments import SegmentsReader
from jobs.tables.log import QUARANTINE
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS, struct_columns
from tests.jobs.conftest import SAMPLE_LOGS

KEY = {"group": "g", "topic": "t", "partition": 3}
COMMIT = encode_value(1, 4, {"offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 5})
COMMIT_KEY = encode_key(1, KEY)

TABLES = [
    (decode_arrow.offset_commits, OFFSET_COMMITS),
    (decode_arrow.struct_records, GROUP_RECORDS),
    (decode_arrow.undecodable, QUARANTINE),
]


def log_of(rows: list[tuple[bytes | None, bytes | None]], topic: str = "__consumer_offsets") -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "log_topic": [topic] * len(rows),
            "log_offset": list(range(len(rows))),
            "key": pa.array([key for key, _ in rows], pa.binary()),
            "value": pa.array([value for _, value in rows], pa.binary()),
        }
    )


def mapped(work: Any, table: Any, log: pa.RecordBatch) -> list[dict[str, Any]]:
    run = decode_arrow.mapper(work, table, FAMILIES)
    return [row for batch in run([log]) for row in batch.to_pylist()]


def test_an_offset_commit_is_flat_and_a_tombstone_keeps_its_key() -> None:
    commit, tombstone = mapped(*TABLES[0], log_of([(COMMIT_KEY, COMMIT), (COMMIT_KEY, None)]))
    assert (commit["group_id"], commit["topic"], commit["partition"]) == ("g", "t", 3)
    assert (commit["committed_offset"], commit["leader_epoch"], commit["metadata"]) == (7, 2, "m")
    assert (commit["commit_timestamp"], commit["expire_timestamp"], commit["topic_id"]) == (5, None, None)
    assert (commit["value_version"], commit["is_tombstone"], commit["record_name"]) == (4, False, "OFFSET_COMMIT")
    assert (tombstone["group_id"], tombstone["is_tombstone"], tombstone["value_version"]) == ("g", True, None)
    assert tombstone["committed_offset"] is None


def test_both_record_types_that_commit_share_the_columns() -> None:
    old = encode_value(0, 0, {"offset": 9, "metadata": "", "commitTimestamp": 1})
    rows = mapped(*TABLES[0], log_of([(encode_key(0, KEY), old), (COMMIT_KEY, COMMIT)]))
    assert [(row["record_type"], row["group_id"], row["committed_offset"], row["leader_epoch"]) for row in rows] == [
        (0, "g", 9, None),
        (1, "g", 7, 2),
    ]


@pytest.mark.parametrize(
    ("key", "value", "part", "position", "reason"),
    [
        (None, COMMIT, "key", None, "without a key"),
        (b"\x00", COMMIT, "key", 0, "type"),
        (b"\x7f\xff" + COMMIT_KEY[2:], COMMIT, "key", 0, "no record type 32767"),
        (b"\xff\xff" + COMMIT_KEY[2:], COMMIT, "key", 0, "no record type -1"),
        (COMMIT_KEY[:-1], COMMIT, "key", 8, "partition"),
        (COMMIT_KEY, b"\x00\x63" + COMMIT[2:], "value", 0, "version 99"),
        (COMMIT_KEY, COMMIT[:9], "value", 2, "offset"),
    ],
)
def test_a_faulty_record_is_set_aside_alone(
    key: bytes | None, value: bytes, part: str, position: int | None, reason: str
) -> None:
    log = log_of([(COMMIT_KEY, COMMIT), (key, value), (COMMIT_KEY, COMMIT)])
    commits, groups, faulty = (mapped(work, table, log) for work, table in TABLES)
    assert [row["log_offset"] for row in commits] == [0, 2]
    assert groups == []
    assert [(row["log_offset"], row["part"], row["key"], row["value"]) for row in faulty] == [(1, part, key, value)]
    assert reason in faulty[0]["reason"]
    assert faulty[0]["byte_position"] == position


def sample(topic: str) -> pa.RecordBatch:
    reader = SegmentsReader([str(SAMPLE_LOGS)], frozenset({topic}), topic, 1 << 30)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    return whole.filter(pa.compute.equal(whole["kind"], "record"))


@pytest.mark.parametrize("topic", [topic for topic in FAMILIES if topic != "__worker_offsets"])
def test_structs_of_the_sample_are_what_the_plain_decoder_says(topic: str) -> None:
    """Fields that a record leaves out are null in the struct, and only those."""
    log, family = sample(topic), FAMILIES[topic]
    table = CLUSTER_RECORDS if family is Family.METADATA else GROUP_RECORDS
    rows = mapped(decode_arrow.struct_records, table, log)
    structs = struct_columns(family)
    assert find_logs([str(SAMPLE_LOGS)], topics={topic})
    checked = 0
    for row in rows:
        if row["record_name"] is None:
            assert family is Family.METADATA
            continue
        plain = decode_record(row["key"], row["value"], family)
        column = row["record_name"].lower()
        assert (row["record_type"], structs[column].type) == (plain.type, plain.type)
        assert [name for name in structs if row[name] is not None] == [column]
        struct = row[column]
        assert without_nulls(struct.get("key") or {}) == without_nulls(plain.key)
        assert without_nulls(struct["value"]) == without_nulls(plain.value)
        assert row["is_tombstone"] == (plain.value is None)
        checked += 1
    assert checked > 0


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def test_every_record_of_the_sample_has_one_place() -> None:
    log = sample("__consumer_offsets")
    commits, groups, faulty = (mapped(work, table, log) for work, table in TABLES)
    assert len(commits) + len(groups) == log.num_rows
    assert len(commits) > 100
    assert len(groups) > 100
    assert faulty == []
