"""Offsets of a log partition that have no record, found column by column, and what tells compaction from loss.

What tells them apart, in this order:

- Offsets within the bounds of a batch that is there went by compaction: brokers write batches without holes.
- A hole in which damaged bytes lie is ``damaged``.
- Compaction works from the beginning of the log up to some offset, and leaves of each key the last record before it.
  So where a key occurs twice up to the end of a hole, compaction has not been there, and the hole is ``missing``. So is
  each hole in a log that is never compacted.
- Any other hole is compaction's work, as far as the log can tell.

Rows whose batch is not known (base offset -1) are of a dump by a consumer, which sees no control records, one at the
end of each transaction in a log partition. There a hole of at most as many offsets as there were commits since the hole
before it may be such records, and is not lost.
"""

from bisect import bisect_left
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coordinator_core.records import RecordType
from coordinator_core.wire.batch_format import Damage, DamageKind, Kind

Ints = NDArray[np.int64]

COMMIT_TYPES = [bytes((0, kind)) for kind in (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)]
"""How the keys of commits begin."""

FIRST_KEYS = 1 << 12
"""A log that was not compacted repeats a key early: so many are looked at first."""


class GapCause(StrEnum):
    """Why offsets are lost."""

    MISSING = "missing"
    DAMAGED = "damaged"


class LostOffsets(NamedTuple):
    """Offsets, both included, whose records are gone by something else than compaction."""

    first: int
    last: int
    cause: GapCause


class _Repeats:
    """Looks for the first offset at which a key occurs for the second time."""

    def __init__(self) -> None:
        self.first: int | None = None
        self._seen: pa.Array = pa.array([], pa.binary())

    def feed(self, keys: pa.Array, offsets: Ints) -> None:
        """The next keys of the log, none of them null, with their offsets."""
        start, size = 0, FIRST_KEYS
        while self.first is None and start < len(keys):
            self._look(keys[start : start + size], offsets[start : start + size])
            # Each look is larger: where nothing was compacted the first one ends it, and most keys are never compared.
            start, size = start + size, size * 4

    def _look(self, keys: pa.Array, offsets: Ints) -> None:
        encoded = keys.dictionary_encode()
        numbers = encoded.indices.to_numpy()
        # A key repeats if it stands twice among these rows, or was seen before them. Of equal keys here only the first
        # can be new, and it is looked up once for each distinct key.
        firsts = np.unique(numbers, return_index=True)[1]
        is_repeat = np.ones(len(numbers), np.bool_)
        is_repeat[firsts] = pc.is_in(encoded.dictionary, value_set=self._seen).to_numpy(zero_copy_only=False)
        if is_repeat.any():
            # One repeat is all that is asked for: no key need be remembered any more.
            self.first = int(offsets[is_repeat].min())
            self._seen = pa.array([], pa.binary())
        else:
            self._seen = pa.concat_arrays([self._seen, encoded.dictionary])


