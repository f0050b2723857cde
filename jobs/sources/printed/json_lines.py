"""Records as JSON objects: with base64 key and value, as sinks write them, or as Kafka's console formatters do.

Spark's ``to_json`` and most dump scripts write the first form: ``{"topic": .., "partition": .., "offset": ..,
"timestamp": .., "key": base64, "value": base64 or null}``. Unknown fields go to ``extra``. Sinks (of S3, of GCS) keep
the position in ``metadata``, or topic and partition in the file's name. The field names of kcat (``payload``, ``ts``,
``tstype``) are accepted too, but kcat itself writes bytes as text, which is not base64 and loses bytes. Console
formatters (Kafka 3.8 and later, ``{"key": {"type": .., "data": {..}}, "value": {"version": .., "data": {..}}}``) print
no positions; 3.8 to 4.0 print no line ends either. Key and value are encoded again, which gives the bytes of the log.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import BufferedReader
from math import isfinite
from pathlib import Path
from typing import Final

from coordinator_core.errors import CoordinatorAuditError, InputError
from coordinator_core.records import GROUP_LOG, LOG_TOPICS, Family
from coordinator_core.wire.kafka_text import printed_key, printed_value
from jobs.sources.bounded_text import MOST_LINE_BYTES, PIECE, json_value
from jobs.sources.file_kinds import FORMATTERS
from jobs.sources.packed import DAMAGED, opened
from jobs.sources.printed.printed_rows import (
    PrintedPlace,
    Row,
    damaged,
    from_base64,
    integer,
    known_names,
    millis,
    place_of,
)

KNOWN: Final = {"topic", "partition", "offset", "timestamp", "ts", "timestampType", "tstype", "key", "value", "payload"}
TIMESTAMP_TYPES: Final = {0: "CreateTime", 1: "LogAppendTime", "create": "CreateTime", "logappend": "LogAppendTime"}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

POSITIONS: Final = ("topic", "partition", "offset", "timestamp")
"""What sinks write into ``metadata``."""

AROUND: Final = b" \t\r\n,[]"
"""What may stand before and behind an object that is an element of a list."""

WHOLE: Final = re.compile(r"-?[0-9]{1,19}")

END: Final = re.compile(rb'\n|(?<=\})(?=\{"key":)')
"""The end of a record: of its line, or the beginning of the next one. No text within JSON has such quotes."""


def read(file: str | Path) -> Iterator[Row]:
    """Yield a row for each line of a file that is not blank. A line that is not a record becomes a damaged row.

    Raises:
        OSError: the file cannot be read.
    """
    named = place_of(str(file))
    number = 0
    with opened(file) as stream:
        try:
            for number, line in enumerate(_objects(_texts(stream)), 1):
                yield from (_row_or_damage(text, number, named) for text in _values(line))
        except (*DAMAGED, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            yield damaged(b"", f"the file is truncated or damaged after line {number}: {error}", number + 1)


def _texts(stream: BufferedReader) -> Iterator[bytes]:
    """Yield each line, or each record where several are on a line; of one that is too long only the beginning."""
    rest, skips = b"", False
    while piece := stream.read1(PIECE):
        *whole, rest = END.split(rest + piece)
        if whole and skips:
            whole, skips = whole[1:], False
        yield from whole
        if skips:
            rest = b""
        elif len(rest) >= MOST_LINE_BYTES:
            yield rest[:MOST_LINE_BYTES]
            rest, skips = b"", True
    if rest:
        yield rest


def _objects(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield each line, and those of an object that is printed over many lines as one: it ends at the brace that stands
    as far in as its first one. Where another object begins there before, its lines are given one by one.
    """
    parts: list[bytes] = []
    size, inset = 0, b""
    for line in lines:
        if parts and line.startswith(inset + b"{"):
            yield from parts
            parts = []
        if not parts and line.strip(AROUND) != b"{":
            yield line
            continue
        if not parts:
            size, inset = 0, line[: line.index(b"{")].lstrip(b"[,")
        parts.append(line)
        size += len(line) + 1
        if line.startswith(inset + b"}") or size >= MOST_LINE_BYTES:
            yield b"\n".join(parts)[:MOST_LINE_BYTES]
            parts = []
    yield from parts


def _values(line: bytes) -> Iterator[bytes]:
    """Yield the objects of a line: it may be part of a list, or the whole list."""
    text = line.strip(AROUND)
    if not text and len(line.strip()) > len(b"[]"):
        text = line  # more than the beginning or the end of a list: it is damage, and not lost
    while text:
        end = len(text)
        if text.find(b"}", 0, -1) >= 0 and len(text) < MOST_LINE_BYTES:
            end = _end_of_value(text)
        yield text[:end]
        text = text[end:].lstrip(AROUND)


