"""The text of kafka-dump-log with a decoder, of releases 2.0 to 4.4: positions, batches, keys and values.

Until 3.8 it prints of a commit its offset and metadata, and of a classic group its generation and what each member was
assigned. What follows is filled in: the version of a commit from its size, its time from that of the record. All other
fields are ``NOT_PRINTED`` or empty.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from coordinator_core.errors import CoordinatorAuditError, InputError
from coordinator_core.records import Family, Fields, RecordType
from coordinator_core.wire.control import ABORT as ABORT_MARKER
from coordinator_core.wire.control import COMMIT as COMMIT_MARKER
from coordinator_core.wire.control import MARKERS
from coordinator_core.wire.kafka_text import NO_BLOB, NOT_PRINTED, printed_key, printed_value
from coordinator_core.wire.schema import record_schemas
from jobs.sources.bounded_text import json_value
from jobs.sources.printed.printed_rows import NOT_PRINTED_BYTES, PrintedPlace, Row, damaged, integer, place_of

FILE: Final = "Dumping "
QUOTES: Final = " \t>"
"""What stands before lines that are quoted in a letter or an issue."""
FIELD: Final = re.compile(r"(?:^|\s)(\w+): (\[[^\]]*\]|\S+)")
CONTROL: Final = {
    "LeaderChange": "LEADER_CHANGE",
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}
CONTENTS: Final = re.compile(rf"(?:^|\s)(key|payload|endTxnMarker|controlType|{'|'.join(CONTROL)}):{{1,2}} ?")
"""Where the fields of a line end, and what the tool made of the record begins."""

OFFSET: Final = re.compile(r"[0-9]{1,18}")

DELETED: Final = "<DELETE>"
PAYLOAD: Final = " payload: "
COMMIT: Final = re.compile(r"offset_commit::group=(.*),partition=(.*)-(\d+)", re.DOTALL)
GROUP: Final = "group_metadata::group="
COMMITTED: Final = re.compile(r"offset=(-?\d+)(?:,metadata=(.*))?", re.DOTALL)
ASSIGNED: Final = re.compile(r"(?:^|,)([^=,{}\[\]]+)=(?:\[([^\]]*)\](?::([0-9a-fA-F]*))?|([0-9a-fA-F]*))")

TOO_NEW: Final = re.compile(r"(?i)unknown(?: record type (\d+)|::version=(\d+))")
"""What releases from 3.9, and those before, print of a type of records that they do not know."""

COMMIT_BYTES: Final = {20: 2, 24: 3, 28: 1}
"""The version of a commit's value by its bytes without those of the metadata; versions 0 and 2 are alike."""


