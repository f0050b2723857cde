"""The raw bytes of an Arrow batch, read at many positions at once with numpy.

A Cursor is at one position in each of many rows. What cannot be read there (too few bytes, a varint of two billion,
invalid text) does not raise: the row is marked as failed, reads nothing from then on, and the caller decodes it again
with the plain decoder, which gives the error. So the columnar decoder and the plain one cannot disagree.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_INT32_MAX: Final = 2**31 - 1

_PADDING: Final = 256
"""Every buffer is at least this long, so that a failed row has a harmless place to stand: position 0."""


@dataclass(frozen=True, slots=True)
class RowBytes:
    """The bytes of a batch, and where each row's bytes begin and end; null rows begin and end at 0."""

    data: npt.NDArray[np.uint8]
    buffer: pa.Buffer
    starts: Ints
    ends: Ints
    valid: Mask | None

    @classmethod
    def of(cls, array: pa.Array | pa.ChunkedArray) -> Self:
        """Return the bytes of any binary, large binary or binary view array (chunked, sliced or not), without a
        copy if possible.
        """
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
            array = array.cast(pa.large_binary())
        width = np.int64 if pa.types.is_large_binary(array.type) else np.int32
        _, offset_buffer, buffer = array.buffers()
        if len(array) == 0:
            offsets = np.zeros(1, np.int64)
        else:
            # A slice shares the buffers of the whole array: its own offsets are only some of those that lie there.
            offsets = np.frombuffer(offset_buffer, width)[array.offset : array.offset + len(array) + 1].astype(np.int64)
        if buffer is None or buffer.size < _PADDING:
            content = b"" if buffer is None else buffer.to_pybytes()
            buffer = pa.py_buffer(content.ljust(_PADDING, b"\0"))
        valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        return cls(np.frombuffer(buffer, np.uint8), buffer, offsets[:-1], offsets[1:], valid)

    def row(self, index: int) -> bytes:
        """Return the bytes of one row."""
        return self.data[self.starts[index] : self.ends[index]].tobytes()

    def gather(self, starts: Ints, ends: Ints) -> tuple[npt.NDArray[np.int32], pa.Buffer]:
        """Return the bytes of many ranges one after another, with their Arrow offsets.

        Arrow's own take does the copying: the ranges are the even elements of a binary array over the same buffer. The
        odd elements are never read, so the ranges may overlap and be in any order.
        """
        count = len(starts)
        if not count:
            return np.zeros(1, np.int32), pa.py_buffer(b"")
        wide = len(self.data) > _INT32_MAX
        edges = np.empty(2 * count + 1, np.int64 if wide else np.int32)
        edges[0:-1:2] = starts
        edges[1::2] = ends
        # Arrow reserves room by the distance from the first edge to the last: come near the true size
        edges[-1] = min(edges[0] + 2 * int(ends.sum() - starts.sum()), len(self.data))
        kind = pa.large_binary() if wide else pa.binary()
        ranges = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(edges), self.buffer])
        taken = ranges.take(_even_indices(count)).cast(pa.binary())
        _, offsets, content = taken.buffers()
        return np.frombuffer(offsets, np.int32)[: count + 1], content or pa.py_buffer(b"")


@lru_cache(maxsize=8)
def _even_indices(count: int) -> pa.Array:
    return pa.array(np.arange(0, 2 * count, 2, dtype=np.int32))


