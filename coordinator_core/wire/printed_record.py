"""Keys and values from the JSON that Kafka's tools print of them: the way back of ``kafka_text``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from coordinator_core.errors import EncodeError
from coordinator_core.records import Family, Fields, RecordType
from coordinator_core.wire.embedded import encode_blob
from coordinator_core.wire.kafka_json import blob_from_json, bytes_to_text, key_from_json, value_from_json
from coordinator_core.wire.kafka_text import BLOBS
from coordinator_core.wire.record_codec import encode_key, encode_value
from coordinator_core.wire.schema import embedded_schemas

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
