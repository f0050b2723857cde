"""DataFrames against the rows that they should have, each as often, in any order unless it counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def assert_rows(
    found: DataFrame, expected: Iterable[tuple[Any, ...] | dict[str, Any]], *, in_order: bool = False
) -> None:
    """Compare a frame with the rows that it should have. Spark gives the rows as they are: to sort takes it longer."""
    schema = found.schema
    rows, wanted = ([plain(row, schema) for row in some] for some in (found.collect(), expected))
    if in_order:
        assert rows == wanted
    else:
        assert sorted(rows, key=repr) == sorted(wanted, key=repr)


def assert_same(found: DataFrame, expected: DataFrame) -> None:
    """Compare two frames: names and types of the columns, and the rows; not comments, nor what may be null."""
    types = [[(field.name, field.dataType.simpleString()) for field in frame.schema] for frame in (found, expected)]
    assert types[0] == types[1]
    assert_rows(found, expected.collect())


def plain(value: Any, of: DataType) -> Any:
    """A value of a type without Spark's own classes: a struct, which may be given by names, is a tuple."""
    if value is None:
        return None
    if isinstance(of, StructType):
        parts = [value.get(field.name) for field in of] if isinstance(value, dict) else value
        return tuple(plain(part, field.dataType) for part, field in zip(parts, of, strict=True))
    if isinstance(of, ArrayType):
        return [plain(part, of.elementType) for part in value]
    if isinstance(of, MapType):
        return {key: plain(part, of.valueType) for key, part in sorted(dict(value).items())}
    return value
