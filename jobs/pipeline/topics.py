"""The history of topics, as the table ``topic_history``."""

from __future__ import annotations

from coordinator_core.cluster.topic_history import TopicHistory, TopicInterval
from jobs.tables.delta import Tables, sql_text
from jobs.tables.history import TOPIC_HISTORY


def write(tables: Tables, cluster: str, history: TopicHistory) -> None:
    """Make the intervals of the history the rows of ``topic_history``; what a late part of the log denies goes."""
    names = TOPIC_HISTORY.schema.names
    rows = [tuple(_column(cluster, each, name) for name in names) for each in history.intervals()]
    frame = tables.spark.createDataFrame(rows, TOPIC_HISTORY.schema)
    update = {name: f"s.{name}" for name in names}
    same = " AND ".join(f"t.{name} <=> s.{name}" for name in names)
    of_cluster = f"t.cluster = {sql_text(cluster)}"
    tables.merge(TOPIC_HISTORY, frame, update, when=f"NOT ({same})", insert=True, delete=of_cluster)


def _column(cluster: str, interval: TopicInterval, name: str) -> object:
    return cluster if name == "cluster" else getattr(interval, name)
