"""A table in a folder or an object store, changed by this process: a few rows are written without a Spark job."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from coordinator_core.errors import InputError
from jobs.tables.folder_reader import DIALECT
from jobs.tables.opened import Known, opened
from jobs.tables.reader import Value, is_folder, with_names
from jobs.tables.spark_errors import one_line
from jobs.tables.store import files_in
from jobs.tables.table import plain

WRITER_VERSION: Final = 2
"""The newest writer version of Delta's protocol that all tables have which this software creates."""

ARROW_SCHEMA: Final = b"ARROW:schema"
"""The key in the footer of a Parquet file under which Arrow keeps the types that it wrote."""


class LocalTable:
    """The newest version of a table. ``open`` returns None for what only Spark can write.

    ``check`` is called before each commit, and raises an error if it must not be made. The commit is made over the
    version that was opened before, so that it fails if another run fenced the table after the check.
    """

    def __init__(self, table: DeltaTable, place: str, check: Callable[[], object]) -> None:
        self._table = table
        self._place = place
        self._check = check

    @classmethod
    def open(
        cls, place: str, check: Callable[[], object] = lambda: None, known: Known | None = None
    ) -> "LocalTable | None":
        """Open the table; None: it does not exist, or has features of Delta that delta-rs may not know.

        ``known``: the tables that the same writer has opened before.

        Raises:
            InputError: the object store does not answer. Spark is not asked: it would need credentials of its own.
        """
        try:
            table = opened(place, {} if known is None else known)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            if is_folder(place):
                return None
            raise InputError(f"table {place} cannot be read: {one_line(error)}") from error
        return cls(table, place, check) if table.protocol().min_writer_version <= WRITER_VERSION else None

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return plain(pa.schema(self._table.schema().to_arrow()))

    def properties(self) -> dict[str, str]:
        """Return the properties of the table."""
        return dict(self._table.metadata().configuration)

    def rows(self) -> pa.Table:
        """Return all rows."""
        if is_folder(self._place):
            return self._table.to_pyarrow_table(filesystem=files_in(self._place))
        # Not with delta-rs's file system, which is written in Python: a thread of Arrow may free the last buffer of it
        # while the interpreter ends, and that aborts the process.
        found = QueryBuilder().register("t", self._table).execute("SELECT * FROM t").read_all()
        return pa.table(found).cast(self.schema())

    def size(self) -> int:
        """Return the size of its files in bytes."""
        return sum(pa.table(self._table.get_add_actions())["size_bytes"].to_pylist())

    def append(self, rows: pa.Table, transaction: str, note: str | None = None) -> None:
        """Append rows as one transaction; see ``Tables.append``."""
        self._check()
        if self._table.transaction_version(transaction) is None:
            commit = _commit(note, app_transactions=[Transaction(transaction, 1)])
            write_deltalake(self._table, self._with_its_columns(rows), mode="append", commit_properties=commit)

    def add(self, rows: pa.Table) -> None:
        """Append rows whose keys the table does not have."""
        self._check()
        write_deltalake(self._table, self._with_its_columns(rows), mode="append")

    def replace(self, rows: pa.Table, note: str | None = None) -> None:
        """Replace all rows by these, in one commit."""
        self._check()
        write_deltalake(self._table, self._with_its_columns(rows), mode="overwrite", commit_properties=_commit(note))

    def replace_where(self, rows: pa.Table, condition: str, values: Mapping[str, Value]) -> None:
        """Replace the rows that meet a condition; see ``Tables.replace_where``."""
        self._check()
        predicate = with_names(condition, str, values, DIALECT)
        with self._plain_texts():
            write_deltalake(self._table, self._with_its_columns(rows), mode="overwrite", predicate=predicate)

    def replace_if_unchanged(self, rows: pa.Table) -> bool:
        """Replace all rows by these. Return False if the table has changed since it was opened; then it stays."""
        try:
            commit = CommitProperties(max_commit_retries=0)
            write_deltalake(self._table, self._with_its_columns(rows), mode="overwrite", commit_properties=commit)
        except CommitFailedError:
            return False
        return True

    def merge(
        self,
        rows: pa.Table,
        key: Sequence[str],
        update: Mapping[str, str],
        when: str,
        *,
        insert: bool,
        among: str = "true",
    ) -> None:
        """Update the rows with the key of one of ``rows``, and insert the others; see ``Tables.merge``."""
        self._check()
        merger = self._table.merge(rows, f"{_same(key)} AND {among}", source_alias="s", target_alias="t")
        merger = merger.when_matched_update(dict(update), predicate=when)
        if insert:
            merger = merger.when_not_matched_insert({name: f"s.{name}" for name in rows.column_names})
        with self._plain_texts():
            merger.execute()

    def delete(self, rows: pa.Table) -> None:
        """Delete the rows that equal one of ``rows`` in all columns of ``rows``."""
        self._check()
        merger = self._table.merge(rows, _same(rows.column_names), source_alias="s", target_alias="t")
        with self._plain_texts():
            merger.when_matched_delete().execute()

    @contextmanager
    def _plain_texts(self) -> Iterator[None]:
        """Correct the files of a commit: delta-rs writes texts of rows that it has read as ``string_view``, with which
        pyarrow, and DuckDB over it, compare no text.
        """
        before = self._paths()
        yield
        for path in self._paths() - before:
            _leave_types_to_parquet(self._place, path)

    def _paths(self) -> set[str]:
        """Return the files of the newest version, by their paths below the place."""
        return {unquote(path) for path in pa.table(self._table.get_add_actions())["path"].to_pylist()}

    def clear(self) -> None:
        """Delete all rows."""
        self._check()
        self._table.delete()

    def optimize(self) -> None:
        """Merge small files into large ones."""
        self._check()
        with self._plain_texts():
            self._table.optimize.compact()

    def vacuum(self, hours: float) -> None:
        """Delete the files that no version of the last hours needs."""
        self._check()
        self._table.vacuum(math.ceil(hours), dry_run=False, enforce_retention_duration=False)

    def update(self, changes: Mapping[str, str], condition: str) -> int:
        """Set columns of the rows that meet a condition (SQL). Return how many there are."""
        self._check()
        with self._plain_texts():
            return int(self._table.update(updates=dict(changes), predicate=condition)["num_updated_rows"])

    def set_property(self, name: str, value: str) -> None:
        """Set a property of the table."""
        self._table.alter.set_table_properties({name: value}, raise_if_not_exists=False)

    def _with_its_columns(self, rows: pa.Table) -> pa.Table:
        """Return the rows with null in each column that somebody added to the table: delta-rs wants all of them."""
        for field in pa.schema(self._table.schema().to_arrow()):
            if field.name not in rows.column_names:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows


def _leave_types_to_parquet(location: str, path: str) -> None:
    """Rename Arrow's own schema in the footer of a Parquet file, so that Arrow takes the types that Parquet has.

    The length of the file stays, which the table's log has, and so does every byte of the rows. In a folder only the
    name is written, so that a kill leaves no part of a file. An object store puts a whole file at once, and no part.
    """
    files = files_in(location)
    with files.open_input_file(path) as parquet:
        # A Parquet file ends with its footer, the length of that (4 bytes) and four letters.
        size = parquet.size()
        length = int.from_bytes(parquet.read_at(4, size - 8), "little")
        found = parquet.read_at(length, size - 8 - length).find(ARROW_SCHEMA)
        if found < 0:
            return
        at = size - 8 - length + found
        if is_folder(location):
            with Path(location, path).open("r+b") as written:
                written.seek(at)
                written.write(ARROW_SCHEMA.lower())
            return
        content = bytearray(parquet.read_at(size, 0))
    content[at : at + len(ARROW_SCHEMA)] = ARROW_SCHEMA.lower()
    # delta-rs's file system takes what a buffer has collected, and no Buffer of Arrow itself.
    with files.open_output_stream(path, buffer_size=size + 1) as put:
        put.write(bytes(content))


def _commit(note: str | None, app_transactions: list[Transaction] | None = None) -> CommitProperties:
    # Spark writes and reads a note under this name.
    facts = None if note is None else {"userMetadata": note}
    return CommitProperties(custom_metadata=facts, app_transactions=app_transactions)


def _same(names: Sequence[str]) -> str:
    return " AND ".join(f"(t.{name} IS NOT DISTINCT FROM s.{name})" for name in names)