class OffsetGaps:
    """The gaps of one log partition. Feed its rows (schema ``log_columns.LOG_COLUMNS``) once, in the order of the log.

    ``from_start``: the log was read from its start, so that what is not there below the first row may be compaction's
    work. ``is_compacted``: it is a log that brokers compact.
    """

    def __init__(self, *, from_start: bool, is_compacted: bool = True) -> None:
        self.lost: list[LostOffsets] = []
        self._from_start = from_start
        self._is_compacted = is_compacted
        self._repeats = _Repeats()
        self._damage: Damage | None = None
        self._unreadable: list[Damage] = []
        self._last = self._end = -1
        self._commits = self._commits_at_hole = 0
        self._is_blind = False
        self._first_hidden: int | None = None
        self._first_missing: list[int] = []
        self._last_missing: list[int] = []

    @property
    def end(self) -> int:
        """The offset behind the last one that was fed, or is lost."""
        return max(self._last, self._end, self.lost[-1].last if self.lost else -1) + 1

    def note_damage(self, damage: Damage) -> None:
        """Bytes that gave no record lie behind the rows fed so far.

        A file that ends in the middle of a batch explains nothing of what is damaged before it.
        """
        if damage.kind is DamageKind.FORMAT and damage.base_offset >= 0:
            # Its CRC is right, so that its offsets are. It may come before the rows in front of it.
            self._unreadable.append(damage._replace(last_offset=max(damage.base_offset, damage.last_offset)))
        elif self._damage is None or self._damage.kind is DamageKind.TRUNCATED:
            self._damage = damage
        elif damage.kind is not DamageKind.TRUNCATED:
            self._damage = self._damage._replace(last_offset=max(self._damage.last_offset, damage.last_offset))

    def feed(self, rows: pa.RecordBatch) -> list[int]:
        """Take the next rows; returns the numbers of those before which offsets are lost."""
        if not rows.num_rows:
            return []
        base, end = (rows.column(f"batch_{name}_offset").to_numpy() for name in ("base", "last"))
        empty = pc.equal(rows.column("kind"), Kind.EMPTY.value).to_numpy(zero_copy_only=False)
        offset = pc.coalesce(rows.column("offset"), rows.column("batch_last_offset")).to_numpy()
        blind = base < 0
        blind_before = np.concatenate([[self._is_blind], blind[:-1]])
        commits = self._commits_before(rows) if blind.any() else None
        # A row without a batch explains no offset but its own.
        base, end = np.where(blind, offset, base), np.where(blind, offset, end)
        self._note_keys(rows, offset)
        first = np.where(empty, base, offset)
        # The highest offset before each row, not the offset of the row before: empty batches cover several.
        last_before = np.maximum.accumulate(np.concatenate([[self._last], offset[:-1]]))
        end_before = np.maximum.accumulate(np.concatenate([[self._end], end[:-1]]))
        # The bytes of an emptied data batch are there, and its records are not; an emptied marker had no key.
        emptied = empty & ~rows.column("is_control").to_numpy(zero_copy_only=False)
        gaps = []
        for number in np.flatnonzero((first > last_before + 1) | emptied).tolist():
            before, until = int(last_before[number]), int(first[number]) - 1
            if until > before:
                self._missing(before + 1, until)
                low, high = max(before, int(end_before[number])) + 1, min(until, int(base[number]) - 1)
                if 0 < low <= high and self._first_hidden is None and (blind[number] or blind_before[number]):
                    self._first_hidden = low
                if commits is not None and blind[number] and low > 0:
                    # Each commit may be of a transaction of its own, whose marker a consumer does not see.
                    since, self._commits_at_hole = int(commits[number]) - self._commits_at_hole, int(commits[number])
                    if high - low < since:
                        continue
                if low <= high and self._note_lost(low, high, is_next=number == 0):
                    # That a log begins later, its first file says.
                    gaps += [number] if low > 0 or self.lost[-1].cause is GapCause.DAMAGED else []
            if emptied[number]:
                self._missing(int(base[number]), int(end[number]))
        self._last, self._end = max(self._last, int(offset.max())), max(self._end, int(end.max()))
        self._is_blind = bool(blind[-1])
        self._damage = None  # damage lies before the first of these rows, and explains no later hole
        self._unreadable = [damage for damage in self._unreadable if damage.last_offset > self._last]
        return gaps

    def finish(self) -> None:
        """The log is at its end: a damaged batch behind its last row is lost, but a file may end in the middle of one.

        That is how a copy of a file looks that a broker writes to.
        """
        damage, self._damage = self._damage, None
        is_behind = damage is not None and (damage.kind is not DamageKind.ABSENT or damage.last_offset > self._last)
        if damage is not None and damage.kind is not DamageKind.TRUNCATED and is_behind:
            first = self._last + 1
            self._missing(first, max(first, damage.last_offset))
            self.lost.append(LostOffsets(first, max(first, damage.last_offset), GapCause.DAMAGED))
        for batch in self._unreadable:
            self._missing(batch.base_offset, batch.last_offset)
            self.lost.append(LostOffsets(batch.base_offset, batch.last_offset, GapCause.DAMAGED))
        self._unreadable.clear()

    def note_missing_end(self) -> None:
        """Records are missing behind the last row, of a log that is at its end; nothing tells how many."""
        end = self.end
        self._missing(end, end)
        self.lost.append(LostOffsets(end, end, GapCause.MISSING))

    def last_missing_below(self, end: int | None) -> int:
        """The highest offset below ``end`` that has no record, -1 if there is none; None: in all of the log."""
        if end is None:
            return self._last_missing[-1] if self._last_missing else -1
        # Rows come in the order of the log, so that the holes are noted in order, too.
        index = bisect_left(self._first_missing, end) - 1
        return min(self._last_missing[index], end - 1) if index >= 0 else -1

    def last_lost_below(self, end: int | None) -> int:
        """The highest offset below ``end`` that is lost, -1 if none is; None: in all of the log."""
        if end is None:
            return max((lost.last for lost in self.lost), default=-1)
        return max((min(lost.last, end - 1) for lost in self.lost if lost.first < end), default=-1)

    def is_lost_from(self, end: int | None) -> bool:
        """Whether an offset from ``end`` on is lost."""
        return end is not None and any(lost.last >= end for lost in self.lost)

    def may_hide_ends(self, end: int | None) -> bool:
        """Whether a dump by a consumer lacks offsets below ``end`` at which transactions may have ended."""
        return self._first_hidden is not None and (end is None or self._first_hidden < end)

    def _note_keys(self, rows: pa.RecordBatch, offset: Ints) -> None:
        if not self._is_compacted or self._repeats.first is not None:
            return
        keys = rows.column("key")
        with_key = pc.and_(pc.is_valid(keys), pc.equal(rows.column("kind"), Kind.RECORD.value))
        self._repeats.feed(keys.filter(with_key), offset[with_key.to_numpy(zero_copy_only=False)])

    def _commits_before(self, rows: pa.RecordBatch) -> Ints:
        """Return how many commits there were before each row."""
        types = pc.fill_null(pc.binary_slice(rows.column("key"), 0, 2), b"")
        is_commit = pc.is_in(types, value_set=pa.array(COMMIT_TYPES, pa.binary())).to_numpy(zero_copy_only=False)
        before = self._commits + np.concatenate([[0], np.cumsum(is_commit)])
        self._commits = int(before[-1])
        return before[:-1].astype(np.int64)

    def _missing(self, first: int, last: int) -> None:
        self._first_missing.append(first)
        self._last_missing.append(last)

    def _note_lost(self, low: int, high: int, *, is_next: bool) -> bool:
        """Whether the offsets between two batches are lost; then they are noted. ``is_next``: before the next row."""
        repeat = self._repeats.first
        is_unreadable = any(batch.base_offset <= high and batch.last_offset >= low for batch in self._unreadable)
        if is_unreadable or (is_next and self._damage is not None):
            cause = GapCause.DAMAGED
        elif not self._is_compacted or (repeat is not None and repeat <= high) or (low == 0 and not self._from_start):
            cause = GapCause.MISSING
        else:
            return False
        self.lost.append(LostOffsets(low, high, cause))
        return True
