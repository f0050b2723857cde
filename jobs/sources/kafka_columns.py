"""Conversion of the columns of Spark's Kafka source (as Parquet or Delta) into the columns of a dump."""

import os
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from coordinator_core.errors import InputError
from jobs.sources.dump_batches import SCHEMA
from jobs.sources.files import refuse_other_topics
from jobs.sources.printed.parquet_source import READ, TIMESTAMP_TYPES, parquet_below
from jobs.sources.printed.printed_rows import HEX, HEX_DIGITS, MICROS, NANOS, SECONDS, known_names
from jobs.tables.spark_errors import one_line
from jobs.tables.spark_reader import spark_types


def read(spark: SparkSession, files: list[str], topic: str, topics: Sequence[str], *, is_delta: bool) -> DataFrame:
    """Read Parquet or Delta. Files below folders that begin with ``_`` or ``.`` are named, because Spark skips them.

    ``topic``: the topic of records without one. ``topics``: records of others are left out.

    Raises:
        InputError: a table cannot be read, has no key or value, or only records of other topics.
    """
    # The files of a sink may differ in their columns: by itself Spark would take those of one of them.
    reader = spark.read.option("mergeSchema", "true")
    try:
        if is_delta:
            tables = [dumped(reader.format("delta").load(file), file, topic) for file in files]
            rows = reduce(DataFrame.unionByName, tables)
        else:
            named = [path for file in files for path in (parquet_below(file) if _is_hidden(file) else [file])]
            rows = dumped(reader.parquet(*named), ", ".join(files), topic)
    except InputError:
        raise
    except Exception as error:
        kind = "delta" if is_delta else "parquet"
        raise InputError(f"{', '.join(files)}: cannot be read as {kind}: {one_line(error)}") from error
    known = rows.where(F.col("log_topic").isin(*topics) | F.col("log_topic").isNull())
    if known.isEmpty():
        others = [row["log_topic"] for row in rows.select("log_topic").distinct().limit(3).collect()]
        refuse_other_topics(files[0], others, topics)
    return known


def _is_hidden(path: str) -> bool:
    """Return whether Spark would skip Parquet files below this folder."""
    if not os.path.isdir(path):
        return False
    below = (file.relative_to(path).parts[:-1] for file in Path(path).rglob("*.parquet"))
    return any(part[0] in "_." and "=" not in part for parts in below for part in parts)


def dumped(rows: DataFrame, name: str, topic: str) -> DataFrame:
    """Return rows that have at least binary ``key`` and ``value`` as the columns ``tables.log.DUMPED``.

    Rows without a topic get ``topic``. Without the columns ``partition`` and ``offset``, ``place`` is the number of the
    row in its file. Columns that Spark's Kafka source does not have go to ``extra``. ``name``: name of the dump for
    error messages.

    Raises:
        InputError: the column ``key`` or ``value`` is missing or not binary.
    """
    # Spark finds a column in whatever case it is named.
    types = dict(zip(known_names(rows.columns), (field.dataType for field in rows.schema.fields), strict=True))
    for wanted in ("key", "value"):
        known_type = types.get(wanted)
        if known_type is None:
            raise InputError(f"{name}: column '{wanted}' is missing (columns: {', '.join(types) or 'none'})")
        if not isinstance(known_type, BinaryType | StringType):
            raise InputError(f"{name}: column '{wanted}' must be binary or base64, not {known_type.typeName()}")
    # One without the other names no place in a log.
    positioned = "partition" in types and "offset" in types
    known: dict[str, Column] = {
        "log_topic": F.coalesce(F.col("topic"), F.lit(topic)) if "topic" in types else F.lit(topic),
        "kind": F.lit("record"),
        "key": _bytes("key", types["key"]),
        "value": _bytes("value", types["value"]),
        "outcome": F.lit("unknown"),
        "source": F.col("_metadata.file_path"),
        "extra": _extra(types),
    }
    if positioned:
        partition, offset = _whole("partition").cast("int"), _whole("offset")
        known["log_partition"] = F.when(offset.isNotNull(), partition)
        known["log_offset"] = F.when(partition.isNotNull(), offset)
    else:
        known["place"] = F.col("_metadata.row_index") + 1
    if "timestamp" in types:
        times = _millis(types["timestamp"])
        known["timestamp_ms"] = F.when(times > 0, times)  # 0 and less stand for none
    if "timestampType" in types:
        is_name = isinstance(types["timestampType"], StringType)
        number = F.col("timestampType").cast("int")
        known["timestamp_type"] = F.col("timestampType") if is_name else F.get(F.lit([*TIMESTAMP_TYPES]), number)
    if isinstance(types.get("headers"), ArrayType | MapType):
        known["headers"] = F.col("headers").cast(spark_types(SCHEMA)["headers"].dataType)
    columns = [
        known.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in spark_types(SCHEMA)
    ]
    return rows.select(columns)


def _millis(data_type: DataType) -> Column:
    """Return ``timestamp`` in ms since the epoch. A time without a time zone (pandas writes such) is in UTC."""
    if isinstance(data_type, TimestampType):
        return F.unix_millis("timestamp")
    if isinstance(data_type, TimestampNTZType):  # via text: a cast would interpret it in the session's time zone
        return F.unix_millis(F.concat(F.col("timestamp").cast("string"), F.lit("Z")).cast("timestamp"))
    if isinstance(data_type, StringType):
        return F.coalesce(_scaled("try_cast(timestamp as long)"), F.unix_millis(F.to_timestamp("timestamp")))
    return _scaled("cast(timestamp as long)")


def _scaled(number: str) -> Column:
    """Return an expression of a number as ``printed_rows.millis`` does."""
    return F.expr(
        f"case when {number} between {SECONDS} and {10 * SECONDS - 1} then {number} * 1000 "
        f"when {number} >= {NANOS} then {number} div 1000000 when {number} >= {MICROS} then {number} div 1000 "
        f"else {number} end"
    )


def _whole(name: str) -> Column:
    """Return whole numbers, also those that are stored as texts or with fractions of 0; -1: there is none."""
    number = F.col(name).cast("long")
    return F.when(number >= 0, number)


def _bytes(name: str, data_type: DataType) -> Column:
    """Return a key or value as bytes: it is, or is text in base64 (see ``printed_rows.from_base64``)."""
    if isinstance(data_type, BinaryType):
        return F.col(name)
    # What has no nulls writes a tombstone as an empty text: no value of these logs is empty.
    decoded = F.when(F.col(name) != "", F.to_binary(name, F.lit("base64")))
    complaint = F.raise_error(F.lit(f"column '{name}': {HEX_DIGITS}"))
    return F.when(F.col(name).rlike(HEX.pattern), complaint).otherwise(decoded)


def _extra(types: dict[str, DataType]) -> Column:
    """Return all other columns as a map of texts by name; null if there are none."""
    others = [name for name in types if name not in READ]
    if not others:
        return F.lit(None)
    return F.create_map(*(part for name in others for part in (F.lit(name), _text(name, types[name]))))


def _text(name: str, data_type: DataType) -> Column:
    column = F.col(f"`{name}`")
    if isinstance(data_type, BinaryType):
        return F.base64(column)
    return F.to_json(column) if isinstance(data_type, StructType | ArrayType | MapType) else column.cast("string")