def _end_of_value(text: bytes) -> int:
    """Return where the first of several objects ends; where that is not known, or no object follows, all is one."""
    given = text.decode("utf-8", "surrogateescape")
    try:
        json.loads(given)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and given[error.pos :].lstrip(AROUND.decode()).startswith("{"):
            # The error counts characters, and lines are cut in bytes.
            return len(given[: error.pos].encode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        pass
    return len(text)


def _row_or_damage(line: bytes, number: int, named: PrintedPlace) -> Row:
    try:
        if len(line) >= MOST_LINE_BYTES:
            raise InputError(f"the line has {MOST_LINE_BYTES} bytes or more")
        return {**parse(line, named), "place": number}
    except (CoordinatorAuditError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        cause = str(error) if isinstance(error, CoordinatorAuditError) else f"{type(error).__name__}: {error}"
        return damaged(line, f"line {number}: {cause}", number)


def parse(line: bytes, named: PrintedPlace = PrintedPlace()) -> Row:  # noqa: B008 (a NamedTuple is immutable)
    """Return one line as a row, without its ``place``; ``named``: the log partition in the file's name.

    Raises:
        InputError: the line is not a JSON object, has no key, or has a value of the wrong form.
        EncodeError: a key or value printed by a console formatter does not fit its schema.
    """
    record = json_value(line)
    if not isinstance(record, dict):
        raise InputError(f"expected a JSON object, not a {type(record).__name__}")
    if "typeName" in record or "isControl" in record:
        raise InputError("output of coordinator-audit dump cannot be ingested: ingest the segments themselves")
    return row_of(record, named)


def row_of(record: dict[str, object], named: PrintedPlace = PrintedPlace()) -> Row:  # noqa: B008
    """Return a record with these fields as a row; bytes are base64, or bytes. Raises as ``parse``."""
    if "key" not in record:
        record = dict(zip(known_names(record), record.values(), strict=True))
    if "key" not in record:
        raise InputError(f"field 'key' is missing (fields: {', '.join(record)[:80] or 'none'})")
    if isinstance(record["key"], dict):
        return _printed(record)
    record = _with_position(record, named)
    row: Row = {
        "log_topic": _topic(record),
        **_position(record),
        "timestamp_ms": time_ms(record.get("timestamp", record.get("ts"))),
        "timestamp_type": _timestamp_type(record.get("timestampType", record.get("tstype"))),
        "kind": "record",
        "key": _bytes(record, "key"),
        "value": _bytes(record, "value" if "value" in record else "payload"),
        "outcome": "unknown",
    }
    others = {name: value for name, value in record.items() if name not in KNOWN and value not in (None, {}, [])}
    row["extra"] = {name: _as_text(value) for name, value in others.items()} or None
    return row


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _with_position(record: dict[str, object], named: PrintedPlace) -> dict[str, object]:
    """Return a record of a sink with its position: that in ``metadata``, and the partition in the file's name."""
    metadata = record.get("metadata")
    if isinstance(metadata, Mapping):
        kept = {name: value for name, value in metadata.items() if name not in POSITIONS}
        record = {**record, **{name: metadata[name] for name in POSITIONS if name in metadata}, "metadata": kept}
    if record.get("topic") is None and named.topic:
        record = {**record, "topic": named.topic}
    if (
        record.get("partition") is None
        and record.get("offset") is not None
        and named.topic in ("", record.get("topic"))
    ):
        record = {**record, "partition": named.partition}
    return record


def _printed(record: Row) -> Row:
    """Return a console formatter's line as a row. Kafka 3.8 and 3.9 print the key's type as its version, as text."""
    key, value = record["key"], record.get("value")
    fields = key["data"]
    record_type = integer(key["type"] if "type" in key else key["version"], "type")
    # Types 0 and 1 are commits in one log and share state in another: only share partitions name topics by id.
    of_share_state = record_type in (0, 1) and "topicId" in fields
    family = Family.SHARE if of_share_state else Family.GROUP
    row: Row = {"log_topic": LOG_TOPICS[family], "kind": "record", "outcome": "unknown", "value": None}
    for part in filter(None, (key, value)):
        if not isinstance(part["data"], dict):
            raise InputError(f"the formatter printed {json.dumps(part['data'])} instead of the fields")
    row["key"] = printed_key(record_type, fields, family)
    if value is not None:
        row["value"] = printed_value(record_type, integer(value["version"], "version"), value["data"], family)
    return row


def _topic(record: dict[str, object]) -> str | None:
    topic = record.get("topic", GROUP_LOG)
    if topic is not None and not isinstance(topic, str):
        raise InputError(f"topic: expected a name, not {json.dumps(topic)[:40]}")
    return topic


def _position(record: dict[str, object]) -> Row:
    """Return partition and offset, or neither: one without the other is useless."""
    partition, offset = _integer(record, "partition", 31), _integer(record, "offset", 63)
    return {} if partition is None or offset is None else {"log_partition": partition, "log_offset": offset}


def _bytes(record: dict[str, object], name: str) -> bytes | None:
    text = record.get(name)
    if text is None or isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise InputError(f"{name}: expected base64 text, not {json.dumps(text)[:40]}")
    try:
        # What has no nulls writes a tombstone as an empty text: no value of these logs is empty.
        return from_base64(text, name) or None
    except InputError as error:
        if "tstype" in record:
            raise InputError(f"{name}: kcat prints bytes as text, which loses some: {FORMATTERS}") from error
        raise


def _integer(record: dict[str, object], name: str, bits: int) -> int | None:
    value = record.get(name)
    if value is None:
        return None
    number = _whole(value)
    if number is None or not -1 <= number < 1 << bits:
        raise InputError(f"{name}: invalid value {json.dumps(value, default=str)[:40]}")
    return number if number >= 0 else None


def _whole(value: object) -> int | None:
    """Return a whole number, also one that is written as text, as others do not keep 64 bits, or with a fraction of 0;
    None: it is none.
    """
    if isinstance(value, str):
        return int(value) if WHOLE.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not isfinite(value):
        return None
    return int(value) if value == int(value) else None


def time_ms(value: object) -> int | None:
    """Return a time in ms since the epoch, from a number (``millis``), a time, or ISO 8601 as Spark prints it; 0 and
    less stand for none.
    """
    if isinstance(value, str) and not WHOLE.fullmatch(value):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError as error:
            raise InputError(f"timestamp: invalid time {value[:40]!r}: {error}") from error
    elif isinstance(value, datetime):
        moment = value
    else:
        number = _integer({"timestamp": value}, "timestamp", 63)
        return millis(number) if number else None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(milliseconds=1)


def _timestamp_type(value: object) -> str | None:
    return TIMESTAMP_TYPES.get(value, str(value)) if isinstance(value, int | str) else None
