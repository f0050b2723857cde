"""Every table that the jobs fill."""

from __future__ import annotations

from typing import Final

from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Table
from jobs.tables.history import GROUP_STATES, HISTORY, REPLAYED
from jobs.tables.lease import LEASES
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.nightly import DUMPED_FILES, NIGHTLY_STEPS
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import CHECK_RESULTS, FINDINGS, GROUP_OFFSETS

CATALOG: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        *(LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE, RUNS),
        *(LOG_RANGES, COMMIT_SUMMARIES),
        *(*HISTORY.values(), FINDINGS, GROUP_OFFSETS, GROUP_STATES, REPLAYED),
        *(CHECK_RESULTS, NIGHTLY_STEPS, LEASES, DUMPED_FILES),
    )
}
"""The tables by name, in the order in which documents list them."""
