"""A layout as columns: for each node a reader that reads it in many rows at once, or skips it.

Elements of varying size are found by walking: the first elements of all rows, then all the second ones, and so on. All
elements that were found are then read together.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from coordinator_core.errors import SchemaError
from coordinator_core.wire.cursor import Cursor, Ints, Mask, bitmap, expand
from coordinator_core.wire.message_layout import SCALAR_SIZES, Array, Node, Scalar, Sized, Slot, Struct, smallest
from coordinator_core.wire.primitives import MAX_ARRAY
from coordinator_core.wire.scalars import WIRE_TYPES, Raw, to_arrow

FEW_ROWS: Final = 64
"""A list is walked only as far as this many rows reach; longer ones are left to the plain decoder. Each step of a walk
costs the same calls of numpy, however few rows it reaches."""

SHORT_LIST: Final = 16
"""Lists up to this length are read in columns even if few rows have one that long: so few steps cost little."""


class Column(Protocol):
    """Reads one node in every row of a cursor, and moves the cursor forward."""

    def read(self, cursor: Cursor) -> pa.Array:
        """Return the values in the Arrow type that the column was made for."""
        ...

    def skip(self, cursor: Cursor) -> None:
        """Move the cursor forward without reading."""
        ...


def column(node: Node, arrow_type: pa.DataType, *, in_tag: bool = False) -> Column:
    """Return the column of a node; a struct in ``arrow_type`` may have more fields than this version, which are
    null.
    """
    match node:
        case Scalar(name):
            return ScalarColumn(name)
        case Sized("utf16_string"):
            raise SchemaError("UTF-16 text stands in embedded blobs only, which have no columns")
        case Sized():
            return SizedColumn(node)
        case Array():
            return ArrayColumn(node, arrow_type)
        case Struct(nullable=True):
            return NullableStructColumn(node, arrow_type, in_tag=in_tag)
        case Struct():
            return StructColumn(node, arrow_type)


class ScalarColumn:
    """Values of fixed width."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, cursor: Cursor) -> pa.Array:
        """See Column."""
        return _convert(self.name, cursor.fixed(SCALAR_SIZES[self.name]).view(WIRE_TYPES[self.name]), cursor)

    def skip(self, cursor: Cursor) -> None:
        """See Column."""
        cursor.step(SCALAR_SIZES[self.name])


class Run:
    """Neighbouring fields of fixed width, read together."""

    def __init__(self, slots: list[Slot]) -> None:
        self.types = {slot.name: slot.node.name for slot in slots if isinstance(slot.node, Scalar)}
        self.record = np.dtype([(name, WIRE_TYPES[wire]) for name, wire in self.types.items()])

    def read(self, cursor: Cursor) -> Iterator[tuple[str, pa.Array]]:
        """Yield the columns with their names."""
        # The fields of all rows are copied once; each column is then a view that steps over the others.
        records = cursor.fixed(self.record.itemsize).view(self.record)
        for name, wire in self.types.items():
            yield name, _convert(wire, records[name], cursor)

    def skip(self, cursor: Cursor) -> None:
        """Move the cursor forward without reading."""
        cursor.step(self.record.itemsize)


def _convert(wire: str, raw: Raw, cursor: Cursor) -> pa.Array:
    if wire == "boolean":
        cursor.fail(raw > 1)
    return to_arrow(wire, raw)


class SizedColumn:
    """Text or bytes with their length before them."""

    def __init__(self, node: Sized) -> None:
        self.node = node
        self.arrow_type = pa.string() if node.kind == "string" else pa.binary()

    def read(self, cursor: Cursor) -> pa.Array:
        """See Column."""
        lengths, null = _read_lengths(self.node, cursor)
        starts = cursor.step(lengths)
        # Behind the step the cursor is at the end of each value: starts and ends are all that Arrow needs to copy them.
        offsets, content = cursor.source.gather(starts, cursor.at)
        buffers = [bitmap(null), pa.py_buffer(offsets), content]
        # Arrow does not check UTF-8 in buffers that it is given. Nearly all text is ASCII, which needs no check.
        if self.node.kind == "string" and np.frombuffer(content, np.uint8).max(initial=0) >= 0x80:
            _fail_invalid_text(pa.Array.from_buffers(pa.binary(), len(cursor), buffers), cursor)
        return pa.Array.from_buffers(self.arrow_type, len(cursor), buffers)

    def skip(self, cursor: Cursor) -> None:
        """See Column."""
        cursor.step(_read_lengths(self.node, cursor)[0])


def _read_lengths(node: Sized | Array, cursor: Cursor) -> tuple[Ints, Mask | None]:
    """Lengths of at least 0, and which of them are null (None: none)."""
    if node.compact:
        lengths = cursor.unsigned_varint() - 1
    else:
        lengths = cursor.number("i2" if isinstance(node, Sized) and node.kind == "string" else "i4")
    negative = lengths < 0
    if not negative.any():
        return lengths, None
    null = lengths == -1 if node.nullable else None
    cursor.fail(negative if null is None else lengths < -1)
    # What is null takes no bytes: with -1 the cursor would step back.
    lengths[negative] = 0
    return lengths, null


