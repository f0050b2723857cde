"""Which part of a log partition the tables hold at a moment: leader epochs, end, and what is missing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.groups.certainty import LogGaps
from coordinator_core.wire.offset_gaps import GapCause
from jobs.pipeline.gaps import damaged_offsets, find_gaps
from jobs.pipeline.log_start import is_start
from jobs.queries.interface import AsOf
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_PARTITION, LOG_RECORDS, PLACED

IS_RECORD: Final = "kind IN ('record', 'control') AND log_offset IS NOT NULL"
LOST: Final = [cause.value for cause in GapCause]
"""Causes of gaps other than compaction."""


@dataclass(slots=True)
class StoredLogExtent:
    """One log partition. ``epochs`` are its leader epochs with the offset at which each begins.

    ``end`` is the first offset that is later than the moment, None if there is none, and ``asked`` the end offset that
    the moment names. Where the moment names an offset,
    and a record is left out for it, ``left_out_ms`` is the time of the first one, ``last_ms`` that of the last record
    below it (None: there is none). ``gaps`` is what is missing as seen from the moment, and ``transactions_are_known``
    says whether no transaction can have been open then of which nothing is left.
    """

    from_start: bool = False
    epochs: list[tuple[int, int]] = field(default_factory=list)
    end: int | None = None
    asked: int | None = None
    left_out_ms: int | None = None
    last_ms: int | None = None
    gaps: LogGaps = field(default_factory=LogGaps)
    transactions_are_known: bool = True

    def leader_epoch(self, offset: int) -> int | None:
        """Return the leader epoch of the record at an offset; None if the dump does not contain it."""
        index = bisect_right(self.epochs, offset, key=lambda each: each[0]) - 1
        return self.epochs[index][1] if index >= 0 else None

    @property
    def last_epoch(self) -> int | None:
        """The leader epoch of the last record before the end."""
        if self.end is not None:
            return self.leader_epoch(self.end - 1)
        return self.epochs[-1][1] if self.epochs else None


Extents = dict[tuple[str, int], StoredLogExtent]
"""By topic and number of the log partition."""


def extents_at(tables: Tables, cluster: str, moment: AsOf, topics: list[str]) -> Extents:
    """The partitions of these logs up to a moment; in one pass over the columns of positions, if nothing is missing."""
    log = tables.read(LOG_RECORDS).where((F.col("cluster") == cluster) & F.col("log_topic").isin(topics))
    log = log.where("log_partition IS NOT NULL")
    never = F.lit(None).cast("long")
    late = never if moment.time_ms is None else F.when(F.col("timestamp_ms") > moment.time_ms, F.col("log_offset"))
    cut = reduce(
        lambda other, named: F.when(F.col("log_partition") == named[0], F.lit(named[1])).otherwise(other),
        moment.offsets.items(),
        never,
    )
    found = (
        log.where(IS_RECORD)
        .groupBy(*LOG_PARTITION, "leader_epoch")
        .agg(
            F.min("log_offset").alias("first"),
            F.bool_or(is_start()).alias("has_start"),
            F.min(late).alias("late"),
            F.min(F.when(F.col("log_offset") >= cut, F.struct("log_offset", "timestamp_ms"))).alias("left_out"),
            F.max(F.when(F.col("log_offset") < cut, F.struct("log_offset", "timestamp_ms"))).alias("last"),
        )
        .orderBy("first")
        .collect()
    )
    extents: Extents = {}
    for row in found:
        extent = extents.setdefault((row.log_topic, row.log_partition), StoredLogExtent())
        extent.asked = moment.offsets.get(row.log_partition)
        extent.from_start |= row.has_start
        if row.leader_epoch is not None:
            extent.epochs.append((row.first, row.leader_epoch))
        if row.last is not None:  # leader epochs come in the order of their offsets
            extent.last_ms = row.last.timestamp_ms
        for offset, time_ms in ((row.late, None), (_end_of(moment, row), row.left_out and row.left_out.timestamp_ms)):
            if offset is not None and (extent.end is None or offset < extent.end):
                extent.end, extent.left_out_ms = offset, time_ms
    _add_gaps(extents, log)
    return extents


def _end_of(moment: AsOf, row: Row) -> int | None:
    """Return the offset that the moment names for a partition, if it excludes a record."""
    return None if row.left_out is None else moment.offsets[row.log_partition]


def _add_gaps(extents: Extents, log: DataFrame) -> None:
    """Set for each partition what is missing as seen from the moment."""
    covers = F.expr("kind <> 'damaged' AND log_offset IS NOT NULL")
    first = F.struct(F.expr("if(kind = 'empty', batch_base, log_offset)").alias("offset"), "batch_base")
    counts = log.groupBy(*LOG_PARTITION).agg(
        F.min(F.when(covers, first)).alias("first"),
        F.max(F.when(covers, F.col("log_offset"))).alias("last"),
        F.max(F.when(covers, F.coalesce("batch_last", "log_offset"))).alias("last_of_batch"),
        F.count_if(F.expr(IS_RECORD)).alias("records"),
        F.bool_or(F.col("kind") == "damaged").alias("is_damaged"),
        F.coalesce(F.bool_or("is_transactional"), F.lit(False)).alias("has_transactions"),
    )
    bounds = {}
    for row in counts.collect():
        place = (row.log_topic, row.log_partition)
        if place not in extents:
            continue
        extent = extents[place]
        extent.gaps = LogGaps(at_end=extent.end is None)
        if row.is_damaged or row.records != row.last + 1 or (extent.asked or 0) > row.last + 1:
            bounds[place] = row
    if not bounds:
        return
    ends = [(*place, _end_of_gaps(extents[place])) for place in bounds]
    moment = log.sparkSession.createDataFrame(ends, "log_topic string, log_partition int, end long")
    log = log.join(F.broadcast(moment), [*LOG_PARTITION])
    columns = [name for name in log.columns if name != "end"]
    found = find_gaps(log.select(columns), log.select(columns))
    seen = _gaps_seen(log, found.join(F.broadcast(moment), [*LOG_PARTITION]))
    damage = {(row.log_topic, row.log_partition): row for row in _damage_outside(log, bounds).collect()}
    for place, row in bounds.items():
        extent = extents[place]
        extent.gaps = _gaps_of(extent, row, seen.get(place), damage.get(place))
        extent.transactions_are_known = extent.gaps.lists_all or not row.has_transactions


def _end_of_gaps(extent: StoredLogExtent) -> int | None:
    """Up to where what is missing counts: the end offset of the moment, even if no record follows it."""
    return extent.asked if extent.end is None else extent.end


Place = tuple[str, int]


def _gaps_seen(log: DataFrame, gaps: DataFrame) -> dict[Place, Row]:
    """By partition the highest offsets below the moment that are missing and lost, and whether later ones are lost."""
    emptied = log.where("kind = 'empty' AND control_type IS NULL").select(
        *LOG_PARTITION,
        F.col("batch_base").alias("first_offset"),
        F.col("batch_last").alias("last_offset"),
        F.lit("compaction").alias("cause"),
        "end",
    )
    end = F.coalesce("end", F.lit(1 << 62))
    below = F.when(F.col("first_offset") < end, F.least("last_offset", end - 1))
    is_lost = F.col("cause").isin(*LOST)
    found = (
        gaps.unionByName(emptied)
        .groupBy(*LOG_PARTITION)
        .agg(
            F.coalesce(F.max(below), F.lit(-1)).alias("missing"),
            F.coalesce(F.max(F.when(is_lost, below)), F.lit(-1)).alias("lost"),
            F.bool_or(is_lost & (F.col("last_offset") >= end)).alias("lost_later"),
        )
    )
    return {(row.log_topic, row.log_partition): row for row in found.collect()}


def _damage_outside(log: DataFrame, bounds: Mapping[Place, Row]) -> DataFrame:
    """By partition the first offset of damaged bytes before the first row, and the last one of those behind the last.

    A file that ends within a batch is a copy of one that a broker writes to: it has no more records.
    """
    rows = [(*place, row.first.offset, row.last) for place, row in bounds.items()]
    edges = log.sparkSession.createDataFrame(
        rows, "log_topic string, log_partition int, first_covered long, last_covered long"
    )
    damage = damaged_offsets(log).join(F.broadcast(edges), [*LOG_PARTITION])
    is_behind = (F.col("damaged_at") > F.col("last_covered")) & ~F.col("is_cut_off")
    return damage.groupBy(*LOG_PARTITION).agg(
        F.bool_or(F.col("damaged_at") < F.col("first_covered")).alias("is_before"),
        F.max(F.when(is_behind, F.greatest("damaged_to", F.col("last_covered") + 1))).alias("behind"),
    )


def _gaps_of(extent: StoredLogExtent, bounds: Row, seen: Row | None, damage: Row | None) -> LogGaps:
    """Return what is missing in a partition: between its rows, before the first, and after the last."""
    missing, lost, lost_later = (-1, -1, False) if seen is None else (seen.missing, seen.lost, seen.lost_later)
    end = 1 << 62 if _end_of_gaps(extent) is None else _end_of_gaps(extent)
    first, base = bounds.first.offset, bounds.first.batch_base
    if first > 0:
        missing = max(missing, min(first, end) - 1)
        before_batch = min(first, first if base is None else base)
        if before_batch > 0 and (not extent.from_start or (damage is not None and damage.is_before)):
            lost, lost_later = max(lost, min(before_batch, end) - 1), lost_later or before_batch > end
    if damage is not None and damage.behind is not None:
        if damage.behind >= end:
            lost_later = True
        else:
            missing = lost = damage.behind
    end_of_log = max(bounds.last, bounds.last_of_batch, lost) + 1
    if extent.end is None and extent.asked is not None and extent.asked > end_of_log:
        missing = lost = extent.asked - 1  # the log, as far as it is there, does not reach the moment
    return LogGaps(missing, lost, lost_later, at_end=extent.end is None)


def before_end(extents: Extents) -> Column:
    """Return whether a row of one of these partitions is before the end of the partition."""
    return reduce(
        lambda all_of, each: all_of & each,
        [
            (F.col("log_topic") != topic) | (F.col("log_partition") != partition) | (F.col("log_offset") < extent.end)
            for (topic, partition), extent in extents.items()
            if extent.end is not None
        ],
        F.expr(PLACED),
    )
