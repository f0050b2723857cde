"""Tagged fields (KIP-482) of many rows at once.

Only what brokers write is read here: known tags in ascending order. All other rows are left to the plain decoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa

from coordinator_core.wire.cursor import Cursor, Ints, expand


class _Readable(Protocol):
    def read(self, cursor: Cursor) -> pa.Array: ...


class TaggedColumns:
    """Reads the tagged fields of a struct: ``columns`` holds name and column of each tag."""

    def __init__(self, columns: Mapping[int, tuple[str, _Readable]]) -> None:
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
