"""Rows of the log as rows of the typed tables, an Arrow batch at a time: each record is decoded once.

Input batches have the columns of ``log_records``, with all keys and values. Each record goes to exactly one of
``offset_commits``, ``group_records``, ``cluster_records`` and ``quarantine``, and every row to ``log_records``, which
keeps the bytes only where no row of the other tables gives them back.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import DecodeError, UnknownTypeError
from coordinator_core.records import COMMIT_TYPES, Family
from coordinator_core.wire.arrow_types import message_type, to_arrow
from coordinator_core.wire.batch_decode import NO_TYPE, Decoded, DecodedType, decode_keys, decode_values
from coordinator_core.wire.batch_encode import same_keys, same_values
from coordinator_core.wire.cursor import Ints, Mask, expand
from coordinator_core.wire.primitives import read_unsigned_varint
from coordinator_core.wire.record_codec import decode_metadata
from coordinator_core.wire.schema import record_schemas
from jobs.sources.files import FAMILIES
from jobs.tables.log import LOG_RECORDS, QUARANTINE
from jobs.tables.records import (
    CLUSTER_RECORDS,
    GROUP_RECORDS,
    OFFSET_COMMITS,
    offset_commit_columns,
    record_struct,
    struct_columns,
)
from jobs.tables.table import Table

Columns = dict[str, pa.Array]
TableRows = Iterator[tuple[Table, pa.RecordBatch]]

TYPED: Final = {
    table.name: table for table in (OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE, LOG_RECORDS)
}
"""The tables that rows of the log become, by name; ``log_records`` last: a row is taken in once it is there."""

GIVEN_BACK: Final = ("key", "value")
"""The columns of ``log_records`` that are null where a row of another table gives them back."""


class DecodedRecords(NamedTuple):
    """The decoded keys and values of a batch. ``good``: for each row whether key and value were decoded."""

    keys: Decoded
    values: Decoded
    good: Mask


def typed_rows(log: pa.RecordBatch) -> TableRows:
    """Yield the rows of each table that rows of the log become."""
    is_record = pc.equal(log.column("kind"), "record")
    others = log.filter(pc.invert(is_record))
    if others.num_rows:
        yield LOG_RECORDS, rows_of(LOG_RECORDS, others, {})
        damaged = others.filter(pc.equal(others.column("kind"), "damaged"))
        columns = {"reason": damaged.column("error"), "part": damaged.column("kind")}
        yield from _some(QUARANTINE, damaged, columns | {"byte_position": damaged.column("place")})
        log = log.filter(is_record)
    for batch, family in _by_family(log):
        yield from _typed_records(batch, family)


def _typed_records(batch: pa.RecordBatch, family: Family) -> TableRows:
    """Yield the rows that records of one log become."""
    records = decode(batch, family)
    commits = np.zeros(batch.num_rows, np.bool_)
    if family is Family.GROUP:
        commits = records.good & np.isin(records.keys.numbers, COMMIT_TYPES)
    structs = CLUSTER_RECORDS if family is Family.METADATA else GROUP_RECORDS
    for table, work, wanted in (
        (OFFSET_COMMITS, offset_commits, commits),
        (structs, struct_records, records.good & ~commits),
        (QUARANTINE, undecodable, ~records.good),
    ):
        if wanted.all():
            yield from _some(table, batch, work(batch, records, family))
        elif wanted.any():
            some = batch.filter(pa.array(wanted))
            yield from _some(table, some, work(some, _only(records, wanted), family))
    # Most of a log is commits: their bytes are dropped only where the columns were seen to give back the same ones.
    kept = pa.array(~(records.good & (~commits | _reproduced(batch, records, family))))
    raw = {name: pc.if_else(kept, batch.column(name), pa.scalar(None, pa.binary())) for name in GIVEN_BACK}
    yield LOG_RECORDS, rows_of(LOG_RECORDS, batch, raw)


def _reproduced(batch: pa.RecordBatch, records: DecodedRecords, family: Family) -> Mask:
    """Return which records are offset commits whose columns encode to the bytes of key and value."""
    same = np.zeros(batch.num_rows, np.bool_)
    key, value = batch.column("key"), batch.column("value")
    absent = value.is_null().to_numpy(zero_copy_only=False)
    for number in COMMIT_TYPES if family is Family.GROUP else ():
        schema = record_schemas(family)[number]
        if schema.key is not None:
            of_type = same_keys(key, records.keys, number, schema.key)
            same |= of_type & (absent | same_values(value, records.values, number, schema.value))
    return same


def _only(records: DecodedRecords, wanted: Mask) -> DecodedRecords:
    """Return what was decoded of some rows, which are counted again from 0."""
    # number[i] is the new number of row i, if it is wanted: as many wanted rows stand before it.
    number = np.cumsum(wanted) - 1
    return DecodedRecords(
        _picked(records.keys, wanted, number), _picked(records.values, wanted, number), records.good[wanted]
    )


def _picked(decoded: Decoded, wanted: Mask, number: Ints) -> Decoded:
    groups = {}
    for record_type, group in decoded.groups.items():
        of_type = wanted[group.rows]
        if of_type.any():
            groups[record_type] = DecodedType(number[group.rows[of_type]], group.values.filter(pa.array(of_type)))
    errors = {int(number[row]): error for row, error in decoded.errors.items() if wanted[row]}
    return Decoded(decoded.numbers[wanted], groups, errors)


def _some(table: Table, batch: pa.RecordBatch, columns: Columns) -> TableRows:
    if batch.num_rows:
        yield table, rows_of(table, batch, columns)


def rows_of(table: Table, batch: pa.RecordBatch, columns: Columns) -> pa.RecordBatch:
    """Return rows of a table. What is not among ``columns`` is taken from the batch, or is null."""
    given = dict(zip(batch.schema.names, batch.columns, strict=True)) | columns
    arrays = [
        given[field.name].cast(field.type) if field.name in given else pa.nulls(batch.num_rows, field.type)
        for field in table.schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


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
    by_type: dict[int, list[tuple[int, dict[str, object]]]] = {}
    for row, data in enumerate(batch.column("value").to_pylist()):
        try:
            types[row], values.numbers[row], fields = decode_metadata(data or b"")
            by_type.setdefault(int(types[row]), []).append((row, fields))
        except UnknownTypeError:
            # Behind the frame, which is one byte.
            types[row] = read_unsigned_varint(data, 1)[0]
        except DecodeError as error:
            values.errors[row] = error
    for number, rows in by_type.items():
        of_type = message_type(record_schemas(family)[number].value)
        values.groups[number] = DecodedType(
            np.array([row for row, _ in rows]), to_arrow([fields for _, fields in rows], of_type)
        )
    return Decoded(types), values


def offset_commits(batch: pa.RecordBatch, records: DecodedRecords, family: Family) -> Columns:
    """Return flat columns of offset commits."""
    columns: Columns = {}
    for name, field in offset_commit_columns().items():
        decoded = records.keys if field.part == "key" else records.values
        columns[name] = _field(decoded, COMMIT_TYPES, field.field, field.type, batch.num_rows)
    return columns | _type_columns(batch, records, family)


def struct_records(batch: pa.RecordBatch, records: DecodedRecords, family: Family) -> Columns:
    """Return a struct column for each record type."""
    count = batch.num_rows
    columns = _type_columns(batch, records, family)
    for name, schema in struct_columns(family).items():
        of_type = record_struct(schema)
        parts = {"key": records.keys.groups.get(schema.type), "value": records.values.groups.get(schema.type)}
        if not any(parts.values()):
            continue
        arrays = [_over(parts[field.name], field.type, count) for field in of_type]
        absent = pa.array(records.keys.numbers != schema.type)
        columns[name] = pa.StructArray.from_arrays(arrays, fields=list(of_type), mask=absent)
    columns["group_id"] = group_ids(records.keys, family, count)
    return columns


def _field(decoded: Decoded, types: Iterable[int], name: str, of_type: pa.DataType, count: int) -> pa.Array:
    """Return one field of the records of several types; null where a row does not have it."""
    groups = [group for number in types if (group := decoded.groups.get(number)) is not None]
    columns = [expand(group.values.field(name), group.rows, count) for group in groups if _has(group, name)]
    if not columns:
        return pa.nulls(count, of_type)
    # Each row is of one type, so that at most one of the columns has a value there.
    return columns[0] if len(columns) == 1 else pc.coalesce(*columns)


def _has(group: DecodedType, name: str) -> bool:
    return bool(group.values.type.get_field_index(name) >= 0)


def _over(group: DecodedType | None, of_type: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, of_type) if group is None else group.over(count)


def group_ids(keys: Decoded, family: Family, count: int) -> pa.Array:
    """Return the group ids. Keys of classic groups have the field ``group``, all others ``groupId``."""
    if family is Family.METADATA:
        return pa.nulls(count, pa.string())
    names = [_field(keys, keys.groups, name, pa.string(), count) for name in ("group", "groupId")]
    return pc.coalesce(*names)


def _type_columns(batch: pa.RecordBatch, records: DecodedRecords, family: Family) -> Columns:
    types = records.keys.numbers
    schemas = record_schemas(family)
    names = pa.array([schema.name for schema in schemas.values()])
    # A type without a schema has no index, so that take gives it null for a name.
    name_of = pc.index_in(pa.array(types), pa.array(list(schemas), pa.int16()))
    absent = batch.column("value").is_null()
    return {
        "record_type": pa.array(types),
        "record_name": names.take(name_of),
        "value_version": pc.if_else(absent, None, pa.array(records.values.numbers)),
        "is_tombstone": absent,
    }


def undecodable(batch: pa.RecordBatch, records: DecodedRecords, family: Family) -> Columns:
    """Return why records could not be decoded: reason, part and byte position."""
    reasons, parts, positions = [], [], []
    for row in range(batch.num_rows):
        part = "key" if row in records.keys.errors else "value"
        error = records.keys.errors.get(row) or records.values.errors.get(row)
        if isinstance(error, UnknownTypeError):
            part = "type"
        if error is None:
            part, error = "key", DecodeError("a coordinator record without a key", record_type="key")
        reasons.append(str(error))
        parts.append(part)
        positions.append(error.position if error.position >= 0 else None)
    columns = {"reason": pa.array(reasons, pa.string()), "part": pa.array(parts, pa.string())}
    columns |= {"byte_position": pa.array(positions, pa.int64()), "record_type": _types_of_keys(batch, records, family)}
    return columns | {"group_id": group_ids(records.keys, family, batch.num_rows)}


def _types_of_keys(batch: pa.RecordBatch, records: DecodedRecords, family: Family) -> pa.Array:
    """Return the record types of the keys that could be decoded, or are of a type that has no schema."""
    if family is Family.METADATA:
        return pa.nulls(batch.num_rows, pa.int16())
    bad = np.zeros(batch.num_rows, np.bool_)
    bad[[row for row, error in records.keys.errors.items() if not isinstance(error, UnknownTypeError)]] = True
    return pa.array(records.keys.numbers, mask=bad | batch.column("key").is_null().to_numpy(zero_copy_only=False))


def _by_family(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Family]]:
    """Yield the rows of each topic; a dump that does not tell the topic is of a log of groups."""
    topics = pc.fill_null(batch.column("log_topic"), "")
    names = topics.unique().to_pylist()
    for topic in names:
        of_topic = batch if len(names) == 1 else batch.filter(pc.equal(topics, topic))
        yield of_topic, FAMILIES.get(topic, Family.GROUP)
