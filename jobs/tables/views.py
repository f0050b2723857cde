"""Views of the tables for people who ask in SQL: beside each time in milliseconds a timestamp, and records by name.

A view is named after its table, with ``v_`` before it. It has all columns of the table, then for each column of a time
``NAME_ms`` a timestamp ``NAME_time``, and for each position in the log ``NAME`` its time as ``NAME_time`` and its
record as ``NAME_record``: PARTITION:OFFSET, as the commands print it. ``timestamp_ms`` becomes ``time``. Timestamps are
UTC; where there is no time (null or -1), they are null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jobs.tables.reader import can_open

if TYPE_CHECKING:
    from deltalake import QueryBuilder

PREFIX: Final = "v_"

TIMES: Final = frozenset(
    {
        "timestamp_ms",
        "first_ms",
        "last_ms",
        "hour_ms",
        "since_ms",
        "until_ms",
        "began_after_ms",
        "began_before_ms",
        "end_offset_ms",
        "ended_ms",
        "local_ms",
        "commit_timestamp",
        "expire_timestamp",
    }
)
"""Columns with milliseconds since the epoch. Other columns ``NAME_ms`` are durations."""

Columns = Mapping[str, Sequence[str]]
"""The columns of a table by name, with the names of the fields of a struct; empty: it is not a struct."""


class ViewDialect(NamedTuple):
    """What engines write differently: a timestamp from milliseconds, a field of a struct, a quoted name."""

    time: str
    field: str
    quoted: str


SPARK: Final = ViewDialect("timestamp_millis({})", "{}.{}", "`{}`")
DUCKDB: Final = ViewDialect("epoch_ms({})", "{}.{}", '"{}"')
DATAFUSION: Final = ViewDialect("to_timestamp_millis({})", "{}['{}']", '"{}"')


def view_query(source: str, columns: Columns, dialect: ViewDialect) -> str:
    """Return the SELECT of a view over a table or another source of rows."""
    return f"SELECT {', '.join(['*', *_added(columns, dialect)])} FROM {source}"


def _added(columns: Columns, dialect: ViewDialect) -> Iterator[str]:
    for name, fields in columns.items():
        quoted = dialect.quoted.format(name)
        if name in TIMES:
            yield f"{_time(quoted, dialect)} AS {time_name(name)}"
        if "timestamp_ms" in fields:
            yield f"{_time(dialect.field.format(quoted, 'timestamp_ms'), dialect)} AS {name}_time"
        if {"partition", "offset"} <= set(fields):
            partition, offset = (dialect.field.format(quoted, each) for each in ("partition", "offset"))
            yield f"CAST({partition} AS STRING) || ':' || CAST({offset} AS STRING) AS {name}_record"


def time_name(column: str) -> str:
    """Return the name of the timestamp of a column of ``TIMES``."""
    if column == "timestamp_ms":
        return "time"
    return f"{column.removesuffix('_ms').removesuffix('_timestamp')}_time"


def _time(milliseconds: str, dialect: ViewDialect) -> str:
    return f"CASE WHEN {milliseconds} >= 0 THEN {dialect.time.format(milliseconds)} END"


def folder_views(location: str) -> dict[str, tuple[object, Columns]]:
    """Return the tables in a folder or an object store as delta-rs opens them, by name, with their columns."""
    from deltalake import DeltaTable
    from deltalake.schema import StructType

    if not can_open(location) or "://" in location or not Path(location).is_dir():
        raise ValueError(f"{location!r} is not a folder of this machine: open each table with deltalake.DeltaTable")
    opened: dict[str, tuple[object, Columns]] = {}
    for place in sorted(Path(location).iterdir()):
        if (place / "_delta_log").is_dir():
            table = DeltaTable(str(place))
            columns = {
                field.name: [each.name for each in field.type.fields] if isinstance(field.type, StructType) else []
                for field in table.schema().fields
            }
            opened[place.name] = (table, columns)
    return opened


def duckdb_views(connection: Any, location: str) -> list[str]:
    """Give a DuckDB connection the tables in a folder, and their views. Return the names of the views.

    delta-rs reads the tables, so that DuckDB needs no extension. They stay as they are now.

        connection = duckdb.connect()
        duckdb_views(connection, "/lake/audit")
        connection.sql("SELECT at_time, group_id FROM v_rebalances ORDER BY at_time").show()

    Raises:
        ValueError: the location is not a folder of this machine.
    """
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    def make(name: str, table: Any, columns: Columns) -> None:
        rows = SubTreeFileSystem(f"{location}/{name}", LocalFileSystem())
        connection.register(name, table.to_pyarrow_dataset(filesystem=rows))
        connection.execute(f"CREATE OR REPLACE VIEW {PREFIX}{name} AS {view_query(name, columns, DUCKDB)}")

    return _each(location, make)


def delta_rs_views(builder: QueryBuilder, location: str) -> list[str]:
    """Give a ``deltalake.QueryBuilder`` the tables in a folder, and their views. Return the names of the views.

    Raises:
        ValueError: the location is not a folder of this machine.
    """

    def make(name: str, table: Any, columns: Columns) -> None:
        builder.register(name, table)
        # The statement runs when its result is read.
        list(builder.execute(f"CREATE VIEW {PREFIX}{name} AS {view_query(name, columns, DATAFUSION)}"))

    return _each(location, make)


def _each(location: str, make: Callable[[str, object, Columns], None]) -> list[str]:
    made = []
    for name, (table, columns) in folder_views(location).items():
        make(name, table, columns)
        made.append(f"{PREFIX}{name}")
    return made
