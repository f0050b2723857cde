"""Segments to records: ``read_columns`` gives Arrow record batches, ``read_rows`` one record at a time.

Both read through a ``read_at(position, size)`` callable in bounded memory, start and stop at byte positions (see
``framing.layout``), and give the same records; the second is the reference for the first. Bytes without readable
records come as Damage in between, and reading continues behind them.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from coordinator_core.errors import LogFormatError
from coordinator_core.wire.batch_format import (
    CODEC_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    Damage,
    DamageKind,
    ReadAt,
    read_header,
    read_headers,
)
from coordinator_core.wire.batch_records import MIN_RECORD_BYTES, batch_records
from coordinator_core.wire.compression import decompress
from coordinator_core.wire.cursor import Ints
from coordinator_core.wire.framing import Block, batch_size, damaged_batch, scan
from coordinator_core.wire.legacy_messages import legacy_records
from coordinator_core.wire.log_columns import LogRow, columns_of_records, columns_of_rows, in_file_order
from coordinator_core.wire.record_columns import RecordBounds, parse_records, record_bounds, records_in_pieces

GROUP_RECORDS = 1 << 17
"""About how many records are turned into columns together; enough to hide numpy's cost per call, few enough for L2."""

GROUP_BYTES = 32 << 20
"""About how many bytes of decompressed records are held together."""


def read_rows(
    read_at: ReadAt, size: int, start: int = 0, stop: int | None = None, *, name: str = ""
) -> Iterator[LogRow | Damage]:
    """Yield each record as a LogRecord, each batch that compaction has emptied as its BatchHeader, and Damage.

    Parameters and errors are those of ``framing.scan``.
    """
    for part in scan(read_at, size, start, stop, name=name):
        if isinstance(part, Damage):
            yield part
        else:
            yield from _rows(part, part.starts)


