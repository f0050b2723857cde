"""The rows of a log that a fold takes in: of a large log, about one group, without the commits of other groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.records import Family
from coordinator_core.wire.batch_format import Kind
from jobs.pipeline.commits.columns import Flags, flags, ints
from jobs.sources.log_reader import LogRow, are_commits, filled, log_rows

FEW: Final = 1 << 11
"""Of fewer commits in a part of a log, each becomes a row: columns cost as much."""


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
    ``latest_ms`` is the latest time.
    """

    row: LogRow
    first: int
    latest_ms: int


def taken_rows(part: pa.RecordBatch, family: Family, wanted: str | None) -> Iterator[TakenRow]:
    """Yield the rows of a part of a log but for commits of other groups than ``wanted`` that can be decoded (None: all
    rows). The first row and the last are among them, and those beside missing offsets.
    """
    part = filled(part)
    taken = np.ones(len(part), np.bool_)
    if wanted is not None and family is Family.GROUP and (is_commit := commits_in(part)).sum() >= FEW:
        taken[is_commit] = ~_of_others(part.filter(pa.array(is_commit)), wanted)
        is_gap = np.diff(ints(part.column("offset"))) != 1
        # is_gap[i] lies between rows i and i + 1: both are taken, so that no row stands for missing offsets.
        taken[1:] |= is_gap
        taken[:-1] |= is_gap
        taken[[0, -1]] = True
    if not len(part):
        return
    # A taken row stands for the rows left out before it, too: they begin behind the taken row before.
    begins = np.flatnonzero(np.append(True, taken[:-1]))
    firsts = ints(part.column("offset"))[begins].tolist()
    # One value for each of these stretches, from its begin to the next one.
    latest = np.maximum.reduceat(ints(part.column("timestamp"), -1), begins).tolist()
    yield from map(TakenRow, log_rows(part if taken.all() else part.filter(pa.array(taken))), firsts, latest)


def commits_in(part: pa.RecordBatch) -> Flags:
    """Return which rows of a log of groups are offset commits."""
    return flags(pc.and_(pc.equal(part.column("kind"), Kind.RECORD.value), are_commits(part.column("key"))))


def _of_others(commits: pa.RecordBatch, wanted: str) -> Flags:
    from jobs.pipeline.decode_arrow import decode, group_ids  # not at the top: small logs do without

    records = decode(commits, Family.GROUP)
    return records.good & flags(pc.not_equal(group_ids(records.keys, Family.GROUP, len(commits)), wanted))
