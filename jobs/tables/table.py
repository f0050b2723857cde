"""The definition of a table, and its columns: Arrow's types with comments, and the names that several tables share.

Spark's and Delta's types are made from these where a table is created or Spark is given rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

STRING: Final = pa.string()
BINARY: Final = pa.binary()
BOOLEAN: Final = pa.bool_()
DOUBLE: Final = pa.float64()
LONG, INT, SHORT = pa.int64(), pa.int32(), pa.int16()
TIMESTAMP: Final = pa.timestamp("us", "UTC")

COMMENT: Final = "comment"
"""The key of a field's metadata under which Delta and Spark keep what the column is about."""

LOG_PARTITION: Final = ("log_topic", "log_partition")
"""The columns that name a log partition within a cluster."""

PLACED: Final = "log_offset IS NOT NULL AND log_partition IS NOT NULL"
"""Rows whose place in the log is known. Dumps without positions have others, which cannot be ordered."""

OFFSET_KEY: Final = ("cluster", "log_topic", "log_partition", "group_id", "topic", "partition")
"""The columns that name what an offset is committed for, and the log partition that holds the commit."""

COMMIT: Final = (
    "log_offset",
    "timestamp_ms",
    "committed_offset",
    "leader_epoch",
    "metadata",
    "commit_timestamp",
    "expire_timestamp",
    "topic_id",
    "producer_id",
    "outcome",
)
"""The columns of ``group_offsets`` that describe the commit that counts."""


def column(name: str, data_type: pa.DataType, about: str | None) -> pa.Field:
    """Return a nullable column with a comment; None: without one."""
    return pa.field(name, data_type, metadata=None if about is None else {COMMENT: about})


def about_column(column: pa.Field) -> str:
    """Return the comment of a column; empty: it has none."""
    comment: bytes = (column.metadata or {}).get(COMMENT.encode(), b"")
    return comment.decode()


SQL_NAMES: Final = {
    **{STRING: "string", BINARY: "binary", BOOLEAN: "boolean", DOUBLE: "double", TIMESTAMP: "timestamp"},
    **{LONG: "bigint", INT: "int", SHORT: "smallint", pa.int8(): "tinyint"},
}


def _fields(columns: Iterable[pa.Field]) -> str:
    return ",".join(f"{each.name}:{sql_type(each.type)}" for each in columns)


def sql_type(of_type: pa.DataType, fields: Callable[[Iterable[pa.Field]], str] = _fields) -> str:
    """Return the name of a type in SQL; ``fields`` writes those of a struct."""
    if pa.types.is_struct(of_type):
        return f"struct<{fields(of_type)}>"
    if pa.types.is_map(of_type):
        return f"map<{sql_type(of_type.key_type, fields)},{sql_type(of_type.item_type, fields)}>"
    if pa.types.is_list(of_type):
        return f"array<{sql_type(of_type.value_type, fields)}>"
    return SQL_NAMES.get(of_type, str(of_type))


def array(of: pa.DataType) -> pa.DataType:
    """Return the type of arrays, with the name that Spark and Delta give their elements."""
    return pa.list_(pa.field("element", of))


def plain(columns: Iterable[pa.Field]) -> pa.Schema:
    """Return columns without their comments, at every depth: rows do not carry them."""
    return pa.schema([pa.field(each.name, _plain(each.type), each.nullable) for each in columns])


def _plain(of_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(of_type):
        return pa.struct(list(plain(of_type)))
    return array(_plain(of_type.value_type)) if pa.types.is_list(of_type) else of_type


@dataclass(frozen=True, slots=True)
class Table:
    """Definition of a table.

    ``columns`` have comments; ``schema`` is the same columns without them, as rows have them. ``key``: the columns that
    identify a row, compared null-safe. ``order``: the columns by which the rows within a file are sorted as they are
    appended, so that a question about one of their values reads few pages of the file.
    """

    name: str
    about: str
    columns: Sequence[pa.Field] = field(repr=False, compare=False)
    key: tuple[str, ...]
    order: tuple[str, ...] = ()
    schema: pa.Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", plain(self.columns))


def few(table: Table, rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Return rows that are in this process. Structs are all mappings, or all tuples; maps are lists of pairs."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=table.schema)
