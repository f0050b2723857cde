"""Columns that several tables have in common, by name; the tables themselves need Spark's types."""

from __future__ import annotations

from typing import Final

LOG_PARTITION: Final = ("log_topic", "log_partition")
"""The columns that name a log partition within a cluster."""

PLACED: Final = "log_offset IS NOT NULL AND log_partition IS NOT NULL"
"""Rows whose place in the log is known. Dumps without positions have others, which cannot be ordered."""

OFFSET_KEY: Final = ("cluster", "log_topic", "log_partition", "group_id", "topic", "partition")
"""The columns that name what an offset is committed for, and the log partition that holds the commit."""

COMMIT: Final = (
    "log_offset",
    "timestamp_ms",
    "committed_offset",
    "leader_epoch",
    "metadata",
    "commit_timestamp",
    "expire_timestamp",
    "topic_id",
    "producer_id",
    "outcome",
)
"""The columns of ``group_offsets`` that describe the commit that counts."""
