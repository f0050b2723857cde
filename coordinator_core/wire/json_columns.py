"""Decoded columns as JSON text, the same text that ``kafka_json`` gives row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import CoordinatorAuditError
from coordinator_core.wire import text_columns
from coordinator_core.wire.codec import UNKNOWN_TAGGED_FIELDS
from coordinator_core.wire.message_layout import Array, Node, Scalar, Sized, Slot, Struct
from coordinator_core.wire.record_codec import TRAILING_BYTES
from coordinator_core.wire.text_columns import Const, Mask, Part, Plain


class UnusualError(CoordinatorAuditError):
    """The columns hold something that only the row by row code can print, such as unknown tagged fields or
    trailing bytes.
    """


def json_parts(column: pa.StructArray, layout: Struct) -> Iterator[Part]:
    """Yield the parts of the JSON object of each row of a key or value column; all rows must have this layout.

    Raises UnusualError.
    """
    for extra in (UNKNOWN_TAGGED_FIELDS, TRAILING_BYTES):
        at = column.type.get_field_index(extra)
        if at >= 0 and column.field(at).null_count < len(column):
            raise UnusualError(f"{extra} among the columns")
    yield Const("{")
    plain = [at for at, slot in enumerate(layout.declared) if slot.tag is None]
    first = plain[0] if plain else 0
    if not plain and len(layout.declared) > 1:
        raise UnusualError("tagged fields only: where commas go differs from row to row")
    for at, slot in enumerate(layout.declared):
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
