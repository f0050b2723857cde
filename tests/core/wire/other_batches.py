"""Batches that brokers write, or compaction leaves, beside those of records."""

from coordinator_core.wire.batch_format import CONTROL_BIT, TRANSACTIONAL_BIT
from coordinator_core.wire.batch_writer import NewRecord, Producer, encode_batch, frame
from coordinator_core.wire.control import encode_marker


def encode_marker_batch(
    control_type: int, coordinator_epoch: int, *, offset: int, timestamp: int, producer: Producer
) -> bytes:
    """Return the control batch that ends a transaction; ``control_type`` is ``control.ABORT`` or ``control.COMMIT``."""
    key, value = encode_marker(control_type, coordinator_epoch)
    record = NewRecord(offset, timestamp, key, value)
    return encode_batch([record], producer=producer, transactional=True, control=True)


def encode_empty_batch(
    base_offset: int,
    last_offset: int,
    *,
    producer: Producer = Producer(),  # noqa: B008
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """Return a batch as compaction leaves it when it removes all records but keeps the batch."""
    return frame(
        b"",
        base_offset=base_offset,
        last_offset=last_offset,
        count=0,
        base_timestamp=-1,
        max_timestamp=-1,
        attributes=transactional * TRANSACTIONAL_BIT | control * CONTROL_BIT,
        leader_epoch=0,
        producer=producer,
    )
