"""What groups were at a moment, from the tables: folded by the workers, group by group, with their offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import InputError
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import Commit, GroupOffsets, TopicPartition
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT, ShareStateLog
from coordinator_core.groups.state_json import decode_group, encode_group
from coordinator_core.records import AnyRecord, Family, LogPosition
from coordinator_core.wire.record_decoder import RecordDecoder
from coordinator_core.wire.transactions import TransactionOutcome
from jobs.pipeline import offsets
from jobs.pipeline import topics as topic_log
from jobs.pipeline.transaction_outcomes import markers
from jobs.queries.from_tables.log_extent import Extents, before_end, extents_at
from jobs.queries.interface import AsOf
from jobs.sources.files import FAMILIES, GROUP_TOPICS, SHARE_TOPICS
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.results import COMMIT

GROUP: Final = ("log_topic", "log_partition", "group_id")
RECORD: Final = (*GROUP, "log_offset", "timestamp_ms", "batch_base", "key", "value")
STATES: Final = StructType([StructField(name, StringType()) for name in ("log_topic", "group_id", "state")])

Batches = Iterable[pa.RecordBatch]


class StoredMoment:
    """The coordinator at a moment, from the tables: all groups, or one. From log files: ``ReplayedGroups``."""

    def __init__(self, tables: Tables, cluster: str, moment: AsOf, group_id: str | None = None) -> None:
        """Raises InputError where no log of groups was taken in."""
        self._tables = tables
        self._cluster = cluster
        self._group_id = group_id
        self._is_present = moment == AsOf()
        self._extents = extents_at(tables, cluster, moment, GROUP_TOPICS)
        if not self._extents:
            raise InputError(f"{tables.location}: no log of a cluster {cluster!r}")
        self._time_ms = self._share_ms = moment.time_ms
        cuts = [of for of in self._extents.values() if of.left_out_ms is not None]
        if cuts and moment.time_ms is None:
            # Topics as of the last record that counts; share state before the first that does not.
            self._share_ms = min(of.left_out_ms or 0 for of in cuts) - 1
            self._time_ms = max((of.last_ms for of in cuts if of.last_ms is not None), default=self._share_ms)
        self._topics = topic_log.read(tables, cluster)

    def groups(self) -> Iterator[tuple[Group, GroupOffsets]]:
        """Every group that there is, or that offsets were committed for, by group id; one is in memory at a time."""
        records = self._of(self._tables.read(GROUP_RECORDS), GROUP_TOPICS, self._extents)
        commits = self._of(offsets.commits(self._tables), GROUP_TOPICS, self._extents)
        held = offsets.group_offsets(commits if self._is_present else self._with_outcome_then(commits))
        by_group = held.groupBy("log_topic", "group_id").agg(F.collect_list(F.struct(*HELD)).alias("held"))
        found = _states(records, commits, self._extents).join(by_group, ["log_topic", "group_id"], "left")
        for row in found.orderBy("group_id", "log_topic").toLocalIterator():
            group, group_offsets = decode_group(row.state), _group_offsets(row.held or ())
            if group.state is not None or group_offsets.committed:
                yield group, group_offsets

    def records(self) -> Iterator[tuple[Group, Iterator[AnyRecord]]]:
        """Each group as it was before its first record here, and its records in the order of the log."""
        records = self._of(self._tables.read(GROUP_RECORDS), GROUP_TOPICS, self._extents).select(*RECORD)
        rows = (row.asDict() for row in records.orderBy(*GROUP, "log_offset").toLocalIterator())
        for (topic, partition, group_id), mine in groupby(rows, itemgetter(*GROUP)):
            from_start, family = self._extents[topic, partition].from_start, FAMILIES[topic]
            group = Group(group_id, from_start=from_start, family=family)
            decoder = RecordDecoder(family)
            yield group, (_record(row, decoder) for row in mine)

    def image(self) -> TopicImage | None:
        """The topics at the moment, None where nothing is known of them."""
        return None if self._topics is None else self._topics.image_at(self._time_ms)

    def surroundings(self) -> Surroundings:
        """What descriptions need beyond the group."""
        oldest_broker = None if self._topics is None else self._topics.oldest_broker(self._time_ms)
        return Surroundings(self.image(), self._share_state(), oldest_broker=oldest_broker)

    def _of(self, rows: DataFrame, topics: list[str], extents: Extents) -> DataFrame:
        mine = rows.where((F.col("cluster") == self._cluster) & F.col("log_topic").isin(topics) & before_end(extents))
        return mine if self._group_id is None else mine.where(F.col("group_id") == self._group_id)

    def _with_outcome_then(self, commits: DataFrame) -> DataFrame:
        """The commits with their outcome as of the moment: a transaction that ended later was open."""
        log = self._tables.read(LOG_RECORDS).where((F.col("cluster") == self._cluster) & before_end(self._extents))
        ended = (
            markers(log)
            .groupBy(
                F.col("log_topic").alias("marker_topic"),
                F.col("log_partition").alias("marker_partition"),
                F.col("producer_id").alias("marker_producer"),
            )
            .agg(F.max("log_offset").alias("marker_offset"))
        )
        same = (
            (F.col("log_topic") == F.col("marker_topic"))
            & (F.col("log_partition") == F.col("marker_partition"))
            & (F.col("producer_id") == F.col("marker_producer"))
        )
        has_ended = F.coalesce(F.col("marker_offset") > F.col("log_offset"), F.lit(False))
        was_open = (
            F.col("outcome").isin(TransactionOutcome.COMMITTED.value, TransactionOutcome.ABORTED.value) & ~has_ended
        )
        then = F.when(was_open, TransactionOutcome.OPEN.value).otherwise(F.col("outcome"))
        return commits.join(ended, same, "left").withColumn("outcome", then).select(*commits.columns)

    def _share_state(self) -> ShareStateLog | None:
        extents = extents_at(self._tables, self._cluster, AsOf(self._share_ms), SHARE_TOPICS)
        if not extents:
            return None
        log, decoder = ShareStateLog(), RecordDecoder(Family.SHARE)
        rows = self._of(self._tables.read(GROUP_RECORDS), SHARE_TOPICS, extents)
        # What came before the last snapshot of a share partition is in it. The key's first bytes are the record type.
        whole = rows.where(F.col("record_type") == SHARE_SNAPSHOT).groupBy(F.substr("key", F.lit(3)).alias("of"))
        last = whole.agg(F.max("log_offset").alias("since"))
        needed = rows.join(last, F.substr("key", F.lit(3)) == F.col("of"), "left")
        needed = needed.where("log_offset >= coalesce(since, 0)").select(*RECORD)
        holes = self._share_log_holes(extents)
        for row in needed.orderBy("log_partition", "log_offset").toLocalIterator():
            while holes and holes[0] <= (row.log_partition, row.log_offset):
                log.lose(holes.pop(0)[0])
            log.apply(_record(row.asDict(), decoder))
        for partition, _ in holes:
            log.lose(partition)
        return log

    def _share_log_holes(self, extents: Extents) -> list[tuple[int, int]]:
        """Partition and offset of each record of the share state log before which offsets are missing, in order."""
        log = self._tables.read(LOG_RECORDS).where((F.col("cluster") == self._cluster) & before_end(extents))
        log = log.where(F.col("log_topic").isin(SHARE_TOPICS) & F.col("kind").isin("record", "control"))
        before = F.lag("log_offset").over(Window.partitionBy("log_topic", "log_partition").orderBy("log_offset"))
        holes = log.select("log_partition", "log_offset", before.alias("before")).where("before < log_offset - 1")
        return sorted((row.log_partition, row.log_offset) for row in holes.collect())


# --- groups ----------------------------------------------------------------------------------------------------------


def _states(records: DataFrame, commits: DataFrame, extents: Extents) -> DataFrame:
    """The state of each group after these records, JSON: columns ``log_topic``, ``group_id`` and ``state``."""
    last = commits.where("NOT is_tombstone").groupBy(*GROUP).agg(F.max("log_offset").alias("log_offset"))
    rows = records.select(*RECORD).unionByName(last, allowMissingColumns=True)
    return rows.repartition(*GROUP).sortWithinPartitions(*GROUP, "log_offset").mapInArrow(_folder(extents), STATES)


def _folder(extents: Extents) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The fold as a function for ``mapInArrow``. Of a group's commits it gets the last one, as a row without a key."""
    schema = to_arrow_schema(STATES)

    def fold(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for (topic, partition, group_id), mine in groupby(rows, itemgetter(*GROUP)):
            extent, family = extents[topic, partition], FAMILIES[topic]
            shard, decoder = CoordinatorShard(from_start=extent.from_start, family=family), RecordDecoder(family)
            for row in mine:
                if row["key"] is None:
                    shard.group(group_id).commit()
                else:
                    shard.apply(_record(row, decoder), None, extent.leader_epoch(row["log_offset"]))
            shard.follow(extent.last_epoch)
            state = {"log_topic": topic, "group_id": group_id, "state": encode_group(shard.group(group_id))}
            yield pa.RecordBatch.from_pylist([state], schema=schema)

    return fold


def _record(row: Mapping[str, Any], decoder: RecordDecoder) -> AnyRecord:
    at = LogPosition(row["log_partition"], row["log_offset"], row["timestamp_ms"])
    return decoder.record(at, row["key"], row["value"], row["batch_base"])


# --- offsets ---------------------------------------------------------------------------------------------------------

HELD: Final = ("log_partition", "topic", "partition", "status", *COMMIT)


def _group_offsets(held: Iterable[Row]) -> GroupOffsets:
    """The rows of ``group_offsets`` of one group as the core has them."""
    found = GroupOffsets()
    for row in sorted(held, key=lambda row: row.log_offset):
        producer_id = None if row.producer_id in (None, -1) else row.producer_id
        commit = Commit(
            row.committed_offset,
            None if row.leader_epoch in (None, -1) else row.leader_epoch,
            row.metadata,
            row.commit_timestamp,
            None if row.expire_timestamp in (None, -1) else row.expire_timestamp,
            row.topic_id,
            LogPosition(row.log_partition, row.log_offset, row.timestamp_ms),
            producer_id,
        )
        of = found.committed if row.status == "committed" else found.pending.setdefault(producer_id or -1, {})
        of[TopicPartition(row.topic, row.partition)] = commit
    return found
