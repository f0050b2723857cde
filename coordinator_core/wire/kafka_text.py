"""The text that Kafka's own tools print for a log: its console formatters, and kafka-dump-log with a decoder; and back.

``formatted`` is the line of ``kafka-console-consumer --formatter ...MessageFormatter`` for one record; ``batch_line``
and ``record_line`` are those of ``kafka-dump-log`` with ``--offsets-decoder``, ``--share-group-state-decoder`` or
``--cluster-metadata-decoder``, which expands the subscriptions and assignments inside classic groups. ``printed_key``
and ``printed_value`` make keys and values from the JSON in such lines.
"""

from collections.abc import Mapping
from typing import Final

from coordinator_core.errors import DecodeError, EncodeError, UnknownTypeError
from coordinator_core.records import Family, Fields, RecordType
from coordinator_core.wire.batch_format import TIMESTAMP_TYPES, BatchHeader
from coordinator_core.wire.batch_records import LogRecord, sequence_of
from coordinator_core.wire.control import ControlRecord, kraft_fields
from coordinator_core.wire.embedded import AnyBlob, decode_blob, encode_blob
from coordinator_core.wire.kafka_json import (
    blob_from_json,
    bytes_to_text,
    compact_text,
    key_from_json,
    key_to_json,
    value_from_json,
    value_to_json,
)
from coordinator_core.wire.record_codec import (
    TRAILING_BYTES,
    DecodedRecord,
    decode_record,
    encode_key,
    encode_value,
    key_type,
)
from coordinator_core.wire.schema import embedded_schemas

FORMATTERS = {
    "offsets": (Family.GROUP, frozenset({0, 1})),
    "groupmetadata": (Family.GROUP, frozenset({2})),
    "sharegroup": (Family.GROUP, frozenset(range(10, 16))),
    "sharestate": (Family.SHARE, frozenset({0, 1})),
}
"""Kafka's console formatters for coordinator logs: which log they read and which record types they print."""

KRAFT = {
    "LEADER_CHANGE": "LeaderChange:",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}
"""How kafka-dump-log calls the control records of the metadata log."""

BLOBS = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}


def formatted(record: LogRecord, types: frozenset[int], family: Family) -> str | None:
    """Return a console formatter's line; None for records that it skips: control records and other types.

    Raises DecodeError where the formatter fails too.
    """
    if record.batch.is_control or record.key is None or key_type(record.key) not in types:
        return None
    decoded = decode_record(record.key, record.value, family)
    key = {"type": decoded.type, "data": key_to_json(decoded.type, decoded.key, family)}
    if decoded.value is None or decoded.value_version is None:
        return compact_text({"key": key, "value": None})
    data = value_to_json(decoded.type, decoded.value_version, decoded.value, family)
    return compact_text({"key": key, "value": {"version": decoded.value_version, "data": data}})


def batch_line(batch: BatchHeader, *, valid: bool = True) -> str:
    """Return kafka-dump-log's line for a batch, or for a message of the old formats."""
    if batch.magic >= 2:
        horizon = batch.delete_horizon_ms
        last_sequence = sequence_of(batch.base_sequence, batch.last_offset - batch.base_offset)
        who = (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count}"
            f" baseSequence: {batch.base_sequence} lastSequence: {last_sequence} producerId: {batch.producer_id}"
            f" producerEpoch: {batch.producer_epoch} partitionLeaderEpoch: {batch.leader_epoch}"
            f" isTransactional: {_flag(batch.is_transactional)} isControl: {_flag(batch.is_control)}"
            f" deleteHorizonMs: OptionalLong{'.empty' if horizon is None else f'[{horizon}]'}"
        )
    else:
        who = f"offset: {batch.last_offset}"
    return (
        f"{who} position: {batch.position} {TIMESTAMP_TYPES[batch.timestamp_type]}: {batch.max_timestamp}"
        f" size: {batch.size} magic: {batch.magic} compresscodec: {batch.compression} crc: {batch.crc}"
        f" isvalid: {_flag(valid)}"
    )


def record_line(record: LogRecord, family: Family) -> str:
    """Return kafka-dump-log's line for a record."""
    batch = record.batch
    key_size, value_size = (-1 if field is None else len(field) for field in (record.key, record.value))
    line = (
        f"| offset: {record.offset} {TIMESTAMP_TYPES[batch.timestamp_type]}: {record.timestamp}"
        f" keySize: {key_size} valueSize: {value_size}"
    )
    if batch.magic >= 2:
        line += f" sequence: {record.sequence} headerKeys: [{','.join(key for key, _ in record.headers)}]"
    else:
        line += f" isValid: true crc: {batch.crc}"
    return line + (_control(record) if batch.is_control else _contents(record, family))


