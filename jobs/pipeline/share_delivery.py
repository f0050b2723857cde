"""Deliveries of share groups from ``share_partitions``, as the core's findings take them; and their log's extent."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.findings.group_history import ShareLogs
from coordinator_core.audit.findings.share_deliveries import BEGINNINGS, MOST_GIVEN_UP
from coordinator_core.history.share_rows import SharePartitionRow
from coordinator_core.records import LOG_TOPICS, Family
from jobs.pipeline.gaps import find_gaps
from jobs.pipeline.log_start import is_start
from jobs.sources import stored_logs
from jobs.sources.files import GROUP_TOPICS, SHARE_TOPICS
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.lookup import lookup

OF: Final = ("cluster", "group_id", "topic_id", "partition")
"""A share partition of one cluster."""

RECORDS: Final = "aggregate({}, 0L, (sum, each) -> sum + each.last - each.first + 1)".format
"""How many offsets an array of ranges has."""

GIVEN_UP: Final = (
    "transform(archived_now, each -> named_struct('at', since, 'first', each.first, 'last', each.last, "
    "'delivery_count', each.delivery_count, 'delivery_limit', delivery_limit))"
)


def share_deliveries(rows: DataFrame) -> DataFrame:
    """Return the columns of ``ShareDelivery``: rows of ``share_partitions`` summed up, as in the core."""
    ended = f"accepted_now + {RECORDS('archived_now')} + {RECORDS('released_now')}"
    highest = "array_max(transform(counts, each -> each.delivery_count))"
    redelivery = "if(redelivered_now > 0, since, null)"
    writes = ", ".join(f"'{write}'" for write in BEGINNINGS)
    begins = f"max_by(since, if(write IN ({writes}), since.offset, null))"
    return (
        rows.groupBy(*OF)
        .agg(
            F.expr("max_by(topic, since.offset)").alias("topic"),
            F.expr("sum(accepted_now)").alias("accepted"),
            F.expr(f"sum({ended})").alias("ended"),
            F.expr("sum(redelivered_now)").alias("redelivered"),
            F.expr(f"coalesce(max({highest}), 0L)").alias("most_delivered"),
            F.expr(f"sum({RECORDS('archived_now')})").alias("archived"),
            # Sorted by position, as a position comes first in each.
            F.expr(f"slice(reverse(sort_array(flatten(collect_list({GIVEN_UP})))), 1, {MOST_GIVEN_UP})").alias(
                "latest"
            ),
            F.expr(f"min_by({redelivery}, if(redelivered_now > 0, since.offset, null))").alias("first_redelivery"),
            F.expr(f"max_by({redelivery}, if(redelivered_now > 0, since.offset, null))").alias("last_redelivery"),
            F.expr(f"coalesce({begins}, min_by(since, since.offset))").alias("began"),
            F.max_by(F.struct(*SharePartitionRow._fields), F.col("since.offset")).alias("newest"),
        )
        .withColumns(
            {
                "given_up": F.expr("reverse(latest)"),
                "current": F.expr("if(newest.is_open, newest, null)"),
            }
        )
    )


def share_logs(tables: Tables, cluster: str) -> ShareLogs:
    """Return the extent of the share state log in the tables."""
    logs = stored_logs.share_logs(lookup(tables), cluster)
    return logs._replace(groups_ms=_whole_logs_of_groups(tables, cluster))


def _whole_logs_of_groups(tables: Tables, cluster: str) -> dict[int, int]:
    """Return what ``ShareLogs.groups_ms`` is; nothing if each group with share state is in the log of groups."""
    (orphans,) = lookup(tables).rows(
        "SELECT count(*) AS groups FROM $group_states AS s LEFT JOIN "
        "(SELECT DISTINCT group_id FROM $group_states WHERE cluster = :cluster AND log_topic IN :groups) AS g "
        "ON s.group_id = g.group_id WHERE s.cluster = :cluster AND s.log_topic IN :shares AND g.group_id IS NULL",
        cluster=cluster,
        groups=GROUP_TOPICS,
        shares=SHARE_TOPICS,
    )
    if not orphans["groups"]:
        return {}
    is_of_groups = (F.col("log_topic") == LOG_TOPICS[Family.GROUP]) & F.col("log_partition").isNotNull()
    log = tables.read(LOG_RECORDS).where((F.col("cluster") == cluster) & is_of_groups)
    lost = find_gaps(log, log).where(~F.col("cause").isin("compaction", "unknown"))
    ends = log.groupBy("log_partition").agg(
        F.max(F.expr("if(kind IN ('record', 'control'), timestamp_ms, null)")).alias("last_ms"),
        F.bool_or(is_start()).alias("has_start"),
        F.bool_or(F.col("kind") == "damaged").alias("is_damaged"),
    )
    found = ends.where("has_start AND NOT is_damaged").join(lost, ["log_partition"], "left_anti")
    return {row.log_partition: row.last_ms for row in found.collect()}
