"""Reads tables in this process, and through Spark those that have a feature of Delta that delta-rs does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

from jobs.tables.folder_reader import UnsupportedTableError
from jobs.tables.reader import TableReader, Value

T = TypeVar("T")


class FolderOrSparkReader:
    """A reader of tables in a folder. ``through_spark`` makes the reader for what this process cannot read.

    It is called at most once, with the error that says why.
    """

    def __init__(self, here: TableReader, through_spark: Callable[[UnsupportedTableError], TableReader]) -> None:
        self._here = here
        self._through_spark = through_spark
        self._why: UnsupportedTableError | None = None

    @cached_property
    def _spark(self) -> TableReader:
        assert self._why is not None
        return self._through_spark(self._why)

    @property
    def location(self) -> str:
        """The folder or URI of the tables."""
        return self._here.location

    def exists(self, table: str) -> bool:
        """Return whether the table exists; see ``TableReader``."""
        try:
            return self._here.exists(table)
        except UnsupportedTableError as error:
            self._why = error
            return self._spark.exists(table)

    def rows(self, sql: str, **values: Value) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a query; see ``TableReader``. A query whose tables all can be read here is read here."""
        return self._first_of(lambda reader: reader.rows(sql, **values))

    def tuples(self, sql: str, **values: Value) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query as tuples; see ``TableReader``."""
        return self._first_of(lambda reader: reader.tuples(sql, **values))

    def _first_of(self, question: Callable[[TableReader], Iterator[T]]) -> Iterator[T]:
        """Yield the answers of this process, or of Spark if this process cannot read the tables."""
        rows = question(self._here)
        try:
            first = next(rows, None)  # opens the tables
        except UnsupportedTableError as error:
            self._why = error
            rows, first = question(self._spark), None
        if first is not None:
            yield first
        yield from rows
