"""Arrow types derived from the schemas: one struct for each key and value, with the fields of all its versions.

A field that a version lacks, or a tagged field that a record leaves out, is null. A uuid is its base64url text, an
unsigned int16 an int32 (Spark has no unsigned types). Every struct that can carry tagged fields ends with
``_unknownTaggedFields`` (map of tag to bytes), every key and value with ``_trailingBytes``; both are null unless a
newer or damaged writer left something there.
"""

from functools import cache
from typing import Final

import pyarrow as pa

from coordinator_core.records import Fields
from coordinator_core.wire.codec import UNKNOWN_TAGGED_FIELDS
from coordinator_core.wire.record_codec import TRAILING_BYTES
from coordinator_core.wire.schema import Field, Message

_ARROW: Final = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uuid": pa.string(),
    "string": pa.string(),
    "utf16_string": pa.string(),
    "bytes": pa.binary(),
}

UNKNOWN_TAGGED_TYPE: Final = pa.map_(pa.int64(), pa.binary())


@cache
def message_type(message: Message) -> pa.StructType:
    """Return the struct that holds any version of a message."""
    fields = _fields(message.fields, flexible=len(message.flexible) > 0)
    return pa.struct([*fields, pa.field(TRAILING_BYTES, pa.binary())])


def to_arrow(rows: list[Fields], arrow_type: pa.DataType) -> pa.Array:
    """Return decoded keys or values as an array of their message's struct."""
    return pa.array([_with_map_items(row) for row in rows], arrow_type)


def _fields(fields: tuple[Field, ...], *, flexible: bool) -> list[pa.Field]:
    named = {field.name: pa.field(field.name, _field_type(field, flexible=flexible)) for field in fields}
    unknown = [pa.field(UNKNOWN_TAGGED_FIELDS, UNKNOWN_TAGGED_TYPE)] if flexible else []
    return [*named.values(), *unknown]


def _field_type(field: Field, *, flexible: bool) -> pa.DataType:
    name = field.type.removeprefix("[]")
    single = pa.struct(_fields(field.fields, flexible=flexible)) if name == "struct" else _ARROW[name]
    return pa.list_(single) if field.type.startswith("[]") else single


def _with_map_items(value: object) -> object:
    """The same value with maps as the lists of pairs that Arrow asks for."""
    if isinstance(value, list):
        return [_with_map_items(item) for item in value]
    if isinstance(value, dict):
        return {
            name: list(item.items()) if name == UNKNOWN_TAGGED_FIELDS else _with_map_items(item)
            for name, item in value.items()
        }
    return value
