"""The rows of the core as Spark sees them: the type of a column for a type of the core, and its values back again."""

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


def spark_type(of: Any) -> DataType:
    """The type of a column for a type of the core: named tuples and dataclasses are structs, tuples arrays."""
    bare, element = _bare(of), _element(of)
    if element is not None:
        return ArrayType(spark_type(element))
    scalar = next((SCALARS[base] for base in bare.__mro__ if base in SCALARS), None)
    return scalar or row_type(bare)


def row_type(row: type) -> StructType:
    """The columns of a row type, with their comments where it has any."""
    fields = []
    for name, hint in typing.get_type_hints(row, include_extras=True).items():
        comment = {"comment": about} if (about := _about(hint)) else {}
        fields.append(StructField(name, spark_type(hint), True, comment))
    return StructType(fields)


def reader(of: Any) -> Callable[[Any], Any]:
    """A function that makes a value of that type of what Arrow or Spark give for it: structs as dicts, arrays as lists.

    A field that is missing in a dict is None.
    """
    bare, element = _bare(of), _element(of)
    if element is not None:
        each = reader(element)
        return lambda value: value if value is None else tuple(map(each, value))
    if issubclass(bare, Enum):
        return lambda value: value if value is None else bare(value)
    if any(base in SCALARS for base in bare.__mro__):
        return lambda value: value
    fields = [(name, reader(hint)) for name, hint in typing.get_type_hints(bare, include_extras=True).items()]
    return lambda value: value if value is None else bare(*(read(value.get(name)) for name, read in fields))


def _bare(of: Any) -> Any:
    """The type without its comment, and without None."""
    if typing.get_origin(of) is Annotated:
        return _bare(typing.get_args(of)[0])
    if typing.get_origin(of) in (typing.Union, types.UnionType):
        (some,) = (each for each in typing.get_args(of) if each is not type(None))
        return _bare(some)
    return of


def _element(of: Any) -> Any:
    """The type of the elements of a tuple of any length; None for other types."""
    bare = _bare(of)
    return typing.get_args(bare)[0] if typing.get_origin(bare) is tuple else None


def _about(hint: Any) -> str | None:
    if typing.get_origin(hint) is not Annotated:
        return None
    about: str = hint.__metadata__[0]
    return about
