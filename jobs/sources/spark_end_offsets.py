"""Snapshots of end offsets in a file, as a text that Spark reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobs.sources.end_offsets import JSON_SUFFIXES, check_columns
from jobs.sources.printed.printed_ends import printed_ends
from jobs.tables.reader import sql_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES: Final = {
    "cluster": "STRING",
    "topic": "STRING",
    "partition": "INT",
    "timestamp_ms": "BIGINT",
    "end_offset": "BIGINT",
    "topic_id": "STRING",
}
"""Columns of end offsets; a file may lack the cluster and the topic ids."""


def ends_in_spark(spark: SparkSession, path: str, cluster: str) -> str:
    """Return an SQL text with the end offsets of a file: the columns ``TYPES``, as ``SparkReader`` may be given it.

    Rows without a column ``cluster`` are of the cluster given.

    Raises:
        InputError: a column is missing.
    """
    if "://" not in path and (printed := printed_ends(Path(path))) is not None:
        rows = ", ".join(
            f"({sql_text(cluster)}, {sql_text(row['topic'])}, {row['partition']}, {row['timestamp_ms']}, "
            f"{row['end_offset']}, NULL)"
            for row in printed
        )
        typed = ", ".join(f"CAST({name} AS {data_type}) AS {name}" for name, data_type in TYPES.items())
        return f"SELECT {typed} FROM VALUES {rows} AS printed({', '.join(TYPES)})"
    file_format = "json" if path.endswith(JSON_SUFFIXES) else "parquet"
    place = f"{file_format}.`{path.replace('`', '``')}`"
    names = spark.sql(f"SELECT * FROM {place}").columns
    check_columns(path, names)
    otherwise = {"cluster": sql_text(cluster), "topic_id": "NULL"}
    columns = (
        f"CAST({name if name in names else otherwise[name]} AS {data_type}) AS {name}"
        for name, data_type in TYPES.items()
    )
    return f"SELECT {', '.join(columns)} FROM {place}"
