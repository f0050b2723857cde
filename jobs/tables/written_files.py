"""Parquet files that tasks write into the folders of Delta tables, and their commits.

A task, of this machine or of Spark's Python workers, writes the rows that it has in columns already as they are, which
takes a tenth of what the rows would take on the way through the JVM. A file belongs to its table only once it is
committed; those of a task that failed, or of a run that was killed, never are, and VACUUM deletes them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coordinator_core.errors import InputError
from jobs.tables.delta import INDEXED_COLUMNS, Tables
from jobs.tables.engine import Rows
from jobs.tables.store import files_in
from jobs.tables.table import INT, LONG, SHORT, STRING, Table

if TYPE_CHECKING:
    from deltalake.table import ProtocolVersions
    from deltalake.transaction import RemoveAction
    from pyspark.sql import DataFrame

ROWS_TOGETHER: Final = 1 << 18
"""Number of rows of a table with an order that are sorted and written together: all that a task holds of it."""

BYTES_TOGETHER: Final = 64 << 20
"""Rows of more bytes are written earlier."""

ROWS_A_GROUP: Final = 1 << 16
"""Number of rows in a row group: a question about one group reads few of them."""


class WrittenFile(NamedTuple):
    """A file that a task has written: table, path in its folder, bytes, and statistics as Delta writes them (JSON)."""

    table: str
    path: str
    size: int
    stats: str


TypedRows = Callable[[pa.RecordBatch], Iterable[tuple[Table, pa.RecordBatch]]]
"""Rows to the rows of tables that they become."""

NEWEST_PLAIN: Final = 2
"""The newest version of Delta's protocol for writers that knows only ``PLAIN``."""

OLDEST_WITH_FEATURES: Final = 7
"""The version of the protocol for writers that lists features."""

PLAIN: Final = frozenset({"appendOnly", "invariants"})
"""The features of Delta that ask nothing more of a writer that appends files to tables without constraints."""


class TableFile:
    """A new Parquet file of a table, its rows in the order of the table within each run of ``ROWS_TOGETHER``."""

    def __init__(self, location: str, table: Table) -> None:
        self._table = table
        self._files = files_in(f"{location}/{table.name}")
        self._name = f"part-{uuid4()}.snappy.parquet"
        self._rows: list[pa.RecordBatch] = []
        self._count = 0
        self._bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows; those kept so far are written if they are enough."""
        self._rows.append(rows)
        self._count += rows.num_rows
        self._bytes += rows.nbytes
        if self._count >= (ROWS_TOGETHER if self._table.order else ROWS_A_GROUP) or self._bytes >= BYTES_TOGETHER:
            self._write()

    def close(self) -> WrittenFile:
        """Write what is left, and return the file."""
        self._write()
        assert self._writer is not None
        self._writer.close()
        stats = json.dumps(_stats(self._table, pq.read_metadata(self._name, filesystem=self._files)))
        return WrittenFile(self._table.name, self._name, self._files.get_file_info(self._name).size, stats)

    def _write(self) -> None:
        if not self._rows:
            return
        rows = pa.Table.from_batches(self._rows)
        self._rows, self._count, self._bytes = [], 0, 0
        if self._table.order:
            rows = rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in self._table.order]))
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._name, rows.schema, write_page_index=True, filesystem=self._files)
        self._writer.write_table(rows, row_group_size=ROWS_A_GROUP)


def _stats(table: Table, file: pq.FileMetaData) -> dict[str, object]:
    """Return the statistics of a file by which Delta leaves files out: of texts and numbers in the leading columns."""
    least: dict[str, object] = {}
    most: dict[str, object] = {}
    nulls: dict[str, int] = {}
    place = {file.schema.column(number).path: number for number in range(file.num_columns)}
    for field in list(table.schema)[:INDEXED_COLUMNS]:
        if field.type not in (STRING, LONG, INT, SHORT):
            continue
        groups = [file.row_group(number).column(place[field.name]).statistics for number in range(file.num_row_groups)]
        # Where a row group tells nothing, a bound of the others would make Delta leave the file out wrongly.
        if not all(group is not None and group.has_null_count for group in groups):
            continue
        nulls[field.name] = sum(group.null_count for group in groups)
        filled = [group for group in groups if group.num_values]
        if filled and all(group.has_min_max for group in filled):
            least[field.name] = min(group.min for group in filled)
            most[field.name] = max(group.max for group in filled)
    return {"numRecords": file.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls}


def append(tables: Tables, table: Table, rows: Rows, transaction: str) -> None:
    """Append rows as ``Tables.append`` does; those that Spark computes, workers write where they can.

    A commit by Spark takes jobs of its own, which cost more than the way to Python if a row has no nested column.
    """
    if isinstance(rows, pa.Table):
        tables.append(table, rows, transaction)
        return
    selected = rows.select(*table.schema.names)
    if any(pa.types.is_nested(field.type) for field in table.schema) or not can_be_committed(tables, [table]):
        tables.append(table, selected, transaction)
        return
    commit(tables, table, write_files(selected, tables.location, lambda batch: [(table, batch)]), transaction)


def write_files(rows: DataFrame, location: str, typed_rows: TypedRows) -> list[WrittenFile]:
    """Let Spark's tasks write the rows of tables that these rows become. Return the files, for each task and table."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = write_task(batches, location, typed_rows)
        yield pa.RecordBatch.from_pylist([file._asdict() for file in files], WRITTEN)

    reported = "table string, path string, size bigint, stats string"
    return [WrittenFile(*file) for file in rows.mapInArrow(write, reported).collect()]


