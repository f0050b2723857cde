"""The clocks of two machines: how far times of one log may be from those of another.

Records of groups carry the time of the broker that coordinates the group, records of the metadata log that of the
controller. Where a record itself says which version of the topics it is about (metadata hash, offset of the metadata
log, topic id), that decides. Elsewhere times of the two logs are compared with this tolerance: what is within it may
have come before or after.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

CLOCK_TOLERANCE_MS: Final = 10_000
"""How far the clocks of two machines of a cluster may be apart, either way; verdicts take ``audit.clock_slack_ms``."""

METADATA_LAG_MS: Final = 30_000
"""A broker whose version of the topics is older was fenced before (``broker.session.timeout.ms`` is 9 s)."""


def utc(time_ms: int) -> str:
    """Return a time (ms since the epoch) in ISO 8601, to the millisecond; outside the calendar as a number of ms.

    The time of a record without one is ``unknown``.
    """
    iso = utc_as(time_ms, lambda time: time.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    return iso or "unknown"


def utc_as(time_ms: int, printed: Callable[[datetime], str]) -> str | None:
    """Return a time in UTC as ``printed``. None: it is that of a record without one (-1).

    Clients can write any number: one that no calendar has is returned as a number of ms.
    """
    if time_ms == -1:
        return None
    try:
        time = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
    return printed(time)
