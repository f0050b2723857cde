"""What groups were at a moment, from the tables: folded by the workers, group by group, with their offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from itertools import groupby
from operator import itemgetter, or_
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import InputError
from coordinator_core.groups.certainty import CERTAIN, LogGaps, record_key
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.group import Group
from coordinator_core.groups.proven_state import GroupKeys, GroupThen, prove, prove_offsets
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT, ShareStateLog
from coordinator_core.groups.state_json import decode_certainty, decode_group, encode_certainty, encode_group
from coordinator_core.records import AnyRecord, Family, LogPosition
from coordinator_core.wire.record_codec import decode_key
from coordinator_core.wire.record_decoder import RecordDecoder
from jobs.pipeline import offsets
from jobs.pipeline import topics as topic_log
from jobs.queries.from_tables.commits import (
    ABOUT,
    GROUP,
    HELD,
    commit_records,
    read_offsets,
    read_records,
    with_outcome_then,
)
from jobs.queries.from_tables.log_extent import Extents, StoredLogExtent, before_end, extents_at
from jobs.queries.interface import AsOf
from jobs.sources.files import FAMILIES, GROUP_TOPICS, SHARE_TOPICS
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import GROUP_RECORDS

RECORD: Final = (*GROUP, "log_offset", "timestamp_ms", "batch_base", "key", "value")
STATES: Final = StructType(
    [
        StructField("log_topic", StringType()),
        StructField("log_partition", IntegerType()),
        *(StructField(name, StringType()) for name in ("group_id", "state", "known")),
    ]
)

Batches = Iterable[pa.RecordBatch]


class StoredMoment:
    """The coordinator at a moment, from the tables: all groups, or one. From log files: ``ReplayedGroups``."""

    def __init__(self, tables: Tables, cluster: str, moment: AsOf, group_id: str | None = None) -> None:
        """Raises InputError where no log of groups was taken in."""
        self._tables = tables
        self._cluster = cluster
        self._group_id = group_id
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

    def groups(self) -> Iterator[GroupThen]:
        """Every group that was there or may have been, by group id; one is in memory at a time."""
        records = self._mine(self._tables.read(GROUP_RECORDS), GROUP_TOPICS)
        commits = self._mine(offsets.commits(self._tables), GROUP_TOPICS)
        counts, follows = before_end(self._extents), self._followed()
        log = self._tables.read(LOG_RECORDS).where(F.col("cluster") == self._cluster)
        then = with_outcome_then(commits.where(counts), log, self._extents)
        held = _by_group(offsets.group_offsets(then), HELD, "held")
        found = _states(records.where(counts), then, records.where(follows), self._extents)
        found = found.join(held, [*GROUP], "left")
        if not all(extent.gaps.lists_all for extent in self._extents.values()):
            about = _by_group(commit_records(then, commits.where(follows), self._extents), ABOUT, "about")
            found = found.join(about, [*GROUP], "full")
        for row in found.orderBy("group_id", "log_topic").toLocalIterator():
            each = self._group_then(row)
            if each.is_possible:
                yield each

    def gaps(self) -> dict[str, LogGaps]:
        """What is missing of each partition of a log of groups, by its name."""
        return {f"{topic}-{partition}": extent.gaps for (topic, partition), extent in self._extents.items()}

    def _group_then(self, row: Row) -> GroupThen:
        extent = self._extents[row.log_topic, row.log_partition]
        group = Group(row.group_id, family=FAMILIES[row.log_topic]) if row.state is None else decode_group(row.state)
        group_offsets = read_offsets(row.held or ())
        if extent.gaps.lists_all:
            return GroupThen(group, group_offsets)
        if row.known is None:  # only later commits are there
            group, certainty = prove(group, GroupKeys(), extent.gaps)
        else:
            certainty = decode_certainty(row.known)
        return prove_offsets(
            GroupThen(group, group_offsets, certainty),
            read_records(row.about or ()),
            extent.gaps,
            transactions_are_known=extent.transactions_are_known,
        )

    def _followed(self) -> Column:
        """Whether a row follows the moment in a partition where what it says of the moment depends on that."""
        follows = [
            (F.col("log_topic") == topic) & (F.col("log_partition") == partition) & (F.col("log_offset") >= extent.end)
            for (topic, partition), extent in self._extents.items()
            if extent.end is not None and extent.gaps.missing >= 0
        ]
        return reduce(or_, follows, F.lit(False))

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
        return self._mine(rows, topics).where(before_end(extents))

    def _mine(self, rows: DataFrame, topics: list[str]) -> DataFrame:
        mine = rows.where((F.col("cluster") == self._cluster) & F.col("log_topic").isin(topics))
        return mine if self._group_id is None else mine.where(F.col("group_id") == self._group_id)

    def _share_state(self) -> ShareStateLog | None:
        extents = extents_at(self._tables, self._cluster, AsOf(self._share_ms), SHARE_TOPICS)
        if not extents:
            return None
        lost = {partition for (_, partition), of in extents.items() if of.gaps.lost >= 0}
        log, decoder = ShareStateLog(lost=lost), RecordDecoder(Family.SHARE)
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


def _by_group(rows: DataFrame, columns: Iterable[str], name: str) -> DataFrame:
    """The rows of each group as one array of structs with these columns."""
    return rows.groupBy(*GROUP).agg(F.collect_list(F.struct(*columns)).alias(name))


def _states(records: DataFrame, commits: DataFrame, followed: DataFrame, extents: Extents) -> DataFrame:
    """Return each group's state after these records, and which parts of it are known: the columns ``STATES``.

    ``followed`` are records behind the moment.
    """
    last = commits.where("NOT is_tombstone").groupBy(*GROUP).agg(F.max("log_offset").alias("log_offset"))
    rows = records.select(*RECORD).unionByName(last, allowMissingColumns=True)
    keys = followed.select(*GROUP, "key", F.lit(True).alias("follows")).distinct()
    rows = rows.unionByName(keys, allowMissingColumns=True)
    return rows.repartition(*GROUP).sortWithinPartitions(*GROUP, "log_offset").mapInArrow(_folder(extents), STATES)


def _folder(extents: Extents) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The fold as a function for ``mapInArrow``. Of a group's commits it gets the last one, as a row without a key."""
    schema = to_arrow_schema(STATES)

    def fold(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for place, mine in groupby(rows, itemgetter(*GROUP)):
            topic, partition, group_id = place
            state = _state(group_id, FAMILIES[topic], mine, extents[topic, partition])
            yield pa.RecordBatch.from_pylist([dict(zip(GROUP, place, strict=True)) | state], schema=schema)

    return fold


def _state(group_id: str, family: Family, rows: Iterable[Mapping[str, Any]], extent: StoredLogExtent) -> dict[str, str]:
    """Return the group after its rows, and which parts of it are known, as JSON."""
    shard, keys = CoordinatorShard(from_start=extent.from_start, family=family), GroupKeys()
    group, decoder = shard.group(group_id), RecordDecoder(family)
    for row in rows:
        if row["follows"]:
            keys.followed.add(record_key(*decode_key(row["key"], family)))
        elif row["key"] is None:
            group.commit()
        else:
            record = _record(row, decoder)
            shard.apply(record, None, extent.leader_epoch(row["log_offset"]))
            keys.note(record, group)
    shard.follow(extent.last_epoch)
    certainty = CERTAIN
    if not extent.gaps.lists_all:
        group, certainty = prove(group, keys, extent.gaps)
    return {"state": encode_group(group), "known": encode_certainty(certainty)}


def _record(row: Mapping[str, Any], decoder: RecordDecoder) -> AnyRecord:
    at = LogPosition(row["log_partition"], row["log_offset"], row["timestamp_ms"])
    return decoder.record(at, row["key"], row["value"], row["batch_base"])
