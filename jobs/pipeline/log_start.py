"""Where a log partition begins."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from jobs.sources.files import FIRST_SEGMENT


def is_start() -> Column:
    """Return whether a row of ``log_records`` proves that its log partition was read from its start.

    It is the first record ever written, or comes from the segment that began with it: compaction may have removed that
    record since.
    """
    return (F.col("log_offset") == 0) | F.col("source").endswith(FIRST_SEGMENT)
