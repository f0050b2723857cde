"""How answers read the tables: with SQL that the engine in this process and Spark both know."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, Protocol, TypeVar, cast

from coordinator_core.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")

Value = str | int | None | Sequence[str] | Sequence[int]
"""What an SQL text may be given: a text, a number, NULL, or a list for ``IN``."""

KEPT_ROWS: Final = 100
"""A reader keeps an answer of at most so many rows: the smallest question takes delta-rs 3 ms, and Spark a third of a
second.
"""
KEPT_ANSWERS: Final = 1_000
"""How many answers a reader keeps."""

MOST_LISTED: Final = 5_000
"""Texts that a list in SQL has at most, where an engine has another way for more."""

CATALOG_NAME: Final = re.compile(r"\w+\.\w+(\.\w+)?")

SCHEMES: Final = ("file", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")
"""The URIs that delta-rs opens. It takes credentials from the environment and from the machine."""

SCHEME: Final = re.compile(r"(\w+):")

NAMED: Final = re.compile(
    r"\$(?P<table>\w+)|(?<!:):(?P<value>[a-z_]\w*)|(?P<word>bytes_of|each_of|numbers)\((?P<of>[\w., ]+)\)"
)
"""A table, a given value, or a word for what the engines write differently."""


class MissingTableError(InputError):
    """The table does not exist."""


def missing_table(location: str, name: str) -> MissingTableError:
    """Return the error for a table that does not exist: where its folder has none at all, or the folder is not there,
    that is what somebody has to know.
    """
    folder = Path(location)
    if "://" not in location and not is_catalog_name(location) and not folder.is_dir():
        return MissingTableError(f"there are no tables at {location}: the folder does not exist")
    if name == "runs":
        return MissingTableError(f"there are no tables at {location}: no log was ingested, table runs does not exist")
    return MissingTableError(f"table {name} at {location} does not exist")


Row = Mapping[str, Any]
"""A row of a query, by the names of its columns: the text of the query says which they are, and of which types."""


class TableReader(Protocol):
    """Reads the tables at one location, as they were when it opened each of them.

    So what was found out through it holds as long as it does: ``found`` keeps that, see ``found_once``.
    """

    found: dict[object, Any]

    @property
    def location(self) -> str:
        """The folder, URI or catalog schema of the tables."""

    def exists(self, table: str) -> bool:
        """Return whether the table exists.

        Raises:
            InputError: the table exists, but cannot be read.
        """

    def rows(self, sql: str, **values: Value) -> Iterator[Row]:
        """Yield the rows of a query by the names of the columns; structs are mappings, arrays are lists.

        In the SQL, ``$name`` is a table of that name, ``:name`` one of ``values``, ``bytes_of(name)`` the number of
        bytes in a binary column, ``each_of(name)`` a row for each element of an array, and ``numbers(name, name)`` the
        array of the whole numbers from one to another. Otherwise only what DataFusion and Spark both know may be used.
        One batch of rows is in memory at a time.

        Raises:
            MissingTableError: a table does not exist.
            InputError: a table cannot be read.
        """

    def tuples(self, sql: str, **values: Value) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query as ``rows`` does, but each as a tuple: for queries with many rows."""


def found_once(find: Callable[Concatenate[TableReader, P], T]) -> Callable[Concatenate[TableReader, P], T]:
    """Decorate what several answers through one reader rest on: the tables are asked once. Nobody may change it.

    Its arguments but the reader are hashable.
    """

    @wraps(find)
    def known(tables: TableReader, /, *asked: P.args, **named: P.kwargs) -> T:
        key = (find, asked, *named.items())
        if key not in tables.found:
            tables.found[key] = find(tables, *asked, **named)
        return cast("T", tables.found[key])

    return known


def known_rows(tables: TableReader, sql: str, **values: Value) -> Iterator[Row]:
    """Return the rows of a query; none where one of its tables does not exist: nothing was ever stored in it."""
    return tables.rows(sql, **values) if _are_there(tables, sql) else iter(())


def known_tuples(tables: TableReader, sql: str, **values: Value) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a query as ``known_rows`` does, but each as a tuple."""
    return tables.tuples(sql, **values) if _are_there(tables, sql) else iter(())


def _are_there(tables: TableReader, sql: str) -> bool:
    return all(tables.exists(match["table"]) for match in NAMED.finditer(sql) if match["table"])


class Dialect(NamedTuple):
    """What engines write differently: a text as a literal, the bytes of a binary column, a row for each element of an
    array, and the array of the whole numbers from one to another. ``many`` writes a list of more than ``MOST_LISTED``
    texts; None: as any other list. ``empty`` is a list that equals nothing, behind ``IN``.
    """

    text: Callable[[str], str]
    bytes_of: str
    each_of: str
    numbers: str
    many: Callable[[Sequence[str]], str] | None = None
    empty: str = "(NULL)"


def with_names(sql: str, table: Callable[[str], str], values: Mapping[str, Value], dialect: Dialect) -> str:
    """Return the SQL of an engine: with the names of its tables as ``table`` gives them, and with the values."""

    def replacement(match: re.Match[str]) -> str:
        if match["table"] is not None:
            return table(match["table"])
        if match["word"] is not None:
            return str(getattr(dialect, match["word"])).format(match["of"])
        return literal(values[match["value"]], dialect)

    return NAMED.sub(replacement, sql)


def literal(value: Value, dialect: Dialect) -> str:
    """Return a value in SQL; a list in parentheses, an empty one as a list that equals nothing."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return dialect.text(value)
    if isinstance(value, int):
        return str(value)
    if dialect.many is not None and len(value) > MOST_LISTED and isinstance(value[0], str):
        return dialect.many(cast("Sequence[str]", value))
    return f"({', '.join(literal(entry, dialect) for entry in value)})" if value else dialect.empty


def sql_text(text: str) -> str:
    """Return a text as a string literal in Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def sql_name(location: str, table: str) -> str:
    """Return the name of a table in Spark's SQL."""
    return f"{location}.{table}" if is_catalog_name(location) else f"delta.`{location}/{table}`"


def is_catalog_name(location: str) -> bool:
    """Return whether a location is a schema of a catalog, such as ``main.audit``; otherwise it is a folder or a URI."""
    return CATALOG_NAME.fullmatch(location) is not None


def is_folder(location: str) -> bool:
    """Return whether a location is a path of this machine; otherwise it is a URI, or a schema of a catalog."""
    return not is_catalog_name(location) and "://" not in location and not location.startswith("dbfs:")


def is_store(location: str) -> bool:
    """Return whether a location is an object store that delta-rs opens."""
    return not is_folder(location) and can_open(location)


def can_open(location: str) -> bool:
    """Return whether a location is a folder or an object store that delta-rs knows."""
    scheme = SCHEME.match(location)
    return not is_catalog_name(location) and (scheme is None or scheme[1] in SCHEMES)


def absolute(location: str) -> str:
    """Return the location of tables with an absolute path for a folder of this machine; a URI or a schema as it is."""
    return str(Path(location).resolve()) if is_folder(location) else location.rstrip("/")
