"""The positions of the batches of a segment: walks headers, checks CRCs, gets past damage.

Nothing here opens a file. A segment is a ``read_at(position, size)`` and its length in bytes, and is read a chunk at a
time, so memory does not depend on the segment's size.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import crc32c
import numpy as np

from coordinator_core.errors import InputError, LogFormatError
from coordinator_core.wire.batch_format import (
    CRC_FROM_LEGACY,
    CRC_FROM_V2,
    ENDS_WITHIN,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAX_BATCH_BYTES,
    MAX_DAMAGE_BYTES,
    MIN_LENGTH,
    UP_TO_MAGIC,
    Damage,
    DamageKind,
    ReadAt,
)

CHUNK_BYTES = 4 << 20
"""What is read of a file at once: several batches of the default size (1 MB), so that few lie across an edge."""
SEARCH_CRC_BYTES = 1 << 30
"""How many bytes of candidate batches the searches in one scan may checksum before they give up."""

LENGTH = struct.Struct(">i")
OFFSET_AND_LENGTH = struct.Struct(">qi")
OFFSET_BYTES = 8
CRC = struct.Struct(">I")


class Block(NamedTuple):
    """Whole batches that follow one another: ``starts`` are positions within ``data``; their CRCs are right.

    ``position`` is where ``data`` begins in the file. Either all batches are record batch v2, or none is (``legacy``).
    """

    data: bytes
    position: int
    starts: list[int]
    legacy: bool


def scan(
    read_at: ReadAt, size: int, start: int = 0, stop: int | None = None, *, name: str = ""
) -> Iterator[Block | Damage]:
    """Yield the batches that begin in bytes ``start`` to ``stop`` of a segment of ``size`` bytes, in order.

    ``start`` must be where a batch begins. Bytes without a readable batch come as Damage: a batch with a wrong CRC
    (reading continues at its end if a batch can follow there, else at the next whole batch with a right CRC), bytes
    between batches, a truncated tail. A tail of zeros is a preallocated file, not damage.

    Raises:
        LogFormatError: the file (``name``) does not begin like a log and holds no batch.
        InputError: it shrank while damage was looked at.
    """
    stop = size if stop is None else min(stop, size)
    position, chunk, budget = start, CHUNK_BYTES, SEARCH_CRC_BYTES
    read_next, read_at = read_at, _exactly(read_at, name)
    while position < stop:
        data = read_next(position, min(chunk, size - position))
        if len(data) < min(chunk, size - position):  # the file has shrunk since its size was taken
            size = position + len(data)
            stop = min(stop, size)
        starts, end = _walk(data, min(stop - position, len(data)))
        wrong = {at for at in starts if not crc_matches(data, at, at + batch_size(data, at))}
        if position + end >= stop:
            yield from _split(data, position, starts, wrong)
            return
        wanted = batch_size(data, end) if _plausible(data, end) else UP_TO_MAGIC
        # The next batch goes on behind the chunk: it is read again from its start, in a chunk that can hold all of it.
        if len(data) - end < wanted <= min(size - position - end, MAX_BATCH_BYTES):
            yield from _split(data, position, starts, wrong)
            position += end
            chunk = max(CHUNK_BYTES, wanted)
            continue
        # No whole batch begins at the end reached. When the batches just before it are damaged, it may be their
        # lengths that led us astray, so the search for the next batch begins within them.
        suspects = len(starts)
        while suspects and starts[suspects - 1] in wrong:
            suspects -= 1
        first = starts[suspects] if suspects < len(starts) else end
        following, budget = _next_batch(read_at, size, position + first + 1, stop, budget)
        if following is not None:
            starts, end = starts[:suspects], first
        yield from _split(data, position, starts, wrong)
        position += end
        if following is None and zeros_from(read_at, size, position):
            return
        damage = _gap(read_at, size, position, stop if following is None else following)
        if following is None and position == 0 and damage.kind is DamageKind.FORMAT and not _plausible(data, end):
            raise LogFormatError("no record batch begins here: the file is not a log segment", file=name, position=0)
        yield damage
        position += damage.size


def _exactly(read_at: ReadAt, name: str) -> ReadAt:
    """Return what reads bytes that were there when the size of the file was taken, or raises InputError: nothing is
    wrong with the log.
    """

    def read(position: int, size: int) -> bytes:
        data = read_at(position, size)
        if len(data) < size:
            there = f"{len(data)} of {size} bytes are there"
            raise InputError(f"{name} at byte {position}: the file shrank while it was read ({there}): read it again")
        return data

    return read


class Layout(NamedTuple):
    """How the batches of a segment lie, as their headers say it.

    ``edges``: byte positions that split it into ranges, from 0 to its size, each at a batch with a right CRC.
    ``highest``: the highest first offset of a batch; -1: it has none. ``is_clear``: behind the batches that are known
    the file ends, or has zeros where the next one would have its offset and length. ``last_at``: where the last batch
    begins; -1: it has none.
    """

    edges: list[int]
    highest: int
    is_clear: bool
    last_at: int


def layout(read_at: ReadAt, size: int, every: int, *, name: str = "") -> Layout:
    """Return the layout of a segment, with ranges of at least ``every`` bytes; ``scan`` takes two edges that follow one
    another. Records are not read.

    Raises:
        InputError: the file (``name``) shrank meanwhile.
    """
    edges = [0]
    position, window, highest, last_at = 0, 1 << 16, -1, -1
    while position < size:
        data = read_at(position, min(window, size - position))
        starts, end = _walk_headers(data)
        for at in starts:
            # A wrong length leads into the middle of a batch: no task may begin there, so the CRC decides.
            if position + at - edges[-1] >= every and _right_at(_exactly(read_at, name), size, position + at):
                edges.append(position + at)
        if end == 0:
            break
        highest, last_at = max(highest, _highest_offset(data, starts)), position + starts[-1]
        position += end
    # No batch has length 0: it is the preallocated rest of the file, which is not read for that.
    is_clear = position <= size and not any(read_at(position, LOG_OVERHEAD))
    return Layout([*edges, size] if size > edges[-1] else edges, highest, is_clear, last_at)


def _highest_offset(data: bytes, starts: list[int]) -> int:
    """Return the highest first offset of the batches that begin at these positions, of which there is at least one."""
    # One row of eight bytes for each batch, read as one number.
    octets = np.frombuffer(data, np.uint8)[np.array(starts)[:, None] + np.arange(OFFSET_BYTES)]
    return int(octets.view(">i8").max())


def batch_size(data: bytes, at: int) -> int:
    """Return bytes of the batch that begins there, as its length field says."""
    length: int = LENGTH.unpack_from(data, at + 8)[0]
    return length + LOG_OVERHEAD


def crc_matches(data: bytes, at: int, end: int) -> bool:
    """Whether the batch in ``data[at:end]`` has the CRC that its header says: CRC-32C from v2 on, CRC-32 before."""
    view = memoryview(data)
    if data[at + MAGIC_AT] == 2:
        computed: int = crc32c.crc32c(view[at + CRC_FROM_V2 : end])
        stored: int = CRC.unpack_from(data, at + MAGIC_AT + 1)[0]
        return computed == stored
    legacy: int = CRC.unpack_from(data, at + LOG_OVERHEAD)[0]
    return zlib.crc32(view[at + CRC_FROM_LEGACY : end]) == legacy


def zeros_from(read_at: ReadAt, size: int, position: int) -> bool:
    """Whether only zeros follow: the preallocated rest of a segment."""
    while position < size:
        data = read_at(position, min(CHUNK_BYTES, size - position))
        if data.count(0) != len(data):
            return False
        position += len(data)
    return True


def _plausible(data: bytes, at: int) -> bool:
    """Whether a batch of any format can begin there: an offset of plausible size, a known magic, enough length."""
    if at + UP_TO_MAGIC > len(data):
        return False
    least = MIN_LENGTH.get(data[at + MAGIC_AT])
    return least is not None and data[at] == 0 and least <= LENGTH.unpack_from(data, at + 8)[0]


def _walk(data: bytes, limit: int) -> tuple[list[int], int]:
    """Starts of the whole batches that begin before ``limit``, and where walking stopped."""
    starts, at, size = [], 0, len(data)
    unpack, least = LENGTH.unpack_from, MIN_LENGTH
    while at < limit and at + UP_TO_MAGIC <= size:
        length = unpack(data, at + 8)[0]
        # The same as _plausible, written out: this loop runs once for each batch of a log.
        if data[at] or not least.get(data[at + MAGIC_AT], length + 1) <= length <= MAX_BATCH_BYTES:
            break
        end = at + LOG_OVERHEAD + length
        if end > size:
            break
        starts.append(at)
        at = end
    return starts, at


def _walk_headers(data: bytes) -> tuple[list[int], int]:
    """Starts of the batches whose header lies within ``data``, and where the next one would begin."""
    starts, at = [], 0
    while _plausible(data, at):
        starts.append(at)
        at += batch_size(data, at)
    return starts, at


def _split(data: bytes, position: int, starts: list[int], wrong: set[int]) -> Iterator[Block | Damage]:
    """Runs of good batches of one kind, and the damaged ones between them."""
    run: list[int] = []
    legacy = False
    for at in starts:
        if at in wrong or (run and (data[at + MAGIC_AT] < 2) != legacy):
            if run:
                yield Block(data, position, run, legacy)
            run = []
        if at in wrong:
            bad = data[at : at + batch_size(data, at)]
            yield damaged_batch(bad, position + at, DamageKind.CRC, "the CRC is not that of the batch's bytes")
        else:
            legacy = data[at + MAGIC_AT] < 2
            run.append(at)
    if run:
        yield Block(data, position, run, legacy)


def damaged_batch(data: bytes, position: int, kind: DamageKind, cause: str) -> Damage:
    """Return the damage row of one batch whose bounds are known."""
    base = OFFSET_AND_LENGTH.unpack_from(data)[0]
    # At byte 23 of a v2 header is the delta of the last offset; an older message names its last offset itself.
    last = base + (LENGTH.unpack_from(data, 23)[0] if data[MAGIC_AT] == 2 else 0)
    return Damage(kind, position, len(data), cause, data[:MAX_DAMAGE_BYTES], base, last)


def _gap(read_at: ReadAt, size: int, position: int, end: int) -> Damage:
    """The damage row of bytes in which no batch could be made out."""
    head = read_at(position, min(MAX_DAMAGE_BYTES, end - position))
    short = len(head) < UP_TO_MAGIC
    if end == size and (head[0] == 0 if short else _plausible(head, 0) and batch_size(head, 0) > end - position):
        wanted = "a batch's header" if short else f"a batch of {batch_size(head, 0)} bytes"
        cause = f"{ENDS_WITHIN} {wanted}: {end - position} bytes are there"
        base = OFFSET_AND_LENGTH.unpack_from(head)[0] if not short else -1
        return Damage(DamageKind.TRUNCATED, position, end - position, cause, head, base, base)
    if short:
        cause = f"{end - position} bytes that are not a batch"
    elif _plausible(head, 0) and batch_size(head, 0) > MAX_BATCH_BYTES:
        cause = f"a batch of {batch_size(head, 0)} bytes is larger than the {MAX_BATCH_BYTES} that are accepted"
    elif head[MAGIC_AT] not in MIN_LENGTH:
        cause = f"magic {head[MAGIC_AT]} is none of 0, 1, 2"
    else:
        base, length = OFFSET_AND_LENGTH.unpack_from(head)
        cause = f"no batch can have offset {base} and length {length}"
    return Damage(DamageKind.FORMAT, position, end - position, cause, head)


def _next_batch(read_at: ReadAt, size: int, position: int, stop: int, budget: int) -> tuple[int | None, int]:
    """The first position before ``stop`` where a whole batch with a right CRC begins, and the budget that is left."""
    while position < stop:
        data = read_at(position, min(CHUNK_BYTES, size - position))
        for at in _candidates(data, stop - position):
            wanted = batch_size(data, at)
            if wanted > size - position - at:
                continue
            # Bytes may look like very many large batches, each of which would be read to its end for its checksum.
            budget -= wanted
            if budget < 0:
                return None, 0
            if _right_at(read_at, size, position + at):
                return position + at, budget
        # Chunks overlap by a header less one byte, as one may lie across their edge.
        position += max(len(data) - UP_TO_MAGIC + 1, 1)
    return None, budget


def _candidates(data: bytes, limit: int) -> list[int]:
    """Where a header could begin, judged by its first bytes only."""
    octets = np.frombuffer(data, np.uint8)
    count = min(len(octets) - UP_TO_MAGIC + 1, limit)
    if count <= 0:
        return []
    # No offset reaches 2**56, so that its first byte is 0; magic is 2 at most. Both together drop nearly all bytes.
    likely = np.flatnonzero((octets[:count] == 0) & (octets[MAGIC_AT : MAGIC_AT + count] <= 2))
    return [at for at in likely.tolist() if _plausible(data, at) and batch_size(data, at) <= MAX_BATCH_BYTES]


def _right_at(read_at: ReadAt, size: int, position: int) -> bool:
    head = read_at(position, UP_TO_MAGIC)
    wanted = batch_size(head, 0)
    if wanted > min(size - position, MAX_BATCH_BYTES):
        return False
    data = read_at(position, wanted)
    return crc_matches(data, 0, len(data))
