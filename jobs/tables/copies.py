"""Copies of small tables that only Spark can open, such as those of a catalog, for this process to read.

Spark takes longer to plan a question to a small table than to read all of it. A night asks the same small tables many
questions, and an answer, too, for what the logs lack, so each of them is read once a version, and the copy is asked.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from jobs.tables.conflicts import TableCommit
from jobs.tables.folder_reader import FolderReader, UnsupportedTableError
from jobs.tables.format import check_format
from jobs.tables.reader import sql_name
from jobs.tables.spark_reader import columns_of, commits, details, read

FILE_BYTES: Final = 1 << 16
"""What a file of a table has beside its rows, as far as a size that decides about copying has to know it."""

ARROW_BYTES: Final = 64 << 20
"""The largest copy in Arrow, about. Spark's driver has a few copies of it in memory, and by default a heap of 1 GiB.

The size of the files does not bound it: a null struct takes the bytes of all its fields in Arrow, and next to none in
Parquet. 226,438 rows with a struct for each kind of history were 7.4 MB in files, and 388 MB in Arrow.
"""

SURELY_SMALL: Final = 1 << 16
"""Bytes of the files of a table that is not that large in Arrow, whatever its columns."""

TEXT_BYTES: Final = 16
"""A text, or a list, about."""
OFFSET_BYTES: Final = 4
"""Where a value without a fixed width begins."""

ASKED_TOGETHER: Final = 8
"""Of how many tables Spark is asked at a time whether they have changed: it waits for files, not for a processor."""


class TableCopies:
    """Copies of the tables at one location, in a folder of this machine that lasts as long as they do.

    A copy is made when it is asked for, and stays as it was until ``forget``: whoever has the lease knows what has
    changed, and others ask (``renew``). ``most_bytes``: the largest table that is copied, as Parquet;
    in Arrow that is ``ARROW_BYTES``.
    """

    def __init__(self, spark: SparkSession, location: str, most_bytes: int) -> None:
        self.location = location
        self._spark = spark
        self._home = TemporaryDirectory(prefix="coordinator-audit-")
        self._most = most_bytes
        self._places: dict[str, Path | None] = {}
        self._commits: dict[str, TableCommit] = {}
        self._sizes: dict[str, int] = {}
        self._states: dict[str, tuple[object, ...]] = {}
        self._made = 0

    def place(self, name: str) -> Path:
        """Return the folder of the copy of a table.

        Raises:
            UnsupportedTableError: the table is too large to be copied.
            MissingTableError: the table does not exist.
            InputError: the table cannot be read.
        """
        if name not in self._places:
            self._places[name] = self._copied(name)
        folder = self._places[name]
        if folder is None:
            raise UnsupportedTableError(f"table {sql_name(self.location, name)} is too large to be copied")
        return folder

    def is_new(self, name: str) -> None:
        """Take note that a table was created, without rows."""
        self._sizes[name] = 0

    def forget(self, name: str, grown_by: int | None = None) -> None:
        """Take note that a table has changed. Readers keep the copies that they have opened.

        ``grown_by``: how many bytes it has more at most, but for what each file has beside its rows; None: unknown.
        """
        self._places.pop(name, None)
        self._commits.pop(name, None)
        before = self._sizes.pop(name, None)
        if before is not None and grown_by is not None:
            self._sizes[name] = before + grown_by + FILE_BYTES

    def close(self) -> None:
        """Delete the copies; otherwise that happens when nothing refers to them any more."""
        self._home.cleanup()

    def renew(self) -> None:
        """Forget the tables that have changed since they were copied, or were found too large."""
        names = [*self._places]
        with ThreadPoolExecutor(ASKED_TOGETHER) as together:
            for name, state in zip(names, together.map(self._state, names), strict=True):
                # Also those that were too large: they may have been thinned out since.
                if state is None or state != self._states.get(name):
                    self.forget(name)

    def newest_commit(self, name: str) -> TableCommit:
        """Return the newest commit of a table; it is asked for once until ``forget``."""
        if name not in self._commits:
            (self._commits[name],) = commits(self._spark, sql_name(self.location, name), 1)
        return self._commits[name]

    def _copied(self, name: str) -> Path | None:
        """Copy a table, in one Spark job. Return None for one that is too large."""
        rows = read(self._spark, self.location, name)
        size = self._size(name)
        if size > self._most:
            return None
        # Delta counts rows by its log, without a Spark job.
        if size > SURELY_SMALL and rows.count() * row_bytes(columns_of(rows)) > ARROW_BYTES:
            return None
        self._made += 1
        place = Path(self._home.name, f"{name}-{self._made}")
        write_deltalake(str(place), rows_here(rows, is_empty=size == 0))
        return place

    def _size(self, name: str) -> int:
        """Return how many bytes a table has at most. To ask Delta takes longer than a copy, and is the last resort."""
        if self._sizes.get(name, self._most + 1) > self._most:
            found = details(self._spark, sql_name(self.location, name))
            check_format(self.location, found["properties"])
            # Asked for before the rows are read: what is committed between both is another state.
            self._states[name] = _state(found)
            self._sizes[name] = int(found["sizeInBytes"])
        return self._sizes[name]

    def _state(self, name: str) -> tuple[object, ...] | None:
        """Return what a table has another of after each commit; None: it is not there any more."""
        try:
            return _state(details(self._spark, sql_name(self.location, name)))
        except PySparkException:
            return None


def _state(found: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(found[name] for name in ("id", "lastModified", "numFiles", "sizeInBytes"))


def rows_here(rows: DataFrame, *, is_empty: bool = False) -> pa.Table:
    """Return rows that are few, in this process; their times are in UTC, whatever the session's zone is."""
    schema = columns_of(rows)
    if is_empty:
        return schema.empty_table()
    found = rows.toArrow().cast(schema)
    # Spark leaves anything in the offsets of a list that is within a null struct, and delta-rs reads them. Rows that
    # are taken have new ones.
    return found.take(pa.array(range(found.num_rows), pa.int64()))


def row_bytes(columns: pa.Schema) -> int:
    """Return how many bytes a row takes in Arrow, about.

    Null values take as much as others. A struct counts as if it were null: of the structs of a row, nearly all are.
    """
    return sum(_fixed_bytes(each) + (TEXT_BYTES if _has_offsets(each) else 0) for each in columns.types)


def _fixed_bytes(of_type: pa.DataType) -> int:
    if pa.types.is_struct(of_type):
        return sum(_fixed_bytes(of_type.field(number).type) for number in range(of_type.num_fields))
    return OFFSET_BYTES if _has_offsets(of_type) else -(-of_type.bit_width // 8)


def _has_offsets(of_type: pa.DataType) -> bool:
    """Whether values of any length follow one another: texts, bytes, lists and maps."""
    return not (pa.types.is_struct(of_type) or pa.types.is_primitive(of_type))


class CopiesReader(FolderReader):
    """Reads copies; a table that is too large is for Spark (UnsupportedTableError)."""

    def __init__(self, copies: TableCopies) -> None:
        super().__init__(copies.location)
        self.location = copies.location
        self._is_local = False
        self._copies = copies

    def _open(self, name: str) -> str:
        if name not in self._known:
            self._engine.register(name, DeltaTable(self._copies.place(name)))
            self._known.add(name)
        return name