WRITTEN: Final = pa.schema({"table": STRING, "path": STRING, "size": LONG, "stats": STRING})


def write_task(batches: Iterable[pa.RecordBatch], location: str, typed_rows: TypedRows) -> list[WrittenFile]:
    """Write the rows of tables that the rows of one task become. Return the files, one for each table.

    Raises:
        InputError: the folder of a table cannot be written.
    """
    files: dict[str, TableFile] = {}
    for batch in batches:
        for table, rows in typed_rows(batch):
            with _writing(location):
                if table.name not in files:
                    files[table.name] = TableFile(location, table)
                files[table.name].add(rows)
    with _writing(location):
        return [file.close() for file in files.values()]


@contextmanager
def _writing(location: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"the tables at {location} cannot be written: {error}") from error


def can_be_committed(tables: Tables, wanted: Iterable[Table]) -> bool:
    """Return whether workers can write files for these tables: they are in a folder here, and of the plainest kind."""
    if not tables.is_here():
        return False
    from deltalake import DeltaTable  # not at the top: workers have no use for it
    from deltalake.exceptions import DeltaError

    try:
        there = [DeltaTable(f"{tables.location}/{table.name}") for table in wanted]
    except DeltaError:  # a feature of Delta that delta-rs does not know
        return False
    return all(not table.metadata().partition_columns and _is_plain(table.protocol()) for table in there)


def _is_plain(protocol: ProtocolVersions) -> bool:
    if protocol.min_writer_version == OLDEST_WITH_FEATURES:
        return PLAIN.issuperset(protocol.writer_features or ())
    return bool(protocol.min_writer_version <= NEWEST_PLAIN)


def commit(tables: Tables, table: Table, files: Sequence[WrittenFile], transaction: str) -> None:
    """Append written files as one transaction, as ``Tables.append`` does it with rows."""
    if files:
        tables.commit(table, lambda: _commit_once(tables, table, files, f"{transaction}/{table.name}"), adds=True)


def _commit_once(tables: Tables, table: Table, files: Sequence[WrittenFile], transaction: str) -> None:
    from deltalake import CommitProperties, DeltaTable, Transaction
    from deltalake.transaction import AddAction

    there = DeltaTable(f"{tables.location}/{table.name}")
    if there.transaction_version(transaction) is not None:
        return
    now_ms = int(time.time() * 1000)
    added: list[AddAction | RemoveAction] = [
        AddAction(file.path, file.size, {}, now_ms, True, file.stats) for file in files
    ]
    tables.note_rows(table)
    # After the table was opened: what another run commits between both makes this commit fail.
    tables.check_lease()
    once = CommitProperties(app_transactions=[Transaction(transaction, 1)])
    there.create_write_transaction(added, "append", there.schema(), commit_properties=once)
