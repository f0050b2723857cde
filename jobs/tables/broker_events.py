"""The table of lines of brokers' application logs."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from coordinator_core.broker_log.events import BrokerEvent
from jobs.tables.delta import Table, column
from jobs.tables.history import CLUSTER
from jobs.tables.log import STRING
from jobs.tables.row_types import row_type

BROKER_EVENTS: Final = Table(
    "broker_events",
    "What one line of a broker's application log says of the group coordinator, and the record that it belongs to",
    StructType(
        [
            CLUSTER,
            column("run_id", STRING, "Run that took the line in; sorts by time"),
            column("digest", STRING, "Hash of broker, time, group, member and message: a copied line has the same"),
            *row_type(BrokerEvent).fields,
        ]
    ),
    key=("cluster", "digest"),
)
