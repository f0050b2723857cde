"""Tables of generated rows, and both engines over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deltalake import write_deltalake
from pyspark.sql import SparkSession

from jobs.tables.delta import Table, few
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import Value
from jobs.tables.spark_reader import SparkReader


def write(home: Path, rows: Mapping[Table, Iterable[Mapping[str, Any]]]) -> None:
    """Write tables without Spark. A row may lack columns, which are null."""
    for table, of_table in rows.items():
        names = dict.fromkeys(table.schema.names)
        write_deltalake(str(home / table.name), few(table, ({**names, **row} for row in of_table)))


def of_both(spark: SparkSession, home: Path, sql: str, **values: Value) -> list[tuple[Any, ...]]:
    """The rows of a text, sorted; both engines say the same."""
    here, in_spark = (
        sorted((tuple(row.values()) for row in reader.rows(sql, **values)), key=repr)
        for reader in (FolderReader(str(home)), SparkReader(spark, str(home)))
    )
    assert here == in_spark
    return here
