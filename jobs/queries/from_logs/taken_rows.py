"""The rows of a log that a fold takes in: of a large log without most commits, which columns sum up."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.audit.folds.commits import PassedCommits
from coordinator_core.records import Family
from coordinator_core.wire.batch_format import Kind
from jobs.pipeline.commits.columns import Flags, Ints, counted_before, flags, ints, order_of
from jobs.sources.log_reader import LogRow, are_commits, filled, log_rows

FEW: Final = 1 << 11
"""Of fewer commits in a part of a log, each becomes a row: columns cost as much."""
MOST_KEY_BYTES: Final = 1 << 17
"""No key of a commit has so many: its two texts have at most 32,767 each."""


@dataclass(slots=True)
class SeenTimes:
    """The times of the first and of the latest record that were read of a log partition; None: none has a time."""

    first_ms: int | None = None
    last_ms: int | None = None

    def note(self, times_ms: pa.Array) -> None:
        """Take in the next records, in the order of the log; one without a time has a negative one."""
        known = times_ms.filter(pc.greater_equal(times_ms, 0))
        if len(known):
            self.first_ms = known[0].as_py() if self.first_ms is None else self.first_ms
            # The latest time is not always that of the last record: each leader writes by its own clock.
            self.last_ms = max(pc.max(known).as_py(), self.last_ms or 0)

    def known(self) -> list[int]:
        """Return both, as far as they are known."""
        return [time_ms for time_ms in (self.first_ms, self.last_ms) if time_ms is not None]


class TakenRow(NamedTuple):
    """A row that is taken in. Behind the taken row before it, no offset is missing from ``first`` on, and
    ``latest_ms`` is the latest time. ``passed`` are the commits of its group and partition that were left out since
    the taken one before.
    """

    row: LogRow
    first: int
    latest_ms: int
    passed: PassedCommits


def taken_rows(part: pa.RecordBatch, family: Family, wanted: str | None) -> Iterator[TakenRow]:
    """Yield the rows of a part of a log that histories need. Of a large part these are left out:

    - commits of other groups than ``wanted`` that can be decoded (None: no group's);
    - commits outside transactions that go forward between two others of their partition, where nothing else in between
      is about their group: the first and the last one tell what they change.

    The first row and the last are among them, and those beside missing offsets.
    """
    part = filled(part)
    if not len(part):
        return
    taken = np.ones(len(part), np.bool_)
    passed: Iterable[PassedCommits] = repeat(())
    commits = _Commits.of(part, family)
    if commits is not None:
        taken[commits.places] = commits.that_change_more(wanted)
        is_gap = np.diff(ints(part.column("offset"))) != 1
        # is_gap[i] lies between rows i and i + 1: both are taken, so that no row stands for missing offsets.
        taken[1:] |= is_gap
        taken[:-1] |= is_gap
        taken[[0, -1]] = True
        passed = commits.passed(taken)
    # A taken row stands for the rows left out before it, too: they begin behind the taken row before.
    begins = np.flatnonzero(np.append(True, taken[:-1]))
    firsts = ints(part.column("offset"))[begins].tolist()
    # One value for each of these stretches, from its begin to the next one.
    latest = np.maximum.reduceat(ints(part.column("timestamp"), -1), begins).tolist()
    yield from map(TakenRow, log_rows(part if taken.all() else part.filter(pa.array(taken))), firsts, latest, passed)


def newest_rows(part: pa.RecordBatch, family: Family) -> Iterator[LogRow]:
    """Yield the rows of a part of a log, as ``filled`` gives it, that a moment behind it needs: of a large part without
    commits outside transactions that another one of their partition follows.

    The last one is kept also before the end of a transaction, a new leader, and a record that removes part of a group.
    """
    commits = _Commits.of(part, family)
    if commits is not None:
        kept = np.ones(len(part), np.bool_)
        kept[commits.places] = commits.that_are_last()
        part = part.filter(pa.array(kept))
    return log_rows(part)


class _Commits:
    """The commits among the rows of a part, as columns: each array has a value for each commit, in log order, and
    ``places`` its number among all rows.
    """

    def __init__(self, part: pa.RecordBatch, is_commit: Flags) -> None:
        from jobs.pipeline.decode_arrow import decode  # not at the top: small logs do without

        self._part, self._is_commit, self.places = part, is_commit, np.flatnonzero(is_commit)
        rows = self._rows = part.filter(pa.array(is_commit))
        self._records = decode(rows, Family.GROUP)
        self._is_plain = self._records.good & ~_are_ends(rows)
        # Behind its version, a key is the group, the topic and the partition: equal bytes are the same partition.
        self._keys = ints(pc.binary_slice(rows.column("key"), 2, MOST_KEY_BYTES).dictionary_encode().indices)
        # By partition, and within one in the order of the log, as the sort is stable.
        self._order = order_of(self._keys)

    @classmethod
    def of(cls, part: pa.RecordBatch, family: Family) -> "_Commits | None":
        """Return those of a part; None: it has few, and they are not worth columns."""
        if family is not Family.GROUP:
            return None
        is_commit = flags(pc.and_(pc.equal(part.column("kind"), Kind.RECORD.value), are_commits(part.column("key"))))
        return cls(part, is_commit) if is_commit.sum() >= FEW else None

    @cached_property
    def _columns(self) -> Mapping[str, pa.Array]:
        from jobs.pipeline.decode_arrow import offset_commits

        return offset_commits(self._rows, self._records, Family.GROUP)

    def that_are_last(self) -> Flags:
        """Return which commits hold before the next row that may change more than the offset of a partition."""
        is_last = np.ones(len(self._order), np.bool_)
        is_last[self._order[:-1][self._followed(self._stretches(~self._is_commit & _are_ends(self._part)))]] = False
        return is_last

    def that_change_more(self, wanted: str | None) -> Flags:
        """Return which commits, of a group or of all (None), change more than the offset between two others."""
        from coordinator_core.wire.batch_decode import decode_keys
        from jobs.pipeline.decode_arrow import group_ids

        good, groups, order = self._records.good, self._columns["group_id"], self._order
        others, places = self._part.filter(pa.array(~self._is_commit)), np.flatnonzero(~self._is_commit)
        of_rows = group_ids(decode_keys(others.column("key"), Family.GROUP), Family.GROUP, len(others))
        numbers = ints(pa.concat_arrays([groups, of_rows]).dictionary_encode().indices, -1)
        of_commits, of_others = np.split(numbers, [len(groups)])
        # Rows of no known group may be about any: ends of transactions, and what cannot be decoded.
        is_of_any = np.zeros(len(self._part), np.bool_)
        is_of_any[places[of_others < 0]] = True
        is_of_any[self.places[~good]] = True
        before = counted_before(of_commits, self.places, of_others, places)
        # Both counts only rise within a group, so that an equal sum means that both are equal.
        followed = self._followed(self._stretches(is_of_any) + before)
        # A lower offset, and another topic of this name, is of interest itself.
        topics = ints(self._columns["topic_id"].dictionary_encode().indices)
        followed &= (np.diff(ints(self._columns["committed_offset"])[order]) >= 0) & (np.diff(topics[order]) == 0)
        changes_more = np.ones(len(order), np.bool_)
        changes_more[order[1:-1][followed[:-1] & followed[1:]]] = False
        if wanted is not None:
            changes_more &= ~good | flags(pc.equal(groups, wanted))
        return changes_more

    def _stretches(self, is_end: Flags) -> Ints:
        """Return a number for each commit that rises with each of these rows before it, and each new leader."""
        epochs = ints(self._part.column("leader_epoch"))
        ends = np.cumsum(is_end | (np.diff(epochs, prepend=epochs[:1]) != 0))
        return ends[self.places]

    def _followed(self, stretches: Ints) -> Flags:
        """Return, by partition, which plain commits a plain one of their partition and stretch follows."""
        before, after = self._order[:-1], self._order[1:]
        followed: Flags = self._is_plain[before] & self._is_plain[after]
        for same in (self._keys, stretches):
            followed &= same[before] == same[after]
        return followed

    def passed(self, taken: Flags) -> Iterator[PassedCommits]:
        """Yield for each taken row what was left out of its partition since the taken commit before."""
        order, is_taken = self._order, taken[self.places][self._order]
        ends = np.flatnonzero(is_taken)
        # In this order they lie between the two taken ones, or begin with the partition: others' are all left out.
        keys = self._keys[order]
        begins_of_keys = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        begins = np.maximum(
            np.append(0, ends[:-1] + 1), begins_of_keys[np.searchsorted(begins_of_keys, ends, "right") - 1]
        )
        bounds = np.zeros((len(taken), 2), np.int64)
        bounds[self.places[order[ends]]] = np.stack([begins, ends], axis=1)
        times, at = ints(self._rows.column("timestamp"), -1), ints(self._rows.column("offset"))
        columns = [column[order] for column in (times, at, ints(self._columns["committed_offset"]))]
        for begin, end in bounds[taken].tolist():
            yield tuple(column[begin:end] for column in columns) if begin < end else ()


def _are_ends(rows: pa.RecordBatch) -> Flags:
    """Return which rows remove something, or are of a transaction."""
    return flags(pc.or_(pc.is_null(rows.column("value")), rows.column("is_transactional")))
