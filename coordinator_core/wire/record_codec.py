"""One record at a time: bytes to plain values and back.

Coordinator logs: key and value each begin with an int16, the record type in the key and the version in the value
(KIP-848 and before). The metadata log has no keys; its values begin with three unsigned varints: frame version,
record type, version (KIP-631).
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from coordinator_core.errors import (
    DecodeError,
    EarlyAccessError,
    EncodeError,
    SchemaError,
    UnderflowError,
    UnknownTypeError,
    UnknownVersionError,
)
from coordinator_core.records import Family, Fields
from coordinator_core.wire.codec import writer
from coordinator_core.wire.generated_reader import fast_reader
from coordinator_core.wire.message_layout import layout
from coordinator_core.wire.primitives import INT16, Read, need, read_unsigned_varint, write_unsigned_varint
from coordinator_core.wire.schema import Message, RecordSchema, record_schemas

TRAILING_BYTES: Final = "_trailingBytes"
"""Key of the bytes that follow the last field; absent if there are none."""

METADATA_FRAME: Final = 1
"""The one frame version of metadata records."""

EARLY_ACCESS: Final = "records of 3.7's early access of KIP-848 cannot be decoded: no later release has their layout"


class DecodedRecord(NamedTuple):
    """Key and value of one record as plain values; ``value`` and its version are None for a tombstone.

    ``key`` is empty for the metadata log, whose records have none.
    """

    type: int
    type_name: str
    key: Fields
    value_version: int | None
    value: Fields | None


def record_schema(record_type: int, family: Family = Family.GROUP) -> RecordSchema:
    """Return the schema of a record type; raises SchemaError."""
    schema = record_schemas(family).get(record_type)
    if schema is None:
        raise SchemaError(f"{family.value} has no record type {record_type}")
    return schema


def key_type(data: bytes) -> int:
    """Return the record type in the first two bytes of a key; raises UnderflowError."""
    try:
        need(data, 0, 2)
    except UnderflowError as error:
        raise error.within("type", record_type="key") from None
    number: int = INT16.unpack_from(data)[0]
    return number


def decode_key(data: bytes, family: Family = Family.GROUP) -> tuple[int, Fields]:
    """Return a key as ``(record type, fields)``; raises UnknownTypeError or another DecodeError."""
    number = key_type(data)
    schema = record_schemas(family).get(number)
    if schema is None or schema.key is None:
        raise UnknownTypeError(f"no record type {number} in {family.value}", path="type", position=0)
    return number, _decode(schema.key, schema.key.versions.start, data, 2)


def decode_value(data: bytes, record_type: int, family: Family = Family.GROUP) -> tuple[int, Fields]:
    """Return a value as ``(version, fields)``; ``record_type`` is that of the key.

    Raises:
        UnknownVersionError: the version is newer than the schemas.
        DecodeError: the bytes do not decode.
        SchemaError: no schema has this record type.
    """
    message = record_schema(record_type, family).value
    try:
        need(data, 0, 2)
    except UnderflowError as error:
        raise error.within("version", record_type=message.name) from None
    return _decode_version(message, INT16.unpack_from(data)[0], data, 2)


def decode_metadata(data: bytes) -> tuple[int, int, Fields]:
    """Return a value of the metadata log as ``(record type, version, fields)``; raises DecodeError."""
    position = 0
    header = []
    for name in ("frame", "type", "version"):
        try:
            number, position = read_unsigned_varint(data, position)
        except DecodeError as error:
            raise error.within(name, record_type="metadata") from None
        header.append(number)
    frame, number, version = header
    if frame != METADATA_FRAME:
        raise DecodeError(f"frame version {frame}", record_type="metadata", path="frame", position=0)
    schema = record_schemas(Family.METADATA).get(number)
    if schema is None:
        raise UnknownTypeError(f"no metadata record type {number}", path="type", position=1)
    return number, *_decode_version(schema.value, version, data, position)


def decode_record(key: bytes | None, value: bytes | None, family: Family = Family.GROUP) -> DecodedRecord:
    """Return key and value of one record (``key`` is ignored for the metadata log); raises DecodeError."""
    if family is Family.METADATA:
        if value is None:
            raise DecodeError("a metadata record without a value", record_type="metadata")
        number, version, fields = decode_metadata(value)
        return DecodedRecord(number, record_schema(number, family).name, {}, version, fields)
    if key is None:
        raise DecodeError("a coordinator record without a key", record_type="key")
    number, key_fields = decode_key(key, family)
    name = record_schema(number, family).name
    if value is None:
        return DecodedRecord(number, name, key_fields, None, None)
    version, fields = decode_value(value, number, family)
    return DecodedRecord(number, name, key_fields, version, fields)


def encode_key(record_type: int, fields: Mapping[str, object], family: Family = Family.GROUP) -> bytes:
    """Return the bytes of a key; raises EncodeError, or SchemaError for an unknown type."""
    message = record_schema(record_type, family).key
    if message is None:
        raise SchemaError(f"records of {family.value} have no key")
    return _encode(message, message.versions.start, fields, bytearray(INT16.pack(record_type)))


def encode_value(record_type: int, version: int, fields: Mapping[str, object], family: Family = Family.GROUP) -> bytes:
    """Return the bytes of a value; raises EncodeError, or SchemaError for an unknown type or version."""
    message = record_schema(record_type, family).value
    out = bytearray()
    if family is Family.METADATA:
        for number in (METADATA_FRAME, record_type, version):
            write_unsigned_varint(out, number)
    else:
        out += INT16.pack(version)
    return _encode(message, version, fields, out)


def _decode_version(message: Message, version: int, data: bytes, position: int) -> tuple[int, Fields]:
    if version not in message.versions:
        known = f"{message.versions.start} to {message.versions.stop - 1}"
        raise UnknownVersionError(
            f"version {version}, known are {known}", record_type=message.name, path="version", position=0
        )
    return version, _decode(message, version, data, position)


@lru_cache(maxsize=1024)
def _reader(message: Message, version: int) -> Read:
    return fast_reader(layout(message, version))


def _decode(message: Message, version: int, data: bytes, position: int) -> Fields:
    fields: Fields
    try:
        fields, end = _reader(message, version)(data, position)
    except DecodeError as error:
        # No number tells the layouts of one version apart: another one counts only where it takes every byte.
        short = _decoded_whole(message.short, version, data, position)
        if short is not None:
            return short
        if _decoded_whole(message.early, version, data, position) is not None:
            raise EarlyAccessError(EARLY_ACCESS) from None
        raise error.within("", record_type=message.name) from None
    if end < len(data):
        fields[TRAILING_BYTES] = data[end:]
    return fields


def _decoded_whole(message: Message | None, version: int, data: bytes, position: int) -> Fields | None:
    """Return the fields of another layout, if there is one and the bytes are exactly that."""
    if message is None:
        return None
    fields: Fields
    try:
        fields, end = _reader(message, version)(data, position)
    except DecodeError:
        return None
    return fields if end == len(data) else None


def _encode(message: Message, version: int, fields: Mapping[str, Any], out: bytearray) -> bytes:
    trailing: bytes = fields.get(TRAILING_BYTES, b"")
    if trailing:
        fields = {name: value for name, value in fields.items() if name != TRAILING_BYTES}
    optional = [field.name for field in message.fields if field.optional]
    if message.short is not None and optional and not any(name in fields for name in optional):
        message = message.short
    try:
        writer(layout(message, version))(out, fields)
    except EncodeError as error:
        raise error.within(message.name) from None
    return bytes(out) + trailing
