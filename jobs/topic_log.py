"""The history of topics, from ``cluster_records``.

It is folded on the driver while the records stream by, and is small: workers get it with the functions that need it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.cluster.topic_history import TopicHistory, TopicInterval
from coordinator_core.errors import UnknownTypeError
from coordinator_core.records import CoordinatorRecord, LogPosition, MetadataRecordType
from coordinator_core.wire.row import decode_metadata
from jobs.history_schema import TOPIC_HISTORY
from jobs.record_schema import CLUSTER_RECORDS
from jobs.tables import Tables, sql_text


def read(tables: Tables, cluster: str) -> TopicHistory | None:
    """The history of a cluster's topics; None where nothing of its metadata log was taken in."""
    if not tables.exists(CLUSTER_RECORDS):
        return None
    log = tables.read(CLUSTER_RECORDS).where((F.col("cluster") == cluster) & F.col("stray").isNull())
    first, last_ms = log.agg(F.min("log_offset"), F.max("timestamp_ms")).collect()[0]
    if first is None:
        return None
    history = fold_metadata_log(_records(log.where(_tells() | (F.col("log_offset") == first))))
    history.last_seen_ms = max(history.last_seen_ms, last_ms)
    return history


def news_ms(tables: Tables, cluster: str, after: str, upto: str) -> int | None:
    """The time of the earliest that the runs after ``after`` have brought of the metadata log; None for nothing."""
    if not tables.exists(CLUSTER_RECORDS):
        return None
    log = tables.read(CLUSTER_RECORDS).where((F.col("cluster") == cluster) & F.col("stray").isNull() & _tells())
    new = log.where((F.col("run_id") > after) & (F.col("run_id") <= upto))
    (earliest,) = new.agg(F.min("timestamp_ms").alias("ms")).collect()
    found: int | None = earliest.ms
    return found


def _tells() -> Column:
    """Controllers write a no-op twice a second, mostly as a batch of its own, which then says nothing."""
    is_alone = (F.col("record_type") == MetadataRecordType.NO_OP) & (F.col("log_offset") == F.col("batch_base"))
    return ~F.coalesce(is_alone, F.lit(False))


def _records(rows: DataFrame) -> Iterator[CoordinatorRecord]:
    columns = ("log_partition", "log_offset", "timestamp_ms", "batch_base", "value")
    for row in rows.select(*columns).orderBy("log_offset").toLocalIterator():
        record = _record(row)
        if record is not None:
            yield record


def _record(row: Row) -> CoordinatorRecord | None:
    """None for a type that has no schema here: it says nothing of topics."""
    at = LogPosition(row.log_partition, row.log_offset, row.timestamp_ms)
    try:
        record_type, version, fields = decode_metadata(bytes(row.value))
    except UnknownTypeError:
        return None
    return CoordinatorRecord(at, record_type, {}, fields, version, -1 if row.batch_base is None else row.batch_base)


def write(tables: Tables, cluster: str, history: TopicHistory) -> None:
    """Make the intervals of the history the rows of ``topic_history``; what a late part of the log denies goes."""
    names = TOPIC_HISTORY.schema.names
    rows = [tuple(_column(cluster, each, name) for name in names) for each in history.intervals()]
    frame = tables.spark.createDataFrame(rows, TOPIC_HISTORY.schema)
    update = {name: f"s.{name}" for name in names}
    same = " AND ".join(f"t.{name} <=> s.{name}" for name in names)
    of_cluster = f"t.cluster = {sql_text(cluster)}"
    tables.merge(TOPIC_HISTORY, frame, update, when=f"NOT ({same})", insert=True, delete=of_cluster)


def _column(cluster: str, interval: TopicInterval, name: str) -> object:
    return cluster if name == "cluster" else getattr(interval, name)
