"""Times in the lines of application logs: as written, and in milliseconds as far as the line has a zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

TIME: Final = re.compile(
    r"(?P<minute>\d{4}-\d\d-\d\d[ T]\d\d:\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
QUARTER_MS: Final = 15 * 60_000
"""Every zone is a multiple of a quarter of an hour."""


class WrittenTime(NamedTuple):
    """A time as written, as if its zone were UTC, and what must be added to that to get UTC; None: not known (ms)."""

    text: str = ""
    local_ms: int | None = None
    to_utc_ms: int | None = None


NO_TIME: Final = WrittenTime()


@lru_cache(1024)
def _minute_ms(text: str) -> int | None:
    try:
        at = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 1000


def _local_ms(match: re.Match[str]) -> int | None:
    minute = _minute_ms(match["minute"])
    if minute is None:
        return None
    return minute + int(match["second"]) * 1000 + int(((match["fraction"] or "0") + "00")[:3])


def _to_utc_ms(zone: str | None) -> int | None:
    if zone is None:
        return None
    if zone == "Z":
        return 0
    size = int(zone[1:3]) * 3_600_000 + int(zone[-2:]) * 60_000
    return -size if zone[0] == "+" else size


def nearest_quarter(difference_ms: int) -> int:
    """Return the zone (ms to add to get UTC) that this difference between two clocks is nearest to."""
    return round(difference_ms / QUARTER_MS) * QUARTER_MS


def time_before(text: str) -> WrittenTime:
    """Return the last time in the text, which is the broker's own; a time before it may be a collector's.

    Where the broker's has no zone and a collector's has, the difference between the two tells it.
    """
    matches = list(TIME.finditer(text))
    if not matches:
        return NO_TIME
    local_ms, to_utc = _local_ms(matches[-1]), _to_utc_ms(matches[-1]["zone"])
    if to_utc is None and local_ms is not None:
        for other in matches[:-1]:
            others, zone = _local_ms(other), _to_utc_ms(other["zone"])
            if others is not None and zone is not None:
                to_utc = nearest_quarter(others + zone - local_ms)
    return WrittenTime(matches[-1][0], local_ms, to_utc)


def time_of_value(value: Any) -> WrittenTime:
    """Return the time that a field of a JSON layout has: text, seconds or milliseconds, or log4j's ``instant``."""
    if isinstance(value, dict) and isinstance(value.get("epochSecond"), int):
        nanos = value.get("nanoOfSecond")
        at = value["epochSecond"] * 1000 + (nanos // 1_000_000 if isinstance(nanos, int) else 0)
        return WrittenTime(str(at), at, 0)
    if isinstance(value, str):
        return time_before(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15:
        at = int(value if value >= 1e11 else value * 1000)
        return WrittenTime(str(value), at, 0)
    return NO_TIME
