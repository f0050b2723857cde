"""The history of topics, as the table ``topic_history``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.cluster.topic_history import TopicHistory
from jobs.tables.delta import Tables, few
from jobs.tables.history import TOPIC_HISTORY
from jobs.tables.row_reader import reader
from jobs.tables.spark_reader import sql_text


def write(tables: Tables, cluster: str, history: TopicHistory) -> None:
    """Make the intervals of the history the rows of ``topic_history``; what a late part of the log denies goes."""
    intervals = list(history.intervals())
    if set(intervals) == set(_stored(tables, cluster)):
        return
    names = TOPIC_HISTORY.schema.names
    rows = few(TOPIC_HISTORY, (_row(cluster, interval) for interval in intervals))
    update = {name: f"s.{name}" for name in names}
    same = " AND ".join(f"t.{name} <=> s.{name}" for name in names)
    of_cluster = f"t.cluster = {sql_text(cluster)}"
    tables.merge(TOPIC_HISTORY, rows, update, when=f"NOT ({same})", insert=True, delete=of_cluster)


def _row(cluster: str, interval: TopicInterval) -> dict[str, Any]:
    return {"cluster": cluster} | {field.name: getattr(interval, field.name) for field in fields(interval)}


def _stored(tables: Tables, cluster: str) -> Iterator[TopicInterval]:
    rows = tables.engine().rows("SELECT * FROM $topic_history WHERE cluster = :cluster", cluster=cluster)
    return map(reader(TopicInterval), rows)
