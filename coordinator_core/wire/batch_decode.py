"""Whole Arrow batches of keys and values to Arrow structs, one struct type for each record type.

The work is done a column at a time with numpy on the raw buffers. The plain decoder decodes rows that hold anything
unusual (an error, a newer version, an unknown tagged field, trailing bytes, a very long list), so that both always
agree. It also decodes record types with few rows, for which columns are not faster.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coordinator_core.errors import DecodeError
from coordinator_core.records import Family, Fields
from coordinator_core.wire.arrow_types import message_type, to_arrow
from coordinator_core.wire.column_readers import Column, column
from coordinator_core.wire.cursor import Cursor, Ints, RowBytes, expand
from coordinator_core.wire.message_layout import layout
from coordinator_core.wire.record_codec import decode_key, decode_value
from coordinator_core.wire.schema import Message, record_schemas

FEW_RECORDS: Final = 64
"""Up to this many records of one type and version are decoded one by one."""

NO_TYPE: Final = -1
"""The record type or version of a row that has none."""

Numbers = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class DecodedType:
    """The decoded records of one type: ``values[i]`` is row ``rows[i]`` of the batch (ascending)."""

    rows: Ints
    values: pa.StructArray

    def over(self, count: int) -> pa.StructArray:
        """Return the values as a column of a batch of ``count`` rows, null in the rows of other types."""
        return expand(self.values, self.rows, count)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded batch: every row is in one group, or in ``errors``, or was null.

    ``numbers`` holds each row's record type (keys) or version (values), NO_TYPE where it could not be read.
    """

    numbers: Numbers
    groups: dict[int, DecodedType] = field(default_factory=dict)
    errors: dict[int, DecodeError] = field(default_factory=dict)


def decode_keys(keys: pa.Array | pa.ChunkedArray, family: Family = Family.GROUP) -> Decoded:
    """Return the keys of one log (any binary array) by record type; a null key is neither in a group nor an error."""
    source = RowBytes.of(keys)
    rows = _valid_rows(source)
    decoded = Decoded(_leading_numbers(source, rows))
    # A key has no version of its own: the number in front of it is the record type.
    for number, of_type in _by_number(rows, decoded.numbers):
        schema = record_schemas(family).get(number)
        message = schema.key if schema else None
        fallback = Fallback(lambda data: decode_key(data, family)[1], decoded.errors)
        if message is None:
            fallback.decode(source, of_type)
        elif group := _decode_group(source, message, [(message.versions.start, of_type)], fallback):
            decoded.groups[number] = group
    return decoded


def decode_values(values: pa.Array | pa.ChunkedArray, types: Numbers, family: Family = Family.GROUP) -> Decoded:
    """Return the values of one log by record type, given the type of each row (``numbers`` of the decoded keys).

    Rows of types without a schema are skipped: their key is an error already.
    """
    source = RowBytes.of(values)
    rows = _valid_rows(source)
    decoded = Decoded(_leading_numbers(source, rows))
    for number, of_type in _by_number(rows, types):
        if (schema := record_schemas(family).get(number)) is None:
            continue
        fallback = Fallback(partial(_decode_value_fields, number, family), decoded.errors)
        if group := _decode_group(source, schema.value, _by_number(of_type, decoded.numbers), fallback):
            decoded.groups[number] = group
    return decoded


def _decode_value_fields(record_type: int, family: Family, data: bytes) -> Fields:
    return decode_value(data, record_type, family)[1]


@dataclass(frozen=True, slots=True)
class Fallback:
    """The plain decoder for single rows; rows that it cannot decode go to ``errors``."""

    decode_one: Callable[[bytes], Fields]
    errors: dict[int, DecodeError]

    def decode(self, source: RowBytes, rows: Ints) -> tuple[Ints, list[Fields]]:
        """Return the rows that decode, and their fields."""
        good, decoded = [], []
        for row in rows.tolist():
            try:
                decoded.append(self.decode_one(source.row(row)))
            except DecodeError as error:
                self.errors[row] = error
            else:
                good.append(row)
        return np.array(good, np.int64), decoded


def _valid_rows(source: RowBytes) -> Ints:
    return np.arange(len(source.starts)) if source.valid is None else np.flatnonzero(source.valid)


def _cursor(source: RowBytes, rows: Ints, skipped: int) -> Cursor:
    """A cursor over some rows (ascending), some bytes from the beginning of each."""
    starts, ends = source.starts, source.ends
    if len(rows) < len(starts):
        starts, ends = starts[rows], ends[rows]
    return Cursor(source, starts + skipped, ends, np.zeros(len(rows), np.bool_))


def _leading_numbers(source: RowBytes, rows: Ints) -> Numbers:
    """The int16 that each row begins with, NO_TYPE where it has none."""
    cursor = _cursor(source, rows, 0)
    leading = cursor.number("i2").astype(np.int16)
    leading[cursor.failed] = NO_TYPE
    if len(rows) == len(source.starts):
        return leading
    numbers = np.full(len(source.starts), NO_TYPE, np.int16)
    numbers[rows] = leading
    return numbers


def _by_number(rows: Ints, numbers: Numbers) -> Iterator[tuple[int, Ints]]:
    """The rows of each number, ascending."""
    of_rows = numbers if len(rows) == len(numbers) else numbers[rows]
    if not len(rows):
        return
    if (of_rows == of_rows[0]).all():
        yield int(of_rows[0]), rows
        return
    # One sort makes the rows of each number neighbours; as it is stable, they stay ascending.
    order = np.argsort(of_rows, kind="stable")
    numbers_there, first = np.unique(of_rows[order], return_index=True)
    yield from zip(numbers_there.tolist(), np.split(rows[order], first[1:]), strict=True)


@cache
def _struct_column(message: Message, version: int) -> Column:
    return column(layout(message, version), message_type(message))


def _decode_group(
    source: RowBytes, message: Message, by_version: Iterable[tuple[int, Ints]], fallback: Fallback
) -> DecodedType | None:
    """All records of one type, None if none decodes."""
    groups = []
    for version, version_rows in by_version:
        rows = version_rows
        # A version that no schema knows goes to the plain decoder, too: it says so in its error.
        if version in message.versions and len(rows) > FEW_RECORDS:
            decoded, rows = _decode_columns(source, message, version, rows)
            groups.append(decoded)
        if len(rows):
            good, fields = fallback.decode(source, rows)
            groups.append(DecodedType(good, to_arrow(fields, message_type(message))))
    groups = [group for group in groups if len(group.rows)]
    if len(groups) <= 1:
        return groups[0] if groups else None
    # Rows of several versions, or of both decoders, are brought into the order of the batch.
    rows = np.concatenate([group.rows for group in groups])
    order = np.argsort(rows)
    return DecodedType(rows[order], pa.concat_arrays([group.values for group in groups]).take(pa.array(order)))


def _decode_columns(source: RowBytes, message: Message, version: int, rows: Ints) -> tuple[DecodedType, Ints]:
    """The records that the columns can take, and the rows that they cannot."""
    # The two bytes of the type or version are there: by them these rows were found.
    cursor = _cursor(source, rows, 2)
    values = _struct_column(message, version).read(cursor)
    cursor.fail(cursor.at != cursor.end)  # trailing bytes: the plain decoder keeps them
    if not cursor.failed.any():
        return DecodedType(rows, values), rows[:0]
    good = ~cursor.failed
    return DecodedType(rows[good], values.filter(pa.array(good))), rows[cursor.failed]
