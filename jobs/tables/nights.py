"""The table of the trend between nights."""

from __future__ import annotations

from typing import Final

from jobs.tables.history import CLUSTER
from jobs.tables.night_rows import NightRow
from jobs.tables.row_types import row_type
from jobs.tables.table import Table

COMPUTED: Final = ("new_rebalances", "new_violations")
"""Fields that are computed from two nights when they are read."""

NIGHTS: Final = Table(
    "nights",
    "What one night found in one cluster, at the end of the log: for the trend between nights",
    [CLUSTER, *(field for field in row_type(NightRow) if field.name not in COMPUTED)],
    key=("cluster", "night"),
)
