"""Whether later runs have brought snapshots of a cluster to a table, and of which time."""

from __future__ import annotations

from typing import NamedTuple

from jobs.tables.reader import TableReader


class SnapshotNews(NamedTuple):
    """The time (ms) of the last snapshot that was known, None if there was none, and of the first new one."""

    known: int | None
    new: int

    @property
    def known_before(self) -> int | None:
        """The time of the known snapshot before all new ones; None: there is none, or a new one is older."""
        return None if self.known is None or self.new <= self.known else self.known


def snapshot_news(tables: TableReader, table: str, cluster: str, after: str) -> SnapshotNews | None:
    """Return what runs after ``after`` have brought to a table of snapshots, which exists; None: nothing."""
    (seen,) = tables.rows(
        "SELECT max(CASE WHEN run_id <= :after THEN timestamp_ms END) AS known, "
        f"min(CASE WHEN run_id > :after THEN timestamp_ms END) AS new FROM ${table} WHERE cluster = :cluster",
        cluster=cluster,
        after=after,
    )
    return None if seen["new"] is None else SnapshotNews(seen["known"], seen["new"])
