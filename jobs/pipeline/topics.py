"""The history of topics, as the table ``topic_history``."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_core.cluster.topic_history import TopicHistory, TopicInterval
from jobs.tables.delta import Tables, sql_text
from jobs.tables.history import TOPIC_HISTORY
from jobs.tables.lookup import lookup
from jobs.tables.row_reader import reader


def write(tables: Tables, cluster: str, history: TopicHistory) -> None:
    """Make the intervals of the history the rows of ``topic_history``; what a late part of the log denies goes."""
    intervals = list(history.intervals())
    if set(intervals) == set(_stored(tables, cluster)):
        return
    names = TOPIC_HISTORY.schema.names
    rows = [tuple(_column(cluster, each, name) for name in names) for each in intervals]
    frame = tables.spark.createDataFrame(rows, TOPIC_HISTORY.schema)
    update = {name: f"s.{name}" for name in names}
    same = " AND ".join(f"t.{name} <=> s.{name}" for name in names)
    of_cluster = f"t.cluster = {sql_text(cluster)}"
    tables.merge(TOPIC_HISTORY, frame, update, when=f"NOT ({same})", insert=True, delete=of_cluster)


def _stored(tables: Tables, cluster: str) -> Iterator[TopicInterval]:
    found = lookup(tables).rows("SELECT * FROM $topic_history WHERE cluster = :cluster", cluster=cluster)
    return map(reader(TopicInterval), found)


def _column(cluster: str, interval: TopicInterval, name: str) -> object:
    return cluster if name == "cluster" else getattr(interval, name)
