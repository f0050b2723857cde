"""The history of groups from the tables, one group at a time, as ``queries.from_logs`` makes it from log files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.findings.group_history import GroupHistory, OpenTransaction, PartitionCommits, ShareLogs
from coordinator_core.audit.findings.share_deliveries import ShareDelivery
from coordinator_core.history.share_rows import SharePartitionRow
from jobs.pipeline import offsets
from jobs.pipeline.commit_history import open_transactions, partition_commits
from jobs.pipeline.share_delivery import share_deliveries, share_logs
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.delta import Tables
from jobs.tables.history import FOLDED, GROUP_STATES, HISTORY, TOPIC_HISTORY
from jobs.tables.log import LOG_PARTITION, LOG_RECORDS
from jobs.tables.row_types import reader

SUMMED: Final = {PartitionCommits: "commits", OpenTransaction: "transactions", ShareDelivery: "deliveries"}
ROW_TYPES: Final[dict[str, Any]] = {name: row for row, name in {**FOLDED, **SUMMED}.items()}
"""Every kind of row of which a history is made, by the column that holds it."""

Given = dict[str, Any]


def material(tables: Tables, cluster: str, group_id: str | None = None, *, for_findings: bool = True) -> DataFrame:
    """All rows of the history of each group, or of one: ``group_id``, ``own_ms``, and a column for each kind of row.

    In each row one of these is not null, as a struct; none in the one row of a group that tells ``own_ms``. For
    findings there are sums of commits, and of the rows of share partitions in the place of those rows.
    """

    def of(rows: DataFrame) -> DataFrame:
        mine = rows.where(F.col("cluster") == cluster)
        return mine if group_id is None else mine.where(F.col("group_id") == group_id)

    def structs(rows: DataFrame, kind: str) -> DataFrame:
        return rows.select("group_id", F.struct(*ROW_TYPES[kind]._fields).alias(kind))

    shares = FOLDED[SharePartitionRow]
    kinds = [structs(of(tables.read(HISTORY[name])), name) for name in FOLDED.values() if name != shares]
    if not for_findings:
        kinds.append(structs(of(tables.read(HISTORY[shares])), shares))
    else:
        kinds.append(structs(share_deliveries(of(tables.read(HISTORY[shares]))), "deliveries"))
        log = of(offsets.commits(tables))
        kinds += [structs(partition_commits(tables, log), "commits"), structs(open_transactions(log), "transactions")]
    states = of(tables.read(GROUP_STATES)).where(F.col("log_topic").isin(GROUP_TOPICS))
    known = states.select("group_id", *LOG_PARTITION)
    log = tables.read(LOG_RECORDS).where((F.col("cluster") == cluster) & F.col("kind").isin("record", "control"))
    ends = log.join(known.select(*LOG_PARTITION).distinct(), [*LOG_PARTITION], "left_semi")
    known = known.join(ends.groupBy(*LOG_PARTITION).agg(F.max("timestamp_ms").alias("own_ms")), [*LOG_PARTITION])
    return reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True), kinds, known.select("group_id", "own_ms")
    )


def by_group(rows: DataFrame) -> DataFrame:
    """The rows of each group together, without a first look at all of them as sorting by range would need."""
    return rows.repartition("group_id").sortWithinPartitions("group_id")


def partition_counts(tables: Tables, cluster: str) -> dict[str, int]:
    """Partitions of each topic that there is at the end of the metadata log."""
    topics = tables.read(TOPIC_HISTORY).where((F.col("cluster") == cluster) & F.col("until").isNull())
    return {row.topic: row.partitions for row in topics.select("topic", "partitions").collect()}


def gathered(rows: Iterable[Given], partitions: Mapping[str, int], share_logs: ShareLogs) -> Iterator[GroupHistory]:
    """The histories that the rows of ``material``, those of a group together, are of."""
    readers = {kind: reader(row) for kind, row in ROW_TYPES.items()}
    for group_id, mine in groupby(rows, itemgetter("group_id")):
        own_ms, found = 0, []
        for row in mine:
            own_ms = max(own_ms, row["own_ms"] or 0)
            found += [read(row[kind]) for kind, read in readers.items() if row.get(kind) is not None]
        yield GroupHistory.gather(group_id, own_ms, found, partitions, share_logs)


def histories(
    tables: Tables, cluster: str, group_id: str | None = None, *, for_findings: bool = True
) -> Iterator[GroupHistory]:
    """The histories of all groups, or of one; one group is in memory at a time."""
    rows = material(tables, cluster, group_id, for_findings=for_findings)
    # The rows of one group are together however they come; in one task they cost one job instead of one each.
    rows = by_group(rows) if group_id is None else rows.coalesce(1)
    found = (row.asDict(recursive=True) for row in rows.toLocalIterator())
    return gathered(found, partition_counts(tables, cluster), share_logs(tables, cluster))
