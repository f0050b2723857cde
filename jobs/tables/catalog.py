"""Every table that the jobs fill."""

from __future__ import annotations

from typing import Final

from jobs.tables.broker_events import BROKER_EVENTS
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.damage import Companions
from jobs.tables.history import GROUP_STATES, HISTORY, REPLAYED
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.nightly import DUMPED_FILES, LEASES, NIGHTLY_STEPS
from jobs.tables.nights import NIGHTS
from jobs.tables.records import ARRIVED, CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import CHECK_RESULTS, FINDINGS, GROUP_OFFSETS, GROUP_PAGES, KNOWN_FINDINGS
from jobs.tables.snapshots import END_OFFSETS, LAG_HISTORY, SNAPSHOT_SETTINGS
from jobs.tables.table import Table

CATALOG: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        *(LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE, RUNS),
        *(LOG_RANGES, COMMIT_SUMMARIES),
        *(*HISTORY.values(), FINDINGS, KNOWN_FINDINGS, GROUP_PAGES, GROUP_OFFSETS, GROUP_STATES, REPLAYED),
        *(END_OFFSETS, SNAPSHOT_SETTINGS, LAG_HISTORY, BROKER_EVENTS),
        *(CHECK_RESULTS, NIGHTS, NIGHTLY_STEPS, LEASES, DUMPED_FILES, ARRIVED),
    )
}
"""The tables by name, in the order in which documents list them."""

INTERNAL: Final = frozenset(
    table.name for table in (GROUP_STATES, GROUP_PAGES, REPLAYED, LEASES, DUMPED_FILES, ARRIVED)
)
"""State of the jobs, which no question of a user is about."""

DECODED: Final = (OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE)
"""The tables that decoding fills."""

_LOG: Final = (LOG_RECORDS.name, RUNS.name)
_INGESTED: Final = (*_LOG, *(table.name for table in DECODED))

COMPANIONS: Final = {
    DUMPED_FILES.name: Companions(1, _LOG),
    LOG_RECORDS.name: Companions(1, _INGESTED),
    RUNS.name: Companions(1, _INGESTED),
    **dict.fromkeys((LOG_RANGES.name, COMMIT_SUMMARIES.name), Companions(0, _INGESTED)),
    GROUP_STATES.name: Companions(0, tuple(HISTORY)),
    REPLAYED.name: Companions(0, (*HISTORY, GROUP_STATES.name)),
}
"""By table, the tables that were created before it, or before its first rows."""
