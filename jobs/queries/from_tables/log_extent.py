"""What of a log partition is in the tables: whether its start is, its leader epochs, and where it ends at a moment."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from jobs.pipeline.log_start import is_start
from jobs.queries.interface import AsOf
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_PARTITION, LOG_RECORDS, PLACED


@dataclass(slots=True)
class StoredLogExtent:
    """One log partition. ``epochs`` are its leader epochs with the offset at which each begins.

    ``end`` is the first offset that is later than the moment, None if there is none. Where the moment names an offset,
    and a record is left out for it, ``left_out_ms`` is the time of the first one, ``last_ms`` that of the last record
    below it (None: there is none).
    """

    from_start: bool = False
    epochs: list[tuple[int, int]] = field(default_factory=list)
    end: int | None = None
    left_out_ms: int | None = None
    last_ms: int | None = None

    def leader_epoch(self, offset: int) -> int | None:
        """The leader epoch of the record at an offset; None where the dump has none."""
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
    """The partitions of these logs up to a moment, in one pass over the columns of positions."""
    log = tables.read(LOG_RECORDS).where((F.col("cluster") == cluster) & F.col("log_topic").isin(topics))
    log = log.where(F.col("kind").isin("record", "control") & F.expr(PLACED))
    never = F.lit(None).cast("long")
    late = never if moment.time_ms is None else F.when(F.col("timestamp_ms") > moment.time_ms, F.col("log_offset"))
    cut = reduce(
        lambda other, named: F.when(F.col("log_partition") == named[0], F.lit(named[1])).otherwise(other),
        moment.offsets.items(),
        never,
    )
    found = (
        log.groupBy(*LOG_PARTITION, "leader_epoch")
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
        extent.from_start |= row.has_start
        if row.leader_epoch is not None:
            extent.epochs.append((row.first, row.leader_epoch))
        if row.last is not None:  # leader epochs come in the order of their offsets
            extent.last_ms = row.last.timestamp_ms
        for offset, time_ms in ((row.late, None), row.left_out or (None, None)):
            if offset is not None and (extent.end is None or offset < extent.end):
                extent.end, extent.left_out_ms = offset, time_ms
    return extents


def before_end(extents: Extents) -> Column:
    """Whether a row, that has a place in one of these partitions, lies before its end."""
    return reduce(
        lambda all_of, each: all_of & each,
        [
            (F.col("log_topic") != topic) | (F.col("log_partition") != partition) | (F.col("log_offset") < extent.end)
            for (topic, partition), extent in extents.items()
            if extent.end is not None
        ],
        F.expr(PLACED),
    )
