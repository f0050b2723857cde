"""Tables in a folder or an object store, read in this process, without Spark."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from coordinator_core.errors import InputError
from jobs.tables.damage import check, check_log
from jobs.tables.format import check_format
from jobs.tables.opened import opened
from jobs.tables.reader import KEPT_ANSWERS, KEPT_ROWS, Dialect, MissingTableError, Value, missing_table, with_names

Batches: TypeAlias = "Iterable[pa.RecordBatch]"

FEATURES: Final = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""The features of tables that delta-rs can read."""

COMMENTS_DIFFER: Final = "SET datafusion.execution.skip_physical_aggregate_schema_check = true"
"""Columns of tables have comments, and those of a union of tables lose them in some steps of DataFusion's plans and not
in others. It takes that for a fault of its own, unless it is told not to compare.
"""

THREADS: Final = "SET datafusion.execution.target_partitions = {}"
FEW_BYTES: Final = 2 << 20
"""Of tables that have no more together, one thread reads all: to divide few rows among processors takes longer than to
read them (the lag behind 1,600 commits: eight times).
"""

PRIVATE_USE: Final = range(0xE000, 0xF900)
"""The characters that Unicode gives no meaning, so that hardly any text has them."""

COLOUR: Final = re.compile(r"\x1b\[\d+m")
"""What delta-rs colours its errors with."""


class UnsupportedTableError(InputError):
    """The table has a feature of Delta that delta-rs does not know; Spark may read it."""


class FolderReader:
    """Reads Delta tables with delta-rs and DataFusion. One snapshot of each table is read, the newest.

    So a small answer is kept: the same few rows are behind many questions.
    """

    def __init__(self, location: str) -> None:
        self._is_local = "://" not in location
        self.location = str(Path(location).resolve()) if self._is_local else location.rstrip("/")
        self._engine = QueryBuilder()
        self._engine.execute(COMMENTS_DIFFER)
        self._engine.execute(THREADS.format(1))
        self.found: dict[object, Any] = {}
        self._known: set[str] = set()
        self._kept: dict[str, list[pa.RecordBatch]] = {}
        self._bytes = 0

    def exists(self, table: str) -> bool:
        """Return whether the table exists. Raise InputError if it exists but cannot be read."""
        try:
            self._open(table)
        except MissingTableError:
            return False
        return True

    def rows(self, sql: str, **values: Value) -> Iterator[Mapping[str, object]]:
        """Yield the rows of a query; see ``TableReader``."""
        for batch in self.batches(sql, **values):
            yield from batch.to_pylist()

    def tuples(self, sql: str, **values: Value) -> Iterator[tuple[object, ...]]:
        """Yield the rows of a query as tuples; see ``TableReader``."""
        for batch in self.batches(sql, **values):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def batches(self, sql: str, **values: Value) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query as columns; see ``TableReader``. There is a batch, even of no rows."""
        text = with_names(sql, self._open, values, DIALECT)
        if text in self._kept:
            yield from self._kept[text]
            return
        try:
            stream = self._engine.execute(text)
            first, rows = list[pa.RecordBatch](), 0
            for batch in stream:
                part = pa.record_batch(batch)
                rows += len(part)
                if rows <= KEPT_ROWS:
                    first.append(part)
                yield part
            if not first and not rows:
                first.append(pa.RecordBatch.from_pylist([], pa.schema(stream.schema)))
                yield first[0]
            if rows <= KEPT_ROWS and len(self._kept) < KEPT_ANSWERS:
                self._kept[text] = first
        except Exception as error:
            # A fault that shows while rows are read has no class of its own.
            if type(error) is not Exception and not isinstance(error, (DeltaError, OSError)):
                raise
            if self._is_local:
                # delta-rs says only that a file is missing; which table is damaged, and what to run, is found in the
                # folder.
                check(self.location, self._known, {})
            raise InputError(f"the tables at {self.location} cannot be read: {_one_line(error)}") from error

    def folded(
        self, sql: str, order: Sequence[str], function: Callable[[Batches], Batches], schema: pa.Schema, **values: Value
    ) -> Iterator[pa.RecordBatch]:
        """Yield what a function makes of the rows of a query in this order, with these columns and types."""
        names = ", ".join(f"{name} NULLS FIRST" for name in order)
        # As Spark sorts: a state has no place in the log, and must come before the records of its group.
        text = f"SELECT * FROM ({sql}) AS found ORDER BY {names}" if order else sql
        for batch in function(self.batches(text, **values)):
            yield batch.select(schema.names).cast(schema)

    def _count(self, table: DeltaTable) -> None:
        """Read with all processors from the table on with which there is much to read."""
        if self._bytes <= FEW_BYTES:
            self._bytes += sum(table.get_add_actions(flatten=True)["size_bytes"].to_pylist())
            if self._bytes > FEW_BYTES:
                self._engine.execute(THREADS.format(os.cpu_count() or 1))

    def _open(self, name: str) -> str:
        """Return the name of a table in SQL."""
        if name not in self._known:
            place = f"{self.location}/{name}"
            if self._is_local:
                check_log(self.location, name)
            try:
                table = opened(place)
                if unknown := set(table.protocol().reader_features or ()) - FEATURES:
                    raise UnsupportedTableError(f"table {place} has {', '.join(sorted(unknown))}")
                check_format(self.location, table.metadata().configuration)
                self._engine.register(name, table)
                self._count(table)
            except TableNotFoundError as error:
                raise missing_table(self.location, name) from error
            except (DeltaError, OSError) as error:
                is_unsupported = "unsupported" in str(error).lower()
                kind = UnsupportedTableError if is_unsupported else InputError
                raise kind(f"table {place} cannot be read: {_one_line(error)}") from error
            self._known.add(name)
        return name


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _many(values: Sequence[str]) -> str:
    """Return a query for texts that are too many for a list: one literal, with a character between that none has.

    DataFusion goes down a list by recursion: 50,000 group ids overflow the stack, which ends the process.
    """
    joined = "".join(values)
    between = next(character for character in map(chr, PRIVATE_USE) if character not in joined)
    return f"(SELECT unnest(string_to_array({_text(between.join(values))}, '{between}')))"


DIALECT: Final = Dialect(
    _text,
    bytes_of="octet_length(encode({}, 'hex')) / 2",
    each_of="unnest({})",
    numbers="generate_series({})",
    many=_many,
    # delta-rs leaves out what is NULL for every row of an AND: `size > 1 AND size IN (NULL)` would be `size > 1`.
    empty="(NULL) IS TRUE",
)


def _one_line(error: Exception) -> str:
    return " ".join(COLOUR.sub("", str(error)).split())
