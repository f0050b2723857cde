"""DataFrames against the rows that they should have: rows, names and types of columns; chispa prints what differs."""

from collections.abc import Iterable
from typing import Any

from chispa import assert_df_equality
from pyspark.sql import DataFrame


def assert_rows(
    found: DataFrame, expected: Iterable[tuple[Any, ...] | dict[str, Any]], *, in_order: bool = False
) -> None:
    """Compare a frame with the rows that it should have, each as often, in any order unless it counts."""
    same = found.sparkSession.createDataFrame(list(expected), found.schema)
    assert_df_equality(found, same, ignore_row_order=not in_order)


def assert_same(found: DataFrame, expected: DataFrame) -> None:
    """Compare two frames: columns, types and rows, each as often, in any order; not comments, nor what may be null."""
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True, ignore_metadata=True)