def _fail_invalid_text(values: pa.BinaryArray, cursor: Cursor) -> None:
    try:
        # One cast checks all values; only where it fails each one is tried, to find the rows that are to blame.
        values.cast(pa.string())
    except pa.ArrowInvalid:
        cursor.fail(np.array([value is not None and not _is_utf8(value) for value in values.to_pylist()]))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class ArrayColumn:
    """Elements with their count before them."""

    def __init__(self, node: Array, arrow_type: pa.ListType) -> None:
        self.node = node
        self.arrow_type = arrow_type
        self.element = column(node.element, arrow_type.value_type)
        self.least = smallest(node.element)
        # Booleans are walked as elements: each byte must be looked at, as only 0 and 1 are valid.
        fixed = isinstance(node.element, Scalar) and node.element.name != "boolean"
        self.scalar = node.element.name if isinstance(node.element, Scalar) and fixed else None

    def read(self, cursor: Cursor) -> pa.Array:
        """See Column."""
        counts, null = self._counts(cursor)
        if self.scalar is not None:  # elements of one width: those of a row are one piece, and need no walk
            starts = cursor.step(counts * self.least)
            _, content = cursor.source.gather(starts, cursor.at)
            child = to_arrow(self.scalar, np.frombuffer(content, WIRE_TYPES[self.scalar]))
        else:
            starts = self._walk(cursor, counts)
            child = self.element.read(cursor.spread(starts, counts)) if len(starts) else None
        if child is None:
            child = pa.array([], self.arrow_type.value_type)
        # offsets[i] is where row i starts among all elements: one cumulative sum instead of a loop over rows.
        offsets = np.zeros(len(cursor) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        buffers = [bitmap(null), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(self.arrow_type, len(cursor), buffers, children=[child])

    def skip(self, cursor: Cursor) -> None:
        """See Column."""
        counts, _ = self._counts(cursor)
        if self.scalar is not None:
            cursor.step(counts * self.least)
        else:
            self._walk(cursor, counts)

    def _counts(self, cursor: Cursor) -> tuple[Ints, Mask | None]:
        counts, null = _read_lengths(self.node, cursor)
        # Arrays are made as long as these counts say: no count may be larger than the bytes that are left.
        over = (counts > MAX_ARRAY) | (counts * self.least > cursor.end - cursor.at)
        if over.any():
            cursor.fail(over)
            counts[over] = 0
        return counts, null

    def _walk(self, cursor: Cursor, counts: Ints) -> Ints:
        """Where each element starts, row by row. Rows that reach too far alone fail, and count as empty."""
        # The count that FEW_ROWS rows have or exceed: ``partition`` finds it without a sort.
        longest = np.partition(counts, -FEW_ROWS)[-FEW_ROWS] if len(counts) >= FEW_ROWS else 0
        over = counts > max(longest, SHORT_LIST)
        cursor.fail(over)
        counts[over] = 0
        # ``starts`` has the elements of row 0, then those of row 1, and so on: element k of a row is at ``first`` + k.
        first = np.cumsum(counts) - counts
        starts = np.empty(counts.sum(), np.int64)
        entries = np.flatnonzero(counts)
        done = 0
        while len(entries):
            part = cursor.pick(entries)
            starts[first[entries] + done] = part.at
            self.element.skip(part)
            cursor.put_back(entries, part)
            done += 1
            entries = entries[counts[entries] > done]
        return starts


class StructColumn:
    """Fields one after another, then the tagged ones."""

    def __init__(self, node: Struct, arrow_type: pa.StructType) -> None:
        self.arrow_type = arrow_type
        self.steps = list(_steps(node, arrow_type))
        columns = {
            tag: (slot.name, column(slot.node, arrow_type.field(slot.name).type, in_tag=True))
            for tag, slot in node.tagged
        }
        self.tagged = TaggedColumns(columns) if node.flexible else None

    def read(self, cursor: Cursor) -> pa.Array:
        """See Column."""
        parts: dict[str, pa.Array] = {}
        for name, step in self.steps:
            if isinstance(step, Run):
                parts.update(step.read(cursor))
            else:
                parts[name] = step.read(cursor)
        if self.tagged is not None:
            parts.update(self.tagged.read(cursor))
        arrays = [
            parts[field.name] if field.name in parts else pa.nulls(len(cursor), field.type) for field in self.arrow_type
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(self.arrow_type))

    def skip(self, cursor: Cursor) -> None:
        """See Column."""
        for _, step in self.steps:
            step.skip(cursor)
        if self.tagged is not None:
            self.tagged.skip(cursor)


def _steps(node: Struct, arrow_type: pa.StructType) -> Iterator[tuple[str, Run | Column]]:
    for is_scalar, slots in groupby(node.slots, lambda slot: isinstance(slot.node, Scalar)):
        if is_scalar:
            yield "", Run(list(slots))
        else:
            for slot in slots:
                yield slot.name, column(slot.node, arrow_type.field(slot.name).type)


class NullableStructColumn:
    """A struct with a presence marker before it, which inside a tagged field is a varint."""

    def __init__(self, node: Struct, arrow_type: pa.StructType, *, in_tag: bool) -> None:
        self.arrow_type = arrow_type
        self.present = StructColumn(node.present(), arrow_type)
        self.in_tag = in_tag

    def read(self, cursor: Cursor) -> pa.Array:
        """See Column."""
        entries = self._present(cursor)
        if not len(entries):
            return pa.nulls(len(cursor), self.arrow_type)
        part = cursor.pick(entries)
        values = self.present.read(part)
        cursor.put_back(entries, part)
        return expand(values, entries, len(cursor))

    def skip(self, cursor: Cursor) -> None:
        """See Column."""
        entries = self._present(cursor)
        part = cursor.pick(entries)
        self.present.skip(part)
        cursor.put_back(entries, part)

    def _present(self, cursor: Cursor) -> Ints:
        # Null is -1, but 0 in a tag, as its varint has no sign.
        presence = cursor.unsigned_varint() if self.in_tag else cursor.number("i1")
        cursor.fail((presence != 1) & (presence != (0 if self.in_tag else -1)))
        return np.flatnonzero(presence == 1)


class TaggedColumns:
    """Reads the tagged fields (KIP-482) of a struct: ``columns`` holds name and column of each tag.

    Only what brokers write is read here: known tags in ascending order. All other rows are left to the plain decoder.
    """

    def __init__(self, columns: Mapping[int, tuple[str, Column]]) -> None:
        self.columns = columns

    def read(self, cursor: Cursor) -> dict[str, pa.Array]:
        """Return the fields that occur, by name; null in rows without the field."""
        places: dict[int, list[tuple[Ints, Ints, Ints]]] = {}
        for entries, tags, starts, ends in self._fields(cursor):
            if _all_equal(tags) and tags[0] in self.columns:
                places.setdefault(int(tags[0]), []).append((entries, starts, ends))
                continue
            for tag in np.intersect1d(tags, list(self.columns)).tolist():
                of_tag = tags == tag
                places.setdefault(tag, []).append((entries[of_tag], starts[of_tag], ends[of_tag]))
        return {self.columns[tag][0]: self._read_field(cursor, tag, parts) for tag, parts in places.items()}

    def _read_field(self, cursor: Cursor, tag: int, parts: list[tuple[Ints, Ints, Ints]]) -> pa.Array:
        entries, starts, ends = parts[0]
        if len(parts) > 1:
            # A tag may be the first field of some rows and the second of others: its places are brought into the order
            # of rows.
            entries, starts, ends = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            order = np.argsort(entries)
            entries, starts, ends = entries[order], starts[order], ends[order]
        content = cursor.over(entries, starts, ends)
        array = self.columns[tag][1].read(content)
        # A field that is shorter than its size says is for the plain decoder, which names the place.
        content.fail(content.at != content.end)
        return expand(array, entries, len(cursor))

    def skip(self, cursor: Cursor) -> None:
        """Move the cursor forward without reading."""
        for _ in self._fields(cursor):
            pass

    def _fields(self, cursor: Cursor) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Yield the first field of all rows, then the second, ...: entries, tags, starts and ends of their contents.

        No entry has the same tag twice: tags ascend. So the entries of a tag are distinct, as ``expand`` needs them.
        """
        counts = cursor.unsigned_varint()
        # More fields than there are known tags: one is unknown, or there twice.
        over = counts > len(self.columns)
        if over.any():
            cursor.fail(over)
            counts[over] = 0
        most = int(counts.max(initial=0))
        last = np.full(len(cursor), -1)
        for done in range(most):
            # A failed row reads nothing from then on. If it stayed in, it would be read at position 0 of the buffer,
            # which belongs to another row, and could come out as one more field of its own.
            entries = np.flatnonzero((counts > done) & ~cursor.has_failed())
            if not len(entries):
                return
            part = cursor.pick(entries)
            tags, sizes = part.unsigned_varint(), part.unsigned_varint()
            # Mostly all rows have one and the same field, and then nothing can be out of order.
            if not (most == 1 and _all_equal(tags) and int(tags[0]) in self.columns):
                wrong = (tags <= last[entries]) | ~np.isin(tags, list(self.columns))
                part.fail(wrong)
                tags[wrong], sizes[wrong] = -1, 0
                last[entries] = tags
            starts = part.step(sizes)
            yield entries, tags, starts, part.at
            cursor.put_back(entries, part)


def _all_equal(numbers: Ints) -> bool:
    return len(numbers) > 0 and bool((numbers == numbers[0]).all())
