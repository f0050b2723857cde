"""The blobs inside classic groups: subscriptions and assignments, and the assignor's own data inside those.

The group's protocol type (``consumer``, ``connect``) and the protocol that its members agreed on (the assignor's name)
say which blob it is. A newer version of a consumer or Connect blob is read as far as it is known, and the rest is kept
as trailing bytes, as Kafka's own clients do.
"""

from functools import cache, lru_cache
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, overload

import typing_extensions

from coordinator_core.errors import DecodeError, EncodeError, SchemaError, UnknownVersionError
from coordinator_core.record_fields.embedded import (
    ConnectProtocolAssignment,
    ConnectProtocolMetadata,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from coordinator_core.records import Fields
from coordinator_core.wire.codec import writer
from coordinator_core.wire.generated_reader import fast_reader
from coordinator_core.wire.message_layout import layout
from coordinator_core.wire.primitives import scalar_reader, scalar_writer
from coordinator_core.wire.record_codec import TRAILING_BYTES
from coordinator_core.wire.schema import Carrier, EmbeddedSchema, Field, embedded_schemas

CACHED_BLOBS: Final = 1 << 14
"""How many decoded blobs are kept. Each record of a classic group has the blobs of all its members: with fewer places
than members, each would be decoded again with every record."""

CACHED_BLOB_SIZE: Final = 2048
"""The largest blob that is kept decoded, in bytes."""


FieldsT = TypeVar("FieldsT")
DecodedT = typing_extensions.TypeVar("DecodedT", covariant=True, default=object)


class Blob(NamedTuple, Generic[DecodedT]):
    """One decoded blob, shared by all owners of the same bytes: it must not be changed.

    ``coordinator_core.record_fields.embedded`` has the types of its fields; ``blob_of`` gives a blob its type.
    ``version`` is the one on the wire. ``nested`` is the blob inside (a consumer's user data, a Connect worker's
    allocation), None if there is no such blob, no schema knows it, or it does not match its schema; its bytes are
    always in ``fields``. ``is_short``: the blob ends before the fields that its version adds to an older one, and was
    read as that older one; Kafka's own clients and brokers do not read it.
    """

    message: str
    version: int
    fields: DecodedT
    nested: "Blob | None"
    is_short: bool = False


AnyBlob = Blob[Any]
"""A blob whose message is not yet known."""


def blob_of(message: type[FieldsT], blob: AnyBlob | None) -> Blob[FieldsT] | None:
    """Return the blob if it is of this message, else None."""
    return blob if blob is not None and blob.message == message.__name__ else None


@overload
def decode_subscription(
    protocol_type: Literal["consumer"], protocol: str | None, data: bytes | None
) -> Blob[ConsumerProtocolSubscription] | None: ...
@overload
def decode_subscription(
    protocol_type: Literal["connect"], protocol: str | None, data: bytes | None
) -> Blob[ConnectProtocolMetadata] | None: ...
@overload
def decode_subscription(protocol_type: str, protocol: str | None, data: bytes | None) -> Blob | None: ...
def decode_subscription(protocol_type: str, protocol: str | None, data: bytes | None) -> AnyBlob | None:
    """Return a member's metadata in a classic group; None if it is empty or of a protocol type without a schema.

    Raises DecodeError.
    """
    return _decode_member_blob("subscription", protocol_type, protocol, data)


@overload
def decode_assignment(
    protocol_type: Literal["consumer"], protocol: str | None, data: bytes | None
) -> Blob[ConsumerProtocolAssignment] | None: ...
@overload
def decode_assignment(
    protocol_type: Literal["connect"], protocol: str | None, data: bytes | None
) -> Blob[ConnectProtocolAssignment] | None: ...
@overload
def decode_assignment(protocol_type: str, protocol: str | None, data: bytes | None) -> Blob | None: ...
def decode_assignment(protocol_type: str, protocol: str | None, data: bytes | None) -> AnyBlob | None:
    """Return a member's assignment in a classic group; None if it is empty or of a protocol type without a schema.

    Raises DecodeError.
    """
    return _decode_member_blob("assignment", protocol_type, protocol, data)


@overload
def decode_blob(message: type[FieldsT], data: bytes, protocol: str | None = None) -> Blob[FieldsT]: ...
@overload
def decode_blob(message: str, data: bytes, protocol: str | None = None) -> Blob: ...
def decode_blob(message: type[object] | str, data: bytes, protocol: str | None = None) -> AnyBlob:
    """Decode a blob by the name or type of its message; ``protocol`` (an assignor) says what is nested in it.

    Raises DecodeError.
    """
    name = message if isinstance(message, str) else message.__name__
    if len(data) > CACHED_BLOB_SIZE:
        return _decode_blob(name, data, protocol)
    return _decode_cached(name, data, protocol)


@overload
def encode_blob(message: type[FieldsT], version: int, fields: FieldsT) -> bytes: ...
@overload
def encode_blob(message: str, version: int, fields: Fields) -> bytes: ...
def encode_blob(message: type[object] | str, version: int, fields: Any) -> bytes:
    """Return the bytes of a blob; ``nested`` data is encoded where the fields hold it as bytes. Raises EncodeError."""
    name = message if isinstance(message, str) else message.__name__
    schema = _schema(name)
    out = bytearray()
    trailing: bytes = fields.get(TRAILING_BYTES, b"")
    known = {name: value for name, value in fields.items() if name != TRAILING_BYTES}
    try:
        if schema.version_field is not None:
            scalar_writer(schema.version_field)(out, version)
        writer(layout(schema.message, min(version, schema.message.versions.stop - 1)))(out, known)
    except EncodeError as error:
        raise error.within(name) from None
    return bytes(out) + trailing


def of_version(message: type[FieldsT], version: int, fields: FieldsT) -> FieldsT:
    """Return only those fields that this version of a message has, also in the structs inside."""
    kept: FieldsT = _of_version(_schema(message.__name__).message.fields, version, fields)
    return kept


def _of_version(schema: tuple[Field, ...], version: int, fields: Any) -> Any:
    kept: Fields = {}
    for field in schema:
        if version in field.versions and field.name in fields:
            value = fields[field.name]
            if field.fields and isinstance(value, list):
                value = [_of_version(field.fields, version, element) for element in value]
            kept[field.name] = value
    return kept


def _decode_member_blob(field: str, protocol_type: str, protocol: str | None, data: bytes | None) -> AnyBlob | None:
    messages = _messages_of(Carrier(field, protocol_type, None))
    return decode_blob(messages[0], data, protocol) if messages and data else None


@cache
def _nested_messages(field: str, protocol: str | None) -> tuple[str, ...]:
    """The messages that a field of a blob may hold: those of this protocol, else those of any."""
    return _messages_of(Carrier(field, None, protocol)) or _messages_of(Carrier(field, None, None))


@cache
def _messages_of(carrier: Carrier) -> tuple[str, ...]:
    return tuple(name for name, schema in embedded_schemas().items() if carrier in schema.carriers)


def _schema(message: str) -> EmbeddedSchema:
    schema = embedded_schemas().get(message)
    if schema is None:
        raise SchemaError(f"no embedded message {message}")
    return schema


@lru_cache(maxsize=CACHED_BLOBS)
def _decode_cached(message: str, data: bytes, protocol: str | None) -> AnyBlob:
    return _decode_blob(message, data, protocol)


def _decode_blob(message: str, data: bytes, protocol: str | None) -> AnyBlob:
    schema = _schema(message)
    is_short = False
    try:
        if schema.version_field:
            version, fields, is_short = _decode_versioned(schema, data)
        else:
            version, fields = _decode_versionless(schema, data)
    except DecodeError as error:
        raise error.within("", record_type=message) from None
    return Blob(message, version, fields, _decode_nested(message, fields, protocol), is_short)


def _decode_versioned(schema: EmbeddedSchema, data: bytes) -> tuple[int, Fields, bool]:
    known = schema.message.versions
    try:
        version, position = scalar_reader(schema.version_field or "")(data, 0)
    except DecodeError as error:
        raise error.within("version") from None
    if version not in known and not (schema.newer_readable and version >= known.stop):
        raise UnknownVersionError(f"version {version}, known are {known.start} to {known.stop - 1}", path="version")
    read_as = min(version, known.stop - 1)
    try:
        return version, _decode_fields(schema, read_as, data, position), False
    except DecodeError:
        fields = _decode_short(schema, read_as, data, position)
        if fields is None:
            raise
        return version, fields, True


def _decode_short(schema: EmbeddedSchema, version: int, data: bytes, position: int) -> Fields | None:
    """Return the fields of the newest older version that ends where the bytes end; None: there is none.

    Some clients write the number of a version, and only the fields of one before it.
    """
    for older in reversed(range(schema.message.versions.start, version if schema.short_readable else 0)):
        try:
            fields = _decode_fields(schema, older, data, position)
        except DecodeError:
            continue
        # Bytes behind the fields: it is no such version cut short, and still older ones leave more.
        return None if TRAILING_BYTES in fields else fields
    return None


def _decode_versionless(schema: EmbeddedSchema, data: bytes) -> tuple[int, Fields]:
    """The highest version that the bytes are long enough for."""
    lowest, *higher = schema.message.versions
    # Nothing in the bytes names the version, and an older one would leave the newer fields behind it as rest.
    for version in reversed(higher):
        try:
            return version, _decode_fields(schema, version, data, 0)
        except DecodeError:
            continue
    return lowest, _decode_fields(schema, lowest, data, 0)


def _decode_fields(schema: EmbeddedSchema, version: int, data: bytes, position: int) -> Fields:
    fields: Fields
    fields, end = fast_reader(layout(schema.message, version))(data, position)
    if end < len(data):
        fields[TRAILING_BYTES] = data[end:]
    return fields


def _decode_nested(message: str, fields: Fields, protocol: str | None) -> Blob | None:
    """Return the first of the blobs that such a field may hold which has all of its bytes, else the first it may be."""
    found: AnyBlob | None = None
    for name, value in fields.items():
        if isinstance(value, bytes) and value:
            for nested in _nested_messages(f"{message}.{name}", protocol):
                try:
                    blob: AnyBlob = decode_blob(nested, value)
                except DecodeError:
                    continue
                if TRAILING_BYTES not in blob.fields:
                    return blob
                found = found or blob
    return found
