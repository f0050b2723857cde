"""Decoding as functions from Arrow batches to Arrow batches, which Spark maps over its partitions.

Input batches have ``key``, ``value``, and the columns of ``log_records`` that the output repeats. ``offset_commits``
and ``struct_records`` leave out rows that cannot be decoded; ``undecodable`` returns exactly those rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator_core.errors import DecodeError, UnknownTypeError
from coordinator_core.records import Family
from coordinator_core.wire.arrow_types import message_type, to_arrow
from coordinator_core.wire.batch_decode import NO_TYPE, Decoded, DecodedType, decode_keys, decode_values
from coordinator_core.wire.cursor import expand
from coordinator_core.wire.primitives import read_unsigned_varint
from coordinator_core.wire.record_codec import decode_metadata
from coordinator_core.wire.schema import record_schemas
from jobs.tables.delta import Table
from jobs.tables.records import OFFSET_COMMIT_TYPES, offset_commit_columns, record_struct, struct_columns

Batches = Iterable[pa.RecordBatch]
Columns = dict[str, pa.Array]


class DecodedRecords(NamedTuple):
    """The decoded keys and values of a batch. ``good``: for each row whether key and value were decoded."""

    keys: Decoded
    values: Decoded
    good: NDArray[np.bool_]


def decode(batch: pa.RecordBatch, family: Family) -> DecodedRecords:
    """Decode keys and values of one log. A row without a key is not good, except in the metadata log."""
    decode_family = _decode_metadata if family is Family.METADATA else _decode_coordinator
    keys, values = decode_family(batch, family)
    good = np.ones(batch.num_rows, np.bool_)
    if family is not Family.METADATA and batch.column("key").null_count:
        good = batch.column("key").is_valid().to_numpy(zero_copy_only=False).copy()
    good[[*keys.errors, *values.errors]] = False
    return DecodedRecords(keys, values, good)


def _decode_coordinator(batch: pa.RecordBatch, family: Family) -> tuple[Decoded, Decoded]:
    keys = decode_keys(batch.column("key"), family)
    return keys, decode_values(batch.column("value"), keys.numbers, family)


def _decode_metadata(batch: pa.RecordBatch, family: Family) -> tuple[Decoded, Decoded]:
    """Decode the records of the metadata log one by one: it is small. The record types take the place of the keys.

    Most of its record types say nothing about topics. Types without a schema are kept as bytes; that is not an error.
    """
    types = np.full(batch.num_rows, NO_TYPE, np.int16)
    values = Decoded(types.copy())
    found: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for row, data in enumerate(batch.column("value").to_pylist()):
        try:
            types[row], values.numbers[row], fields = decode_metadata(data or b"")
            found.setdefault(int(types[row]), []).append((row, fields))
        except UnknownTypeError:
            types[row] = read_unsigned_varint(data, 1)[0]
        except DecodeError as error:
            values.errors[row] = error
    for number, rows in found.items():
        of_type = message_type(record_schemas(family)[number].value)
        values.groups[number] = DecodedType(
            np.array([row for row, _ in rows]), to_arrow([fields for _, fields in rows], of_type)
        )
    return Decoded(types), values


def offset_commits(batch: pa.RecordBatch, family: Family) -> tuple[Columns, NDArray[np.bool_]]:
    """Return flat columns of offset commits, and for each row whether it is a decoded offset commit."""
    records = decode(batch, family)
    columns: Columns = {}
    for name, field in offset_commit_columns().items():
        decoded = records.keys if field.part == "key" else records.values
        columns[name] = _field(decoded, OFFSET_COMMIT_TYPES, field.field, field.type, batch.num_rows)
    good = records.good & np.isin(records.keys.numbers, OFFSET_COMMIT_TYPES)
    return columns | _type_columns(batch, records, family), good


def struct_records(batch: pa.RecordBatch, family: Family) -> tuple[Columns, NDArray[np.bool_]]:
    """Return a struct column for each record type, and which rows were decoded and are not offset commits."""
    records, count = decode(batch, family), batch.num_rows
    columns = _type_columns(batch, records, family)
    good = records.good
    if family is Family.GROUP:
        good = good & ~np.isin(records.keys.numbers, OFFSET_COMMIT_TYPES)
    for name, schema in struct_columns(family).items():
        of_type = record_struct(schema)
        parts = {"key": records.keys.groups.get(schema.type), "value": records.values.groups.get(schema.type)}
        if not any(parts.values()):
            continue
        arrays = [_over(parts[field.name], field.type, count) for field in of_type]
        absent = pa.array(records.keys.numbers != schema.type)
        columns[name] = pa.StructArray.from_arrays(arrays, fields=list(of_type), mask=absent)
    columns["group_id"] = _group_ids(records.keys, family, count)
    return columns, good


def _field(decoded: Decoded, types: Iterable[int], name: str, of_type: pa.DataType, count: int) -> pa.Array:
    """Return one field of the records of several types; null where a row does not have it."""
    groups = [group for number in types if (group := decoded.groups.get(number)) is not None]
    found = [expand(group.values.field(name), group.rows, count) for group in groups if _has(group, name)]
    if not found:
        return pa.nulls(count, of_type)
    return found[0] if len(found) == 1 else pc.coalesce(*found)


def _has(group: DecodedType, name: str) -> bool:
    return bool(group.values.type.get_field_index(name) >= 0)


def _over(group: DecodedType | None, of_type: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, of_type) if group is None else group.over(count)


def _group_ids(keys: Decoded, family: Family, count: int) -> pa.Array:
    """Return the group ids. Keys of classic groups have the field ``group``, all others ``groupId``."""
    if family is Family.METADATA:
        return pa.nulls(count, pa.string())
    names = [_field(keys, keys.groups, name, pa.string(), count) for name in ("group", "groupId")]
    return pc.coalesce(*names)


def _type_columns(batch: pa.RecordBatch, records: DecodedRecords, family: Family) -> Columns:
    types = records.keys.numbers
    schemas = record_schemas(family)
    names = pa.array([schema.name for schema in schemas.values()])
    name_of = pc.index_in(pa.array(types), pa.array(list(schemas), pa.int16()))
    absent = batch.column("value").is_null()
    return {
        "record_type": pa.array(types),
        "record_name": names.take(name_of),
        "value_version": pc.if_else(absent, None, pa.array(records.values.numbers)),
        "is_tombstone": absent,
    }


def undecodable(batch: pa.RecordBatch, family: Family) -> tuple[Columns, NDArray[np.bool_]]:
    """Return reason, part and byte position for the rows that could not be decoded, and which rows these are."""
    records, count = decode(batch, family), batch.num_rows
    reasons: list[str | None] = [None] * count
    parts: list[str | None] = [None] * count
    positions: list[int | None] = [None] * count
    for row in np.flatnonzero(~records.good).tolist():
        part = "key" if row in records.keys.errors else "value"
        error = records.keys.errors.get(row) or records.values.errors.get(row)
        if error is None:
            part, error = "key", DecodeError("a coordinator record without a key", record_type="key")
        reasons[row], parts[row] = str(error), part
        positions[row] = error.position if error.position >= 0 else None
    columns = {"reason": pa.array(reasons, pa.string()), "part": pa.array(parts, pa.string())}
    return columns | {"byte_position": pa.array(positions, pa.int64())}, ~records.good


Work = Callable[[pa.RecordBatch, Family], tuple[Columns, NDArray[np.bool_]]]


def mapper(work: Work, table: Table, families: Mapping[str, Family]) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return ``work`` as a function for ``mapInArrow`` that yields rows of ``table``; ``families``: by log topic.

    Columns that ``work`` does not return are taken from the input, or are null.
    """
    schema = to_arrow_schema(table.schema)

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for whole in batches:
            for batch, family in _by_family(whole, families):
                columns, good = work(batch, family)
                given = dict(zip(batch.schema.names, batch.columns, strict=True))
                nothing = pa.nulls(batch.num_rows)
                arrays = [columns.get(name, given.get(name, nothing)) for name in schema.names]
                cast = [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)]
                rows = pa.RecordBatch.from_arrays(cast, schema=schema)
                yield rows if good.all() else rows.filter(pa.array(good))

    return run


def _by_family(batch: pa.RecordBatch, families: Mapping[str, Family]) -> Iterator[tuple[pa.RecordBatch, Family]]:
    topics = batch.column("log_topic")
    found = topics.unique().to_pylist()
    for topic in found:
        yield batch if len(found) == 1 else batch.filter(pc.equal(topics, topic)), families[topic]
