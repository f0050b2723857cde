"""Logs in the table ``log_records``, read as segment files are: for commands that work on either."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.errors import InputError
from coordinator_core.records import Family
from jobs.gaps import PARTITION
from jobs.log_reader import FIRST_SEGMENT
from jobs.log_schema import LOG_RECORDS
from jobs.sources.files import FAMILIES
from jobs.tables import Tables

ROWS: Final = 8_192
"""So many records are in memory at a time."""

COLUMNS: Final = {
    "kind": pa.string(),
    "offset": pa.int64(),
    "timestamp": pa.int64(),
    "key": pa.binary(),
    "value": pa.binary(),
    "control_type": pa.string(),
    "is_transactional": pa.bool_(),
    "producer_id": pa.int64(),
    "leader_epoch": pa.int32(),
    "batch_base_offset": pa.int64(),
}
"""What readers ask of the records of a segment (``LOG_COLUMNS``)."""


@dataclass(frozen=True, slots=True)
class StoredLog:
    """One log partition in the table, with what a ``LogFile`` says of a segment.

    ``segment`` is the name of a partition's first one where the log was read from its start.
    """

    rows: DataFrame
    topic: str
    partition: int
    segment: str

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{self.topic}-{self.partition}"

    @property
    def family(self) -> Family:
        """What its records are."""
        return FAMILIES[self.topic]

    def parts(self) -> Iterator[pa.RecordBatch]:
        """Its records and control records in the order of their offsets, a few thousand at a time."""
        schema = pa.schema(COLUMNS)
        records = self.rows.orderBy("offset").toLocalIterator()
        while rows := list(islice(records, ROWS)):
            columns = [
                pa.array(column, of) for column, of in zip(zip(*rows, strict=True), COLUMNS.values(), strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def stored_logs(tables: Tables, cluster: str) -> list[StoredLog]:
    """The log partitions of a cluster; raises InputError where there are none, or maintenance has dropped values."""
    log = tables.read(LOG_RECORDS).where((F.col("cluster") == cluster) & F.col("kind").isin("record", "control"))
    log = log.where(F.col("log_offset").isNotNull() & F.col("log_topic").isin(*FAMILIES))
    has_start = F.bool_or((F.col("log_offset") == 0) | F.col("source").endswith(FIRST_SEGMENT))
    partitions = (
        log.where("log_partition IS NOT NULL")
        .groupBy(*PARTITION)
        .agg(has_start.alias("has_start"), F.bool_or("value_dropped").alias("is_trimmed"))
        .collect()
    )
    if not partitions:
        raise InputError(f"{tables.home}: no log of a cluster {cluster!r}")
    if any(of.is_trimmed for of in partitions):
        raise InputError(
            f"{tables.home}: maintenance has dropped values of the log (maintenance.keep_values_days), so that it "
            "cannot be read again; its history is in the tables, and the whole log in the dumps"
        )
    rows = log.select(
        *PARTITION,
        "kind",
        F.col("log_offset").alias("offset"),
        F.col("timestamp_ms").alias("timestamp"),
        "key",
        "value",
        "control_type",
        F.coalesce("is_transactional", F.lit(False)).alias("is_transactional"),
        F.coalesce("producer_id", F.lit(-1)).alias("producer_id"),
        "leader_epoch",
        F.coalesce("batch_base", F.lit(-1)).alias("batch_base_offset"),
    )
    return [
        StoredLog(
            rows.where((F.col("log_topic") == of.log_topic) & (F.col("log_partition") == of.log_partition)).select(
                *COLUMNS
            ),
            of.log_topic,
            of.log_partition,
            FIRST_SEGMENT if of.has_start else "",
        )
        for of in sorted(partitions)
    ]
