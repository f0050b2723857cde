"""Decoding of Arrow batches: the same as the plain decoder, and every row in one output or among the faulty."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from coordinator_core.records import Family
from coordinator_core.wire.codec import UNKNOWN_TAGGED_FIELDS
from coordinator_core.wire.record_codec import decode_record, encode_key, encode_value
from jobs.pipeline import decode_arrow
from jobs.sources.files import FAMILIES, find_logs
from jobs.sources.segments import SegmentsReader
from jobs.tables.log import LOG_RECORDS, QUARANTINE
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS, struct_columns
from jobs.tables.table import Table
from tests.jobs.conftest import SAMPLE_LOGS

KEY = {"group": "g", "topic": "t", "partition": 3}
COMMIT = encode_value(1, 4, {"offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 5})
COMMIT_KEY = encode_key(1, KEY)

TABLES = (OFFSET_COMMITS, GROUP_RECORDS, QUARANTINE)


def log_of(rows: Sequence[tuple[bytes | None, bytes | None]], topic: str = "__consumer_offsets") -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "log_topic": [topic] * len(rows),
            "log_offset": list(range(len(rows))),
            "kind": ["record"] * len(rows),
            "place": pa.nulls(len(rows), pa.int64()),
            "error": pa.nulls(len(rows), pa.string()),
            "key": pa.array([key for key, _ in rows], pa.binary()),
            "value": pa.array([value for _, value in rows], pa.binary()),
        }
    )


def rows_of(table: Table, log: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for of, batch in decode_arrow.typed_rows(log) if of is table for row in batch.to_pylist()]


def test_an_offset_commit_is_flat_and_a_tombstone_keeps_its_key() -> None:
    commit, tombstone = rows_of(OFFSET_COMMITS, log_of([(COMMIT_KEY, COMMIT), (COMMIT_KEY, None)]))
    assert (commit["group_id"], commit["topic"], commit["partition"]) == ("g", "t", 3)
    assert (commit["committed_offset"], commit["leader_epoch"], commit["metadata"]) == (7, 2, "m")
    assert (commit["commit_timestamp"], commit["expire_timestamp"], commit["topic_id"]) == (5, None, None)
    assert (commit["value_version"], commit["is_tombstone"], commit["record_name"]) == (4, False, "OFFSET_COMMIT")
    assert (tombstone["group_id"], tombstone["is_tombstone"], tombstone["value_version"]) == ("g", True, None)
    assert tombstone["committed_offset"] is None


def test_both_record_types_that_commit_share_the_columns() -> None:
    old = encode_value(0, 0, {"offset": 9, "metadata": "", "commitTimestamp": 1})
    rows = rows_of(OFFSET_COMMITS, log_of([(encode_key(0, KEY), old), (COMMIT_KEY, COMMIT)]))
    assert [(row["record_type"], row["group_id"], row["committed_offset"], row["leader_epoch"]) for row in rows] == [
        (0, "g", 9, None),
        (1, "g", 7, 2),
    ]


@pytest.mark.parametrize(
    ("key", "value", "part", "position", "reason"),
    [
        (None, COMMIT, "key", None, "without a key"),
        (b"\x00", COMMIT, "key", 0, "type"),
        (b"\x7f\xff" + COMMIT_KEY[2:], COMMIT, "type", 0, "no record type 32767"),
        (b"\xff\xff" + COMMIT_KEY[2:], COMMIT, "type", 0, "no record type -1"),
        (COMMIT_KEY[:-1], COMMIT, "key", 8, "partition"),
        (COMMIT_KEY, b"\x00\x63" + COMMIT[2:], "value", 0, "version 99"),
        (COMMIT_KEY, COMMIT[:9], "value", 2, "offset"),
    ],
)
def test_a_faulty_record_is_set_aside_alone(
    key: bytes | None, value: bytes, part: str, position: int | None, reason: str
) -> None:
    log = log_of([(COMMIT_KEY, COMMIT), (key, value), (COMMIT_KEY, COMMIT)])
    commits, groups, faulty = (rows_of(table, log) for table in TABLES)
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
    rows = rows_of(table, log)
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
    commits, groups, faulty = (rows_of(table, log) for table in TABLES)
    assert len(commits) + len(groups) == log.num_rows
    assert len(commits) > 100
    assert len(groups) > 100
    assert faulty == []


@pytest.mark.parametrize("topic", [topic for topic in FAMILIES if topic != "__worker_offsets"])
def test_no_bytes_are_kept_twice_of_the_sample(topic: str) -> None:
    log = sample(topic)
    kept = rows_of(LOG_RECORDS, log)
    assert [row["log_offset"] for row in kept] == log.column("log_offset").to_pylist()
    assert all(row["key"] is row["value"] is None for row in kept)


def test_bytes_that_no_row_gives_back_are_kept() -> None:
    """A length in two bytes where one would do, a version that no schema has, and what is not a record."""
    longer = COMMIT.replace(b"\x02m", b"\x82\x00m")
    newer = b"\x00\x63" + COMMIT[2:]
    pairs = [(COMMIT_KEY, COMMIT), (COMMIT_KEY, longer), (COMMIT_KEY, newer), (COMMIT_KEY, None), (b"\x00\x00", b"x")]
    log = log_of(pairs)
    kinds = pa.array(["record"] * 4 + ["damaged"])
    log = log.set_column(log.schema.names.index("kind"), "kind", kinds)
    kept = {row["log_offset"]: (row["key"], row["value"]) for row in rows_of(LOG_RECORDS, log)}
    assert kept == {0: (None, None), 1: pairs[1], 2: pairs[2], 3: (None, None), 4: pairs[4]}
    commits, groups, faulty = (rows_of(table, log) for table in TABLES)
    assert [row["metadata"] for row in commits] == ["m", "m", None]
    assert groups == []
    assert sorted((row["log_offset"], row["part"]) for row in faulty) == [(2, "value"), (4, "damaged")]


def test_records_of_a_newer_broker_leave_their_neighbours_as_they_are() -> None:
    """Two releases in turn: what the newer one adds is kept, and no field of it ends in a row of the older one."""
    plain = {"epoch": 3, "metadataHash": 4}
    newer = {**plain, "validatedTopologyEpoch": 9, UNKNOWN_TAGGED_FIELDS: {7: b"", 8: b""}}
    key, values = encode_key(17, {"groupId": "g"}), [encode_value(17, 0, each) for each in (plain, newer)]
    log = log_of([(key, values[row % 2]) for row in range(200)])
    found = [row["streams_group_metadata"]["value"] for row in rows_of(GROUP_RECORDS, log)]
    assert [row["validatedTopologyEpoch"] for row in found] == [None, 9] * 100
    assert [row["_unknownTaggedFields"] is None for row in found] == [True, False] * 100
    assert rows_of(QUARANTINE, log) == []