def _control(record: LogRecord) -> str:
    control = record.control
    if control is None:
        return " controlType: UNKNOWN"
    if control.coordinator_epoch is None:
        return _kraft(record.value, control)
    return f" endTxnMarker: {control.name} coordinatorEpoch: {control.coordinator_epoch}"


def _kraft(value: bytes | None, control: ControlRecord) -> str:
    try:
        fields = kraft_fields(control.type, value)
    except DecodeError as error:
        return f" controlType: {control.name}({control.type}) {error}"
    if fields is None:
        return f" controlType: {control.name}({control.type})"
    return f" {KRAFT[control.name]} {compact_text(fields)}"


def _contents(record: LogRecord, family: Family) -> str:
    try:
        decoded = decode_record(record.key, record.value, family)
    except UnknownTypeError:
        number = "" if record.key is None else f" {key_type(record.key)}"
        return f" key: Unknown record type{number} at offset {record.offset}, skipping."
    except DecodeError as error:
        return f" key: Error at offset {record.offset}, skipping. {error}"
    version, value = decoded.value_version, decoded.value
    if version is None or value is None:
        return f" key: {_key(decoded, family)} payload: <DELETE>"
    data = value_to_json(decoded.type, version, value, family)
    if family is Family.METADATA:
        return f" payload: {compact_text({'type': decoded.type_name, 'version': version, 'data': data})}"
    if family is Family.GROUP and decoded.type == RecordType.GROUP_METADATA and value["protocolType"] == "consumer":
        for shown, member in zip(data["members"], value["members"], strict=True):
            shown.update({name: _expanded(message, member[name]) for name, message in BLOBS.items()})
    return f" key: {_key(decoded, family)} payload: {compact_text({'version': str(version), 'data': data})}"


def _key(decoded: DecodedRecord, family: Family) -> str:
    return compact_text({"type": str(decoded.type), "data": key_to_json(decoded.type, decoded.key, family)})


def _expanded(message: str, data: bytes | None) -> object:
    """A blob as JSON where Kafka reads it, else its bytes in base64."""
    if not data:
        return None if data is None else ""
    try:
        blob: AnyBlob = decode_blob(message, data)
    except DecodeError:
        return _json(data)
    if blob.is_short:
        return _json(data)
    return {name: _json(value) for name, value in blob.fields.items() if name != TRAILING_BYTES}


def _json(value: object) -> object:
    if isinstance(value, bytes):
        return bytes_to_text(value)
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, list) else value


def _flag(value: bool) -> str:
    return "true" if value else "false"


NOT_PRINTED: Final = "(not printed)"
"""Instead of a text that a record must have, and that the tool did not print."""

NO_BLOB: Final = bytes_to_text(b"\xff\xff" + NOT_PRINTED.encode())
"""Instead of a blob that the tool did not print: of version -1, so that nothing is read from it."""


def printed_key(record_type: int, fields: Fields, family: Family = Family.GROUP) -> bytes:
    """Return the bytes of a key from Kafka's JSON.

    Raises:
        EncodeError: the fields do not fit the schema.
        SchemaError: there is no such type.
    """
    return encode_key(record_type, key_from_json(record_type, fields, family), family)


def printed_value(record_type: int, version: int, fields: Fields, family: Family = Family.GROUP) -> bytes:
    """Return the bytes of a value from Kafka's JSON, in which kafka-dump-log takes the blobs of classic groups apart.

    Raises:
        EncodeError: the fields do not fit the schema.
        SchemaError: there is no such type or version.
    """
    if family is Family.GROUP and record_type == RecordType.GROUP_METADATA and isinstance(fields.get("members"), list):
        fields = {**fields, "members": [_with_blobs(member) for member in fields["members"]]}
    return encode_value(record_type, version, value_from_json(record_type, version, fields, family), family)


def _with_blobs(member: Fields) -> Fields:
    """Return a classic member with its blobs as bytes.

    The text does not name their version: it is the first one that has all fields of the subscription, and clients write
    both blobs in the newest version that they know.
    """
    if not isinstance(member, dict):
        raise EncodeError(f"members: expected fields, not {member!r}")
    printed = {name: member[name] for name in BLOBS if isinstance(member.get(name), dict)}
    version = max((_version_of(BLOBS[name], fields) for name, fields in printed.items()), default=0)
    packed = {
        name: bytes_to_text(encode_blob(BLOBS[name], version, blob_from_json(BLOBS[name], version, fields)))
        for name, fields in printed.items()
    }
    return {**member, **packed}


def _version_of(message: str, fields: Mapping[str, object]) -> int:
    known = embedded_schemas()[message].message
    return max((field.versions.start for field in known.fields if field.name in fields), default=0)