@dataclass(eq=False, slots=True)
class Cursor:
    """A position in each of many rows; ``failed`` is shared by all cursors over the same rows.

    ``at`` and ``end`` are positions in the source's bytes; ``row`` says which row an entry belongs to, None if entry i
    is row i. A failed entry is at 0 and ends at 0. The arrays are replaced, never written to.
    """

    source: RowBytes
    at: Ints
    end: Ints
    failed: Mask
    row: Ints | None = None

    def __len__(self) -> int:
        return len(self.at)

    def pick(self, entries: Ints) -> "Cursor":
        """Return a cursor over some of the entries, in ascending order; this cursor itself if it is all of them."""
        if len(entries) == len(self):
            return self
        return self.over(entries, self.at[entries], self.end[entries])

    def put_back(self, entries: Ints, part: "Cursor") -> None:
        """Take over the positions that a picked cursor has reached."""
        if part is not self:
            self.at, self.end = self.at.copy(), self.end.copy()
            self.at[entries] = part.at
            self.end[entries] = part.end

    def over(self, entries: Ints, starts: Ints, ends: Ints) -> "Cursor":
        """Return a cursor over some of the entries (one may occur more than once), each with bounds of its own."""
        row = entries if self.row is None else self.row[entries]
        return Cursor(self.source, starts, ends, self.failed, row)

    def spread(self, starts: Ints, counts: Ints) -> "Cursor":
        """Return a cursor over the elements of an array in each row: ``counts`` of them, beginning at ``starts``."""
        # entries[j] is the row of element j: row i stands there counts[i] times.
        entries = np.repeat(np.arange(len(self)), counts)
        return self.over(entries, starts, self.end[entries])

    def has_failed(self) -> Mask:
        """Return which entries are in failed rows, whichever cursor marked them."""
        return self.failed if self.row is None else self.failed[self.row]

    def fail(self, entries: Mask) -> None:
        """Mark the entries of a mask as failed."""
        if entries.any():
            self.failed[entries if self.row is None else self.row[entries]] = True
            self.at = np.where(entries, 0, self.at)
            self.end = np.where(entries, 0, self.end)

    def step(self, sizes: int | Ints) -> Ints:
        """Move forward and return the positions before; entries with fewer bytes left fail and do not move."""
        after = self.at + sizes
        over = after > self.end
        if over.any():
            self.fail(over)
            after = np.where(over, 0, after)
        before, self.at = self.at, after
        return before

    def fixed(self, size: int) -> npt.NDArray[np.void]:
        """Return the next ``size`` bytes of each entry as contiguous records, and move forward."""
        # A view of overlapping records, one at each byte of the buffer: to take some of them is one call of numpy.
        data = self.source.data
        anywhere = np.ndarray((len(data) - size + 1,), f"V{size}", data, strides=(1,))
        records: npt.NDArray[np.void] = anywhere[self.step(size)]
        return records

    def number(self, kind: str) -> npt.NDArray[np.int64]:
        """Return the next big-endian number of each entry, and move forward; ``kind`` is a numpy type such as
        ``i4``.
        """
        return self.fixed(int(kind[1])).view(f">{kind}").astype(np.int64)

    def unsigned_varint(self) -> Ints:
        """Return the next unsigned varint of 32 bits of each entry, and move forward."""
        value = self.source.data[self.step(1)].astype(np.int64)
        if value.max(initial=0) < 0x80:
            return value
        return self._long_varint(value)

    def _long_varint(self, value: Ints) -> Ints:
        # ``more`` are the entries whose last byte said that another one follows: fewer with each byte.
        more = np.flatnonzero(value >= 0x80)
        value[more] &= 0x7F
        for shift in range(7, 35, 7):
            part = self.pick(more)
            byte = self.source.data[part.step(1)].astype(np.int64)
            self.put_back(more, part)
            value[more] |= (byte & 0x7F) << shift
            more = more[byte >= 0x80]
            if not len(more):
                break
        over = value >> 32 > 0
        over[more] = True  # a fifth byte that wants a sixth
        self.fail(over)
        value[over] = 0
        return value


def bitmap(null: Mask | None) -> pa.Buffer | None:
    """Return Arrow's validity bitmap; None if no value is null."""
    return None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))


def expand(array: pa.Array, entries: Ints, count: int) -> pa.Array:
    """Return an array of ``count`` values that has those of ``array`` at ``entries`` (ascending, each once), and
    nulls elsewhere.
    """
    if len(entries) == count:
        return array
    # Arrow's take gives null where the index is null.
    indices = np.zeros(count, np.int64)
    indices[entries] = np.arange(len(entries))
    absent = np.ones(count, np.bool_)
    absent[entries] = False
    return array.take(pa.array(indices, mask=absent))
