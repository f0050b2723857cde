"""The history of one group from the tables; ``queries.from_logs`` makes the same from log files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.group_audit import AUDITED_TABLES
from coordinator_core.cluster.topic_history import TopicInterval
from jobs.relations.stored_brokers import lines_of_groups
from jobs.relations.stored_logs import LogFacts
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.reader import TableReader
from jobs.tables.row_reader import reader

OF_GROUP: Final = {table.name: table.row for table in AUDITED_TABLES if table.row is not TopicInterval}
"""The row type of each table that has rows of groups."""


def stored_history(tables: TableReader, cluster: str, group_id: str) -> GroupHistory | None:
    """Return the history of a group without its commits; None for a group without records.

    A group that has only committed offsets has an empty one.
    """
    states = list(
        tables.rows(
            "SELECT log_topic, log_partition FROM $group_states WHERE cluster = :cluster AND group_id = :group_id",
            cluster=cluster,
            group_id=group_id,
        )
    )
    found: list[Any] = []
    if not states:
        states = _places_of_commits(tables, cluster, group_id)
    if not states:
        return None
    for table, row_type in OF_GROUP.items():
        rows = tables.rows(
            f"SELECT * FROM ${table} WHERE cluster = :cluster AND group_id = :group_id",
            cluster=cluster,
            group_id=group_id,
        )
        found += map(reader(row_type), rows)
    found += (line for _, line in lines_of_groups(tables, cluster, [group_id]))
    places = [(row["log_topic"], row["log_partition"]) for row in states if row["log_topic"] in GROUP_TOPICS]
    own_ms = max((_last_ms(tables, cluster, *place) for place in places), default=0)
    return GroupHistory.gather(group_id, own_ms, found, *LogFacts.read(tables, cluster))


def _places_of_commits(tables: TableReader, cluster: str, group_id: str) -> list[Mapping[str, Any]]:
    rows = tables.rows(
        "SELECT DISTINCT log_topic, log_partition FROM $offset_commits WHERE cluster = :cluster "
        "AND group_id = :group_id AND log_offset IS NOT NULL",
        cluster=cluster,
        group_id=group_id,
    )
    return list(rows)


def _last_ms(tables: TableReader, cluster: str, topic: str, partition: int) -> int:
    """Return the latest time of a log partition."""
    (row,) = tables.rows(
        "SELECT max(last_ms) AS last_ms FROM $log_ranges "
        "WHERE cluster = :cluster AND log_topic = :topic AND log_partition = :partition",
        cluster=cluster,
        topic=topic,
        partition=partition,
    )
    return row["last_ms"] or 0
