"""Snapshots of a cluster whose log is read from its brokers: one before the log is read, one after.

The first one has end offsets of a time that the log reaches: they give the lag. The second one is later than all
records: what both show holds for the time between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from coordinator_core.errors import InputError
from jobs.pipeline import runs, snapshots
from jobs.sources import cluster_snapshot
from jobs.sources.dump import live_servers
from jobs.tables.delta import Tables

Warn = Callable[[str], None]


@dataclass
class TakenSnapshots:
    """The number of snapshots that were taken so far."""

    count: int


@contextmanager
def around(
    tables: Tables, paths: Iterable[str], config: Mapping[str, str], cluster: str, warn: Warn
) -> Iterator[TakenSnapshots]:
    """Take a snapshot of each cluster among the paths, and another one when the block ends without an error.

    ``config`` has settings of librdkafka. A snapshot that cannot be taken is a warning.
    """
    # Both have a run that is before the one of the log: the replay of the log has seen them.
    run_id = runs.new_run_id()

    def take(servers: str, part: str, partial: Warn) -> bool:
        """Return whether the snapshot was taken; ``partial`` is called for what the cluster does not give."""
        try:
            rows = cluster_snapshot.take({**config, "bootstrap.servers": servers}, time.time_ns() // 1_000_000, partial)
        except InputError as error:
            warn(f"no snapshot of the cluster was taken: {error}")
            return False
        snapshots.store(tables, rows, cluster, f"{run_id}/{part}/{servers}")
        return True

    answering = [servers for servers in live_servers(paths) if take(servers, "begin", warn)]
    taken = TakenSnapshots(len(answering))
    yield taken
    # What a cluster does not give was said before.
    taken.count += sum(take(servers, "end", lambda message: None) for servers in answering)