def read_columns(
    read_at: ReadAt, size: int, start: int = 0, stop: int | None = None, *, name: str = ""
) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the records as Arrow record batches of schema ``log_columns.LOG_COLUMNS``, in file order, and Damage.

    Parameters and errors are those of ``framing.scan``.
    """
    for part in scan(read_at, size, start, stop, name=name):
        if isinstance(part, Damage):
            yield part
        elif part.legacy:
            for low in range(0, len(part.starts), GROUP_RECORDS):
                yield from _as_columns(_rows(part, part.starts[low : low + GROUP_RECORDS]), [])
        else:
            yield from _block_columns(part)


def _rows(block: Block, starts: Iterable[int]) -> Iterator[LogRow | Damage]:
    for at in starts:
        data = memoryview(block.data)[at : at + batch_size(block.data, at)]
        position = block.position + at
        try:
            if block.legacy:
                yield from legacy_records(data, position)
                continue
            header = read_header(data, 0, position)
            # Bytes without a count, and a count without bytes, are damage, and not an emptied batch.
            has_records = header.record_count or header.size > HEADER_SIZE
            yield from batch_records(data, header) if has_records else [header]
        except LogFormatError as error:
            yield damaged_batch(bytes(data), position, DamageKind.FORMAT, error.cause)


def _as_columns(rows: Iterable[LogRow | Damage], parts: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch | Damage]:
    """Rows among columns that the fast path has made already; very many rows, which are of one batch, in pieces."""
    whole: list[LogRow] = []
    for row in rows:
        # With ``parts`` no row may go before the others: all are put into the order of the file at the end.
        if len(whole) >= GROUP_RECORDS and not parts:
            yield columns_of_rows(whole)
            whole = []
        if isinstance(row, Damage):
            yield row
        else:
            whole.append(row)
    parts = [*parts, columns_of_rows(whole)] if whole else parts
    if parts:
        yield parts[0] if len(parts) == 1 else in_file_order(parts)


def _block_columns(block: Block) -> Iterator[pa.RecordBatch | Damage]:
    """The batches of a block, as many together as the bounds on records and bytes allow."""
    starts = np.array(block.starts, np.int64)
    headers = read_headers(np.frombuffer(block.data, np.uint8), starts)
    # Counts come from headers that may be damaged: a wrong one must not overflow the sum or take all of a group.
    total = np.cumsum(np.clip(headers["count"].astype(np.int64), 0, GROUP_RECORDS))
    low = 0
    while low < len(starts):
        done = int(total[low - 1]) if low else 0
        # total[i] counts the records up to batch i, so that one search finds the batches that fit; at least one is
        # taken.
        high = max(low + 1, int(np.searchsorted(total, done + GROUP_RECORDS, "right")))
        data, begins, ends = _bodies(block, starts[low:high], headers[low:high])
        high = low + len(begins)
        columns = _large_batch if headers["count"][low] > GROUP_RECORDS else _group_columns
        yield from columns(block, starts[low:high], headers[low:high], data, begins, ends)
        low = high


def _bodies(block: Block, starts: Ints, headers: NDArray[np.void]) -> tuple[bytes, Ints, Ints]:
    """A buffer, and where in it the uncompressed records of the first so many batches begin and end.

    Those of a batch that does not decompress are nowhere: no bytes.
    """
    begins, ends = starts + HEADER_SIZE, starts + headers["length"] + LOG_OVERHEAD
    codecs = headers["attributes"] & CODEC_MASK
    if not codecs.any():
        return block.data, begins, ends
    view = memoryview(block.data)
    parts: list[bytes | memoryview] = []
    room = GROUP_BYTES
    for codec, low, high in zip(codecs.tolist(), begins.tolist(), ends.tolist(), strict=True):
        try:
            parts.append(decompress(codec, view[low:high]))
        except LogFormatError:
            # No bytes do not fit the header's count, so the batch goes to the reference, which says what is wrong.
            parts.append(b"")
        room -= len(parts[-1])
        if room <= 0:
            break
    edges = np.cumsum([0, *map(len, parts)])
    return b"".join(parts), edges[:-1], edges[1:]


def _large_batch(
    block: Block, starts: Ints, headers: NDArray[np.void], data: bytes, begins: Ints, ends: Ints
) -> Iterator[pa.RecordBatch | Damage]:
    """One batch of very many records, in pieces, once all of it was seen to be readable; else it is left to the
    reference.
    """
    octets = np.frombuffer(data, np.uint8)
    begin, end, count = int(begins[0]), int(ends[0]), int(headers["count"][0])

    def pieces() -> Iterator[RecordBounds | None]:
        return records_in_pieces(data, octets, begin, end, count, GROUP_RECORDS)

    is_plausible = count * MIN_RECORD_BYTES <= end - begin
    # Two passes: the first one only looks, as a piece that was yielded could not be taken back when a later one turns
    # out to be odd.
    if is_plausible and all(piece is not None and not piece.odd.any() for piece in pieces()):
        for piece in pieces():
            assert piece is not None
            yield columns_of_records(pa.py_buffer(data), octets, piece, headers, starts + block.position)
    else:
        yield from _as_columns(_rows(block, starts.tolist()), [])


def _group_columns(
    block: Block, starts: Ints, headers: NDArray[np.void], data: bytes, begins: Ints, ends: Ints
) -> Iterator[pa.RecordBatch | Damage]:
    """What can be read side by side is; batches that are damaged, empty or odd are left to the reference."""
    counts = headers["count"].astype(np.int64)
    octets = np.frombuffer(data, np.uint8)
    bounds = record_bounds(data, begins, ends, counts)
    records = parse_records(octets, bounds)
    # One odd record makes its batch odd: only rows of one reader keep the order within a batch (``in_file_order``).
    odd = np.unique(records.batch[records.odd])
    if len(odd):
        records = records.without(odd)
    parts = []
    if len(records.batch):
        parts.append(columns_of_records(pa.py_buffer(data), octets, records, headers, starts + block.position))
    # A batch without records has no row in the columns, but its offsets and its marker count: the reference gives it
    # one.
    left = np.unique(np.concatenate([bounds.misfits, odd, np.flatnonzero(counts == 0)]))
    yield from _as_columns(_rows(block, starts[left].tolist()), parts)
