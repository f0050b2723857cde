"""Times of records whose batches have none: message format 0, which brokers wrote before 0.10 (KIP-32).

Commits have in their value when the broker took them, records of classic groups (from version 2) when the group came
into its state. Both were before the record was written. A client of OffsetCommit version 1 may name any time, and a
record that only names a static member's new id repeats the time of the state before: the order of the log tells these.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coordinator_core.errors import DecodeError
from coordinator_core.records import COMMIT_TYPES, Family, LogPosition, RecordType
from coordinator_core.wire.batch_format import IN_VALUE, Damage, Kind
from coordinator_core.wire.cursor import Ints
from coordinator_core.wire.record_codec import key_type
from coordinator_core.wire.record_decoder import RecordDecoder

SLACK_MS: Final = 10_000
"""A time may be so much outside those of the records around it: requests are written in another order than they came,
and a leader takes its time to assign."""

FIELDS: Final[Mapping[int, str]] = {
    **dict.fromkeys(COMMIT_TYPES, "commitTimestamp"),
    RecordType.GROUP_METADATA: "currentStateTimestamp",
}


class ValueTimes:
    """The times of the records of one segment that have none of their own, as its values and their order tell."""

    def __init__(self, parts: Iterable[pa.RecordBatch | Damage]) -> None:
        """``parts`` are all records of the segment, as ``batches.read_columns`` gives them."""
        decoder = RecordDecoder(Family.GROUP)
        offsets: list[int] = []
        times: list[int] = []
        for part in parts:
            if isinstance(part, Damage):
                continue
            columns = (part.column(name).to_pylist() for name in ("kind", "offset", "timestamp", "key", "value"))
            for kind, offset, timestamp, key, value in zip(*columns, strict=True):
                own_ms = -1 if timestamp is None else timestamp
                if own_ms < 0 and kind == Kind.RECORD.value and value is not None:
                    own_ms = _time_in(decoder, offset, key or b"", value)
                if own_ms >= 0:
                    offsets.append(offset)
                    times.append(own_ms)
        self._offsets: Ints = np.array(offsets, np.int64)
        self._times: Ints = np.array(in_order(times), np.int64)

    def put_into(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of the segment with these times, marked as ``IN_VALUE``, where they have none."""
        if not len(self._offsets):
            return rows
        lacking = lack_times(rows)
        wanted = pc.fill_null(rows.column("offset"), -1).to_numpy()
        # at[i] is where offset i would stand among the known ones: it has a time only if that very offset stands there.
        at = np.minimum(np.searchsorted(self._offsets, wanted), len(self._offsets) - 1)
        found = lacking & (self._offsets[at] == wanted) & (self._times[at] >= 0)
        own = pc.fill_null(rows.column("timestamp"), -1).to_numpy()
        timestamps = pa.array(np.where(found, self._times[at], own), mask=_flags(rows.column("timestamp").is_null()))
        types = pa.array(np.where(found, IN_VALUE, rows.column("timestamp_type").to_numpy()).astype(np.int32))
        changed = {"timestamp": timestamps, "timestamp_type": types}
        arrays = [changed.get(name, rows.column(name)) for name in rows.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def lack_times(rows: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return which rows of ``LOG_COLUMNS`` are records without a time of their own, or with that of their value."""
    untimed = pc.or_(pc.less(rows.column("timestamp"), 0), pc.equal(rows.column("timestamp_type"), IN_VALUE))
    return _flags(pc.and_(pc.fill_null(untimed, False), pc.equal(rows.column("kind"), Kind.RECORD.value)))


def in_order(times: Sequence[int]) -> list[int]:
    """Return the times (ms) of records in the order of their log, -1 for each that their order contradicts.

    As many as possible count that do not go back. The others are -1, unless they are within ``SLACK_MS`` of the counted
    ones around them: then they are the nearest time that does not go back.
    """
    ends: list[int] = []  # of the longest rows of times that do not go back, by their length: the last time
    last_of: list[int] = []
    before: list[int] = []
    for number, time_ms in enumerate(times):
        # The longest subsequence that does not go back: ends stays sorted, so that each record takes one binary search.
        length = bisect_right(ends, time_ms)
        before.append(last_of[length - 1] if length else -1)
        if length == len(ends):
            ends.append(time_ms)
            last_of.append(number)
        else:
            ends[length], last_of[length] = time_ms, number
    kept = [False] * len(times)
    number = last_of[-1] if last_of else -1
    while number >= 0:
        kept[number], number = True, before[number]
    return _with_near(times, kept)


def _with_near(times: Sequence[int], kept: Sequence[bool]) -> list[int]:
    highs: list[int | None] = []
    high: int | None = None
    # From the end: the next counted time at or behind each record. The second walk has the one at or before it.
    for time_ms, counts in zip(reversed(times), reversed(kept), strict=True):
        high = time_ms if counts else high
        highs.append(high)
    found = []
    low: int | None = None
    for time_ms, counts, above in zip(times, kept, reversed(highs), strict=True):
        low = time_ms if counts else low
        nearest = time_ms if above is None else min(time_ms, above)
        nearest = nearest if low is None else max(nearest, low)
        found.append(nearest if abs(nearest - time_ms) <= SLACK_MS else -1)
    return found


def _time_in(decoder: RecordDecoder, offset: int, key: bytes, value: bytes) -> int:
    """Return the time in the value of a record, -1: it has none, or cannot be read."""
    field = FIELDS.get(key_type(key)) if len(key) > 1 else None
    if field is None:
        return -1
    try:
        record = decoder.record(LogPosition(0, offset, -1), key, value, offset)
    except DecodeError:
        return -1
    time_ms: int = (record.value or {}).get(field, -1)
    return time_ms


def _flags(column: pa.Array) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    return flags