def rows(lines: Iterable[bytes], name: str) -> Iterator[Row]:
    """Yield the rows of a text, in its order. ``name``: the path of the text, which may name the log partition."""
    reader = _Reader(place_of(name))
    for number, line in enumerate(lines, 1):
        text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
        try:
            yield from reader.feed(text, number)
        except (CoordinatorAuditError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            cause = str(error) if isinstance(error, CoordinatorAuditError) else f"{type(error).__name__}: {error}"
            yield reader.damage(line, f"line {number}: {cause}", number)
    yield from reader.finish()


class _Reader:
    """Reads the lines of a text; ``place`` is the log partition unless a line names another one."""

    def __init__(self, place: PrintedPlace) -> None:
        self._named = self._place = place
        self._segment: str | None = None
        self._batch: Row = {}
        # Of the batch: how many records it has (None: not said), how many are printed, and the number of its line.
        self._due: int | None = None
        self._printed = self._line = 0

    def feed(self, line: str, number: int) -> Iterator[Row]:
        text = line.lstrip(QUOTES)
        if text.startswith(FILE):
            yield from self.finish()
            place = place_of(text)
            self._place = place if place.partition is not None else self._named
            self._segment = text.rpartition("/")[2].removeprefix(FILE)
            self._batch = {}
            return
        begin = CONTENTS.search(text)
        head = text if begin is None else text[: begin.start()]
        # In lower case, as older releases write keysize and isvalid where newer ones write keySize and isValid.
        fields = {found[1].lower(): found[2] for found in FIELD.finditer(head)}
        if "baseoffset" in fields:
            yield from self.finish()
            self._batch = self._batch_of(fields)
            self._due = integer(fields["count"], "count") if "count" in fields else None
            self._printed, self._line = 0, number
            if fields.get("isvalid") == "false":
                raise InputError("kafka-dump-log found this batch invalid")
        elif begin is not None and text.startswith("|") and "offset" not in fields:
            self._printed += 1
            raise InputError("a record without its offset: print it without --skip-record-metadata")
        elif "offset" in fields and ("keysize" in fields or begin is not None):
            self._printed += 1
            yield self._record(fields, "" if begin is None else text[begin.start() :].strip(), number)

    def finish(self) -> Iterator[Row]:
        """Yield the row of a batch that compaction has emptied, if the last one was such, or what is lacking of it."""
        due, self._due = self._due, None
        if due == 0:
            row = {**self._where(), **self._batch, "kind": "empty", "timestamp_ms": None}
            yield {**row, "log_offset": None}
        elif due is not None and due > self._printed:
            how = "" if self._printed else ": print it with --offsets-decoder"
            cause = f"line {self._line}: {due - self._printed} of {due} records of the batch are not there{how}"
            lost = {name: self._batch[name] for name in ("batch_base", "batch_last")}
            yield {**damaged(b"", cause, self._line), **self._where(), **({} if self._printed else lost)}

    def damage(self, line: bytes, cause: str, number: int) -> Row:
        row = {**damaged(line, cause, number), **self._where()}
        fields = {found[1].lower(): found[2] for found in FIELD.finditer(line.decode("utf-8", "replace"))}
        first, last = (fields.get(name, "") for name in ("baseoffset", "lastoffset"))
        at = fields.get("offset", "")
        if OFFSET.fullmatch(at):
            first = last = at
        if OFFSET.fullmatch(first) and OFFSET.fullmatch(last):
            row |= {"batch_base": int(first), "batch_last": int(last)}
        return row

    def _where(self) -> Row:
        return {
            "log_topic": self._place.topic or None,
            "log_partition": self._place.partition,
            "segment": self._segment,
        }

    def _batch_of(self, fields: dict[str, str]) -> Row:
        return {
            "batch_base": integer(fields["baseoffset"], "baseOffset"),
            "batch_last": integer(fields["lastoffset"], "lastOffset"),
            "producer_id": integer(fields["producerid"], "producerId"),
            "producer_epoch": integer(fields["producerepoch"], "producerEpoch"),
            "leader_epoch": integer(fields["partitionleaderepoch"], "partitionLeaderEpoch"),
            "is_transactional": fields["istransactional"] == "true",
            "is_control": fields.get("iscontrol") == "true",
            "compression": fields.get("compresscodec", "none").lower(),
            "place": integer(fields.get("position", 0), "position"),
            **_time_of(fields),
        }

    def _record(self, fields: dict[str, str], contents: str, number: int) -> Row:
        offset = integer(fields["offset"], "offset")
        batch = self._batch
        if not batch or not batch["batch_base"] <= offset <= batch["batch_last"]:
            # A part of a text may begin behind the line of its batch, or have that of another batch before it.
            batch = _batch_of_line(fields)
        batch = {"place": number, **batch}
        row = {**self._where(), **batch, "kind": "record", "log_offset": offset, **_time_of(fields)}
        if "sequence" in fields:
            row["sequence"] = integer(fields["sequence"], "sequence")
        name, _, rest = contents.partition(":")
        if name in ("endTxnMarker", "controlType") or name in CONTROL:
            return row | _control(name, rest)
        sizes = _Sizes(fields.get("keysize"), fields.get("valuesize"), row.get("timestamp_ms"))
        key, value = _key_and_value(contents, sizes, self._place.family)
        if missing := sizes.missing(key, value):
            row["extra"] = {NOT_PRINTED_BYTES: str(missing)}
        return row | {"key": key, "value": value}


class _Sizes:
    """The sizes of key and value in bytes (-1: there is none), and the record's time."""

    def __init__(self, key: str | None, value: str | None, time_ms: int | None) -> None:
        self.key, self.value = (None if size is None else integer(size, "size") for size in (key, value))
        self.time_ms = time_ms

    def missing(self, key: bytes | None, value: bytes | None) -> int:
        """Return by how many bytes these differ from what the record has."""
        pairs = ((self.key, key), (self.value, value))
        return sum(abs(size - (-1 if part is None else len(part))) for size, part in pairs if size is not None)


def _time_of(fields: dict[str, str]) -> Row:
    for name in ("CreateTime", "LogAppendTime", "NoTimestampType"):
        if name.lower() in fields:
            return {"timestamp_type": name, "timestamp_ms": integer(fields[name.lower()], name)}
    return {}


def _batch_of_line(fields: dict[str, str]) -> Row:
    """Return what a line says of its batch where it stands alone: all of it until release 2.1, nothing in a part."""
    if "producerid" not in fields:
        return {}
    return {
        "producer_id": integer(fields["producerid"], "producerId"),
        "producer_epoch": integer(fields.get("producerepoch", -1), "producerEpoch"),
        "is_transactional": fields.get("istransactional") == "true",
        "compression": fields.get("compresscodec", "none").lower(),
    }


def _control(name: str, rest: str) -> Row:
    said = rest.lstrip(": ").split()
    if name in CONTROL:
        return {"kind": "control", "control_type": CONTROL[name]}
    row: Row = {"kind": "control", "control_type": said[0].partition("(")[0] if said else "UNKNOWN"}
    if name == "endTxnMarker" and len(said) == 3:
        row["coordinator_epoch"] = integer(said[2], "coordinatorEpoch")
        if said[0] in MARKERS:  # version 0 of the marker's key and value
            row["key"] = bytes((0, 0, 0, COMMIT_MARKER if MARKERS[said[0]] else ABORT_MARKER))
            row["value"] = b"\0\0" + row["coordinator_epoch"].to_bytes(4, "big", signed=True)
    return row


def _key_and_value(contents: str, sizes: _Sizes, family: Family) -> tuple[bytes | None, bytes | None]:
    """Return the bytes of a record from what the tool made of it."""
    if not contents:
        raise InputError("there is neither key nor value: print it with --offsets-decoder")
    if family is Family.METADATA:
        return None, _metadata_value(contents)
    text = contents.removeprefix("key:").lstrip(" ")
    for begin, read in OLD.items():
        if text.startswith(begin):
            return read(text, sizes)
    if (newer := TOO_NEW.match(text)) is not None:
        raise InputError(
            f"the tool is older than records of type {newer[1] or newer[2]}: print it with kafka-dump-log of the "
            "broker's release"
        )
    if not text.startswith("{"):
        raise InputError(f"key and value are not decoded: print it with --offsets-decoder: {text[:100]}")
    # No separator stands between key and value that a key could not have within: only its JSON tells where it ends.
    key, end = json.JSONDecoder().raw_decode(text)
    payload = text[end:].strip().removeprefix(PAYLOAD.strip()).strip()
    record_type = integer(key["type"], "type")
    encoded = printed_key(record_type, _fields(key), family)
    if payload == DELETED:
        return encoded, None
    value = json_value(payload)
    return encoded, printed_value(record_type, integer(value["version"], "version"), _fields(value), family)


def _fields(part: Any) -> Fields:
    if not isinstance(part["data"], dict):
        raise InputError(f"the tool printed {str(part['data'])[:100]} instead of the fields")
    fields: Fields = part["data"]
    return fields


def _metadata_value(contents: str) -> bytes:
    value = json_value(contents.partition("payload:")[2].strip())
    types = {schema.name: number for number, schema in record_schemas(Family.METADATA).items()}
    if value["type"] not in types:
        raise InputError(f"unknown type {str(value['type'])[:60]!r}")
    return printed_value(types[value["type"]], integer(value["version"], "version"), _fields(value), Family.METADATA)


def _old_commit(text: str, sizes: _Sizes) -> tuple[bytes, bytes | None]:
    """Return a commit as releases until 3.8 print it: without its time, leader epoch and topic id."""
    key_text, _, payload = text.partition(PAYLOAD)
    key = COMMIT.fullmatch(key_text)
    if key is None:
        raise InputError("a commit without group and partition")
    place = {"group": key[1], "topic": key[2], "partition": int(key[3])}
    encoded = printed_key(RecordType.OFFSET_COMMIT, place)
    if payload.strip() == DELETED:
        return encoded, None
    said = COMMITTED.fullmatch(payload)
    if said is None:
        raise InputError("a commit without an offset")
    metadata = said[2] or ""
    size = -1 if sizes.value is None else sizes.value - len(metadata.encode("utf-8", "surrogatepass"))
    fields: Fields = {"offset": int(said[1]), "metadata": metadata, "commitTimestamp": sizes.time_ms, "leaderEpoch": -1}
    if sizes.time_ms is None:
        raise InputError("a commit without a time")
    version = COMMIT_BYTES.get(size, 3)
    if version == 1:  # its time of expiry is not printed
        version = 2
    return encoded, printed_value(RecordType.OFFSET_COMMIT, version, fields)


def _old_group(text: str, sizes: _Sizes) -> tuple[bytes, bytes | None]:
    """Return a classic group as releases until 3.8 print it: of each member its id and what it was assigned."""
    group_id, _, payload = text.removeprefix(GROUP).partition(PAYLOAD)
    encoded = printed_key(RecordType.GROUP_METADATA, {"group": group_id})
    if payload.strip() == DELETED:
        return encoded, None
    said = json_value(payload)
    is_consumer = said["protocolType"] == "consumer"
    members = [_old_member(found, is_consumer) for found in ASSIGNED.finditer(said["assignment"].strip("{}"))]
    fields = {
        "protocolType": said["protocolType"],
        "generation": said["generationId"],
        "protocol": said["protocol"],
        "leader": NOT_PRINTED if members else None,
        "currentStateTimestamp": -1,
        "members": members,
    }
    return encoded, printed_value(RecordType.GROUP_METADATA, 3, fields)


def _old_member(found: re.Match[str], is_consumer: bool) -> Fields:
    return {
        "memberId": found[1].strip(),
        "groupInstanceId": None,
        "clientId": NOT_PRINTED,
        "clientHost": NOT_PRINTED,
        "rebalanceTimeout": -1,
        "sessionTimeout": -1,
        "subscription": NO_BLOB,
        "assignment": _old_assignment(found[2], found[3]) if is_consumer else _hex(found[4] or ""),
    }


def _old_assignment(partitions: str | None, user_data: str | None) -> Fields:
    topics: dict[str, list[int]] = {}
    for partition in filter(None, (partitions or "").split(", ")):
        topic, _, number = partition.rpartition("-")
        topics.setdefault(topic, []).append(int(number))
    assigned = [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()]
    return {"assignedPartitions": assigned, "userData": _hex(user_data) if user_data else None}


def _hex(text: str) -> str:
    from coordinator_core.wire.kafka_json import bytes_to_text

    return bytes_to_text(bytes.fromhex(text))


OLD: Final[dict[str, Callable[[str, _Sizes], tuple[bytes, bytes | None]]]] = {
    "offset_commit::": _old_commit,
    GROUP: _old_group,
}
"""How records are printed until release 3.8, by how the text of a key begins."""
