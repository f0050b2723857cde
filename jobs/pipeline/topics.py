"""The history of topics, as the table ``topic_history``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.cluster.topic_history import TopicHistory
from jobs.tables.delta import Tables
from jobs.tables.history import TOPIC_HISTORY
from jobs.tables.row_reader import reader
from jobs.tables.table import few


def write(tables: Tables, cluster: str, history: TopicHistory) -> None:
    """Make the intervals of the history the rows of ``topic_history``; what a late part of the log denies goes."""
    intervals = list(history.intervals())
    if set(intervals) == set(_stored(tables, cluster)):
        return
    rows = few(TOPIC_HISTORY, (_row(cluster, interval) for interval in intervals))
    tables.replace_where(TOPIC_HISTORY, rows, "cluster = :cluster", cluster=cluster)


def _row(cluster: str, interval: TopicInterval) -> dict[str, object]:
    return {"cluster": cluster} | {field.name: getattr(interval, field.name) for field in fields(interval)}


def _stored(tables: Tables, cluster: str) -> Iterator[TopicInterval]:
    rows = tables.engine().rows("SELECT * FROM $topic_history WHERE cluster = :cluster", cluster=cluster)
    return map(reader(TopicInterval), rows)
