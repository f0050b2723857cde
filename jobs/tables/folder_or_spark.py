"""Reads tables in this process, and through Spark those that have a feature of Delta that delta-rs does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from jobs.tables.folder_reader import UnsupportedTableError
from jobs.tables.reader import TableReader, Value


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
        rows = self._here.rows(sql, **values)
        try:
            first = next(rows, None)  # opens the tables
        except UnsupportedTableError as error:
            self._why = error
            rows, first = self._spark.rows(sql, **values), None
        if first is not None:
            yield first
        yield from rows
