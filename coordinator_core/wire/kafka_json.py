"""Decoded keys and values as the JSON that Kafka's generated converters print, and back.

Fields are in the order of Kafka's declarations; bytes are base64; a tagged field that equals its default is left out,
as Kafka cannot distinguish it from an absent one. Bytes that no schema describes are kept in ``_unknownTaggedFields``
(tag to base64) and ``_trailingBytes`` (base64).
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from coordinator_core.errors import EncodeError
from coordinator_core.records import Family, Fields
from coordinator_core.wire.codec import UNKNOWN_TAGGED_FIELDS
from coordinator_core.wire.message_layout import Array, Node, Sized, Struct, layout
from coordinator_core.wire.record_codec import TRAILING_BYTES, record_schema
from coordinator_core.wire.schema import embedded_schemas

Convert = Callable[[Any], Any]


def key_to_json(record_type: int, fields: Fields, family: Family = Family.GROUP) -> Fields:
    """Return a decoded key as JSON-ready values."""
    message = record_schema(record_type, family).key
    return {} if message is None else _converted(layout(message, message.versions.start), fields, bytes_to_text)


def value_to_json(record_type: int, version: int, fields: Fields, family: Family = Family.GROUP) -> Fields:
    """Return a decoded value as JSON-ready values."""
    return _converted(layout(record_schema(record_type, family).value, version), fields, bytes_to_text)


def key_from_json(record_type: int, fields: Fields, family: Family = Family.GROUP) -> Fields:
    """Return the decoded key of this JSON; raises EncodeError for bad base64."""
    message = record_schema(record_type, family).key
    return {} if message is None else _converted(layout(message, message.versions.start), fields, _text_to_bytes)


def value_from_json(record_type: int, version: int, fields: Fields, family: Family = Family.GROUP) -> Fields:
    """Return the decoded value of this JSON; raises EncodeError for bad base64."""
    return _converted(layout(record_schema(record_type, family).value, version), fields, _text_to_bytes)


def _converted(struct: Struct, fields: Fields, convert_bytes: Convert) -> Fields:
    converted: Fields = _converter(struct, convert_bytes)(fields)
    if TRAILING_BYTES in fields:
        converted[TRAILING_BYTES] = convert_bytes(fields[TRAILING_BYTES])
    return converted


def blob_from_json(message: str, version: int, fields: Fields) -> Fields:
    """Return the decoded fields of an embedded message from their JSON; raises EncodeError for bad base64."""
    return _converted(layout(embedded_schemas()[message].message, version), fields, _text_to_bytes)


def bytes_to_text(data: bytes) -> str:
    """Return bytes as JSON has them: base64."""
    return b64encode(data).decode("ascii")


def compact_text(value: Fields) -> str:
    """Return JSON without white space, as Kafka's tools print it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text_to_bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (TypeError, ValueError) as error:
        raise EncodeError(f"no base64: {text!r}") from error


@lru_cache(maxsize=4096)
def _converter(node: Node, convert_bytes: Convert) -> Convert:
    """What turns a value of ``node`` into its other form; nulls stay."""
    match node:
        case Sized("bytes"):
            return lambda value: None if value is None else convert_bytes(value)
        case Array(element):
            convert = _converter(element, convert_bytes)
            return lambda values: None if values is None else [convert(value) for value in values]
        case Struct():
            return _struct_converter(node, convert_bytes)
        case _:
            return lambda value: value


def _struct_converter(node: Struct, convert_bytes: Convert) -> Convert:
    to_json = convert_bytes is bytes_to_text
    steps = [(slot, _converter(slot.node, convert_bytes)) for slot in node.declared]

    def convert(fields: Fields | None) -> Fields | None:
        if fields is None:
            return None
        converted = {
            slot.name: convert_field(fields[slot.name])
            for slot, convert_field in steps
            if slot.name in fields and not (to_json and slot.tag is not None and fields[slot.name] == slot.default)
        }
        if UNKNOWN_TAGGED_FIELDS in fields:
            key: Callable[[Any], object] = str if to_json else int
            unknown = fields[UNKNOWN_TAGGED_FIELDS].items()
            converted[UNKNOWN_TAGGED_FIELDS] = {key(tag): convert_bytes(data) for tag, data in unknown}
        return converted

    return convert
