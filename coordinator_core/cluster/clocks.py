"""The clocks of two machines: how far times of one log may be from those of another.

Records of groups carry the time of the broker that coordinates the group, records of the metadata log that of the
controller. Where a record itself says which version of the topics it is about (metadata hash, offset of the metadata
log, topic id), that decides. Elsewhere times of the two logs are compared with this tolerance: what is within it may
have come before or after.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

CLOCK_TOLERANCE_MS: Final = 10_000
"""How far the clocks of two machines of a cluster may be apart, either way; verdicts take ``audit.clock_slack_ms``."""

METADATA_LAG_MS: Final = 30_000
"""A broker whose version of the topics is older was fenced before (``broker.session.timeout.ms`` is 9 s)."""

NO_TIME: Final = -1
"""The timestamp of a record that has none."""


def utc(time_ms: int) -> str:
    """Return a time (ms since the epoch) in ISO 8601, to the millisecond; outside the calendar as a number of ms.

    The time of a record without one (-1) is ``unknown``.
    """
    if time_ms == NO_TIME:
        return "unknown"
    time = utc_datetime(time_ms)
    return f"{time_ms} ms" if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_datetime(time_ms: int) -> datetime | None:
    """Return a time in UTC; None if no calendar has it: clients can write any number."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
