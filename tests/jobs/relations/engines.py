"""Tables of generated rows, and both engines over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, Schema, write_deltalake
from pyspark.sql import SparkSession

from jobs.tables.delta import Table, few
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import Value
from jobs.tables.spark_reader import SparkReader


def write(home: Path, rows: Mapping[Table, Iterable[Mapping[str, Any]]]) -> None:
    """Write tables without Spark. A row may lack columns, which are null.

    Columns have their comments, as those of real tables: DataFusion compares the metadata of columns in some plans.
    """
    for table, of_table in rows.items():
        names = dict.fromkeys(table.schema.names)
        made = DeltaTable.create(home / table.name, Schema.from_json(table.schema.json()))
        write_deltalake(made, few(table, ({**names, **row} for row in of_table)), mode="append")


def of_both(spark: SparkSession, home: Path, sql: str, **values: Value) -> list[tuple[Any, ...]]:
    """The rows of a text, sorted; both engines say the same."""
    here, in_spark = (
        sorted((tuple(row.values()) for row in reader.rows(sql, **values)), key=repr)
        for reader in (FolderReader(str(home)), SparkReader(spark, str(home)))
    )
    assert here == in_spark
    return here
