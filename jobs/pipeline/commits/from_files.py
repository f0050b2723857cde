"""The first pass over commits where this process takes part in the steps: tasks read the files of the tables
themselves, in the order of the log, and write the sums as files.

Ingest has written each range of the log to files of its own, in an order that is that of the log but for runs of some
hundred thousand rows, which are sorted by group. So no row has to go through the JVM, through a shuffle and a sort. No
order of the files is relied on: a row group says from which offset on it has rows, and a row is passed on once no row
group that has not been read yet can have an earlier one. Files in any other order only take more memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coordinator_core.wire.transactions import BY_CONTROL_TYPE
from jobs.pipeline.commits.columns import Flags, Ints, flags, ints
from jobs.pipeline.commits.fold import CHUNK_ROWS, INPUT, CommitPass, PassOver, What
from jobs.tables import tasks
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.store import file_at
from jobs.tables.table import Table
from jobs.tables.written_files import WrittenFile, can_be_committed, write_task

SOURCES: Final = {What.COMMIT: OFFSET_COMMITS, What.RECORD: GROUP_RECORDS, What.MARKER: LOG_RECORDS}
"""The table of each kind of row."""

WANTED: Final = {
    What.COMMIT: tuple(name for name in INPUT if name not in ("what", "log_partition", "run", "state")),
    What.RECORD: ("group_id", "log_offset"),
    What.MARKER: ("log_offset", "producer_id"),
}
"""The columns of the input that each kind of row has, but for those of ``OF_ROW``."""

OF_ROW: Final = ("cluster", "log_topic", "log_partition", "run_id")
"""Columns that say whether a row is wanted. In most row groups they have one value, which its statistics say."""

IS_MARKER: Final = ("control_type", "is_transactional")
"""Columns that say whether a row of ``log_records`` ends a transaction."""

_COMMITS: Final = OFFSET_COMMITS.schema
ROWS: Final = pa.schema(
    [pa.field("what", pa.int8()), pa.field("run", pa.int32()), *(_COMMITS.field(name) for name in WANTED[What.COMMIT])]
)
"""The columns of rows in the order of the log."""


class Slice(NamedTuple):
    """What one task goes over: of a log partition the commits whose key falls into slice ``number`` of ``slices``.

    ``files``: the files that may have rows of the log partition, by kind of row; ``size``: the bytes of its commits.
    """

    log_partition: int
    number: int
    slices: int
    files: Mapping[What, Sequence[str]]
    size: int = 0


def slices_of(tables: Tables, records: Mapping[int, int], cores: int) -> list[Slice] | None:
    """Return the slices of all log partitions, the largest first; None: only Spark can read or write these tables.

    ``records``: the number of new records of each log partition. Each slice reads all rows of its log partition, so
    there are only as many as keep the ``cores`` busy.
    """
    if not can_be_committed(tables, (*SOURCES.values(), COMMIT_SUMMARIES)):
        return None
    files = {what: _files_of(tables, table) for what, table in SOURCES.items()}
    total = sum(records.values())
    slices = []
    for partition, count in sorted(records.items(), key=lambda pair: -pair[1]):
        parts = max(1, -(-count * cores // max(1, total)))
        of_slice = {what: [file for file in some if file.may_have(partition)] for what, some in files.items()}
        paths = {what: [file.path for file in some] for what, some in of_slice.items()}
        size = sum(file.size for file in of_slice[What.COMMIT])
        slices += [Slice(partition, number, parts, paths, size) for number in range(parts)]
    return slices


class _File(NamedTuple):
    """A file of a table, and its bytes; the log partitions from ``first`` to ``last`` may be in it, all if there are no
    statistics.
    """

    path: str
    size: int
    first: int | None
    last: int | None

    def may_have(self, partition: int) -> bool:
        return self.first is None or self.last is None or self.first <= partition <= self.last


def _files_of(tables: Tables, table: Table) -> list[_File]:
    from deltalake import DeltaTable  # not at the top: workers have no use for it

    place = f"{tables.location}/{table.name}"
    actions = pa.table(DeltaTable(place).get_add_actions(flatten=True)).to_pylist()
    ends = "min.log_partition", "max.log_partition"
    return [
        _File(f"{place}/{action['path']}", action["size_bytes"], *(action.get(name) for name in ends))
        for action in actions
    ]


def write_files(tables: Tables, slices: Sequence[Slice], place: PassOver) -> list[WrittenFile]:
    """Write the rows of ``commit_summaries`` that all commits become, and return the files."""
    work = partial(_write, place=place, location=tables.location)
    return tasks.done(tables.session, slices, work, sum(of.size for of in slices))


def _write(slices: Sequence[Slice], place: PassOver, location: str) -> list[WrittenFile]:
    rows = (batch for of in slices for batch in summarized(of, place))
    return write_task(rows, location, lambda batch: [(COMMIT_SUMMARIES, batch)])


def summarized(of: Slice, place: PassOver) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``commit_summaries`` that a slice becomes."""
    commits, has_some = CommitPass(place, of.log_partition), False
    for chunk in rows_in_order(of, place):
        has_some = True
        yield from commits.feed(chunk)
    if has_some:
        yield from commits.finish()


def rows_in_order(of: Slice, place: PassOver) -> Iterator[pa.Table]:
    """Yield the rows of a slice in the order of the log, in chunks: commits of the slice, all records and markers."""
    waiting = list(_row_groups(of))
    heapify(waiting)
    held: list[pa.Table] = []
    while waiting:
        following = heappop(waiting)
        rows = following.rows(of, place)
        if rows.num_rows:
            held.append(rows)
        bound = waiting[0].first if waiting else None
        whole = sum(len(part) for part in held if bound is None or int(pc.max(part["log_offset"]).as_py()) < bound)
        if held and (bound is None or whole >= CHUNK_ROWS):
            ready, later = _divided(held, bound)
            held = [later] if later.num_rows else []
            yield ready


