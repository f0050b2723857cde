"""The table of lines of brokers' application logs."""

from __future__ import annotations

from typing import Final

from coordinator_core.broker_log.events import BrokerEvent
from jobs.tables.columns import INT, STRING, column
from jobs.tables.history import CLUSTER
from jobs.tables.row_types import row_type
from jobs.tables.table import Table

BROKER_EVENTS: Final = Table(
    "broker_events",
    "What one line of a broker's application log says of the group coordinator, and the record that it belongs to",
    [
        CLUSTER,
        column("run_id", STRING, "Run that took the line in; sorts by time"),
        column("digest", STRING, "Hash by which a copied line is known"),
        *row_type(BrokerEvent),
        column(
            "members_not_known",
            INT,
            "Members of known groups that the file names, if the log has none of them: the file is not used",
        ),
    ],
    key=("cluster", "digest"),
)
