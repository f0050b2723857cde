"""What is taken in with logs and is none: application logs of brokers, and snapshots of the cluster."""

from typing import NamedTuple

from jobs.pipeline import broker_logs, snapshots
from jobs.pipeline.snapshots import SnapshotCounts
from jobs.settings import InputSettings
from jobs.sources.bounded_warnings import Warn
from jobs.sources.broker_logs import parse_zone
from jobs.sources.dump import DumpFormat, require_there
from jobs.sources.snapshot_files import is_snapshot
from jobs.tables.delta import Tables


class TakenBeside(NamedTuple):
    """How many lines of brokers' logs and what of snapshots were taken in (None: none were given), and the ``dumps``
    that are left.
    """

    lines: int | None
    snapshots: SnapshotCounts | None
    dumps: list[str]


def take(
    tables: Tables, chosen: InputSettings, cluster: str, warn: Warn, dump_format: DumpFormat | None = None
) -> TakenBeside:
    """Take in what these settings name beside logs.

    Raises:
        InputError: a path does not exist, or cannot be read.
        UsageError: the zone of brokers' logs is unknown.
    """
    zone = None if chosen.broker_log_zone is None else parse_zone(chosen.broker_log_zone)
    lines = broker_logs.take(tables, chosen.broker_logs, cluster, warn, zone) if chosen.broker_logs else None
    for path in chosen.dumps:
        require_there(path)  # before files are listed: that is done again and again where one goes meanwhile
    of_cluster = [path for path in chosen.dumps if dump_format is None and is_snapshot(path)]
    taken = snapshots.take(tables, of_cluster, cluster) if of_cluster else None
    return TakenBeside(lines, taken, [path for path in chosen.dumps if path not in of_cluster])
