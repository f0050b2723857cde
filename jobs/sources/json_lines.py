"""JSON lines: records with base64 key and value, or the output of Kafka's console formatters.

Spark's ``to_json`` and most dump scripts write the first form: ``{"topic": .., "partition": .., "offset": ..,
"timestamp": .., "key": base64, "value": base64 or null}``. Unknown fields go to ``extra``. The field names of kcat
(``payload``, ``ts``, ``tstype``) are accepted too, but kcat itself writes bytes as text, which is not base64 and loses
bytes. Console formatters (Kafka 3.8 and later, ``{"key": {"type": .., "data": {..}}, "value": {"version": .., "data":
{..}}}``) print no positions: their rows have a line number, but no partition and no offset. Key and value are encoded
again, which gives the bytes of the log.
"""

from __future__ import annotations

import gzip
import json
import zlib
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from coordinator_core.errors import CoordinatorAuditError, InputError
from coordinator_core.records import GROUP_LOG, LOG_TOPICS, Family
from coordinator_core.wire.kafka_json import key_from_json, value_from_json
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs.sources.bounded_text import MOST_LINE_BYTES, json_value

KNOWN: Final = {"topic", "partition", "offset", "timestamp", "ts", "timestampType", "tstype", "key", "value", "payload"}
TIMESTAMP_TYPES: Final = {0: "CreateTime", 1: "LogAppendTime", "create": "CreateTime", "logappend": "LogAppendTime"}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[str, Any]
"""Some of the columns ``tables.log.DUMPED``; missing columns are null."""


def read(file: Path) -> Iterator[Row]:
    """Yield a row for each line of a file that is not blank. A line that is not a record becomes a damaged row.

    Raises:
        OSError: the file cannot be read.
    """
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as lines:
        number = 0
        while True:
            number += 1
            try:
                line = lines.readline(MOST_LINE_BYTES)
                whole = len(line) < MOST_LINE_BYTES or line.endswith(b"\n")
                while not whole:
                    whole = len(more := lines.readline(MOST_LINE_BYTES)) < MOST_LINE_BYTES or more.endswith(b"\n")
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                yield damaged(b"", f"the file is truncated or damaged after line {number - 1}: {error}", number)
                return
            if not line:
                return
            if line.strip():
                yield _row_or_damage(line, number)


def _row_or_damage(line: bytes, number: int) -> Row:
    try:
        if len(line) >= MOST_LINE_BYTES:
            raise InputError(f"the line has {MOST_LINE_BYTES} bytes or more")
        return {**parse(line), "place": number}
    except (CoordinatorAuditError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        cause = str(error) if isinstance(error, CoordinatorAuditError) else f"{type(error).__name__}: {error}"
        return damaged(line, f"line {number}: {cause}", number)


def damaged(data: bytes, cause: str, place: int) -> Row:
    """Return a row for bytes that are not a record."""
    return {"kind": "damaged", "value": data, "error": cause, "place": place}


def parse(line: bytes) -> Row:
    """Return one line as a row, without its ``place``.

    Raises:
        InputError: the line is not a JSON object, has no key, or has a value of the wrong form.
        EncodeError: a key or value printed by a console formatter does not fit its schema.
    """
    record = json_value(line)
    if not isinstance(record, dict):
        raise InputError(f"expected a JSON object, not a {type(record).__name__}")
    if "typeName" in record or "isControl" in record:
        raise InputError("output of coordinator-audit dump cannot be ingested: ingest the segments themselves")
    if "key" not in record:
        raise InputError("field 'key' is missing")
    if isinstance(record["key"], dict):
        return _printed(record)
    row: Row = {
        "log_topic": _topic(record),
        **_position(record),
        "timestamp_ms": _timestamp(record.get("timestamp", record.get("ts"))),
        "timestamp_type": _timestamp_type(record.get("timestampType", record.get("tstype"))),
        "kind": "record",
        "key": _base64(record, "key"),
        "value": _base64(record, "value" if "value" in record else "payload"),
        "outcome": "unknown",
    }
    extra = {name: value if isinstance(value, str) else json.dumps(value) for name, value in record.items()}
    row["extra"] = {name: value for name, value in extra.items() if name not in KNOWN} or None
    return row


def _printed(record: dict[str, Any]) -> Row:
    """Return a console formatter's line as a row. Kafka 3.8 and 3.9 print the key's type as its version, as text."""
    key, value = record["key"], record.get("value")
    fields = key["data"]
    record_type = int(key["type"] if "type" in key else key["version"])
    of_share_state = record_type in (0, 1) and "topicId" in fields
    family = Family.SHARE if of_share_state else Family.GROUP
    row: Row = {"log_topic": LOG_TOPICS[family], "kind": "record", "outcome": "unknown", "value": None}
    for part in filter(None, (key, value)):
        if not isinstance(part["data"], dict):
            raise InputError(f"the formatter printed {json.dumps(part['data'])} instead of the fields")
    row["key"] = encode_key(record_type, key_from_json(record_type, fields, family), family)
    if value is not None:
        version = int(value["version"])
        decoded = value_from_json(record_type, version, value["data"], family)
        row["value"] = encode_value(record_type, version, decoded, family)
    return row


def _topic(record: dict[str, Any]) -> str | None:
    topic = record.get("topic", GROUP_LOG)
    if topic is not None and not isinstance(topic, str):
        raise InputError(f"topic: expected a name, not {json.dumps(topic)[:40]}")
    return topic


def _position(record: dict[str, Any]) -> Row:
    """Return partition and offset, or neither: one without the other is useless."""
    partition, offset = _integer(record, "partition", 31), _integer(record, "offset", 63)
    return {} if partition is None or offset is None else {"log_partition": partition, "log_offset": offset}


def _base64(record: dict[str, Any], name: str) -> bytes | None:
    text = record.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise InputError(f"{name}: expected base64 text, not {json.dumps(text)[:40]}")
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise InputError(f"{name}: invalid base64: {error}") from error


def _integer(record: dict[str, Any], name: str, bits: int) -> int | None:
    value = record.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value < 1 << bits:
        raise InputError(f"{name}: invalid value {json.dumps(value)[:40]}")
    return int(value) if value >= 0 else None


def _timestamp(value: Any) -> int | None:
    """Return a time in ms since the epoch, from a number of ms or from ISO 8601 as Spark prints it."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError as error:
            raise InputError(f"timestamp: invalid time {value[:40]!r}: {error}") from error
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(milliseconds=1)
    return _integer({"timestamp": value}, "timestamp", 63)


def _timestamp_type(value: Any) -> str | None:
    return TIMESTAMP_TYPES.get(value, str(value)) if isinstance(value, int | str) else None
