"""Spark types for the row types of the core, and conversion of Spark values back into core values."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from enum import Enum
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

SCALARS: Final[dict[type, DataType]] = {
    str: StringType(),
    bool: BooleanType(),
    int: LongType(),
    float: DoubleType(),
}


def spark_type(core_type: Any) -> DataType:
    """Return the Spark type for a type of the core: structs for named tuples and dataclasses, arrays for tuples."""
    bare, element = _bare(core_type), _element(core_type)
    if element is not None:
        return ArrayType(spark_type(element))
    scalar = next((SCALARS[base] for base in bare.__mro__ if base in SCALARS), None)
    return scalar or row_type(bare)


def row_type(row: type) -> StructType:
    """Return the columns for a row type, with the comments of its annotations."""
    fields = []
    for name, hint in typing.get_type_hints(row, include_extras=True).items():
        comment = {"comment": about} if (about := _about(hint)) else {}
        fields.append(StructField(name, spark_type(hint), True, comment))
    return StructType(fields)


def reader(core_type: Any) -> Callable[[Any], Any]:
    """Return a function that converts a value of Arrow or Spark into a value of the core type.

    Its input has structs as dicts and arrays as lists. A field that is missing in a dict becomes None.
    """
    bare, element = _bare(core_type), _element(core_type)
    if element is not None:
        each = reader(element)
        return lambda value: value if value is None else tuple(map(each, value))
    if issubclass(bare, Enum):
        return lambda value: value if value is None else bare(value)
    if any(base in SCALARS for base in bare.__mro__):
        return lambda value: value
    fields = [(name, reader(hint)) for name, hint in typing.get_type_hints(bare, include_extras=True).items()]
    return lambda value: value if value is None else bare(*(read(value.get(name)) for name, read in fields))


def _bare(hint: Any) -> Any:
    """Return the type without its comment and without None."""
    if typing.get_origin(hint) is Annotated:
        return _bare(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (some,) = (each for each in typing.get_args(hint) if each is not type(None))
        return _bare(some)
    return hint


def _element(hint: Any) -> Any:
    """Return the element type of a tuple of any length; None for other types."""
    bare = _bare(hint)
    return typing.get_args(bare)[0] if typing.get_origin(bare) is tuple else None


def _about(hint: Any) -> str | None:
    if typing.get_origin(hint) is not Annotated:
        return None
    about: str = hint.__metadata__[0]
    return about
