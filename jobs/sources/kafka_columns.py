"""The shape that Spark's Kafka source gives, as Parquet or Delta, to the columns of a dump."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
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
from jobs.tables.log import DUMPED

READ: tuple[str, ...] = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
TIMESTAMP_TYPES = ["CreateTime", "LogAppendTime"]


def dumped(rows: DataFrame, name: str, topic: str) -> DataFrame:
    """Rows with at least binary ``key`` and ``value``, as the columns ``tables.log.DUMPED``.

    Without ``topic`` they are from ``topic``; without ``partition`` and ``offset`` their place is the row's number in
    its file. Columns that are not of this shape go to ``extra``. ``name`` is what errors call the dump.

    Raises:
        InputError: no column ``key`` or ``value``, or one that is not binary.
    """
    types = {field.name: field.dataType for field in rows.schema.fields}
    for wanted in ("key", "value"):
        found = types.get(wanted)
        if found is None:
            raise InputError(f"{name}: no column '{wanted}' (there are {', '.join(types) or 'none'})")
        if not isinstance(found, BinaryType):
            raise InputError(f"{name}: column '{wanted}' must be binary as Kafka gives it, this is {found.typeName()}")
    positioned = "partition" in types and "offset" in types
    known: dict[str, Column] = {
        "log_topic": F.coalesce(F.col("topic"), F.lit(topic)) if "topic" in types else F.lit(topic),
        "kind": F.lit("record"),
        "key": F.col("key"),
        "value": F.col("value"),
        "outcome": F.lit("unknown"),
        "source": F.col("_metadata.file_path"),
        "extra": _extra(types),
    }
    if positioned:
        known |= {"log_partition": F.col("partition").cast("int"), "log_offset": F.col("offset").cast("long")}
    else:
        known["place"] = F.col("_metadata.row_index") + 1
    if "timestamp" in types:
        known["timestamp_ms"] = _millis(types["timestamp"])
    if "timestampType" in types:
        is_name = isinstance(types["timestampType"], StringType)
        number = F.col("timestampType").cast("int")
        known["timestamp_type"] = F.col("timestampType") if is_name else F.get(F.lit(TIMESTAMP_TYPES), number)
    if "headers" in types:
        known["headers"] = F.col("headers").cast(_type_of("headers"))
    columns = [known.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in DUMPED]
    return rows.select(columns)


def _millis(of: DataType) -> Column:
    """The column ``timestamp`` in ms since the epoch; one without a time zone, as pandas writes it, is in UTC."""
    if isinstance(of, TimestampType):
        return F.unix_millis("timestamp")
    if isinstance(of, TimestampNTZType):  # by way of text: a cast would take it for a time of the session's zone
        return F.unix_millis(F.concat(F.col("timestamp").cast("string"), F.lit("Z")).cast("timestamp"))
    return F.col("timestamp").cast("long")


def _extra(types: dict[str, DataType]) -> Column:
    """The columns that no other place holds, as text by name; null where there are none."""
    further = [name for name in types if name not in READ]
    if not further:
        return F.lit(None)
    return F.create_map(*(part for name in further for part in (F.lit(name), _text(name, types[name]))))


def _text(name: str, of: DataType) -> Column:
    column = F.col(f"`{name}`")
    if isinstance(of, BinaryType):
        return F.base64(column)
    return F.to_json(column) if isinstance(of, StructType | ArrayType | MapType) else column.cast("string")


def _type_of(name: str) -> DataType:
    return next(field.dataType for field in DUMPED if field.name == name)
