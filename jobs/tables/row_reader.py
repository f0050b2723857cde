"""Conversion of values that were read from tables into values of the core; ``row_types`` has the way there."""

import types
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Annotated, Any, Final

SCALARS: Final = (str, bool, int, float)
"""Types whose values the tables keep as they are."""


def reader(core_type: object) -> Callable[[Any], Any]:
    """Return a function that converts a value of Arrow or Spark into a value of the core type.

    Its input has structs as dicts and arrays as lists. A field that is missing in a dict becomes None.
    """
    core, part = bare(core_type), element(core_type)
    if part is not None:
        read_part = reader(part)
        return lambda value: value if value is None else tuple(map(read_part, value))
    if issubclass(core, Enum):
        return lambda value: value if value is None else core(value)
    if any(base in SCALARS for base in core.__mro__):
        return _as_it_is
    readers = {name: reader(hint) for name, hint in typing.get_type_hints(core, include_extras=True).items()}
    if all(read is _as_it_is for read in readers.values()):
        names = (*readers,)
        return lambda value: value if value is None else core(*map(value.get, names))
    fields = (*readers.items(),)
    return lambda value: value if value is None else core(*(read(value.get(name)) for name, read in fields))


def list_reader(core_type: Any) -> Callable[[Any], Any]:
    """Return a function that converts a value of JSON, whose rows are lists, into one of the core type."""
    core, part = bare(core_type), element(core_type)
    if part is not None:
        read_part = list_reader(part)
        if read_part is _as_it_is:
            return lambda value: value if value is None else tuple(value)
        return lambda value: value if value is None else tuple(map(read_part, value))
    if any(base in SCALARS for base in core.__mro__):
        return _as_it_is
    readers = [list_reader(hint) for hint in typing.get_type_hints(core, include_extras=True).values()]
    if all(read is _as_it_is for read in readers):
        return lambda value: value if value is None else core(*value)
    return lambda value: (
        value if value is None else core(*(read(each) for read, each in zip(readers, value, strict=True)))
    )


def tuple_reader(core_type: Any) -> Callable[[Sequence[object]], Any]:
    """Return a function that converts the values of all fields of a core type, in their order, into one of it."""
    readers = [reader(hint) for hint in typing.get_type_hints(core_type, include_extras=True).values()]
    count, changed = len(readers), [(place, read) for place, read in enumerate(readers) if read is not _as_it_is]

    def read_row(values: Sequence[object]) -> object:
        row = [*values]
        if len(row) != count:
            raise ValueError(f"{len(row)} values for the {count} fields of {core_type.__name__}")
        for place, read in changed:
            row[place] = read(row[place])
        return core_type(*row)

    return read_row


def _as_it_is(value: object) -> object:
    return value


def bare(hint: object) -> Any:
    """Return the type without its comment and without None."""
    if typing.get_origin(hint) is Annotated:
        return bare(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (some,) = (argument for argument in typing.get_args(hint) if argument is not type(None))
        return bare(some)
    return hint


def element(hint: object) -> object:
    """Return the element type of a tuple of any length; None for other types."""
    core = bare(hint)
    return typing.get_args(core)[0] if typing.get_origin(core) is tuple else None
