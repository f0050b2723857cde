"""Tagged fields (KIP-482) of many rows at once.

Only what brokers write is read here: known tags in ascending order. Rows with any other are left to the plain decoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa

from coordinator_core.wire.vectors import Cursor, Ints, expand


class _Readable(Protocol):
    def read(self, cursor: Cursor) -> pa.Array: ...


class TaggedColumns:
    """The tagged fields of a struct: ``columns`` holds name and column of each tag."""

    def __init__(self, columns: Mapping[int, tuple[str, _Readable]]) -> None:
        self.columns = columns

    def read(self, cursor: Cursor) -> dict[str, pa.Array]:
        """The fields that occur, by name; null where a row leaves them out."""
        places: dict[int, list[tuple[Ints, Ints, Ints]]] = {}
        for entries, tags, starts, sizes in self._fields(cursor):
            for tag in np.unique(tags).tolist():
                of_tag = tags == tag
                places.setdefault(tag, []).append((entries[of_tag], starts[of_tag], sizes[of_tag]))
        found = {}
        for tag, parts in places.items():
            entries, starts, sizes = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            order = np.argsort(entries)
            entries, starts, sizes = entries[order], starts[order], sizes[order]
            name, column = self.columns[tag]
            part = cursor.pick(entries)
            part.at, part.end = starts, starts + sizes
            array = column.read(part)
            part.fail(part.at != part.end)
            found[name] = expand(array, entries, len(cursor))
        return found

    def skip(self, cursor: Cursor) -> None:
        """Only moves on."""
        for _ in self._fields(cursor):
            pass

    def _fields(self, cursor: Cursor) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """The first field of all rows, then the second, ...: entries, tags, starts and sizes of their contents."""
        counts = cursor.unsigned_varint()
        over = counts > len(self.columns)
        if over.any():
            cursor.fail(over)
            counts[over] = 0
        entries = np.flatnonzero(counts)
        last = np.full(len(cursor), -1)
        done = 0
        while len(entries):
            part = cursor.pick(entries)
            tags, sizes = part.unsigned_varint(), part.unsigned_varint()
            wrong = (tags <= last[entries]) | ~np.isin(tags, list(self.columns)) | (part.at + sizes > part.end)
            if wrong.any():
                part.fail(wrong)
                sizes[wrong] = 0
            last[entries] = tags
            right = ~wrong
            yield entries[right], tags[right], part.at[right], sizes[right]
            part.at += sizes
            cursor.put_back(entries, part)
            done += 1
            entries = entries[right & (counts[entries] > done)]
