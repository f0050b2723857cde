"""DataFrames against the rows that they should have: each is computed once, and compared here.

To sort them in Spark, or to make a DataFrame of what is expected, would take longer than to compute them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def assert_rows(
    found: DataFrame, expected: Iterable[tuple[Any, ...] | dict[str, Any]], *, in_order: bool = False
) -> None:
    """Compare a frame with the rows that it should have, each as often, in any order unless it counts."""
    rows, wanted = _rows(found.schema, found.collect()), _rows(found.schema, expected)
    assert (rows if in_order else sorted(rows, key=repr)) == (wanted if in_order else sorted(wanted, key=repr))


def assert_same(found: DataFrame, expected: DataFrame) -> None:
    """Compare two frames: columns, types and rows, each as often, in any order; not comments, nor what may be null."""
    types, wanted = ([(of.name, of.dataType.simpleString()) for of in frame.schema] for frame in (found, expected))
    assert types == wanted
    assert_rows(found, expected.collect())


def _rows(schema: StructType, rows: Iterable[Any]) -> list[Any]:
    return [_plain(row, schema) for row in rows]


def _plain(value: Any, kind: DataType) -> Any:
    """Return a value without names: a struct, which may be given as a mapping, as a tuple."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        fields = [value.get(name) for name in kind.names] if isinstance(value, dict) else value
        return tuple(_plain(each, of.dataType) for each, of in zip(fields, kind, strict=True))
    if isinstance(kind, ArrayType):
        return [_plain(each, kind.elementType) for each in value]
    if isinstance(kind, MapType):
        return {key: _plain(each, kind.valueType) for key, each in dict(value).items()}
    return bytes(value) if isinstance(value, bytearray) else str(value) if isinstance(value, str) else value
