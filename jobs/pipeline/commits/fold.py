"""The pass over the commits of a log partition: Arrow batches in offset order to rows of ``commit_summaries``.

Rows are taken in by the hundred thousand and worked on as columns. In memory are the newest commit of each group and
partition, the sums of the present hours, and the commits whose transaction has not ended yet.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.json import ParseOptions, ReadOptions, read_json

from coordinator_core.audit.folds.commit_times import HOUR_MS
from coordinator_core.audit.folds.commits import MOST_KEPT
from coordinator_core.wire.transactions import TransactionOutcome
from jobs.pipeline.commits.columns import (
    NULL,
    Flags,
    Ids,
    Ints,
    distinct,
    flags,
    ints,
    lists,
    nullable,
    order_of,
    runs_of,
    structs,
)
from jobs.pipeline.commits.state import (
    BESIDE,
    COUNTS,
    REMOVAL,
    REWIND,
    SCHEMA,
    Before,
    Commits,
    CommitsBesideRecords,
    Hours,
    NewestCommits,
    Sums,
    positions,
)
from jobs.tables.table import COMMIT, PLACED

CHUNK_ROWS: Final = 1 << 18
"""Rows that are worked on at a time. Each chunk costs the same calls of numpy, so that few rows would be dear; the
columns of this many take some tens of megabytes."""
MOST_HOURS: Final = 1 << 19
"""Number of rows of hours that are kept before they are written, which bounds the memory of a task; later commits of
the same hours make more rows, which readers add up."""


class What(IntEnum):
    """What a row of the input is."""

    STATE = -1
    COMMIT = 0
    RECORD = 1
    MARKER = 2
    SETTLED = 3
    """A commit of an earlier run whose transaction has ended since, or one that waits for its marker."""


INPUT: Final = ("what", "log_partition", "group_id", "topic", "partition", "is_tombstone", *COMMIT, "run", "state")
"""Columns of the input. ``run``: index of the run that added the row. ``state``: a row of all commits, as JSON."""

STATE: Final = (
    *(*COUNTS, "first", "first_offset", "last", "last_offset", "rewinds", "removals"),
    *("committed", "ended", "pending"),
)
"""Columns of a row of all commits that its state has."""

STATES: Final = pa.schema([SCHEMA.field(name) for name in STATE])

PLACE: Final = ("log_partition", "log_offset")
OF_PARTITION: Final = ("log_partition", "group_id", "topic", "partition")
"""Columns that identify a row of the log, and a group and partition, within the log of groups of a cluster."""

OF_LOG: Final = f"cluster = :cluster AND log_topic = :topic AND {PLACED}"
NEW: Final = f"{OF_LOG} AND run_id > :done AND run_id <= :upto"
"""Rows of the log of groups of a cluster, and those of new runs."""

Batches = Iterable[pa.RecordBatch]


class CommitNews(NamedTuple):
    """The log partitions that change; those in ``again`` from their beginning.

    ``settles``: a new run has learned something of commits of earlier runs.
    """

    changed: Sequence[int] = ()
    again: Sequence[int] = ()
    settles: bool = False


class PassOver(NamedTuple):
    """What all rows of one pass have in common. ``runs``: the runs that added the rows, oldest first."""

    cluster: str
    log_topic: str
    runs: Sequence[str]


def summarizer(place: PassOver, states: pa.Table | None = None) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return the pass as a function for ``mapInArrow``: rows of ``INPUT``, by log partition and in offset order.

    Rows of all commits, from which it goes on, are among them, or in the columns of ``states``.
    """

    def begun(partition: int) -> CommitPass:
        commits = CommitPass(place, partition)
        if states is not None:
            of_partition = states.filter(pc.equal(states["log_partition"], partition))
            commits.load(of_partition, of_partition)
        return commits

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        waiting = set() if states is None else set(states["log_partition"].to_pylist())
        for partition, chunks in _by_partition(batches):
            waiting.discard(partition)
            commits = begun(partition)
            for chunk in chunks:
                yield from commits.feed(chunk)
            yield from commits.finish()
        for partition in sorted(waiting):
            yield from begun(partition).finish()

    return run


