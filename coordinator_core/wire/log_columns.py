"""The columns of a log as Arrow: one row per record, with everything that its batch says about it."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from coordinator_core.wire.batch_format import (
    CODEC_MASK,
    CODECS,
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Kind,
)
from coordinator_core.wire.batch_records import INT32_MAX, LogRecord
from coordinator_core.wire.control import ABORT, COMMIT, control_name
from coordinator_core.wire.cursor import Ints
from coordinator_core.wire.record_columns import Octets, RecordBounds, cut
from coordinator_core.wire.scalars import Raw

LogRow = LogRecord | BatchHeader
"""A record, or a batch that compaction has emptied."""

LOG_COLUMNS = pa.schema(
    [
        pa.field("kind", pa.string(), False),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.int64()),
        pa.field("timestamp_type", pa.int32(), False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        pa.field("sequence", pa.int32()),
        pa.field("control_type", pa.string()),
        pa.field("coordinator_epoch", pa.int32()),
        pa.field("is_transactional", pa.bool_(), False),
        pa.field("is_control", pa.bool_(), False),
        pa.field("producer_id", pa.int64(), False),
        pa.field("producer_epoch", pa.int16(), False),
        pa.field("base_sequence", pa.int32(), False),
        pa.field("leader_epoch", pa.int32(), False),
        pa.field("compression", pa.string(), False),
        pa.field("batch_base_offset", pa.int64(), False),
        pa.field("batch_last_offset", pa.int64(), False),
        pa.field("batch_position", pa.int64(), False),
    ]
)
"""``kind`` is a value of ``batch_format.Kind``. A row of kind ``empty`` stands for a batch without records: offset,
timestamp, key, value and sequence are null. Times are milliseconds. ``timestamp_type`` is a key of TIMESTAMP_TYPES.
``headers`` is null for none. ``batch_position`` is the batch's byte position in its file."""


def columns_of_rows(rows: Sequence[LogRow]) -> pa.RecordBatch:
    """Return the rows as Arrow; they are converted one by one."""
    cells = [_cells(row) for row in rows]
    return pa.RecordBatch.from_pylist(cells, schema=LOG_COLUMNS)


def columns_of_records(
    data: pa.Buffer, octets: Octets, records: RecordBounds, headers: NDArray[np.void], positions: Ints
) -> pa.RecordBatch:
    """Return the records that ``record_columns`` has found, joined with the headers of their batches.

    ``records.batch`` indexes ``headers`` (dtype ``batch_format.HEADER``) and ``positions``, the batches' places in the
    file.
    """
    batch = records.batch
    # One value for each batch; ``[batch]`` below repeats it for each of the batch's records.
    field = {name: headers[name].astype(headers[name].dtype.newbyteorder("=")) for name in headers.dtype.names or ()}
    attributes = field["attributes"]
    # With LogAppendTime the broker overwrites the header's max timestamp only: it holds for each record, whatever the
    # deltas say.
    stamped = (attributes & LOG_APPEND_TIME_BIT != 0)[batch]
    control = (attributes & CONTROL_BIT != 0)[batch]
    # The sum wraps at 64 bits, as in the reference (``batch_records.wrapped``).
    timestamp = field["base_timestamp"][batch] + records.timestamp_delta
    base_sequence = field["base_sequence"][batch]
    control_type, coordinator_epoch = _control_columns(octets, records, np.flatnonzero(control))
    key, value = cut(data, records)
    columns = {
        "kind": _names([Kind.RECORD.value, Kind.CONTROL.value], control),
        "offset": field["base_offset"][batch] + records.offset_delta,
        "timestamp": np.where(stamped, field["max_timestamp"][batch], timestamp) if stamped.any() else timestamp,
        "timestamp_type": stamped.astype(np.int32),
        "key": key,
        "value": value,
        # A record with headers is odd, and left to the reference.
        "headers": pa.nulls(len(batch), LOG_COLUMNS.field("headers").type),
        "sequence": np.where(base_sequence < 0, -1, base_sequence + records.offset_delta & INT32_MAX).astype(np.int32),
        "control_type": control_type,
        "coordinator_epoch": coordinator_epoch,
        "is_transactional": (attributes & TRANSACTIONAL_BIT != 0)[batch],
        "is_control": control,
        "producer_id": field["producer_id"][batch],
        "producer_epoch": field["producer_epoch"][batch],
        "base_sequence": base_sequence,
        "leader_epoch": field["leader_epoch"][batch],
        "compression": _names(CODECS, (attributes & CODEC_MASK)[batch]),
        "batch_base_offset": field["base_offset"][batch],
        "batch_last_offset": (field["base_offset"] + field["last_offset_delta"])[batch],
        "batch_position": positions[batch],
    }
    return pa.RecordBatch.from_arrays([_array(columns[name]) for name in LOG_COLUMNS.names], schema=LOG_COLUMNS)


