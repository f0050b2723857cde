"""Segments that have grown since they were taken in: only what is behind the records in the tables is read.

A log is only ever written at its end, so that a file is the one that was taken in, and has grown, if its first batch
and the last one in the tables are where they were and have the records that they had. Anything else is for
``compared``, which looks at every record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from jobs.sources.files import LogFile
from jobs.sources.segments import LENGTH_AT, Range, SegmentsReader, read_range
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.reader import Row, Value

Identify = Callable[[pa.RecordBatch], pa.RecordBatch]

OF_FILES: Final = """
SELECT source, log_topic, log_partition, min(place) AS first, max(place) AS last,
  count(CASE WHEN batch_base IS NULL THEN 1 END) AS bare
FROM $log_records WHERE stray IS NULL AND {repeated} GROUP BY source, log_topic, log_partition
"""
"""What the tables have from each file behind the first offset of the dump."""

BORDER: Final = (
    *("place", "log_offset", "kind", "key_hash", "timestamp_ms", "batch_base", "batch_last", "leader_epoch"),
    *("producer_id", "producer_epoch", "sequence", "control_type"),
)
"""What is compared of the records of two batches."""

AT_BORDERS: Final = f"""
SELECT source, {", ".join(BORDER)} FROM $log_records
WHERE cluster = :cluster AND stray IS NULL AND source IN :sources AND place IN :places ORDER BY place, log_offset
"""

STRAYS: Final = """
SELECT stray, source IN :sources AS is_of_segment FROM $log_records
WHERE cluster = :cluster AND stray IS NOT NULL AND (source IN :sources OR split_part(stray, '#', 1) IN :snapshots)
"""
"""Damaged bytes of these segments, and records of snapshots of these names."""


def rest(
    tables: Tables, source: SegmentsReader, identify: Identify, cluster: str, repeated: tuple[str, Mapping[str, Value]]
) -> tuple[SegmentsReader, Identify] | None:
    """Return a reader of what the tables do not have, and how its rows are identified.

    None: a segment is not one that was taken in and has grown, so that each record has to be looked at. ``repeated``:
    the condition, with its values, for rows of the tables that the dump may repeat.
    """
    logs = {log.name: log for log in source.logs()}
    snapshots = sorted({log.segment for log in logs.values() if log.is_snapshot})
    engine = tables.engine()
    known = {row["source"]: row for row in engine.rows(OF_FILES.format(repeated=repeated[0]), **repeated[1])}
    if not all(name in logs and _may_be(row, logs[name], source.topic) for name, row in known.items()):
        return None
    given: dict[str, Value] = {"cluster": cluster, "sources": sorted(logs), "snapshots": snapshots}
    strays = list(engine.tuples(STRAYS, **given))
    # A snapshot of the same name from another place is the same snapshot, which only a look at its records tells.
    if not all(is_of_segment for _, is_of_segment in strays):
        return None
    places = sorted({row[end] for row in known.values() for end in ("first", "last")})
    at_borders = list(engine.rows(AT_BORDERS, cluster=cluster, sources=sorted(known), places=places))
    starts = {}
    for name, row in known.items():
        for end in ("first", "last"):
            of_batch = [_border(each) for each in at_borders if (each["source"], each["place"]) == (name, row[end])]
            if _batch(logs[name], row[end], source.topic, identify) != of_batch:
                return None
        starts[name] = _behind(logs[name], row["last"])
    return source.behind(starts), partial(_without, identify=identify, strays=[stray for stray, _ in strays])


def _may_be(row: Row, log: LogFile, topic: str) -> bool:
    """Return whether rows may be of this file, as it was: bytes of one log partition, each with its batch."""
    place = (row["log_topic"], row["log_partition"])
    is_segment = not (log.texts or log.is_snapshot or log.upto is not None)
    return is_segment and place == (log.topic or topic, log.partition) and not row["bare"] and row["last"] < log.size


def _border(row: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in BORDER)


def _batch(log: LogFile, place: int, topic: str, identify: Identify) -> list[tuple[object, ...]]:
    """Return the records of the batch at a place of a file; nothing if there is no such batch."""
    for rows in read_range(Range(log, place, log.size, None), topic):
        of_batch = rows.filter(pc.equal(rows.column("place"), place))
        if not of_batch.num_rows:
            return []
        found = sorted(identify(of_batch).select(list(BORDER)).to_pylist(), key=lambda row: row["log_offset"] or 0)
        return [_border(row) for row in found]
    return []


def _behind(log: LogFile, place: int) -> int:
    """Return where the batch at a place of a file ends."""
    with log.open() as read_at:
        return place + LENGTH_AT + 4 + int.from_bytes(read_at(place + LENGTH_AT, 4), "big")


def _without(batch: pa.RecordBatch, identify: Identify, strays: Iterable[str]) -> pa.RecordBatch:
    """Return the rows that the tables do not have: a segment may end with the same damaged bytes again."""
    rows = identify(batch)
    known = pc.is_in(rows.column("stray"), pa.array(strays, LOG_RECORDS.schema.field("stray").type))
    return rows.filter(pc.invert(pc.and_(known, pc.is_valid(rows.column("stray")))))