def _divided(held: Sequence[pa.Table], bound: int | None) -> tuple[pa.Table, pa.Table]:
    """Return the rows before an offset in the order of the log, and the others."""
    together = pa.concat_tables(held)
    offsets = ints(together["log_offset"])
    order = np.argsort(offsets, kind="stable")
    cut = len(order) if bound is None else int(np.searchsorted(offsets[order], bound))
    return together.take(pa.array(order[:cut])), together.take(pa.array(order[cut:]))


class _RowGroup(NamedTuple):
    """A row group of a file. ``first``: no row of it has an earlier offset. ``number``: orders equal ones."""

    first: int
    number: int
    what: What
    path: str
    metadata: pq.FileMetaData
    nth: int

    def rows(self, of: Slice, place: PassOver) -> pa.Table:
        """Return the rows of the slice that it has, with the columns of ``ROWS``."""
        group = self.metadata.row_group(self.nth)
        known = {name: value for name in OF_ROW if (value := _only_value(group, name)) is not None}
        more = IS_MARKER if self.what is What.MARKER else ()
        names = {*WANTED[self.what], *more, *(name for name in OF_ROW if name not in known)}
        # Opened for one row group: a log partition may have more files than a process may have open.
        name, files = file_at(self.path)
        with pq.ParquetFile(name, metadata=self.metadata, filesystem=files) as file:
            rows = file.read_row_group(self.nth, columns=sorted(names))
        wanted = _is_wanted(rows, known, of, place)
        if self.what is What.MARKER:
            wanted &= _is_marker(rows)
        elif self.what is What.COMMIT and of.slices > 1:
            wanted &= slice_numbers(rows, of.slices) == of.number
        if not wanted.all():
            rows = rows.filter(pa.array(wanted))
        return _in_columns(self.what, rows, pc.index_in(_values(rows, known, "run_id"), pa.array(place.runs)))


def _row_groups(of: Slice) -> Iterator[_RowGroup]:
    """Yield the row groups that may have rows of a slice."""
    number = 0
    for what, paths in of.files.items():
        for path in paths:
            name, files = file_at(path)
            metadata = pq.read_metadata(name, filesystem=files)
            for index in range(metadata.num_row_groups):
                group = metadata.row_group(index)
                ends = _statistics(group, "log_partition")
                if ends is not None and ends.has_min_max and not ends.min <= of.log_partition <= ends.max:
                    continue
                kinds = _statistics(group, IS_MARKER[0]) if what is What.MARKER else None
                if kinds is not None and kinds.has_null_count and kinds.null_count == group.num_rows:
                    continue
                offsets = _statistics(group, "log_offset")
                first = offsets.min if offsets is not None and offsets.has_min_max else -1
                yield _RowGroup(first, number, what, path, metadata, index)
                number += 1


def _in_columns(what: What, rows: pa.Table, runs: pa.ChunkedArray) -> pa.Table:
    """Return rows of a table with the columns of ``ROWS``."""
    given = {"what": pa.array(np.full(len(rows), int(what), np.int8)), "run": runs}
    given |= {name: rows[name] for name in WANTED[what]}
    columns = (given[name] if name in given else pa.nulls(len(rows)) for name in ROWS.names)
    return pa.table([column.cast(kind) for column, kind in zip(columns, ROWS.types, strict=True)], schema=ROWS)


def _is_wanted(rows: pa.Table, known: Mapping[str, object], of: Slice, place: PassOver) -> Flags:
    """Return which rows have a place in the log partition, and are of the runs."""
    wanted = {"cluster": place.cluster, "log_topic": place.log_topic, "log_partition": of.log_partition}
    wanted_rows = flags(rows["log_offset"].is_valid())
    for name, value in wanted.items():
        if known.get(name) != value:
            wanted_rows &= flags(pc.equal(_values(rows, known, name), value))
    return wanted_rows & flags(pc.is_in(_values(rows, known, "run_id"), pa.array(place.runs)))


def _values(rows: pa.Table, known: Mapping[str, object], name: str) -> pa.Array | pa.ChunkedArray:
    values = pa.repeat(known[name], len(rows)) if name in known else rows[name]
    return values.cast(_COMMITS.field(name).type)


def _is_marker(rows: pa.Table) -> Flags:
    """Return which rows of ``log_records`` end a transaction, as ``relations.commits.MARKER`` has it in SQL."""
    control_type, is_transactional = (rows[name] for name in IS_MARKER)
    return flags(pc.is_in(control_type, pa.array([*BY_CONTROL_TYPE]))) & flags(is_transactional)


def slice_numbers(commits: pa.Table, count: int) -> Ints:
    """Return the number of the slice of each commit, below ``count``: one for each group, topic and partition."""
    numbers = ints(commits["partition"])
    for name in ("group_id", "topic"):
        encoded = commits[name].combine_chunks().dictionary_encode()
        hashes = np.array([crc32(text.encode()) for text in encoded.dictionary.to_pylist()], np.int64)
        numbers = numbers * 31 + hashes[ints(encoded.indices)]
    return numbers % count


def _statistics(group: pq.RowGroupMetaData, name: str) -> pq.Statistics | None:
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema == name:
            return column.statistics
    return None


def _only_value(group: pq.RowGroupMetaData, name: str) -> object:
    """Return the value that all rows have; None: they have several, or it is not known."""
    bounds = _statistics(group, name)
    if bounds is None or not bounds.has_min_max or not bounds.has_null_count or bounds.null_count:
        return None
    return bounds.min if bounds.min == bounds.max else None