def _by_partition(batches: Batches) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Yield each log partition with its rows in large chunks."""
    pieces = ((int(piece.column("log_partition")[0].as_py()), piece) for batch in batches for piece in _split(batch))
    for partition, of_partition in groupby(pieces, itemgetter(0)):
        yield partition, _chunks(piece for _, piece in of_partition)


def _split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for first, last in zip(*runs_of(ints(batch.column("log_partition"))), strict=True):
        yield batch.slice(first, last - first + 1)


def _chunks(pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for piece in pieces:
        held.append(piece)
        rows += piece.num_rows
        if rows >= CHUNK_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


class CommitPass:
    """The pass over one log partition."""

    def __init__(self, place: PassOver, partition: int) -> None:
        self._place = place
        self._partition = partition
        self._groups, self._topics, self._topic_ids, self._keys = Ids(), Ids(), Ids(), Ids()
        self._newest = NewestCommits()
        self._hours = Hours()
        self._beside = CommitsBesideRecords()
        self._waiting = pa.table([])
        self._end = -1

    def load(self, names: pa.Table, states: pa.Table) -> None:
        """Go on from rows of all commits, as an earlier run left them: group, topic and partition, and ``STATES``."""
        groups = self._groups.of_text(_whole(names["group_id"]))
        topics = self._topics.of_text(_whole(names["topic"]))
        self._newest.load(self._key_ids(groups, topics, ints(names["partition"])), states, self._topic_ids)

    def feed(self, chunk: pa.Table) -> Iterator[pa.RecordBatch]:
        """Take in rows that follow those before in the log; yield rows of hours if there are many.

        Raises:
            ValueError: the rows are not in the order of the log.
        """
        kinds = ints(chunk["what"])
        if (kinds == What.STATE).any():
            states = _where(chunk, kinds == What.STATE)
            self.load(states, _parsed(_whole(states["state"])))
            chunk, kinds = _where(chunk, kinds != What.STATE), kinds[kinds != What.STATE]
        self._advance(ints(chunk["log_offset"])[kinds != What.SETTLED])
        records, markers = (_where(chunk, kinds == kind) for kind in (What.RECORD, What.MARKER))
        self._beside.add_records(self._groups.of_text(_whole(records["group_id"])), ints(records["log_offset"]))
        rows = _where(chunk, (kinds == What.COMMIT) | (kinds == What.SETTLED))
        if rows.num_rows or (self._waiting.num_rows and markers.num_rows):
            self._take_in(rows, markers)
        self._beside.end_chunk()
        if len(self._hours) > MOST_HOURS:
            yield self._hour_rows()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the hours and those of all commits."""
        if self._waiting.num_rows:  # the markers that committed them are not there
            self._count(self._read(self._waiting))
        self._add_beside(self._beside.finish(len(self._keys)))
        yield self._hour_rows()
        yield self._all_rows()

    # --- reading -----------------------------------------------------------------------------------------------------

    def _advance(self, offsets: Ints) -> None:
        if len(offsets):
            if offsets[0] < self._end or (np.diff(offsets) < 0).any():
                raise ValueError(f"the rows of log partition {self._partition} are not in the order of the log")
            self._end = int(offsets[-1])

    def _read(self, rows: pa.Table) -> Commits:
        times = ints(rows["timestamp_ms"])
        groups = self._groups.of_text(_whole(rows["group_id"]))
        topics = self._topics.of_text(_whole(rows["topic"]))
        return Commits(
            rows,
            np.arange(rows.num_rows),
            key=self._key_ids(groups, topics, ints(rows["partition"])),
            group=groups,
            hour=np.where(times >= 0, times // HOUR_MS, -1),
            at=ints(rows["log_offset"]),
            time=times,
            offset=ints(rows["committed_offset"]),
            topic=self._topic_ids.of_text(_whole(rows["topic_id"])),
            expires=ints(rows["expire_timestamp"]),
            committed_at=ints(rows["commit_timestamp"]),
            run=ints(rows["run"]),
            is_tombstone=flags(rows["is_tombstone"]),
        )

    def _key_ids(self, groups: Ints, topics: Ints, partitions: Ints) -> Ints:
        """Return the id of each group, topic and partition; new ones get a row in all columns."""
        # Group, topic and partition as one number, digit by digit, as in ``Hours.of``.
        # Partitions become their rank among those that are here: the product stays small, whatever their numbers are.
        rows, place = distinct(partitions - partitions.min(initial=0))
        together = (groups * max(1, len(self._topics)) + topics) * max(1, len(rows)) + place
        first, inverse = distinct(together)
        named = zip(groups[first].tolist(), topics[first].tolist(), partitions[first].tolist(), strict=True)
        ids = self._keys.of(named)[inverse]
        self._newest.columns.grow(len(self._keys))
        self._beside.columns.grow(len(self._keys))
        return ids

    # --- taking in ---------------------------------------------------------------------------------------------------

    def _take_in(self, rows: pa.Table, markers: pa.Table) -> None:
        """Take in commits of a chunk, after those of earlier chunks that wait for the marker of their transaction.

        What is as it is in the log (records written, tombstones) counts at once, and in the order of the log. What
        depends on transactions counts in the order in which commits hold: each at its own offset or at that of its
        marker (``effective``), and of one marker in the order of the log. Those whose marker is still to come wait.
        """
        waited = self._waiting.num_rows
        commits = self._read(pa.concat_tables([self._waiting, rows]) if waited else rows)
        comes = np.arange(len(commits)) >= waited
        is_new = comes & (ints(commits.table["what"]) == What.COMMIT)
        # Settled ones are noted as written by an earlier run: here they only stop being pending, and count below.
        self._newest.settle(commits.at[comes & ~is_new])
        self._note(commits if is_new.all() else commits.take(is_new))
        counts, waits, is_open = _fates(commits)
        self._newest.add_pending(commits.take(is_open & ~commits.is_tombstone))
        self._waiting = self._waiting.slice(0, 0)
        if not waits.any():
            self._count(commits if counts.all() else commits.take(counts))
            return
        ends = _following(commits, waits, ints(markers["producer_id"]), ints(markers["log_offset"]))
        # Only what has no marker in this chunk waits on: the next chunk reads it again, in front of its own rows.
        self._waiting = commits.table.take(pa.array(np.flatnonzero(waits & (ends == NULL))))
        effective = np.where(waits, ends, commits.at)
        ready = np.flatnonzero(counts | (waits & (ends != NULL)))
        # The last key of lexsort counts most: by when they hold, and of one marker in the order of the log.
        self._count(commits.take(ready[np.lexsort((commits.at[ready], effective[ready]))]))

    def _note(self, new: Commits) -> None:
        """Take in records as the log has them, of any outcome."""
        if not len(new):
            return
        self._newest.add_written(new.key, new)
        self._hours.add_written(self._hours.of(new.key, new.hour, new.run), new)
        # A tombstone ends pending commits at once, without a transaction: what it removed is no offset, however that
        # one ends.
        removals = new.take(new.is_tombstone)
        self._newest.columns.set(removals.key, ended=removals.at)
        commits = new if not len(removals) else new.take(~new.is_tombstone)
        if len(commits):
            self._add_beside(self._beside.add(commits, self._beside.stretches(commits.group, commits.at)))

    def _add_beside(self, beside: tuple[Ints, ...]) -> None:
        keys, offsets, times, topics, runs = beside
        if len(keys):
            names = pa.array([*self._topic_ids.numbers, None], pa.string())
            rows = pa.array(np.where(topics < 0, len(names) - 1, topics))
            fields = {"log_offset": pa.array(offsets), "timestamp_ms": nullable(times), "topic_id": names.take(rows)}
            hours = self._hours.of(keys, np.where(times >= 0, times // HOUR_MS, -1), runs)
            self._hours.beside.add(hours, structs(fields, BESIDE))

    def _count(self, commits: Commits) -> None:
        """Take in commits and tombstones that hold, in the order in which they do."""
        if not len(commits):
            return
        holding = self._newest.in_their_order(commits.take(order_of(commits.key)))
        if not len(holding):
            return
        before = self._newest.before(holding)
        hours = self._hours.of(holding.key, holding.hour, holding.run)
        # A lower offset of another topic of this name is no step back; where an id is not known they pass for the
        # same.
        same_topic = (holding.topic < 0) | (before.topic < 0) | (holding.topic == before.topic)
        back = before.has & ~holding.is_tombstone & (holding.offset < before.offset) & same_topic
        removed = before.has & holding.is_tombstone
        for which, make, kind in ((back, self._rewinds, "rewinds"), (removed, self._removals, "removals")):
            rows = np.flatnonzero(which)
            steps = make(holding.take(rows), before.take(rows))
            for sums, owners in ((self._newest, holding.key), (self._hours, hours)):
                sums.add_steps(kind, owners[rows], steps)
        for sums, owners in ((self._newest, holding.key), (self._hours, hours)):
            sums.add_counted(owners[~holding.is_tombstone], holding.take(~holding.is_tombstone))
        self._newest.keep(holding)

    def _rewinds(self, commits: Commits, before: Before) -> pa.Array:
        fields = {
            "at": positions(self._partition, commits.at, commits.time),
            "before": nullable(before.offset),
            "after": nullable(commits.offset),
            "log_offset_before": nullable(before.at),
            "metadata": _whole(commits.rows(("metadata",))["metadata"]),
        }
        return structs(fields, REWIND)

    def _removals(self, tombstones: Commits, before: Before) -> pa.Array:
        times = tombstones.time
        age = np.where((times == NULL) | (before.committed_at == NULL), NULL, times - before.committed_at)
        fields = {
            "at": positions(self._partition, tombstones.at, times),
            "offset": nullable(before.offset),
            "past_expiry": pa.array((before.expires >= 0) & (before.expires <= times)),
            "age_ms": nullable(age),
            "log_offset_before": nullable(before.at),
        }
        return structs(fields, REMOVAL)

    # --- writing -----------------------------------------------------------------------------------------------------

    def _hour_rows(self) -> pa.RecordBatch:
        """Return the hours so far, and begin again."""
        hours, self._hours = self._hours, Hours()
        names = hours.names()
        runs = pa.array(self._place.runs, pa.string()).take(pa.array(names[:, 2]))
        starts = np.where(names[:, 1] < 0, -1, names[:, 1] * HOUR_MS)
        owners, beside = hours.beside.all()
        more = {"run_id": runs, "hour_ms": pa.array(starts), "beside": lists(owners, beside, len(names))}
        return self._rows(names[:, 0], hours, more, np.arange(len(names)))

    def _all_rows(self) -> pa.RecordBatch:
        count = len(self._keys)
        owners, pending = self._newest.pending()
        more = {
            "run_id": pa.array([self._place.runs[-1]] * count, pa.string()),
            "log_end": pa.array(np.full(count, self._end)),
            "committed": self._newest.held(count),
            "ended": nullable(self._newest.columns["ended"][:count]),
            "pending": lists(owners, pending, count),
        }
        names = np.array(list(self._keys.numbers), np.int64).reshape(-1, 3)
        return self._rows(np.arange(count), self._newest, more, np.lexsort((names[:, 2], names[:, 1], names[:, 0])))

    def _rows(self, keys: Ints, sums: Sums, more: dict[str, pa.Array], order: Ints) -> pa.RecordBatch:
        """Return sums as rows of the table; ``keys`` has the key of each, and ``more`` the other columns."""
        count, columns = len(keys), sums.columns
        names = np.array(list(self._keys.numbers), np.int64).reshape(-1, 3)[keys]
        groups, topics = (pa.array(list(ids.numbers), pa.string()) for ids in (self._groups, self._topics))
        fields = {
            "cluster": pa.array([self._place.cluster] * count, pa.string()),
            "log_topic": pa.array([self._place.log_topic] * count, pa.string()),
            "log_partition": pa.array(np.full(count, self._partition)),
            "group_id": groups.take(pa.array(names[:, 0])),
            "topic": topics.take(pa.array(names[:, 1])),
            "partition": pa.array(names[:, 2]),
            **{name: pa.array(columns[name][:count]) for name in COUNTS},
            **{name: nullable(columns[name][:count]) for name in ("first_offset", "last_offset")},
        }
        for name in ("first", "last"):
            fields[name] = positions(self._partition, columns[name][:count], columns[f"{name}_ms"][:count])
        for name, of in (("rewinds", sums.rewinds), ("removals", sums.removals)):
            fields[name] = lists(*of.all(), count, MOST_KEPT)
        fields |= more
        nothing = pa.nulls(count)
        arrays = [fields.get(field.name, nothing).cast(field.type) for field in SCHEMA]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA).take(pa.array(order))


def _parsed(lines: pa.Array) -> pa.Table:
    """Return states as columns, from one JSON text for each."""
    text = b"\n".join(lines.cast(pa.binary()).to_pylist())
    # There is one block: a line is never cut, and may be long, as it has all open transactions of its partition.
    reading = ReadOptions(use_threads=False, block_size=len(text) + 1)
    return read_json(BytesIO(text), reading, ParseOptions(explicit_schema=STATES))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _where(table: pa.Table, which: Flags) -> pa.Table:
    return table if which.all() else table.filter(pa.array(which))


def _fates(commits: Commits) -> tuple[Flags, Flags, Flags]:
    """Return which commits hold at once, which do once their transaction's marker comes, and which have none yet.

    Those of aborted transactions are among none of them. Without a producer (a dump by a consumer does not show it) the
    unknown outcome of a commit does not make it doubtful.
    """
    outcome = _whole(commits.table["outcome"])
    if outcome.null_count == len(outcome):
        nothing = np.zeros(len(commits), np.bool_)
        return ~nothing, nothing, nothing
    committed, aborted, is_open, unknown = (
        flags(pc.equal(outcome, outcome_of.value))
        for outcome_of in (
            TransactionOutcome.COMMITTED,
            TransactionOutcome.ABORTED,
            TransactionOutcome.OPEN,
            TransactionOutcome.UNKNOWN,
        )
    )
    has_producer = ints(commits.table["producer_id"]) >= 0
    waits, has_no_end = committed & has_producer, is_open | (unknown & has_producer)
    return ~(waits | aborted | has_no_end), waits, has_no_end


def _following(commits: Commits, waits: Flags, producers: Ints, ends: Ints) -> Ints:
    """Return for each waiting commit the offset of its producer's next marker; NULL where there is none."""
    # Waiting commits and markers in one order, by producer and offset: a commit's marker is the next one behind it,
    # if that is of the same producer. ``place`` has the index of each marker and beyond the end elsewhere; its minimum
    # from the end backwards is at each place the index of the next marker.
    marker_offsets = np.full(len(commits), NULL)
    rows = np.flatnonzero(waits)
    producer = np.concatenate([ints(commits.table["producer_id"])[rows], producers])
    at = np.concatenate([commits.at[rows], ends])
    order = np.lexsort((at, producer))
    is_marker = order >= len(rows)
    place = np.where(is_marker, np.arange(len(order)), len(order))
    following = np.minimum.accumulate(place[::-1])[::-1]
    known = following < len(order)
    marker = order[np.where(known, following, 0)]
    known &= producer[marker] == producer[order]
    waiting = order[~is_marker]
    marker_offsets[rows[waiting]] = np.where(known, at[marker], NULL)[~is_marker]
    return marker_offsets
