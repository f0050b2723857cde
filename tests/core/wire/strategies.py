"""Hypothesis strategies derived from the schemas: any value that a version of a message can carry."""

from typing import Any

from hypothesis import strategies as st

from coordinator_core.records import Family, Fields
from coordinator_core.wire.codec import UNKNOWN_TAGGED_FIELDS
from coordinator_core.wire.message_layout import Array, Node, Scalar, Sized, Struct, layout
from coordinator_core.wire.primitives import uuid_text
from coordinator_core.wire.record_codec import TRAILING_BYTES, DecodedRecord
from coordinator_core.wire.schema import Message, RecordSchema, record_schemas

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}

TEXT = st.text(st.characters(codec="utf-8"), max_size=8) | st.integers(120, 140).map("x".__mul__)
"""Also long enough for lengths of two varint bytes."""


def values(node: Node) -> st.SearchStrategy[Any]:
    """Values of a node of a layout."""
    match node:
        case Scalar("uuid"):
            return st.binary(min_size=16, max_size=16).map(uuid_text)
        case Scalar("boolean"):
            return st.booleans()
        case Scalar("uint16"):
            return st.integers(0, 0xFFFF)
        case Scalar(name):
            half = 1 << (BITS[name] - 1)
            return st.integers(-half, half - 1)
        case Sized("bytes"):
            return _nullable(st.binary(max_size=20), node.nullable)
        case Sized("utf16_string"):  # on the wire null and empty are one
            return _nullable(TEXT.filter(bool), node.nullable)
        case Sized():
            return _nullable(TEXT, node.nullable)
        case Array(element):
            return _nullable(st.lists(values(element), max_size=3), node.nullable)
        case Struct():
            return _nullable(fields(node), node.nullable)


def fields(struct: Struct, *, unknown: bool = True) -> st.SearchStrategy[Fields]:
    """Fields of a struct: any of the tagged ones absent, sometimes with tags that no schema has."""
    optional: dict[str, st.SearchStrategy[Any]] = {slot.name: values(slot.node) for _, slot in struct.tagged}
    if struct.flexible and unknown:
        known = {tag for tag, _ in struct.tagged}
        tags = st.integers(0, 300).filter(lambda tag: tag not in known)
        optional[UNKNOWN_TAGGED_FIELDS] = st.dictionaries(tags, st.binary(max_size=5), min_size=1, max_size=2)
    return st.fixed_dictionaries({slot.name: values(slot.node) for slot in struct.slots}, optional=optional)


def messages(message: Message, version: int) -> st.SearchStrategy[Fields]:
    """Fields of a whole key or value, sometimes with bytes behind the last field."""
    known = fields(layout(message, version))
    trailing = st.binary(min_size=1, max_size=5).map(lambda data: {TRAILING_BYTES: data})
    return st.builds(lambda found, more: {**found, **more}, known, st.just({}) | trailing)


def records(schema: RecordSchema, version: int) -> st.SearchStrategy[DecodedRecord]:
    """Records of one type with a value of one version."""
    key = messages(schema.key, schema.key.versions.start) if schema.key else st.just({})
    return st.builds(
        lambda key, value: DecodedRecord(schema.type, schema.name, key, version, value),
        key,
        messages(schema.value, version),
    )


def every_version() -> list[tuple[RecordSchema, int]]:
    """Each record type of each log with each version of its value."""
    return [
        (schema, version)
        for family in Family
        for schema in record_schemas(family).values()
        for version in schema.value.versions
    ]


def _nullable(strategy: st.SearchStrategy[Any], nullable: bool) -> st.SearchStrategy[Any]:
    return st.none() | strategy if nullable else strategy
