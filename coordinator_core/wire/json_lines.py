"""A log as JSON lines, one object per record: position, batch, producer, then the decoded key and value or the marker.

``line`` renders one row and is the reference; ``lines`` renders a whole record batch, most of it a column at a time, to
the same text. Rows are those of ``log_columns.LOG_COLUMNS``. Keys and values are in Kafka's JSON (``kafka_json``). What
does not decode is printed with the reason and its bytes in base64.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coordinator_core.errors import CoordinatorAuditError, DecodeError
from coordinator_core.records import Family, Fields
from coordinator_core.wire import text_columns
from coordinator_core.wire.batch_decode import decode_keys, decode_values
from coordinator_core.wire.batch_format import TIMESTAMP_TYPES, Kind
from coordinator_core.wire.codec import UNKNOWN_TAGGED_FIELDS
from coordinator_core.wire.cursor import RowBytes
from coordinator_core.wire.kafka_json import bytes_to_text, compact_text, key_to_json, value_to_json
from coordinator_core.wire.message_layout import Array, Node, Scalar, Sized, Slot, Struct, layout
from coordinator_core.wire.record_codec import TRAILING_BYTES, decode_record, record_schema
from coordinator_core.wire.schema import record_schemas
from coordinator_core.wire.text_columns import Const, Mask, Part, Plain, Text

Rows = NDArray[np.int64]

NULL, NONE = -1, -2
"""Instead of a leading number: there is no value, or fewer than two bytes."""

FEW_ROWS = 64
"""Up to this many records of one type and version are rendered one by one."""


class Place(NamedTuple):
    """The place that rows come from: log partition (-1: not known), segment file, and the kind of log.

    ``folder`` is that of a copy, where there are several of the partition; None: there is one.
    """

    partition: int
    segment: str
    family: Family
    folder: str | None = None

    @property
    def names(self) -> Fields:
        """The fields that name the file."""
        return {"segment": self.segment} | ({} if self.folder is None else {"folder": self.folder})


def line(row: dict[str, object], place: Place) -> str:
    """One row of LOG_COLUMNS as a JSON object, without a line end."""
    return compact_text(_object(row, place))


def _object(row: Fields, place: Place) -> Fields:
    producer = {"producerId": row["producer_id"], "producerEpoch": row["producer_epoch"]}
    producer = {**producer, "baseSequence": row["base_sequence"]} if row["producer_id"] >= 0 else {}
    bounds = {**place.names, "batchBase": row["batch_base_offset"], "batchLast": row["batch_last_offset"]}
    flags = {"isTransactional": row["is_transactional"], "isControl": row["is_control"]}
    if row["kind"] == Kind.EMPTY.value:
        return {"partition": place.partition, "emptyBatch": True, **bounds, **flags, **producer}
    batch = {
        **bounds,
        "leaderEpoch": row["leader_epoch"],
        "compression": row["compression"],
        "tsType": TIMESTAMP_TYPES[row["timestamp_type"]],
    }
    position = {"partition": place.partition, "offset": row["offset"], "timestamp": row["timestamp"]}
    head = {**position, **batch, **producer, **flags}
    if row["kind"] == Kind.CONTROL.value:
        epoch = {} if row["coordinator_epoch"] is None else {"coordinatorEpoch": row["coordinator_epoch"]}
        return {**head, "control": row["control_type"], **epoch}
    key, value = row["key"], row["value"]
    head |= {"keySize": -1 if key is None else len(key), "valueSize": -1 if value is None else len(value)}
    try:
        return head | _decoded(key, value, place.family)
    except DecodeError as error:
        return head | {"error": str(error), "keyBytes": _base64(key), "valueBytes": _base64(value)}


def _decoded(key: bytes | None, value: bytes | None, family: Family) -> Fields:
    record = decode_record(key, value, family)
    named = {"type": record.type, "typeName": record.type_name}
    shown_key = None if family is Family.METADATA else key_to_json(record.type, record.key, family)
    if record.value is None or record.value_version is None:
        return {**named, "key": shown_key, "valueVersion": None, "value": None}
    shown = value_to_json(record.type, record.value_version, record.value, family)
    return {**named, "key": shown_key, "valueVersion": record.value_version, "value": shown}


def _base64(data: bytes | None) -> str | None:
    return None if data is None else bytes_to_text(data)


class Lines(NamedTuple):
    """JSON objects, one per row, each with its line end, and the errors of the records that did not decode."""

    text: Text
    errors: list[str]


def lines(columns: pa.RecordBatch, place: Place) -> Lines:
    """Return all rows of a record batch as JSON lines, in order."""
    rendered = list(_rendered_together(columns, place))
    left = np.ones(columns.num_rows, np.bool_)
    for rows, _ in rendered:
        left[rows] = False
    errors = []
    if left.any():
        objects = [_object(row, place) for row in columns.filter(pa.array(left)).to_pylist()]
        errors = [f"offset {row['offset']}: {row['error']}" for row in objects if "error" in row]
        alone = Plain(pa.array([compact_text(row) + "\n" for row in objects], text_columns.TEXT))
        rendered.append((np.flatnonzero(left), text_columns.laid_out([alone], len(objects))))
    return Lines(text_columns.merged(rendered, columns.num_rows), errors)


def _rendered_together(columns: pa.RecordBatch, place: Place) -> Iterator[tuple[Rows, Text]]:
    """Lines of rows that have the same layout, with the numbers of these rows (ascending)."""
    # Records of the metadata log have no key, and no int16 in front: their layout is known only once they are read.
    if place.family is Family.METADATA:
        return
    head = text_columns.folded(_head(columns, place), columns.num_rows)
    for record_type, version, rows in _by_layout(columns, place.family):
        try:
            rows, text = _body(columns, record_type, version, rows, place.family)
        except UnusualError:
            continue
        picked = (text_columns.picked(part, rows) for part in head)
        yield rows, text_columns.laid_out([*picked, *text, Const("}\n")], len(rows))


def _by_layout(columns: pa.RecordBatch, family: Family) -> Iterator[tuple[int, int | None, Rows]]:
    """The rows of each record type and value version (None: tombstones) that occur in more than a few rows."""
    records = pc.equal(columns.column("kind"), Kind.RECORD.value).to_numpy(zero_copy_only=False)
    types = np.where(records, _leading_numbers(columns.column("key")), NONE)
    versions = _leading_numbers(columns.column("value"))
    for record_type, schema in record_schemas(family).items():
        of_type = types == record_type
        if np.count_nonzero(of_type) > FEW_ROWS:
            for version in (None, *schema.value.versions):
                rows = np.flatnonzero(of_type & (versions == (NULL if version is None else version)))
                if len(rows) > FEW_ROWS:
                    yield record_type, version, rows


def _leading_numbers(column: pa.Array) -> Rows:
    """The int16 that each key or value begins with, NULL for nulls, NONE for those that are shorter."""
    source = RowBytes.of(column)
    high, low = (source.data.take(source.starts + at, mode="clip").astype(np.int64) for at in (0, 1))
    numbers = np.where(source.ends - source.starts < 2, NONE, high << 8 | low)
    return numbers if source.valid is None else np.where(source.valid, numbers, NULL)


def _body(
    columns: pa.RecordBatch, record_type: int, version: int | None, rows: Rows, family: Family
) -> tuple[Rows, list[Part]]:
    """Type, key and value of those rows that decode; raises UnusualError."""
    schema = record_schema(record_type, family)
    if schema.key is None or not len(rows):
        raise UnusualError(f"no keys of {schema.name}")
    key, value = (
        column if len(rows) == len(column) else column.take(pa.array(rows))
        for column in (columns.column("key"), columns.column("value"))
    )
    keys = decode_keys(key, family)
    values = decode_values(value, keys.numbers, family)
    # What does not decode is left to the row by row code, which prints the error; the others are decoded again.
    if wrong := [*keys.errors, *values.errors]:
        return _body(columns, record_type, version, np.delete(rows, wrong), family)
    kind = Const(f',"type":{record_type},"typeName":"{schema.name}","key":')
    key_parts = json_parts(keys.groups[record_type].values, layout(schema.key, schema.key.versions.start))
    if version is None:
        return rows, [kind, *key_parts, Const(',"valueVersion":null,"value":null')]
    value_parts = json_parts(values.groups[record_type].values, layout(schema.value, version))
    return rows, [kind, *key_parts, Const(f',"valueVersion":{version},"value":'), *value_parts]


def _head(columns: pa.RecordBatch, place: Place) -> Iterator[Part]:
    """What comes before the type: position, batch, producer, sizes."""
    column = columns.column
    yield Const(f'{{"partition":{place.partition},"offset":')
    yield from text_columns.integers(column("offset"))
    yield Const(',"timestamp":')
    yield from text_columns.integers(column("timestamp"))
    yield Const(f',{compact_text(place.names)[1:-1]},"batchBase":')
    yield from text_columns.integers(column("batch_base_offset"))
    yield Const(',"batchLast":')
    yield from text_columns.integers(column("batch_last_offset"))
    yield Const(',"leaderEpoch":')
    yield from text_columns.integers(column("leader_epoch"))
    yield Const(',"compression":')
    yield text_columns.words(column("compression"))
    yield Const(',"tsType":')
    yield text_columns.names(
        [f'"{TIMESTAMP_TYPES[code]}"' for code in sorted(TIMESTAMP_TYPES)], column("timestamp_type").to_numpy() + 1
    )
    yield from _producer(column("producer_id"), column("producer_epoch"), column("base_sequence"))
    yield Const(',"isTransactional":')
    yield text_columns.booleans(column("is_transactional"))
    # Of these heads only those of data are picked (``_by_layout``): markers are printed row by row.
    yield Const(',"isControl":false,"keySize":')
    yield from text_columns.integers(pc.binary_length(column("key")).fill_null(-1))
    yield Const(',"valueSize":')
    yield from text_columns.integers(pc.binary_length(column("value")).fill_null(-1))


def _producer(ids: pa.Array, epochs: pa.Array, sequences: pa.Array) -> Iterator[Part]:
    without_producer = ids.to_numpy() < 0
    if without_producer.all():
        return
    named = (("producerId", ids), ("producerEpoch", epochs), ("baseSequence", sequences))
    parts = [part for name, values in named for part in (Const(f',"{name}":'), *text_columns.integers(values))]
    yield text_columns.replaced(text_columns.combined(parts, len(ids)), without_producer, "")


class UnusualError(CoordinatorAuditError):
    """The columns hold something that only the row by row code can print, such as unknown tagged fields or
    trailing bytes.
    """


def json_parts(column: pa.StructArray, node: Struct) -> Iterator[Part]:
    """Yield the parts of the JSON object of each row of a key or value column; all rows must have this layout.

    Raises UnusualError.
    """
    for extra in (UNKNOWN_TAGGED_FIELDS, TRAILING_BYTES):
        at = column.type.get_field_index(extra)
        if at >= 0 and column.field(at).null_count < len(column):
            raise UnusualError(f"{extra} among the columns")
    yield Const("{")
    plain = [at for at, slot in enumerate(node.declared) if slot.tag is None]
    first = plain[0] if plain else 0
    if not plain and len(node.declared) > 1:
        raise UnusualError("tagged fields only: where commas go differs from row to row")
    for at, slot in enumerate(node.declared):
        # Every field but the first brings its comma along: those before the first that is always there, behind them.
        before, behind = ("," if at > first else "") + f'"{slot.name}":', ("," if at < first else "")
        parts = _parts(column.field(slot.name), slot.node)
        if slot.tag is None:
            yield from (Const(before), *parts, Const(behind))
        else:
            yield text_columns.optional(before, text_columns.combined(parts, len(column)), behind, _absent(slot))
    yield Const("}")


def _absent(slot: Slot) -> list[str]:
    """The texts of a tagged field that mean that it is left out: it is not there, or is its default."""
    nullable = not isinstance(slot.node, Scalar) and slot.node.nullable
    if nullable and slot.default is not None:
        raise UnusualError(f"{slot.name}: a null may be written or left out, and a column does not say which")
    return ["null", json.dumps(slot.default, ensure_ascii=False, separators=(",", ":"))]


def _parts(values: pa.Array, node: Node) -> Iterator[Part]:
    match node:
        case Scalar("boolean"):
            yield text_columns.booleans(values)
        case Sized("bytes"):
            yield text_columns.base64(values)
        case Scalar("uuid") | Sized():
            yield from text_columns.strings(values)
        case Scalar():
            yield from text_columns.integers(values)
        case Array():
            yield from _or_null(_list_parts(values, node), values)
        case Struct():
            yield from _or_null(json_parts(values, node), values)


def _or_null(parts: Iterator[Part], values: pa.Array) -> Iterator[Part]:
    if values.null_count == 0:
        yield from parts
    else:
        null: Mask = values.is_null().to_numpy(zero_copy_only=False)
        yield text_columns.replaced(text_columns.combined(parts, len(values)), null, "null")


def _list_parts(values: pa.ListArray, node: Array) -> Iterator[Part]:
    elements = values.flatten()
    # Nulls have no elements: the offsets are counted anew, as a slice or a null of Arrow may cover some.
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(pc.list_value_length(values).fill_null(0).to_numpy(), out=offsets[1:])
    listed = (
        text_columns.column(_parts(elements, node.element), len(elements))
        if len(elements)
        else pa.array([], text_columns.TEXT)
    )
    yield from (Const("["), Plain(pc.binary_join(pa.ListArray.from_arrays(offsets, listed), ",")), Const("]"))
