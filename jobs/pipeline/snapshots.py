"""Take snapshots of a cluster (command ``snapshot``) into the tables, each row once.

Most settings never change. Of the rows that show the same value of a setting one after the other, the table keeps the
first and the last: between them the value held, and after the last nothing is known. The levels that tell the release
of the brokers are kept at all times, as they are read together.

Of a cluster whose log is read from its brokers, one is taken before and after (``around``). The first one has end
offsets of a time that the log reaches: they give the lag. The second one is later than all records: what both show
holds for the time between.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from coordinator_core.cluster.snapshot_settings import METADATA_VERSION, MISSING, ResourceKind
from coordinator_core.errors import InputError
from jobs.pipeline import runs
from jobs.sources import cluster_snapshot
from jobs.sources.dump import live_servers
from jobs.sources.snapshot_files import SINGLE_SETTING, read_rows, single_settings
from jobs.tables.delta import Tables
from jobs.tables.reader import Row
from jobs.tables.snapshots import END_OFFSETS, SNAPSHOT_SETTINGS
from jobs.tables.table import Table, few

SETTING: Final = ("cluster", "resource_type", "resource", "name")
LEVELS: Final = (ResourceKind.SUPPORTED_FEATURES, ResourceKind.FINALIZED_FEATURES)
CAN_BE_LEFT_OUT: Final = (
    f"NOT (name IN ('{METADATA_VERSION}', '{MISSING}') AND resource_type IN ('{LEVELS[0]}', '{LEVELS[1]}'))"
)
Setting = tuple[int, str, str, str, str]
"""A setting as ``SINGLE_SETTING`` names its parts."""
AROUND: Final = f"OVER (PARTITION BY {', '.join(SETTING)} ORDER BY timestamp_ms)"

NEEDLESS: Final = f"""
SELECT {", ".join(SNAPSHOT_SETTINGS.key)} FROM (
  SELECT *, lag(value) {AROUND} AS before, lead(value) {AROUND} AS behind
  FROM $snapshot_settings WHERE cluster = :cluster
) AS shown WHERE {CAN_BE_LEFT_OUT} AND before = value AND behind = value
"""
"""Rows between two that show the same value."""


class SnapshotCounts(NamedTuple):
    """What was new in snapshots: times, and rows that were added to ``end_offsets`` and ``snapshot_settings``."""

    snapshots: int
    end_offsets: int
    settings: int


def take(tables: Tables, paths: Sequence[str], cluster: str) -> SnapshotCounts:
    """Take in the rows of these files that the tables do not have yet.

    Raises:
        InputError: a file cannot be read, or a line of it is not a row of a snapshot.
    """
    run_id = runs.new_run_id()
    rows = [row for path in paths for row in read_rows(Path(path))]
    store(tables, rows, cluster, run_id)
    engine = tables.engine()
    (ends,) = engine.rows(
        "SELECT count(*) AS number, count(DISTINCT timestamp_ms) AS times FROM $end_offsets WHERE run_id = :run",
        run=run_id,
    )
    (others,) = engine.rows("SELECT count(*) AS number FROM $snapshot_settings WHERE run_id = :run", run=run_id)
    return SnapshotCounts(ends["times"], ends["number"], others["number"])


def store(tables: Tables, rows: Iterable[Mapping[str, object]], cluster: str, transaction: str) -> None:
    """Append the rows of snapshots that the tables do not have; ``transaction`` begins with the run."""
    run_id, _, _ = transaction.partition("/")
    place = {"cluster": cluster, "run_id": run_id}
    taken = list(rows)
    partitions = [{**row, **place} for row in taken if "topic" in row]
    shown = _telling(single_settings(row for row in taken if "resource" in row))
    settings = [{**place, **dict(zip(SINGLE_SETTING, setting, strict=True))} for setting in shown]
    for table, given in ((END_OFFSETS, partitions), (SNAPSHOT_SETTINGS, settings)):
        tables.create(table)
        tables.append(table, few(table, _new(tables, table, given)), transaction)
    # Behind the new rows: with them the ones that were the last of their value are between two.
    _leave_out_needless(tables, cluster)


def _telling(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings without those between two that show the same value, as ``NEEDLESS`` has it."""
    kept: list[Setting] = []
    for _, group in groupby(sorted(settings, key=itemgetter(1, 2, 3, 0)), key=itemgetter(1, 2, 3)):
        run = [*group]
        for before, each, behind in zip([None, *run], run, [*run[1:], None], strict=False):
            kind, name = each[1], each[3]
            is_level = name in (METADATA_VERSION, MISSING) and kind in LEVELS
            if is_level or before is None or behind is None or not before[4] == each[4] == behind[4]:
                kept.append(each)
    return kept


def _new(tables: Tables, table: Table, rows: Sequence[Row]) -> list[Mapping[str, object]]:
    """Return the rows whose key the table does not have, each once."""
    if not rows:
        return []
    times = sorted({row["timestamp_ms"] for row in rows})
    text = f"SELECT {', '.join(table.key)} FROM ${table.name} WHERE cluster = :cluster AND timestamp_ms IN :times"
    known = set(tables.engine().tuples(text, cluster=rows[0]["cluster"], times=times))
    # Backwards and back again: of rows with one key the first stays, in the order of the file.
    of_key = {tuple(row[name] for name in table.key): row for row in reversed(rows)}
    return [row for key, row in of_key.items() if key not in known][::-1]


def _leave_out_needless(tables: Tables, cluster: str) -> None:
    """Delete the rows of settings that say nothing since newer ones show the same value."""
    schema = pa.schema([SNAPSHOT_SETTINGS.schema.field(name) for name in SNAPSHOT_SETTINGS.key])
    # They are hardly more than the settings of one snapshot, as the snapshots before it have been thinned out.
    if needless := list(tables.engine().rows(NEEDLESS, cluster=cluster)):
        tables.delete(SNAPSHOT_SETTINGS, pa.Table.from_pylist(needless, schema))


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
        store(tables, rows, cluster, f"{run_id}/{part}/{servers}")
        return True

    answering = [servers for servers in live_servers(paths) if take(servers, "begin", warn)]
    taken = TakenSnapshots(len(answering))
    yield taken
    # What a cluster does not give was said before.
    taken.count += sum(take(servers, "end", lambda message: None) for servers in answering)
