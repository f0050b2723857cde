"""The tables of history: their columns follow from the rows that the core's fold makes."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from coordinator_core.audit.group_audit import AUDITED_TABLES
from coordinator_core.history import rows
from jobs.tables.delta import Table, column
from jobs.tables.log import INT, LONG, STRING
from jobs.tables.row_types import row_type

CLUSTER: Final = column("cluster", STRING, "Name of the cluster that wrote the log")

ABOUT: Final = {
    "group_epochs": "One epoch (generation) of one group: members, assignor, metadata hash, what opened it",
    "rebalances": "One rebalance: causes, epochs, durations, what moved, who held it up",
    "memberships": "One member over its life: client, host, rack, instance id, how it came and went",
    "assignments": "Who owned or was to own which partition or task over an interval",
    "share_initializations": "One share partition in one phase of its state, as the group's own log has it",
    "share_partitions": "One share partition over an interval in which its state did not change: offsets, deliveries",
    "violations": "One broken invariant of the protocol or the data, with its position",
    "target_audits": "One recorded target assignment, recomputed and judged",
    "topic_history": "One topic over an interval: id, partitions, racks, the position that proves it",
}


def _table(of: rows.HistoryTable) -> Table:
    schema = StructType([CLUSTER, *row_type(of.row).fields])
    return Table(of.name, ABOUT[of.name], schema, key=("cluster", *of.key))


HISTORY: Final = {of.name: _table(of) for of in AUDITED_TABLES}
"""Every table of history by its name."""

TOPIC_HISTORY: Final = HISTORY["topic_history"]

FOLDED: Final = {of.row: of.name for of in AUDITED_TABLES if of.name != TOPIC_HISTORY.name}
"""The type of a row that the fold of a group yields, to the table that it goes to."""

GROUP: Final = [
    CLUSTER,
    column("log_topic", STRING, "Topic of the log"),
    column("group_id", STRING, "The group"),
]

GROUP_STATES: Final = Table(
    "group_states",
    "What a group was, and what of its history was open, after the last record replayed: the next run goes on there",
    StructType(
        [
            *GROUP,
            column("version", STRING, "Version of the form of the state"),
            column("run_id", STRING, "Newest run whose records are in it"),
            column("log_partition", INT, "Partition of the last record replayed"),
            column("log_offset", LONG, "Offset of the last record replayed"),
            column("timestamp_ms", LONG, "Latest time of a record replayed"),
            column("state", STRING, "State and open history, JSON"),
        ]
    ),
    key=("cluster", "log_topic", "group_id"),
)

REPLAYED: Final = Table(
    "replayed",
    "What the last run of replay made, before it is merged: a row of one table of history, or a state",
    StructType(
        [
            *GROUP,
            column("log_partition", INT, "Of a state: partition of the last record replayed"),
            column("log_offset", LONG, "Of a state: offset of the last record replayed"),
            column("timestamp_ms", LONG, "Of a state: latest time of a record replayed"),
            column("state", STRING, "State and open history, JSON; null for a row of history"),
            *(column(name, row_type(row), ABOUT[name]) for row, name in FOLDED.items()),
        ]
    ),
    key=("cluster", "log_topic", "group_id"),
)
