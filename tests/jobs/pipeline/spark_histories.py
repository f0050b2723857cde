"""The histories of groups as Spark's workers make them for findings."""

from collections.abc import Iterator

from coordinator_core.audit.folds.group_history import GroupHistory
from jobs.pipeline.on_spark.findings import by_group, history_rows, rows_read
from jobs.relations.commit_sums import topic_ends
from jobs.relations.groups import gathered, kinds
from jobs.relations.logs import LogFacts
from jobs.tables.delta import Tables


def histories(tables: Tables, cluster: str) -> Iterator[GroupHistory]:
    """The histories of all groups, made in this process from the rows that Spark brings together."""
    rows = (row.asDict() for row in by_group(history_rows(tables, cluster)).toLocalIterator())
    engine = tables.engine()
    return gathered(rows_read(rows, kinds(engine)), LogFacts.read(engine, cluster), topic_ends(engine, cluster))
