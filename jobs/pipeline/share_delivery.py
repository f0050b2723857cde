"""Deliveries of share groups from ``share_partitions``, as the core's findings take them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.folds.share_deliveries import BEGINNINGS, MOST_GIVEN_UP
from coordinator_core.history.share_rows import SharePartitionRow

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
