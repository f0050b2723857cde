"""The tables of what is taken in beside the log: snapshots of a cluster (end offsets and topics, settings, and the lag
of groups at their times), and lines of brokers' application logs.
"""

from typing import Final

from coordinator_core.audit.offsets.burrow import LagPoint
from coordinator_core.broker_log.events import BrokerEvent
from jobs.tables.history import CLUSTER
from jobs.tables.row_types import row_type
from jobs.tables.table import INT, LONG, STRING, Table, array, column

SNAPSHOT: Final = [
    CLUSTER,
    column("run_id", STRING, "Run that took the snapshot in; sorts by time"),
    column("timestamp_ms", LONG, "When the snapshot was taken, ms since the epoch"),
]

END_OFFSETS: Final = Table(
    "end_offsets",
    "One partition of a topic as one snapshot of the cluster shows it, with its end offset",
    [
        *SNAPSHOT,
        column("topic", STRING, "Topic name"),
        column("topic_id", STRING, "Topic id; null: the snapshot has none"),
        column("partition", INT, "Partition"),
        column("end_offset", LONG, "End offset; null: the partition had no leader"),
        column("replica_racks", array(STRING), "Rack of each replica; null for a broker without one"),
        column("cluster_id", STRING, "Id that the cluster itself has; null: the snapshot has none"),
    ],
    key=("cluster", "timestamp_ms", "topic", "partition"),
)

SNAPSHOT_SETTINGS: Final = Table(
    "snapshot_settings",
    "One setting as one snapshot of the cluster shows it: a config of a group or a broker, or the level of a feature; "
    "rows between two that show the same value are left out",
    [
        *SNAPSHOT,
        column("resource_type", STRING, "GROUP, BROKER, SUPPORTED_FEATURES (of a broker) or FINALIZED_FEATURES"),
        column("resource", STRING, "Id of the group or broker; empty: the cluster"),
        column("name", STRING, "Name of the config or feature; missing: not all are there"),
        column("value", STRING, "Value; of a feature: the highest level; of missing: why"),
    ],
    key=("cluster", "timestamp_ms", "resource_type", "resource", "name"),
)

LAG_HISTORY: Final = Table(
    "lag_history",
    "Lag of one group in one partition at the time of one snapshot of the end offsets, with Burrow's status",
    [CLUSTER, column("run_id", STRING, "Newest run that the row rests on"), *row_type(LagPoint)],
    key=("cluster", "group_id", "topic", "partition", "timestamp_ms"),
)


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
