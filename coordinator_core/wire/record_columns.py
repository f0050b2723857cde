"""Records of many v2 batches at once, as Arrow columns.

Two passes. The first walks the length prefixes, the only part of the format that must be read in order. The second
reads the fields of all records side by side with numpy. Keys and values are then cut out of the buffer by Arrow: the
buffer is seen as one binary array whose cells alternate between framing and payload, and the payload cells are taken
from it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from coordinator_core.wire.batch_records import MIN_RECORD_BYTES
from coordinator_core.wire.cursor import Ints

Octets = NDArray[np.uint8]

FEW_BATCHES = 24
"""Fewer batches than this are not worth numpy's cost per call."""


class RecordBounds(NamedTuple):
    """The places of the fields of records in a buffer; every array has one item per record.

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

    def without(self, batches: Ints) -> "RecordBounds":
        """Return the records of all batches but these."""
        keep = ~np.isin(self.batch, batches)
        return RecordBounds._make(column[keep] for column in self)


class Bounds(NamedTuple):
    """The places of records in a buffer, batch after batch: the index of each one's batch, and the positions around it.

    ``misfits`` are the batches whose record lengths do not add up to their size; they have no records here.
    """

    batch: Ints
    before: Ints
    after: Ints
    misfits: Ints


def record_bounds(data: bytes, starts: Ints, ends: Ints, counts: Ints) -> Bounds:
    """Return the bounds of all records: ``data[starts[i]:ends[i]]`` holds the ``counts[i]`` of batch i, uncompressed.

    All batches are walked side by side, record by record, as long as there are enough of them; the rest of the longest
    ones is walked one by one.
    """
    octets = np.frombuffer(data, np.uint8)
    # The arrays are made as long as the counts say: no count may be larger than the bytes of its batch.
    misfit = (counts < 0) | (counts * MIN_RECORD_BYTES > ends - starts)
    counts = np.where(misfit, 0, counts)
    first = np.cumsum(counts) - counts
    batch = np.repeat(np.arange(len(counts)), counts)
    after = np.empty(len(batch), np.int64)
    # Batches with most records first: those that have a k-th record are then the first ones, and a slice names them.
    order = np.argsort(-counts, kind="stable")
    at, slot, stop = starts[order], first[order], ends[order]
    step = 0
    # together: how many batches have more than k records, for k = 0, 1, ...: one search says it for all k.
    for together in np.searchsorted(-counts[order], -np.arange(counts.max(initial=0)), "left").tolist():
        if together < FEW_BATCHES:
            break
        at[:together] = _after_records(octets, at[:together])
        # Record k of a batch stands k places behind the batch's first one, whatever order they are found in.
        after[slot[:together] + step] = at[:together]
        step += 1
    for rank in range(int(np.count_nonzero(counts > step))):
        batch_slot, more = int(slot[rank]) + step, int(counts[order[rank]]) - step
        ends_of_rest = _walk(data, int(at[rank]), int(stop[rank]), more)
        after[batch_slot : batch_slot + len(ends_of_rest)] = ends_of_rest
        # -1 is the end of no batch, so that the comparison below finds the misfit.
        at[rank] = ends_of_rest[-1] if len(ends_of_rest) == more else -1
    # Right lengths lead to just the end of the batch: any other place says that one of them is wrong.
    misfit[order] |= at != stop
    # A record begins where the one before it ends; the first of a batch, where the batch begins.
    before = np.empty_like(after)
    before[1:] = after[:-1]
    before[first[counts > 0]] = starts[counts > 0]
    if misfit.any():
        good = ~misfit[batch]
        batch, before, after = batch[good], before[good], after[good]
    return Bounds(batch, before, after, np.flatnonzero(misfit))


def _after_records(octets: Octets, at: Ints) -> Ints:
    """The positions after the records that begin at ``at``; somewhere beyond the buffer for those without a length."""
    low = octets.take(at, mode="clip").astype(np.int64)
    high = octets.take(at + 1, mode="clip").astype(np.int64)
    # A length is a zigzag varint that is not negative: half of the number. Nearly all take one or two bytes.
    two = low >= 0x80
    after = at + 1 + two + (np.where(two, low & 0x7F | high << 7, low) >> 1)
    for long in np.flatnonzero(two & (high >= 0x80)).tolist():
        after[long] = _after_long_record(octets, int(at[long]))
    return after


def _walk(data: bytes, at: int, end: int, count: int) -> list[int]:
    """The ends of the ``count`` records that begin at ``at``; fewer when they reach beyond ``end``."""
    record_ends: list[int] = []
    for _ in range(count):
        if at + 1 >= end:
            break
        octet = data[at]
        if octet < 0x80:
            at += 1 + (octet >> 1)
        elif data[at + 1] < 0x80:
            at += 2 + ((octet & 0x7F | data[at + 1] << 7) >> 1)
        else:
            at = _after_long_record(data, at)
        record_ends.append(at)
    return record_ends


def _after_long_record(data: bytes | Octets, at: int) -> int:
    """The end of a record whose length takes three bytes or more; beyond the buffer when it is not a varint."""
    value = 0
    for taken, octet in enumerate(data[at : at + 5]):
        value |= (int(octet) & 0x7F) << 7 * taken
        if octet < 0x80:
            return at + 1 + taken + (value >> 1)
    return len(data) + 1


def records_in_pieces(
    data: bytes, octets: Octets, start: int, end: int, count: int, most: int
) -> Iterator[RecordBounds | None]:
    """Yield the fields of the records of one batch, at most so many at a time; None where its lengths do not add up.

    ``data[start:end]`` holds the ``count`` records, uncompressed.
    """
    at = start
    for done in range(0, count, most):
        wanted = min(most, count - done)
        record_ends = np.array(_walk(data, at, end, wanted), np.int64)
        if len(record_ends) < wanted or (done + wanted == count and record_ends[-1] != end):
            yield None
            return
        before = np.concatenate([[at], record_ends[:-1]])
        none = np.zeros(0, np.int64)
        yield parse_records(octets, Bounds(np.zeros(wanted, np.int64), before, record_ends, none))
        at = int(record_ends[-1])


def parse_records(octets: Octets, bounds: Bounds) -> RecordBounds:
    """Return the fields of the records within these bounds."""
    ends = bounds.after
    odd = np.zeros(len(ends), np.bool_)
    length, at = _varints(octets, bounds.before, odd)
    odd |= at + length != ends
    # at + 1: the byte of attributes, of which no bit is used in a record. A delta of times has 64 bits, not 32.
    timestamp_delta, at = _varints(octets, at + 1, odd, 10)
    offset_delta, at = _varints(octets, at, odd)
    key_length, key_at = _varints(octets, at, odd)
    # The length of a null is -1, and it takes no bytes.
    value_length, value_at = _varints(octets, key_at + np.maximum(key_length, 0), odd)
    headers_at = value_at + np.maximum(value_length, 0)
    # The last byte is the number of headers, and 0.
    odd |= (headers_at + 1 != ends) | (octets.take(headers_at, mode="clip") != 0)
    return RecordBounds(bounds.batch, timestamp_delta, offset_delta, key_at, key_length, value_at, value_length, odd)


def cut(data: pa.Buffer, records: RecordBounds) -> tuple[pa.Array, pa.Array]:
    """Return the keys and values as Arrow binary arrays. ``records`` must contain no odd ones and be in ascending
    order.
    """
    count = len(records.batch)
    if not count:
        empty = pa.array([], pa.binary())
        return empty, empty
    origin = int(records.key_at[0])  # Arrow's offsets are int32: from the first key on they are small
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
    """A zigzag varint at each position: the values and the positions after; marks in ``odd`` what is not a varint.

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
        if last:  # bits beyond 32, or 64, would be lost
            odd[more] |= octet > (0x0F if most == 5 else 0x01)
        more = more[octet >= 0x80]
    # Zigzag: the lowest bit is the sign, and all others are inverted for negative numbers.
    return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64), after
