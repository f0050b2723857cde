"""Arrow types for the row types of the core."""

import typing
from typing import Annotated, Any, Final

import pyarrow as pa

from jobs.tables.row_reader import bare, element
from jobs.tables.table import BOOLEAN, DOUBLE, LONG, STRING, array, column

SCALARS: Final[dict[type, pa.DataType]] = {str: STRING, bool: BOOLEAN, int: LONG, float: DOUBLE}


def arrow_type(core_type: object) -> pa.DataType:
    """Return the Arrow type for a type of the core: structs for named tuples and dataclasses, lists for tuples."""
    core, part = bare(core_type), element(core_type)
    if part is not None:
        return array(arrow_type(part))
    scalar = next((SCALARS[base] for base in core.__mro__ if base in SCALARS), None)
    return scalar or row_type(core)


def row_type(row: type) -> pa.StructType:
    """Return the columns for a row type, with the comments of its annotations."""
    hints = typing.get_type_hints(row, include_extras=True)
    return pa.struct([column(name, arrow_type(hint), _about(hint)) for name, hint in hints.items()])


def _about(hint: Any) -> str | None:
    if typing.get_origin(hint) is not Annotated:
        return None
    about: str = hint.__metadata__[0]
    return about