def in_file_order(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the parts as one, ordered by their batches' positions.

    Records of one batch must be in one part, in order.
    """
    whole = pa.concat_batches(parts)
    # Records of a batch share its position: a stable sort leaves them in their order.
    return whole.take(np.argsort(whole.column("batch_position").to_numpy(), kind="stable"))


def _array(column: Raw | pa.Array) -> pa.Array:
    return column if isinstance(column, pa.Array) else pa.array(column)


def _names(names: Sequence[str], codes: Raw) -> pa.Array:
    return pa.array(names).take(pa.array(codes.astype(np.int8)))


def _control_columns(octets: Octets, records: RecordBounds, rows: NDArray[np.intp]) -> tuple[pa.Array, pa.Array]:
    """Type and coordinator epoch of the control records, null for all others."""
    count = len(records.batch)
    types: list[str | None] = [None] * count
    epochs = np.zeros(count, np.int32)
    no_epoch = np.ones(count, np.bool_)
    if not len(rows):
        return pa.nulls(count, pa.string()), pa.nulls(count, pa.int32())
    key_at, value_at = records.key_at[rows], records.value_at[rows]
    long_enough = records.key_length[rows] >= 4
    # A control key is int16 version, int16 type. A marker's value is int16 version, int32 coordinator epoch; a value
    # that is cut short has no epoch, and then the type is not believed either.
    code = _big_endian(octets, key_at + 2, 2).astype(np.int16)
    marker = long_enough & ((code == ABORT) | (code == COMMIT))
    whole = marker & (records.value_length[rows] >= 6)
    epochs[rows] = np.where(whole, _big_endian(octets, value_at + 2, 4), 0)
    no_epoch[rows] = ~whole
    for row, known, value in zip(rows.tolist(), (long_enough & (whole | ~marker)).tolist(), code.tolist(), strict=True):
        types[row] = control_name(value) if known else None
    return pa.array(types, pa.string()), pa.array(epochs, mask=no_epoch)


def _big_endian(octets: Octets, at: Ints, width: int) -> NDArray[np.int32]:
    value = np.zeros(len(at), np.uint32)
    for step in range(width):
        # ``clip``: a position behind the buffer belongs to a record that ``long_enough`` or ``whole`` leaves out.
        value = value << np.uint32(8) | octets.take(at + step, mode="clip")
    return value.view(np.int32)


def _cells(row: LogRow) -> dict[str, object]:
    record, batch = (row, row.batch) if isinstance(row, LogRecord) else (None, row)
    cells: dict[str, object] = {
        "kind": (Kind.EMPTY if record is None else Kind.CONTROL if batch.is_control else Kind.RECORD).value,
        "timestamp_type": batch.timestamp_type,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "leader_epoch": batch.leader_epoch,
        "compression": batch.compression,
        "batch_base_offset": batch.base_offset,
        "batch_last_offset": batch.last_offset,
        "batch_position": batch.position,
    }
    if record is not None:
        cells |= {"offset": record.offset, "timestamp": record.timestamp, "key": record.key, "value": record.value}
        cells["sequence"] = record.sequence
        if record.headers:
            cells["headers"] = [{"key": key, "value": value} for key, value in record.headers]
        if record.control is not None:
            cells["control_type"] = record.control.name
            cells["coordinator_epoch"] = record.control.coordinator_epoch
    return cells
