"""The history of topics, from ``cluster_records``.

It is folded on the driver while the records stream by, and is small: workers get it with the functions that need it.
Where the beginning of the metadata log is not there, it begins with the KRaft snapshot that took its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.cluster.metadata_log import Snapshot, fold_metadata_log
from coordinator_core.cluster.topic_history import TopicHistory, TopicInterval
from coordinator_core.errors import DecodeError, UnknownTypeError
from coordinator_core.records import AnyRecord, Family, LogPosition, MetadataRecordType
from coordinator_core.wire.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, control_name, snapshot_time_ms
from coordinator_core.wire.record_decoder import RecordDecoder
from jobs.sources.files import METADATA_TOPIC, SNAPSHOT_SUFFIX
from jobs.tables.delta import Table, Tables, sql_text
from jobs.tables.history import TOPIC_HISTORY
from jobs.tables.log import LOG_RECORDS, QUARANTINE
from jobs.tables.records import CLUSTER_RECORDS

IN_LOG = "stray IS NULL"
"""Rows with an offset in the log; those of snapshots have none."""
IN_SNAPSHOT = f"stray LIKE '%{SNAPSHOT_SUFFIX}#%'"


class KeptSnapshot(NamedTuple):
    """A snapshot that is in the tables: its file's name, the last position that it sums up, the run that took it in."""

    name: str
    at: LogPosition
    run_id: str


def read(tables: Tables, cluster: str) -> TopicHistory | None:
    """The history of a cluster's topics; None where nothing of its metadata log was taken in."""
    if not tables.exists(CLUSTER_RECORDS):
        return None
    records = _of(tables, CLUSTER_RECORDS, cluster)
    first, last_ms = (F.when(F.expr(IN_LOG), F.col(name)) for name in ("log_offset", "timestamp_ms"))
    seen = records.agg(F.min(first).alias("first"), F.max(last_ms).alias("last_ms"), _has_snapshots()).collect()[0]
    snapshot = _snapshot(tables, cluster) if seen.has_snapshots else None
    if seen.first is None and snapshot is None:
        return None
    log = records.where(F.expr(IN_LOG) & (_tells() | (F.col("log_offset") == seen.first))).orderBy("log_offset")
    begin = None if snapshot is None else Snapshot(list(_records(_content(records, snapshot))), snapshot.at)
    history = fold_metadata_log(_records(log), begin)
    if seen.last_ms is not None:
        history.last_seen_ms = max(history.last_seen_ms, seen.last_ms)
    return history


def news_ms(tables: Tables, cluster: str, after: str, upto: str) -> int | None:
    """The time of the earliest that the runs after ``after`` have brought of the metadata log; None for nothing."""
    if not tables.exists(CLUSTER_RECORDS):
        return None
    new = _of(tables, CLUSTER_RECORDS, cluster).where((F.col("run_id") > after) & (F.col("run_id") <= upto))
    earliest = F.min(F.when(F.expr(IN_LOG) & _tells(), F.col("timestamp_ms")))
    seen = new.agg(earliest.alias("ms"), _has_snapshots()).collect()[0]
    snapshot = _snapshot(tables, cluster) if seen.has_snapshots else None
    is_new = snapshot is not None and after < snapshot.run_id <= upto
    times = [seen.ms, snapshot.at.timestamp_ms if snapshot is not None and is_new else None]
    return min((time_ms for time_ms in times if time_ms is not None), default=None)


def _of(tables: Tables, table: Table, cluster: str) -> DataFrame:
    return tables.read(table).where(F.col("cluster") == cluster)


def _tells() -> Column:
    """Controllers write a no-op twice a second, mostly as a batch of its own that changes nothing."""
    is_alone = (F.col("record_type") == MetadataRecordType.NO_OP) & (F.col("log_offset") == F.col("batch_base"))
    return ~F.coalesce(is_alone, F.lit(False))


def _has_snapshots() -> Column:
    return F.bool_or(F.coalesce(F.expr(IN_SNAPSHOT), F.lit(False))).alias("has_snapshots")


def _snapshot(tables: Tables, cluster: str) -> KeptSnapshot | None:
    """The oldest whole snapshot from which the log goes on, the newest where there is no log.

    None where the log has its beginning. A snapshot is whole that has its footer, and of which nothing was set aside.
    """
    log = _of(tables, LOG_RECORDS, cluster).where(F.col("log_topic") == METADATA_TOPIC)
    (first,) = log.where(IN_LOG).agg(F.min("log_offset")).collect()[0]
    name = F.substring_index("stray", "#", 1).alias("name")
    header, footer = (F.col("control_type") == control_name(of) for of in (SNAPSHOT_HEADER, SNAPSHOT_FOOTER))
    whole = (
        log.where(IN_SNAPSHOT)
        .groupBy(name, F.substring(name, 1, 20).cast("long").alias("end"), "log_partition")
        .agg(
            F.bool_or(footer).alias("is_whole"), F.max(F.when(header, F.col("value"))).alias("header"), F.min("run_id")
        )
        .where("is_whole")
    )
    faulty = _of(tables, QUARANTINE, cluster).where(IN_SNAPSHOT).select(name)
    decoded = _of(tables, CLUSTER_RECORDS, cluster).where(IN_SNAPSHOT).select(name).distinct()
    wanted = whole.join(decoded, "name", "left_semi").join(faulty, "name", "left_anti")
    if first is None:
        best = wanted.orderBy(F.desc("end"), "name")
    else:
        best = wanted.where((F.col("end") >= first) & F.lit(first > 0)).orderBy("end", "name")
    row = best.first()
    if row is None:
        return None
    found, end, partition, _, said, run_id = row
    try:
        time_ms = snapshot_time_ms(said)
    except DecodeError:
        time_ms = -1
    return KeptSnapshot(found, LogPosition(partition, end - 1, time_ms), run_id)


def _content(records: DataFrame, snapshot: KeptSnapshot) -> DataFrame:
    return records.where(F.substring_index("stray", "#", 1) == snapshot.name).orderBy("place")


def _records(rows: DataFrame) -> Iterator[AnyRecord]:
    columns = ("log_partition", "log_offset", "timestamp_ms", "batch_base", "value")
    decoder = RecordDecoder(Family.METADATA)
    for row in rows.select(*columns).toLocalIterator():
        at = LogPosition(row.log_partition, -1 if row.log_offset is None else row.log_offset, row.timestamp_ms)
        try:
            record = decoder.record(at, b"", bytes(row.value), row.batch_base)
        except UnknownTypeError:  # most record types of the metadata log say nothing about topics
            continue
        yield record


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
