"""Outcomes of transactional records: committed, aborted, still open, or unknown (KIP-98, KIP-890).

Within one log partition a transaction of a producer is everything transactional that it has written since its last
marker; its next marker decides it. The marker's producer epoch is that of the data (older brokers) or higher (KIP-890,
fencing), never lower. Compaction keeps a marker as long as data of its transaction is left. A control batch that
compaction has emptied still ends a transaction, but no longer says how.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coordinator_core.wire.control import ABORT, COMMIT, CONTROL_TYPES
from coordinator_core.wire.cursor import Ints


class TransactionOutcome(Enum):
    """The outcome of a transaction, and so of each record in it."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    UNKNOWN = "unknown"
    """Its marker is missing: in a dump without control records, in a lost part of the log, or emptied by compaction."""


BY_CONTROL_TYPE = {
    CONTROL_TYPES[ABORT]: TransactionOutcome.ABORTED,
    CONTROL_TYPES[COMMIT]: TransactionOutcome.COMMITTED,
}


class Marker(NamedTuple):
    """The end of a producer's transaction at ``offset``; UNKNOWN for a control batch that compaction has emptied."""

    producer_id: int
    producer_epoch: int
    offset: int
    outcome: TransactionOutcome


NOBODYS_MARKER = Marker(np.iinfo(np.int64).min, 0, 0, TransactionOutcome.UNKNOWN)
"""Sorts before every record, so that a search always finds a marker."""


def markers(columns: pa.RecordBatch) -> list[Marker]:
    """Return the markers among rows of schema ``log_columns.LOG_COLUMNS``, in order."""
    ends = columns.filter(pc.and_(columns.column("is_control"), columns.column("is_transactional")))
    names = ("producer_id", "producer_epoch", "batch_last_offset", "control_type")
    rows = zip(*(ends.column(name).to_pylist() for name in names), strict=True)
    return [Marker._make((*who, BY_CONTROL_TYPE.get(kind, TransactionOutcome.UNKNOWN))) for *who, kind in rows]


def holes(columns: pa.RecordBatch) -> list[int]:
    """Return the offsets where holes between batches begin, in rows of that schema: removed by compaction, or lost."""
    base, last = (columns.column(f"batch_{name}_offset").to_numpy() for name in ("base", "last"))
    begins: list[int] = (last[:-1][base[1:] > last[:-1] + 1] + 1).tolist()
    return begins


def outcomes(columns: pa.RecordBatch, ends: Sequence[Marker], *, holes: Sequence[int] = ()) -> pa.Array:
    """Return the outcome of each row of schema ``log_columns.LOG_COLUMNS`` as a string; null outside transactions.

    ``ends`` are the markers of the same log partition, in any order. ``holes`` are offsets at which a part of the log
    is missing: no marker decides across a hole, and rows without a later marker are unknown instead of open.
    """
    transactional = pc.and_(columns.column("is_transactional"), pc.invert(columns.column("is_control")))
    rows = np.flatnonzero(transactional.to_numpy(zero_copy_only=False))
    if not len(rows):
        return pa.nulls(columns.num_rows, pa.string())
    producer, epoch, offset = (
        columns.column(name).to_numpy()[rows] for name in ("producer_id", "producer_epoch", "batch_last_offset")
    )
    names = np.full(columns.num_rows, None, object)
    names[rows] = _decide(producer, epoch, offset, ends, holes)
    return pa.array(names, pa.string())


def _decide(producer: Ints, epoch: Ints, offset: Ints, ends: Sequence[Marker], holes: Sequence[int]) -> NDArray[Any]:
    """The next marker of each row's producer, found by sorting rows and markers together."""
    # Rows and markers are sorted together by producer and offset, so that the marker that decides a row is the next
    # marker behind it: one sort and one search for all rows, instead of a walk for each producer.
    ends = [NOBODYS_MARKER, *ends]
    count = len(producer)
    end_producer, end_epoch, end_offset = (np.array([end[at] for end in ends], np.int64) for at in range(3))
    order = np.lexsort((np.concatenate([offset, end_offset]), np.concatenate([producer, end_producer])))
    # ``place`` inverts ``order``: of each row, and then of each marker, where it stands among all of them.
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    end_places = np.sort(place[count:])
    following = np.searchsorted(end_places, place[:count])
    following_marker = order[end_places[np.minimum(following, len(ends) - 1)]] - count
    decided = (following < len(ends)) & (end_producer[following_marker] == producer)
    outcome = np.array([end.outcome.value for end in ends], object)[following_marker]
    # No marker has an older epoch than the data that it ends: this one is not the row's, whose own is missing.
    outcome[end_epoch[following_marker] < epoch] = TransactionOutcome.UNKNOWN.value
    outcome[~decided] = TransactionOutcome.OPEN.value
    # A row and its marker have as many holes before them only if none lies between: the lost part may have had a marker
    # that came first. Open transactions reach up to the end of the log.
    until = np.where(decided, end_offset[following_marker], np.iinfo(np.int64).max)
    lost = np.sort(np.array(holes, np.int64))
    outcome[np.searchsorted(lost, offset) != np.searchsorted(lost, until)] = TransactionOutcome.UNKNOWN.value
    return outcome
