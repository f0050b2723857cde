"""``decode_key`` and ``decode_value`` as Arrow UDFs for DataFrames and SQL: decoding without the tables of the jobs.

    decode_key, decode_value = udf.decode_key(), udf.decode_value()
    frame.select(decode_key("key"), decode_value("key", "value"))

    udf.register(spark)
    spark.sql("SELECT decode_key(key).offset_commit.topic FROM dump")
    udf.register(spark, Family.SHARE)
    spark.sql("SELECT decode_share_key(key) FROM share_dump")

Both return a struct: ``record_type`` (for a key) or ``version`` (for a value), ``error`` (null unless decoding failed),
and one struct for each record type: only that of the record itself is not null.

A night decodes with the same functions (``coordinator_core.wire.batch_decode``), a batch of Arrow at a time.
"""

from collections.abc import Callable
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from coordinator_core.records import Family
from coordinator_core.wire.arrow_types import message_type
from coordinator_core.wire.batch_decode import NO_TYPE, Decoded, decode_keys, decode_values
from coordinator_core.wire.schema import record_schemas

Part = Literal["key", "value"]


def decode_key(family: Family = Family.GROUP) -> Callable[..., Column]:
    """Return the UDF that decodes a key; its argument is the key column (binary)."""

    def decode(keys: pa.Array) -> pa.Array:
        return _column("key", decode_keys(keys, family), keys, family)

    return _arrow_udf(decode, _struct("key", family))


def decode_value(family: Family = Family.GROUP) -> Callable[..., Column]:
    """Return the UDF that decodes a value; its arguments are the key, which gives the record type, and the value."""

    def decode(keys: pa.Array, values: pa.Array) -> pa.Array:
        decoded = decode_values(values, decode_keys(keys, family).numbers, family)
        return _column("value", decoded, values, family)

    return _arrow_udf(decode, _struct("value", family))


def _arrow_udf(decode: Callable[..., pa.Array], result: pa.StructType) -> Callable[..., Column]:
    # The stubs ask for a type of function as well; with one, Spark warns that the type hints already say it.
    udf: Callable[..., Column] = arrow_udf(decode, returnType=from_arrow_type(result))  # type: ignore[call-overload]
    return udf


def register(spark: SparkSession, family: Family = Family.GROUP) -> None:
    """Register both UDFs for SQL: of groups as ``decode_key`` and ``decode_value``, of another family with its name
    between, as ``decode_share_key``. So each family has its own.
    """
    of = "" if family is Family.GROUP else f"{family.name.lower()}_"
    spark.udf.register(f"decode_{of}key", decode_key(family))
    spark.udf.register(f"decode_{of}value", decode_value(family))


def _struct(part: Part, family: Family) -> pa.StructType:
    """Return the result type of a UDF."""
    fields = [pa.field("record_type" if part == "key" else "version", pa.int16()), pa.field("error", pa.string())]
    for schema in record_schemas(family).values():
        message = schema.key if part == "key" else schema.value
        if message is not None:
            fields.append(pa.field(schema.name.lower(), message_type(message)))
    return pa.struct(fields)


def _column(part: Part, decoded: Decoded, data: pa.Array, family: Family) -> pa.Array:
    result_type, count = _struct(part, family), len(data)
    errors = [str(decoded.errors[row]) if row in decoded.errors else None for row in range(count)]
    number = pa.array(decoded.numbers, mask=decoded.numbers == NO_TYPE)
    arrays = [number, pa.array(errors, pa.string()) if decoded.errors else pa.nulls(count, pa.string())]
    names = {schema.name.lower(): schema.type for schema in record_schemas(family).values()}
    for field in list(result_type)[2:]:
        group = decoded.groups.get(names[field.name])
        arrays.append(pa.nulls(count, field.type) if group is None else group.over(count))
    return pa.StructArray.from_arrays(arrays, fields=list(result_type), mask=data.is_null())
