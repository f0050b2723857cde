"""Records of many v2 batches at once, as Arrow columns.

Two passes. The first walks the length prefixes, the only part of the format that must be read in order. The second
reads the fields of all records side by side with numpy. Keys and values are then cut out of the buffer by Arrow: the
buffer is seen as one binary array whose cells alternate between framing and payload, and the payload cells are taken
from it.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from coordinator_core.wire.batch_records import MIN_RECORD_BYTES

Ints = NDArray[np.int64]
Octets = NDArray[np.uint8]


class Records(NamedTuple):
    """Where the fields of records lie in a buffer; every array has one item a record.

    ``batch`` is the index of the record's batch. A length of -1 is a null. Records that cannot be read this way
    (damaged ones, and those with headers, which coordinators never write) are marked in ``odd``.
    """

    batch: Ints
    timestamp_delta: Ints
    offset_delta: Ints
    key_at: Ints
    key_length: Ints
    value_at: Ints
    value_length: Ints
    odd: NDArray[np.bool_]

    def without(self, batches: Ints) -> Records:
        """The records of all other batches."""
        keep = ~np.isin(self.batch, batches)
        return Records._make(column[keep] for column in self)


def record_ends(data: bytes, starts: list[int], ends: list[int], counts: list[int]) -> tuple[Ints, Ints, list[int]]:
    """Where each record ends.

    ``data[starts[i]:ends[i]]`` are the ``counts[i]`` records of batch i, uncompressed. Returns the positions after each
    record and the position before it, batch after batch, and the batches whose lengths do not add up (no records of
    those are returned).
    """
    found, before, damaged = array("q"), array("q"), []
    append, begin = found.append, before.append
    for batch, (at, end, count) in enumerate(zip(starts, ends, counts, strict=True)):
        mark = len(found)
        if 0 <= count <= (end - at) // MIN_RECORD_BYTES:
            for _ in range(count):
                if at >= end:
                    break
                begin(at)
                octet = data[at]
                if octet < 0x80:
                    at += 1 + (octet >> 1)
                elif at + 1 < end and (second := data[at + 1]) < 0x80:
                    at += 2 + ((octet & 0x7F | second << 7) >> 1)
                else:
                    at = _after_long_varint(data, at, end)
                append(at)
        if at != end or len(found) - mark != count:
            damaged.append(batch)
            del found[mark:], before[mark:]
    return np.frombuffer(found, np.int64), np.frombuffer(before, np.int64), damaged


def _after_long_varint(data: bytes, at: int, end: int) -> int:
    """The end of a record whose length takes three bytes or more; beyond ``end`` when it is no varint."""
    value = shift = 0
    for octet in data[at : min(at + 5, end)]:
        value |= (octet & 0x7F) << shift
        shift += 7
        at += 1
        if octet < 0x80:
            return at + (value >> 1)
    return end + 1


def parse_records(octets: Octets, before: Ints, ends: Ints, batch: Ints) -> Records:
    """The fields of the records that lie between ``before`` and ``ends``."""
    odd = np.zeros(len(ends), np.bool_)
    length, at = _varints(octets, before, odd)
    odd |= at + length != ends
    timestamp_delta, at = _varints(octets, at + 1, odd, 10)
    offset_delta, at = _varints(octets, at, odd)
    key_length, key_at = _varints(octets, at, odd)
    value_length, value_at = _varints(octets, key_at + np.maximum(key_length, 0), odd)
    headers_at = value_at + np.maximum(value_length, 0)
    odd |= (headers_at + 1 != ends) | (octets.take(headers_at, mode="clip") != 0)
    return Records(batch, timestamp_delta, offset_delta, key_at, key_length, value_at, value_length, odd)


def cut(data: pa.Buffer, records: Records) -> tuple[pa.Array, pa.Array]:
    """The keys and values as Arrow binary arrays. ``records`` must hold no odd ones and lie in ascending order."""
    count = len(records.batch)
    if not count:
        empty = pa.array([], pa.binary())
        return empty, empty
    origin = int(records.key_at[0])
    cells = np.empty(4 * count, np.int32)  # key, framing, value, framing
    cells[0::4] = records.key_at - origin
    cells[1::4] = records.key_at - origin + np.maximum(records.key_length, 0)
    cells[2::4] = records.value_at - origin
    cells[3::4] = records.value_at - origin + np.maximum(records.value_length, 0)
    view = pa.Array.from_buffers(pa.binary(), 4 * count - 1, [None, pa.py_buffer(cells), data.slice(origin)])
    at = np.arange(0, 4 * count, 4, dtype=np.int32)
    return view.take(pa.array(at, mask=records.key_length < 0)), view.take(
        pa.array(at + 2, mask=records.value_length < 0)
    )


def _varints(octets: Octets, at: Ints, odd: NDArray[np.bool_], most: int = 5) -> tuple[Ints, Ints]:
    """A zigzag varint at each position: the values and the positions after; marks in ``odd`` what is no varint.

    Positions beyond the buffer read its last byte: such a record is found odd by where its fields end.
    """
    first = octets.take(at, mode="clip")
    value = (first & 0x7F).astype(np.uint64)
    after = at + 1
    more = np.flatnonzero(first >= 0x80)
    for taken in range(1, most):
        if not len(more):
            break
        octet = octets.take(after[more], mode="clip")
        value[more] |= (octet & 0x7F).astype(np.uint64) << np.uint64(7 * taken)
        after[more] += 1
        last = taken == most - 1
        if last:
            odd[more] |= octet > (0x0F if most == 5 else 0x01)
        more = more[octet >= 0x80]
    return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64), after
