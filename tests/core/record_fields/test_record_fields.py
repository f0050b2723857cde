"""The types of the fields: what the decoder yields, in every version, is what they say."""

from importlib import import_module
from types import NoneType, UnionType
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.record_fields import cluster_metadata
from coordinator_core.records import Family
from coordinator_core.wire.record_codec import decode_record, record_schema
from coordinator_core.wire.schema import EmbeddedSchema, RecordSchema, embedded_schemas
from tests.core.wire.samples import sample_records
from tests.core.wire.strategies import every_version, messages, records

MODULES = [
    import_module(f"coordinator_core.record_fields.{name}")
    for name in (
        "classic_group",
        "cluster_metadata",
        "connect_group",
        "consumer_group",
        "embedded",
        "offset_commit",
        "share_coordinator",
        "share_group",
        "streams_group",
    )
]


def type_of(message: str) -> Any:
    (found,) = (getattr(module, message) for module in MODULES if hasattr(module, message))
    return found


def type_of_key(schema: RecordSchema) -> Any:
    key, _ = get_args(type_of(f"{schema.value.name.removesuffix('Value')}Record"))
    return key


def is_typed(schema: RecordSchema) -> bool:
    """Whether code reads the fields of such records: of the metadata log it does of some."""
    return schema.family is not Family.METADATA or hasattr(cluster_metadata, schema.value.name)


def wrong(value: Any, hint: Any, path: str = "") -> list[str]:
    """What of a value is not as its type says."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (present,) = (each for each in arguments if each is not NoneType)
        return [] if value is None else wrong(value, present, path)
    if origin is list:
        found = [wrong(each, arguments[0], f"{path}[]") for each in value] if type(value) is list else [[path]]
        return [each for some in found for each in some]
    if is_typeddict(hint):
        return wrong_fields(value, get_type_hints(hint, include_extras=True), path)
    if origin is dict:
        return [] if all(type(tag) is int and type(data) is bytes for tag, data in value.items()) else [path]
    return [] if type(value) is hint else [f"{path} is {value!r}, not {hint}"]


def wrong_fields(value: dict[str, Any], hints: dict[str, Any], path: str) -> list[str]:
    found = [f"{path}.{name} has no type" for name in value if name not in hints]
    for name, hint in hints.items():
        optional = get_origin(hint) is NotRequired or name.startswith("_")
        present = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        if name in value:
            found += wrong(value[name], present, f"{path}.{name}")
        elif not optional:
            found.append(f"{path}.{name} is missing")
    return found


@pytest.mark.parametrize(
    ("schema", "version"),
    [(schema, version) for schema, version in every_version() if is_typed(schema)],
    ids=lambda part: part.name if isinstance(part, RecordSchema) else f"v{part}",
)
@given(data=st.data())
def test_a_record_is_of_its_type_in_every_version(schema: RecordSchema, version: int, data: st.DataObject) -> None:
    record = data.draw(records(schema, version))
    assert wrong(record.value, type_of(schema.value.name)) == []
    if schema.key is not None:
        assert wrong(record.key, type_of_key(schema)) == []


@pytest.mark.parametrize("schema", embedded_schemas().values(), ids=lambda schema: schema.message.name)
@given(data=st.data())
def test_a_blob_is_of_its_type_in_every_version(schema: EmbeddedSchema, data: st.DataObject) -> None:
    for version in schema.message.versions:
        assert wrong(data.draw(messages(schema.message, version)), type_of(schema.message.name)) == []


def test_real_records_are_of_their_types() -> None:
    for family, key, value in sample_records():
        record = decode_record(key, value, family)
        schema = record_schema(record.type, family)
        if not is_typed(schema):
            continue
        assert schema.key is None or wrong(record.key, type_of_key(schema)) == []
        assert record.value is None or wrong(record.value, type_of(schema.value.name)) == []


def test_a_field_of_some_versions_may_be_absent_and_one_of_all_may_not() -> None:
    first = {"offset": 1, "metadata": "", "commitTimestamp": 2}
    assert wrong(first, type_of("OffsetCommitValue")) == []
    assert wrong({**first, "offset": "1"}, type_of("OffsetCommitValue")) == [".offset is '1', not <class 'int'>"]
    assert wrong({"offset": 1, "metadata": ""}, type_of("OffsetCommitValue")) == [".commitTimestamp is missing"]
    assert wrong({**first, "leaderepoch": 1}, type_of("OffsetCommitValue")) == [".leaderepoch has no type"]
