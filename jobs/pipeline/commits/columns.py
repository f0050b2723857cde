"""Columns of commits as arrays of numbers: ids for texts, columns that grow, values that may be null."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NULL: Final = int(np.iinfo(np.int64).min)
"""Stands for null in an array of numbers."""


class Ids:
    """Numbers for values, from 0, in the order in which they are seen first."""

    def __init__(self) -> None:
        self.numbers: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def of(self, values: Iterable[Hashable]) -> Ints:
        """Return the number of each value."""
        known = self.numbers
        return np.array([known.setdefault(value, len(known)) for value in values], np.int64)

    def of_text(self, column: pa.Array) -> Ints:
        """Return the number of each text of a column; -1 for null."""
        encoded = column.dictionary_encode()
        # One dictionary look-up for each distinct text; -1 at the end is where an index of -1, null, points.
        numbers = np.append(self.of(encoded.dictionary.to_pylist()), -1)
        return numbers[ints(encoded.indices, -1)]


class GrowingColumns:
    """Columns of numbers by name, a row for each id. New rows have the values that were given for their column."""

    def __init__(self, **empty: int) -> None:
        self._empty = empty
        self._columns = {name: np.full(256, value, np.int64) for name, value in empty.items()}

    def grow(self, size: int) -> None:
        """Make room for the ids below ``size``."""
        there = len(next(iter(self._columns.values())))
        if size > there:
            for name, value in self._empty.items():
                # Doubled: to grow by each chunk's new ids would copy all rows again with each chunk.
                more = np.full(max(size, 2 * there) - there, value, np.int64)
                self._columns[name] = np.concatenate([self._columns[name], more])

    def __getitem__(self, name: str) -> Ints:
        return self._columns[name]

    def set(self, ids: Ints, **values: Any) -> None:
        """Set columns of some rows."""
        for name, value in values.items():
            self._columns[name][ids] = value


def ints(column: pa.Array | pa.ChunkedArray, null: int = NULL) -> Ints:
    """Return a column of numbers as an array, with ``null`` for null."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    filled = whole.cast(pa.int64())
    if filled.null_count:
        filled = filled.fill_null(null)
    numbers: Ints = filled.to_numpy(zero_copy_only=False)
    return numbers


def flags(column: pa.Array | pa.ChunkedArray) -> Flags:
    """Return a column of booleans as an array; null is false."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    are_true: Flags = whole.fill_null(False).to_numpy(zero_copy_only=False)
    return are_true


def nullable(values: Ints, of_type: pa.DataType | None = None) -> pa.Array:
    """Return an array as a column, with null for ``NULL``."""
    return pa.array(values, pa.int64(), mask=values == NULL).cast(of_type or pa.int64())


def structs(fields: Mapping[str, pa.Array], of_type: pa.StructType, absent: Flags | None = None) -> pa.Array:
    """Return columns as one column of structs; ``absent`` rows are null."""
    arrays = [fields[field.name].cast(field.type) for field in of_type]
    mask = None if absent is None else pa.array(absent)
    return pa.StructArray.from_arrays(arrays, fields=list(of_type), mask=mask)


def lists(owners: Ints, values: pa.Array, count: int, most: int | None = None) -> pa.Array:
    """Return for each of ``count`` rows the list of values that it owns, in order; at most ``most`` of them.

    ``owners`` has the number of its row for each value.
    """
    # In order of their owners the values of a row are a block; as the sort is stable, they keep their order in it.
    order = order_of(owners)
    sizes = np.bincount(owners, minlength=count)
    if most is not None and len(owners) and sizes.max() > most:
        begins = np.cumsum(sizes) - sizes
        # The place of a value in its block: its index less that of the first value of the block.
        order = order[np.arange(len(order)) - begins[owners[order]] < most]
        sizes = np.minimum(sizes, most)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), values.take(pa.array(order)))


def order_of(values: Ints) -> Ints:
    """Return the stable order of numbers that are not negative: indices, as many as there are values.

    NumPy sorts 16-bit numbers by counting, in time proportional to their count, and all others by comparing. So the
    lowest 16 bits are ordered first and the rest after it, as in a radix sort: each step is stable, so the order of the
    lower bits stays where the higher ones are equal. Numbers of keys are small: one or two steps are enough.
    """
    low = np.argsort((values & 0xFFFF).astype(np.uint16), kind="stable")
    if not len(values) or values.max() < 1 << 16:
        return low
    high = values[low] >> 16
    return low[order_of(high)]


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """Return the index at which each different value occurs first, ascending by value, and for each value the number of
    its kind: ``values[first][kinds]`` is ``values``. The values are not negative.

    It is ``numpy.unique`` with both its indices, by ``order_of``.
    """
    # In order, each value that differs from the one before begins a kind; its number is how many began before it.
    order = order_of(values)
    ordered = values[order]
    is_first = np.ones(len(values), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    numbers = np.empty(len(values), np.int64)
    numbers[order] = np.cumsum(is_first) - 1
    return order[is_first], numbers


def runs_of(values: Ints) -> tuple[Ints, Ints]:
    """Return the first and the last index of each run of equal values."""
    if not len(values):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    begins = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return begins, np.append(begins[1:], len(values)) - 1


def counted_before(groups: Ints, places: Ints, of_groups: Ints, of_places: Ints) -> Ints:
    """Return for each commit how many of the other rows are of its group and lie before it, by their places in a log.

    The other rows are in the order of the log.
    """
    if not len(of_groups):
        return np.zeros(len(groups), np.int64)
    # In the order of the log, so a stable sort by group leaves each group's in order.
    order = np.argsort(of_groups, kind="stable")
    # Group and place as one number, so that one search serves all groups: below the number of a commit lie the rows of
    # groups before its own, which the second search counts, and those of its own before the commit.
    # Places become ranks, as the product of a group's id and an offset may not fit into 64 bits.
    ranks = np.unique(np.concatenate([of_places[order], places]), return_inverse=True)[1]
    scale = len(ranks)
    rows = of_groups[order] * scale + ranks[: len(order)]
    return np.searchsorted(rows, groups * scale + ranks[len(order) :]) - np.searchsorted(rows, groups * scale)
