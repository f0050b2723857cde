"""Tables of generated rows, and both engines over them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema, write_deltalake
from pyspark.sql import SparkSession

from jobs.tables.catalog import CATALOG
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import Value
from jobs.tables.spark_reader import SparkReader, sent
from jobs.tables.table import Table, few


def write(home: Path, rows: Mapping[Table, Iterable[Mapping[str, Any]]]) -> None:
    """Write tables without Spark. A row may lack columns, which are null.

    Columns have their comments, as those of real tables: DataFusion compares the metadata of columns in some plans.
    """
    for table, of_table in rows.items():
        names = dict.fromkeys(table.schema.names)
        made = DeltaTable.create(home / table.name, Schema.from_arrow(table.schema))
        write_deltalake(made, few(table, ({**names, **row} for row in of_table)), mode="append")


def through_spark(spark: SparkSession, home: Path) -> SparkReader:
    """Spark's reader over the tables of a folder, whose rows it is given: it would take most of the time to open them.

    Other tests let Spark read tables of Delta.
    """
    views = {}
    for place in home.iterdir():
        if (place / "_delta_log").is_dir():
            schema, rows = CATALOG[place.name].schema, pa.table(DeltaTable(place).to_pyarrow_table())
            given = sent(spark, rows.cast(schema)).coalesce(1)
            views[place.name] = f"{place.name}_of_{home.parent.name}_{home.name}".replace("-", "_")
            given.createOrReplaceTempView(views[place.name])
    return SparkReader(spark, str(home), {name: f"SELECT * FROM {view}" for name, view in views.items()})


def of_both(
    spark: SparkSession, home: Path, sql: str, names: Sequence[str] = (), **values: Value
) -> list[tuple[Any, ...]]:
    """The rows of a text, sorted, with these columns (none: all); both engines say the same."""
    here, in_spark = (
        sorted((tuple(row[name] for name in names or row) for row in reader.rows(sql, **values)), key=repr)
        for reader in (FolderReader(str(home)), through_spark(spark, home))
    )
    assert here == in_spark
    return here
