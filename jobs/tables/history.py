"""The tables of group histories. Their columns are derived from the row types of the core."""

from typing import Final

from coordinator_core.audit.audited_rows import AUDITED_TABLES
from coordinator_core.history import rows
from jobs.tables.row_types import row_type
from jobs.tables.table import INT, LONG, STRING, Table, column

CLUSTER: Final = column("cluster", STRING, "Name of the cluster that wrote the log")

ABOUT: Final = {
    "group_epochs": "One epoch (generation) of one group: members, assignor, metadata hash, the record that opened it",
    "rebalances": "One rebalance: causes, epochs, durations, moved partitions or tasks, the member that delayed it",
    "memberships": "One membership: client, host, rack, instance id, how the member joined and how it left",
    "assignments": "One partition or task and the member that owned it, or that it was assigned to, over an interval",
    "share_initializations": "One share partition in one phase of its state, as the group's own log has it",
    "share_partitions": "One share partition over an interval in which its state did not change: offsets, deliveries",
    "violations": "One violation of a rule of the protocol or of the data, with the position of the record",
    "target_audits": "One recorded target assignment, and the verdict after it was recomputed",
    "topic_history": "One topic over an interval: id, partition count, racks, and the record that proves it",
}


def _table(table: rows.HistoryTable) -> Table:
    columns = [CLUSTER, *row_type(table.row)]
    return Table(table.name, ABOUT[table.name], columns, key=("cluster", *table.key))


HISTORY: Final = {table.name: _table(table) for table in AUDITED_TABLES}
"""Every table of group histories, by name."""

OF_ONE_LOG: Final = "(t.group_type = 'CONNECT') = (s.group_type = 'CONNECT')"
"""Whether two rows are of one log, for merges: a group of Connect workers may be in two, at the same positions."""

TOPIC_HISTORY: Final = HISTORY["topic_history"]

FOLDED: Final = {table.row: table.name for table in AUDITED_TABLES if table.name != TOPIC_HISTORY.name}
"""The name of the table for each row type that the replay of a group yields."""

GROUP: Final = [CLUSTER, column("log_topic", STRING, "Topic of the log"), column("group_id", STRING, "Id of the group")]

GROUP_STATES: Final = Table(
    "group_states",
    "State of a group and of its open history after the last replayed record; the next run continues from it",
    [
        *GROUP,
        column("version", STRING, "Format version of the state"),
        column("run_id", STRING, "Newest run whose records are included in the state"),
        column("log_partition", INT, "Highest log partition of a replayed record"),
        column("log_offset", LONG, "Highest log offset of a replayed record in that log partition"),
        column("timestamp_ms", LONG, "Latest timestamp of a replayed record, ms since the epoch"),
        column("state", STRING, "State of the group and of its open history, JSON"),
    ],
    key=("cluster", "log_topic", "group_id"),
)

REPLAYED: Final = Table(
    "replayed",
    "Staging table of replay: rows of the last run before they are merged, each a row of one history table or a state",
    [
        *GROUP,
        column("log_partition", INT, "For a state: highest log partition of a replayed record"),
        column("log_offset", LONG, "For a state: highest log offset of a replayed record in that log partition"),
        column("timestamp_ms", LONG, "For a state: latest timestamp of a replayed record, ms since the epoch"),
        column(
            "state",
            STRING,
            "State of the group and of its open history, JSON; null for a row of a history table. If all is null: "
            "a group whose old rows are deleted",
        ),
        *(column(name, row_type(row), ABOUT[name]) for row, name in FOLDED.items()),
    ],
    key=("cluster", "log_topic", "group_id"),
)
