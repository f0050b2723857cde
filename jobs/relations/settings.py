"""What the snapshots in the tables show of settings and features; ``snapshot_files`` reads the same from files."""

from typing import Final, NamedTuple

from coordinator_core.cluster.snapshot_settings import (
    METADATA_VERSION,
    MISSING,
    NO_SNAPSHOTS,
    ResourceKind,
    SettingRun,
    SnapshotSettings,
    level_runs,
    levels_in_snapshot,
)
from coordinator_core.groups.setting_bounds import BROKER_SETTINGS
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


USED_SETTINGS: Final = (
    *(f"{kind}.session.timeout.ms" for kind in ("consumer", "share", "streams")),
    "share.delivery.count.limit",
    "group.consumer.assignors",
    *sorted(BROKER_SETTINGS),
)
"""The settings that answers depend on; the table has many more."""

# A row for each snapshot: its brokers may be of several releases, and ``silent`` counts those that did not say theirs.
LEVELS: Final = """
SELECT timestamp_ms,
  min(CASE WHEN resource_type = :supported AND name = :name THEN TRY_CAST(value AS INT) END) AS oldest,
  max(CASE WHEN resource_type = :supported AND name = :name THEN TRY_CAST(value AS INT) END) AS newest,
  max(CASE WHEN resource_type = :finalized AND name = :name THEN TRY_CAST(value AS INT) END) AS finalized,
  count(CASE WHEN resource_type = :supported AND name = :missing THEN 1 END) AS silent
FROM $snapshot_settings WHERE cluster = :cluster AND resource_type IN :kinds
GROUP BY timestamp_ms ORDER BY timestamp_ms
"""

RUNS: Final = """
WITH numbered AS (
  SELECT resource_type, resource, name, value, timestamp_ms,
    -- The two row numbers rise together while the value stays: their difference numbers the runs without a self-join.
    row_number() OVER (PARTITION BY resource_type, resource, name ORDER BY timestamp_ms)
    - row_number() OVER (PARTITION BY resource_type, resource, name, value ORDER BY timestamp_ms) AS run
  FROM $snapshot_settings WHERE cluster = :cluster AND name IN :names
)
SELECT resource_type, resource, name, value, min(timestamp_ms) AS first_ms, max(timestamp_ms) AS last_ms FROM numbered
GROUP BY resource_type, resource, name, value, run
"""


def read_settings(tables: TableReader, cluster: str) -> SnapshotSettings:
    """Return what the snapshots of a cluster show; empty without snapshots."""
    if not tables.exists("snapshot_settings"):
        return NO_SNAPSHOTS
    kinds = {"supported": ResourceKind.SUPPORTED_FEATURES, "finalized": ResourceKind.FINALIZED_FEATURES}
    levels = tables.rows(
        LEVELS, cluster=cluster, name=METADATA_VERSION, missing=MISSING, kinds=tuple(kinds.values()), **kinds
    )
    of_times = (
        (
            row["timestamp_ms"],
            levels_in_snapshot(row["oldest"], row["newest"], row["finalized"], all_answered=not row["silent"]),
        )
        for row in levels
    )
    runs = (SettingRun(**row) for row in tables.rows(RUNS, cluster=cluster, names=USED_SETTINGS))
    return SnapshotSettings.of(level_runs(of_times), runs)


def settings_news_ms(tables: TableReader, cluster: str, after: str) -> int | None:
    """Return the time from which later runs than ``after`` brought news of settings; None if they brought none.

    A new snapshot tells of the time since the one before it; -1: of all times.
    """
    if not tables.exists("snapshot_settings"):
        return None
    news = snapshot_news(tables, "snapshot_settings", cluster, after)
    if news is None:
        return None
    return -1 if news.known_before is None else news.known_before
