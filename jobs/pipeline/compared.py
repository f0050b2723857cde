"""A dump that this process reads, compared with what the tables have: which of its rows are new.

A dump that may repeat records is read twice. The first time gives the place of each row and what must be equal in all
dumps of it; then the rows that are new are known, and the second time they are written. A segment that has only grown
since it was taken in is read from where the tables end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coordinator_core.errors import GoneError, InputError
from jobs.pipeline import typed_tables
from jobs.pipeline.decode_arrow import typed_rows
from jobs.pipeline.row_identity import CONTENT, DETAILS, EARLIER_LEADER, LATER_LEADER, OTHER_LOG, Identify
from jobs.sources.dump import Dump
from jobs.sources.dump_batches import LogSource
from jobs.tables import tasks
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.reader import Row
from jobs.tables.written_files import WrittenFile, write_task

Flags = NDArray[np.bool_]

KEY: Final = tuple(name for name in LOG_RECORDS.key if name != "cluster")
COMPARED: Final = (*KEY, *CONTENT, "batch_base", "leader_epoch", "source", "place")
SCHEMA: Final = pa.schema([LOG_RECORDS.schema.field(name) for name in COMPARED])

TAKEN: Final = f"""
SELECT {", ".join(COMPARED)} FROM $log_records WHERE cluster = :cluster
AND (stray IS NOT NULL OR (log_topic IN :topics AND log_offset BETWEEN :first AND :last))
"""
"""The rows that a dump of these topics and offsets may repeat, and those that have no position."""


def written(tables: Tables, source: LogSource, identify: Identify) -> list[WrittenFile]:
    """Write what all rows of a dump become, and return the files."""
    planned = source.partitions()
    work = partial(_write, source=source, identify=identify, location=tables.location)
    return tasks.done(tables.session, [_Wanted(task) for task in planned], work, sum(map(source.size, planned)))


def take(tables: Tables, dump: Dump, identify: Identify, cluster: str, transaction: str) -> None:
    """Append the rows of a dump that are new, each once, and what only it tells of rows that are in the tables.

    Raises:
        InputError: two different records have the same position.
    """
    source = dump.source
    assert source is not None
    planned = source.partitions()
    read = partial(_compared, source=source, identify=identify)
    places = tasks.done(None, planned, read, sum(map(source.size, planned)))
    given = pa.concat_tables([SCHEMA.empty_table(), *places])
    found = _judged(given, _taken(tables, given, cluster), is_detailed=dump.detailed)
    # All tasks were judged as one table: ``ends`` cuts the answers into those of each task again.
    ends = np.cumsum([len(of_task) for of_task in places])[:-1]
    offsets = [of_task["log_offset"].combine_chunks() for of_task in places]
    judged = [list(zip(planned, offsets, np.split(flags, ends), strict=True)) for flags in found]
    new, told = ([_Wanted(*each) for each in of_tasks if each[2].any()] for of_tasks in judged)
    work = partial(_write, source=source, identify=identify, location=tables.location)
    files = tasks.done(None, new, work, sum(source.size(wanted.task) for wanted in new))
    typed_tables.commit(tables, files, transaction)
    if told:
        details = [rows.select([*LOG_RECORDS.key, *DETAILS]) for rows in _read(told, source, identify)]
        run_id = transaction.partition("/")[0]
        update = {name: f"s.{name}" for name in DETAILS} | {"revised_by": f"'{run_id}'"}
        lacking = "t.batch_base IS NULL AND t.stray IS NULL"
        tables.merge(LOG_RECORDS, pa.Table.from_batches(details), update, when=lacking)


class _Wanted(NamedTuple):
    """A task, and of each of its rows the offset and whether it is wanted; None: all are."""

    task: object
    offsets: pa.Array | None = None
    flags: Flags | None = None


def _read(some: Iterable[_Wanted], source: LogSource, identify: Identify) -> Iterator[pa.RecordBatch]:
    """Yield the rows of tasks that are wanted.

    Raises:
        GoneError: other rows are there than at the first time, as a broker has cleaned its log.
    """
    for task, offsets, flags in some:
        begin = 0
        for batch in source.read(task):
            rows = batch
            if offsets is not None and flags is not None:
                # A file that has grown since the first time has rows that were not judged.
                rows = batch.slice(0, len(flags) - begin)
                if not rows.column("log_offset").equals(offsets.slice(begin, rows.num_rows)):
                    raise GoneError("a broker has just cleaned what was compared: begin again")
                rows, begin = rows.filter(pa.array(flags[begin : begin + rows.num_rows])), begin + rows.num_rows
            if rows.num_rows:
                yield identify(rows)
        if flags is not None and begin < len(flags):
            raise GoneError("a broker has just cleaned what was compared: begin again")


def _write(some: Sequence[_Wanted], source: LogSource, identify: Identify, location: str) -> list[WrittenFile]:
    return write_task(_read(some, source, identify), location, typed_rows)


def _compared(some: Sequence[object], source: LogSource, identify: Identify) -> list[pa.Table]:
    """Return the rows of each task with the columns ``COMPARED``."""
    found = []
    for task in some:
        rows = [identify(batch).select(SCHEMA.names) for batch in source.read(task)]
        found.append(pa.Table.from_batches(rows, SCHEMA))
    return found


def _taken(tables: Tables, given: pa.Table, cluster: str) -> pa.Table:
    """Return the rows of the tables that the given ones may repeat."""
    ends = pc.min_max(given["log_offset"]).as_py()
    topics = [topic for topic in pc.unique(given["log_topic"]).to_pylist() if topic is not None]
    bounds = {"first": ends["min"] or 0, "last": -1 if ends["max"] is None else ends["max"]}
    rows = tables.engine().made(TAKEN, SCHEMA, cluster=cluster, topics=topics, **bounds)
    assert isinstance(rows, pa.Table)
    return rows


class Judged(NamedTuple):
    """Of each row of a dump, whether it is new, and whether it tells the batch of a row of which none is known."""

    is_new: Flags
    adds_details: Flags


def _judged(given: pa.Table, taken: pa.Table, *, is_detailed: bool) -> Judged:
    """Compare the rows of a dump with each other and with those of the tables.

    Of several rows with one key the first counts that has a batch, by source and place.
    """
    rows = pa.concat_tables([taken, given]).combine_chunks()
    is_given = np.arange(len(rows)) >= len(taken)
    keys = [_codes(rows[name]) for name in KEY]
    lacks_batch = _flags(pc.is_null(rows["batch_base"]))
    by = [*keys, is_given, lacks_batch, _codes(rows["batch_base"]), _codes(rows["source"]), _codes(rows["place"])]
    order = np.lexsort(by[::-1])  # it sorts by its last key first
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = np.logical_or.reduce([key[order][1:] != key[order][:-1] for key in keys])
    # The first of a key counts: rows of the tables are before those of the dump, and those with a batch before others.
    of_key = np.cumsum(begins) - 1
    first = order[np.flatnonzero(begins)] if len(rows) else order
    best = np.empty(len(rows), np.int64)
    best[order] = first[of_key]
    # The first of the given rows of each key, which the others are compared with, too.
    # ``roll`` puts the last row before the first one, which begins a key anyway.
    begins_given = is_given[order] & (begins | ~np.roll(is_given[order], 1))
    best_given = order[np.flatnonzero(begins_given)][np.cumsum(begins_given) - 1] if is_given.any() else order
    # Rows of the tables get any given row here: only given ones are asked for theirs.
    of_rows = np.empty(len(rows), np.int64)
    of_rows[order] = best_given
    _check_same(rows, is_given, best, of_rows)
    is_first_given = is_given & (of_rows == np.arange(len(rows)))
    is_known = ~is_given[best]
    is_stray = _flags(pc.is_valid(rows["stray"]))
    adds = is_first_given & is_known & lacks_batch[best] & ~is_stray if is_detailed else np.zeros(len(rows), np.bool_)
    return Judged((is_first_given & ~is_known)[is_given], adds[is_given])


def _check_same(rows: pa.Table, is_given: Flags, *firsts: NDArray[np.int64]) -> None:
    """Raise InputError if a given row is another record than the first one of its key, in the tables or in the dump."""
    numbers = np.arange(len(rows))
    for name in CONTENT:
        values, known = pc.fill_null(rows[name], 0).to_numpy(), _flags(pc.is_valid(rows[name]))
        if name == "timestamp_ms":  # a source that does not read values has no time where another has that in the value
            known &= values >= 0
        for first in firsts:
            others = is_given & (first != numbers) & known & known[first] & (values != values[first])
            if others.any():
                _refuse(rows, int(np.flatnonzero(others)[0]), int(first[np.flatnonzero(others)[0]]))


def _refuse(rows: pa.Table, row: int, other: int) -> None:
    found: Mapping[str, object] = rows.slice(row, 1).to_pylist()[0]
    before: Row = rows.slice(other, 1).to_pylist()[0]
    what_to_do, epoch, before_epoch = OTHER_LOG, found["leader_epoch"], before["leader_epoch"]
    if None not in (epoch, before_epoch) and epoch != before_epoch:
        what_to_do = EARLIER_LEADER if epoch < before_epoch else LATER_LEADER
    place = "-".join(str(found[name]) for name in ("log_topic", "log_partition") if found[name] is not None)
    raise InputError(
        f"{place} offset {found['log_offset']}: {found['source']} has a different record than {before['source']}, "
        f"{what_to_do}"
    )


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a number for each value, in the order of the values; nulls come first."""
    if pa.types.is_string(column.type):
        encoded = column.combine_chunks().dictionary_encode()
        # The first argsort says which word is k-th, the second one which place each word has.
        ranks = np.argsort(np.argsort(np.array(encoded.dictionary.to_pylist(), object), kind="stable"))
        found = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.where(found < 0, -1, ranks[found] if len(ranks) else -1)
    lowest = np.iinfo(np.int64).min
    return np.asarray(pc.fill_null(column.cast(pa.int64()), int(lowest)).to_numpy())


def _flags(column: pa.ChunkedArray | pa.Array) -> Flags:
    return np.asarray(
        pc.fill_null(column, False).to_numpy(zero_copy_only=False)
        if isinstance(column, pa.Array)
        else pc.fill_null(column, False).to_numpy(),
        np.bool_,
    )
