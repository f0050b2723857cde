"""Tables that a catalog names and that have a path which this process can open: they are written as a folder's are.

The log of a Delta table is in its folder. A catalog such as Hive's metastore keeps the name and the path, and Spark
reads the table there each time, so that whoever commits by the path has committed to the table that the name stands
for. A statement of Spark costs a cold JVM seconds; a commit by the path a hundredth of one. So each table is registered
once, by its path, and Spark has no part in what follows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from coordinator_core.errors import InputError
from jobs.tables.catalog import CATALOG
from jobs.tables.engine import is_beside
from jobs.tables.reader import can_open, is_folder, sql_name, sql_text
from jobs.tables.spark_errors import one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCATION: Final = re.compile(r"^Location: (.+)$", re.MULTILINE)

NAMES: Final = "coordinatorAudit.registered."
"""Property of the table of leases: the tables that a catalog has, behind the dot the schema. What is registered needs
no Spark another time.
"""

TOGETHER: Final = 1
"""How many tables are registered at a time, beside the steps of a night: the steps need the processors more."""


class RegisteredTables:
    """The tables of a schema of a catalog, each at ``place``/its name.

    ``names``: those that the catalog has. Others are registered once they are written; ``finish`` waits for that.
    ``spark`` returns the session, which starts if a table has to be registered.
    """

    def __init__(self, spark: Callable[[], SparkSession], schema: str, place: str, names: Iterable[str]) -> None:
        self.schema = schema
        self.place = place
        self.names = set(names)
        self._spark = spark
        self._together = ThreadPoolExecutor(TOGETHER)
        self._begun: dict[str, Future[None]] = {}

    def add(self, name: str) -> None:
        """Begin to register a table that exists at its path, unless the catalog has it."""
        if name not in self.names:
            self.names.add(name)
            self._begun[name] = self._together.submit(self._register, name)

    def _register(self, name: str) -> None:
        path = sql_text(f"{self.place}/{name}")
        self._spark().sql(f"CREATE TABLE IF NOT EXISTS {sql_name(self.schema, name)} USING delta LOCATION {path}")

    def finish(self) -> bool:
        """Wait until all tables are registered. Return whether one was not.

        Raises:
            InputError: a table could not be registered; the next run tries again.
        """
        begun, self._begun = self._begun, {}
        failed = dict[str, Exception]()
        for name, registering in begun.items():
            try:
                registering.result()
            except Exception as why:
                failed[name] = why
        self.names -= failed.keys()
        if failed:
            name, error = next(iter(failed.items()))
            raise InputError(
                f"table {name} was written to {self.place}, but {self.schema} does not name it: {one_line(error)}"
            ) from error
        return bool(begun)


def registered(spark: SparkSession, schema: str, *, works_in_store: bool) -> RegisteredTables | None:
    """Return the tables of a schema, if each of them is at a path which this process can open.

    None: only Spark opens them. That is so on Databricks, whose catalog makes each commit itself; where Spark is not
    beside this process; where the catalog does not tell the paths; and where the tables do not lie in one folder, each
    in one of its name. ``works_in_store``: this process works with tables in an object store.
    """
    if not is_beside(spark):
        return None
    try:
        told = spark.sql(f"SHOW TABLE EXTENDED IN {schema} LIKE '*'").collect()
        about = {row.info_name: row.info_value for row in spark.sql(f"DESCRIBE SCHEMA EXTENDED {schema}").collect()}
    except Exception:  # each catalog has its own errors for what it does not have; Spark's way names the right one
        return None
    ours = [row for row in told if row.tableName in CATALOG and not row.isTemporary]  # Spark tells views of the session
    located = {row.tableName: LOCATION.search(row.information) for row in ours}
    paths = {name: None if found is None else _path(found[1]) for name, found in located.items()}
    places = {None if path is None else path.removesuffix(f"/{name}") for name, path in paths.items()}
    place = places.pop() if places else _path(about.get("Location", ""))
    if places or place is None or any(path != f"{place}/{name}" for name, path in paths.items()):
        return None
    is_ours = _can_write(place) if is_folder(place) else works_in_store and _answers(place)
    return RegisteredTables(lambda: spark, schema, place, paths) if is_ours else None


def _path(location: str) -> str | None:
    """Return a location as this process opens it: a path for a file URI; None: it cannot.

    delta-rs takes a percent sign in a path for the beginning of another one.
    """
    scheme, _, rest = location.partition(":")
    path = f"/{unquote(rest).strip('/')}" if scheme == "file" else location.rstrip("/")
    return path if location and "%" not in path and can_open(path) else None


def _can_write(place: str) -> bool:
    folder = next(folder for folder in (Path(place), *Path(place).parents) if folder.exists())
    return os.access(folder, os.W_OK)


def _answers(place: str) -> bool:
    """Return whether an object store answers this process: Spark may have credentials for it that this one has not."""
    from deltalake import DeltaTable  # not at the top: Python workers of Spark have no use for it

    try:
        DeltaTable.is_deltatable(f"{place}/leases")
    except Exception:
        return False
    return True
