"""Topic histories of the recorded clusters, from the segments of their metadata logs."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import UnknownTypeError
from coordinator_core.records import CoordinatorRecord, Family, LogPosition
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.record_codec import decode_record


def metadata_records(logs: Path) -> Iterator[CoordinatorRecord]:
    """The records of ``__cluster_metadata`` among the logs of a broker; those of types without a schema left out."""
    for segment in sorted((logs / "__cluster_metadata-0").glob("*.log")):
        data = segment.read_bytes()
        for row in read_rows(lambda position, size, data=data: data[position : position + size], len(data)):
            if isinstance(row, LogRecord) and row.control is None and row.value is not None:
                try:
                    decoded = decode_record(row.key, row.value, Family.METADATA)
                except UnknownTypeError:
                    continue
                at = LogPosition(0, row.offset, row.timestamp)
                batch = row.batch.base_offset
                yield CoordinatorRecord(at, decoded.type, decoded.key, decoded.value, decoded.value_version, batch)


@cache
def topic_history(logs: Path) -> TopicHistory:
    return fold_metadata_log(metadata_records(logs))
