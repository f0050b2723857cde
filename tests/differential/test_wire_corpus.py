"""Every key and value of the recorded logs and traces, against what Kafka's own classes say of them."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coordinator_core.errors import UnknownTypeError
from coordinator_core.records import Family
from coordinator_core.wire.arrow_types import message_type, to_arrow
from coordinator_core.wire.batch_decode import decode_keys, decode_values
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.kafka_json import key_to_json, value_to_json
from coordinator_core.wire.record_codec import DecodedRecord, decode_record, record_schema
from tests.core.wire.encoded import encode_record
from tests.shared_data import CORPUS, TRACES

Line = dict[str, Any]

TOPICS = {
    "__consumer_offsets": ("decoded.jsonl.gz", Family.GROUP),
    "__share_group_state": ("decoded_share_state.jsonl.gz", Family.SHARE),
}

LOGS = sorted(path for path in CORPUS.rglob("logs") if path.is_dir())


def lines_of(path: Path) -> Iterator[Line]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def log_records(folder: Path) -> Iterator[LogRecord]:
    for segment in sorted(folder.glob("*.log")):
        data = segment.read_bytes()
        for row in read_rows(lambda position, size, data=data: data[position : position + size], len(data)):
            if isinstance(row, LogRecord) and row.control is None:
                yield row


def as_json(record: DecodedRecord, family: Family) -> tuple[str, str]:
    value = record.value
    if value is not None and record.value_version is not None:
        value = value_to_json(record.type, record.value_version, value, family)
    return json.dumps(key_to_json(record.type, record.key, family)), json.dumps(value)


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("logs", LOGS, ids=lambda path: str(path.parent.relative_to(CORPUS)))
def test_a_log_decodes_as_kafka_says_and_encodes_as_it_was(logs: Path, topic: str) -> None:
    name, family = TOPICS[topic]
    dump = logs.parent / name
    expected = {
        (line["partition"], line["offset"]): line
        for line in (lines_of(dump) if dump.exists() else ())
        if "type" in line and line["type"] is not None
    }
    compared = 0
    for folder in logs.glob(f"{topic}-*"):
        for row in log_records(folder):
            record = decode_record(row.key, row.value, family)
            assert encode_record(record, family) == (row.key, row.value)
            if expected:
                line = expected[int(folder.name.rpartition("-")[2]), row.offset]
                assert (record.type, record.type_name, record.value_version) == (
                    line["type"],
                    line["typeName"],
                    line["valueVersion"],
                )
                assert as_json(record, family) == (json.dumps(line["key"]), json.dumps(line["value"]))
                compared += 1
    assert compared == len(expected)


@pytest.mark.parametrize("logs", LOGS, ids=lambda path: str(path.parent.relative_to(CORPUS)))
def test_the_metadata_log_encodes_as_it_was(logs: Path) -> None:
    decoded = 0
    for folder in logs.glob("__cluster_metadata-*"):
        for row in log_records(folder):
            try:
                record = decode_record(None, row.value, Family.METADATA)
            except UnknownTypeError:  # record types of no concern to groups have no schema
                continue
            assert encode_record(record, Family.METADATA) == (None, row.value)
            decoded += 1
    assert decoded


def traced_records(path: Path) -> Iterator[Line]:
    for line in lines_of(path):
        for step in (line, *line.get("timers", ()), *line.get("tasks", ())):
            yield from step.get("records") or ()


@pytest.mark.parametrize("name", sorted(path.name for path in TRACES.glob("*.jsonl.gz")))
def test_traced_records_decode_as_kafka_says_and_encode_as_they_were(name: str) -> None:
    compared = 0
    for traced in traced_records(TRACES / name):
        key, value = bytes.fromhex(traced["key_hex"]), traced["value_hex"] and bytes.fromhex(traced["value_hex"])
        record = decode_record(key, value)
        assert encode_record(record) == (key, value)
        assert (record.type, record.type_name, record.value_version) == (
            traced["key_type"],
            traced["name"],
            traced["value_version"],
        )
        assert as_json(record, Family.GROUP) == (json.dumps(traced["key"]), json.dumps(traced["value"]))
        compared += 1
    assert compared


@pytest.mark.parametrize("logs", LOGS, ids=lambda path: str(path.parent.relative_to(CORPUS)))
def test_columns_hold_what_the_plain_decoder_says(logs: Path) -> None:
    rows = [row for folder in logs.glob("__consumer_offsets-*") for row in log_records(folder)]
    plain = [decode_record(row.key, row.value) for row in rows]
    keys = decode_keys(pa.array([row.key for row in rows], pa.binary()))
    values = decode_values(pa.array([row.value for row in rows], pa.binary()), keys.numbers)
    assert not keys.errors
    assert not values.errors
    assert keys.numbers.tolist() == [record.type for record in plain]
    for number, group in keys.groups.items():
        message = record_schema(number).key
        assert message is not None
        assert group.values.equals(to_arrow([plain[row].key for row in group.rows.tolist()], message_type(message)))
    decoded = 0
    for number, group in values.groups.items():
        found = [plain[row].value or {} for row in group.rows.tolist()]
        assert group.values.equals(to_arrow(found, message_type(record_schema(number).value)))
        decoded += len(found)
    assert decoded == sum(record.value is not None for record in plain)
