"""The share state log at a moment, from the tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from heapq import merge

from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT, ShareStateLog
from coordinator_core.history.knowledge import GivenShareState
from coordinator_core.records import Family
from coordinator_core.wire.record_decoder import RecordDecoder
from jobs.queries.from_tables.group_records import RECORD, record_of
from jobs.queries.from_tables.selection import Selection
from jobs.relations.log_extent import Extents, before_end, below_ends, extents_at
from jobs.relations.moment import AsOf
from jobs.relations.share_state import given_share_state
from jobs.relations.unreadable import places
from jobs.sources.files import SHARE_TOPICS


class StoredShareLog:
    """The share state log up to a time (ms; None: to its end), as far as it is about the groups of a selection."""

    def __init__(self, selected: Selection, time_ms: int | None) -> None:
        self._selected = replace(selected, topics=SHARE_TOPICS)
        self._time_ms = time_ms

    @cached_property
    def _extents(self) -> Extents:
        return extents_at(self._selected.tables, self._selected.cluster, AsOf(self._time_ms), SHARE_TOPICS)

    @cached_property
    def given(self) -> GivenShareState:
        """What was given of the log, as seen from that time."""
        return given_share_state(self._selected.tables, self._selected.cluster, self._extents)

    def state(self, sure_ms: int | None) -> ShareStateLog | None:
        """Return the state of the share partitions; None where the log was not given.

        ``sure_ms``: the latest time that was surely not later than the moment; None: the moment is a time. Of each
        share partition, what came before its last snapshot is in the snapshot.
        """
        extents, selected = self._extents, self._selected
        if not extents:
            return None
        lost = {partition for (_, partition), extent in extents.items() if extent.gaps.lost >= 0}
        log = ShareStateLog(lost=lost.union(self.given.doubtful), sure_ms=sure_ms)
        upto = f"{selected.condition} AND {before_end(extents)}"
        snapshots = selected.rows(
            f"SELECT key, max(log_offset) AS since FROM $group_records WHERE {upto} "
            f"AND record_type = {SHARE_SNAPSHOT} GROUP BY key"
        )
        # The first two bytes of a key are the record type, the others the share partition.
        since = {row["key"][2:]: row["since"] for row in snapshots}
        rows = selected.rows(f"SELECT {RECORD} FROM $group_records WHERE {upto} ORDER BY log_partition, log_offset")
        holes, decoder = self._holes(), RecordDecoder(Family.SHARE)
        hole = next(holes, None)
        for row in rows:
            while hole is not None and hole <= (row["log_partition"], row["log_offset"]):
                log.lose(hole[0])
                hole = next(holes, None)
            if row["log_offset"] >= since.get(row["key"][2:], 0):
                log.apply(record_of(row, decoder))
        if hole is not None:
            for partition, _ in (hole, *holes):
                log.lose(partition)
        return log

    def _holes(self) -> Iterator[tuple[int, int]]:
        """Yield partition and offset of each record before which offsets are missing, and of each that is unreadable,
        in order.
        """
        tables, cluster = self._selected.tables, self._selected.cluster
        behind_holes = tables.tuples(
            "SELECT log_partition, log_offset FROM (SELECT log_partition, log_offset, "
            "lag(log_offset) OVER (PARTITION BY log_topic, log_partition ORDER BY log_offset) AS before "
            "FROM $log_records WHERE cluster = :cluster AND log_topic IN :topics AND kind IN ('record', 'control') "
            f"AND {before_end(self._extents)}) AS placed WHERE before < log_offset - 1 "
            "ORDER BY log_partition, log_offset",
            cluster=cluster,
            topics=SHARE_TOPICS,
        )
        unread: Iterator[tuple[int, int]] = iter(places(tables, cluster, SHARE_TOPICS, below_ends(self._extents)))
        return merge(behind_holes, unread)
