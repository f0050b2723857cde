"""Spark types for the row types of the core."""

from __future__ import annotations

import typing
from typing import Annotated, Any, Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from jobs.tables.row_reader import bare, element

SCALARS: Final[dict[type, DataType]] = {
    str: StringType(),
    bool: BooleanType(),
    int: LongType(),
    float: DoubleType(),
}


def spark_type(core_type: Any) -> DataType:
    """Return the Spark type for a type of the core: structs for named tuples and dataclasses, arrays for tuples."""
    core, part = bare(core_type), element(core_type)
    if part is not None:
        return ArrayType(spark_type(part))
    scalar = next((SCALARS[base] for base in core.__mro__ if base in SCALARS), None)
    return scalar or row_type(core)


def row_type(row: type) -> StructType:
    """Return the columns for a row type, with the comments of its annotations."""
    fields = []
    for name, hint in typing.get_type_hints(row, include_extras=True).items():
        comment = {"comment": about} if (about := _about(hint)) else {}
        fields.append(StructField(name, spark_type(hint), True, comment))
    return StructType(fields)


def _about(hint: Any) -> str | None:
    if typing.get_origin(hint) is not Annotated:
        return None
    about: str = hint.__metadata__[0]
    return about
