"""The definition of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from jobs.tables.columns import plain


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
