"""The history of groups from the tables, one group at a time; ``queries.from_logs`` makes the same from log files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.folds.group_history import (
    GroupHistory,
    OpenTransaction,
    PartitionCommits,
    RecordSize,
)
from coordinator_core.audit.folds.share_deliveries import ShareDelivery
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.history.share_rows import SharePartitionRow
from jobs.pipeline.commit_history import open_transactions, partition_commits
from jobs.pipeline.commits import summaries as commit_summaries
from jobs.pipeline.record_sizes import record_sizes
from jobs.pipeline.share_delivery import share_deliveries
from jobs.relations.stored_logs import LogFacts
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.broker_events import BROKER_EVENTS
from jobs.tables.delta import Tables
from jobs.tables.history import FOLDED, GROUP_STATES, HISTORY
from jobs.tables.log import LOG_PARTITION, LOG_RANGES
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.row_reader import reader

SUMMED: Final = {
    PartitionCommits: "commits",
    OpenTransaction: "transactions",
    ShareDelivery: "deliveries",
    RecordSize: "sizes",
    BrokerEvent: "events",
}
ROW_TYPES: Final[dict[str, Any]] = {name: row for row, name in {**FOLDED, **SUMMED}.items()}
"""The row types that make up a history, by the name of their kind."""

Given = dict[str, Any]


def history_rows(tables: Tables, cluster: str, group_id: str | None = None, *, for_findings: bool = True) -> DataFrame:
    """Return all rows of the history of each group, or of one: ``group_id``, ``own_ms``, ``kind``, ``row``.

    ``row`` is one of the row type that ``kind`` names, as JSON: with a column for each row type, every row would carry
    the null structs of all others through the shuffle and into Python. One more row for each group has only ``own_ms``:
    the latest time of its log partition. With ``for_findings``, sums of commits are added, and sums replace the rows of
    share partitions.
    """

    def selected(rows: DataFrame) -> DataFrame:
        of_cluster = rows.where(F.col("cluster") == cluster)
        return of_cluster if group_id is None else of_cluster.where(F.col("group_id") == group_id)

    def of_kind(rows: DataFrame, kind: str) -> DataFrame:
        row = F.to_json(F.struct(*ROW_TYPES[kind]._fields))
        return rows.select("group_id", F.lit(kind).alias("kind"), row.alias("row"))

    shares = FOLDED[SharePartitionRow]
    kinds = [of_kind(selected(tables.read(HISTORY[name])), name) for name in FOLDED.values() if name != shares]
    if not for_findings:
        kinds.append(of_kind(selected(tables.read(HISTORY[shares])), shares))
    else:
        kinds.append(of_kind(share_deliveries(selected(tables.read(HISTORY[shares]))), "deliveries"))
        commits = selected(commit_summaries.all_commits(tables))
        kinds.append(of_kind(partition_commits(tables, commits), "commits"))
        kinds.append(of_kind(open_transactions(commits), "transactions"))
        kinds.append(of_kind(record_sizes(selected(tables.read(GROUP_RECORDS))), "sizes"))
    states = selected(tables.read(GROUP_STATES)).where(F.col("log_topic").isin(GROUP_TOPICS))
    if tables.exists(BROKER_EVENTS):
        kinds.append(of_kind(selected(tables.read(BROKER_EVENTS)).where("group_id IS NOT NULL"), "events"))
    known = states.select("group_id", *LOG_PARTITION)
    ends = tables.read(LOG_RANGES).where(F.col("cluster") == cluster)
    known = known.join(ends.groupBy(*LOG_PARTITION).agg(F.max("last_ms").alias("own_ms")), [*LOG_PARTITION])
    return reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True), kinds, known.select("group_id", "own_ms")
    )


def by_group(rows: DataFrame) -> DataFrame:
    """Bring the rows of each group together. Sorting by range would read all rows twice."""
    return rows.repartition("group_id").sortWithinPartitions("group_id")


def gathered(rows: Iterable[Given], logs: LogFacts) -> Iterator[GroupHistory]:
    """Yield the history of each group from rows of ``history_rows``, in which the rows of a group are adjacent."""
    readers = {kind: reader(row) for kind, row in ROW_TYPES.items()}
    for group_id, mine in groupby(rows, itemgetter("group_id")):
        own_ms, found = 0, []
        for row in mine:
            own_ms = max(own_ms, row["own_ms"] or 0)
            if row["kind"] is not None:
                # A field that is null is not in the text, and None for the reader.
                found.append(readers[row["kind"]](json.loads(row["row"])))
        if all(isinstance(each, BrokerEvent) for each in found) and found and not own_ms:
            continue  # these logs have no record of the group
        yield GroupHistory.gather(group_id, own_ms, found, *logs)


def histories(
    tables: Tables, cluster: str, group_id: str | None = None, *, for_findings: bool = True
) -> Iterator[GroupHistory]:
    """Yield the histories of all groups, or of one; one group is in memory at a time."""
    rows = history_rows(tables, cluster, group_id, for_findings=for_findings)
    # The rows of a single group need no sorting; in one partition, toLocalIterator runs one job instead of several.
    rows = by_group(rows) if group_id is None else rows.coalesce(1)
    found = (row.asDict() for row in rows.toLocalIterator())
    return gathered(found, LogFacts.read(tables.engine(), cluster))
