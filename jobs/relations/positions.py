"""Positions in a log as tables have them."""

from coordinator_core.records import LogPosition


def stored_position(partition: int, offset: int, timestamp_ms: int | None) -> LogPosition:
    """Return a position as the core has it: a record of a dump without times has the time -1, null in the tables."""
    return LogPosition(partition, offset, -1 if timestamp_ms is None else timestamp_ms)
