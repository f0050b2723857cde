"""Times as people write and read them; everywhere else a time is a number of milliseconds since the epoch (UTC)."""

from __future__ import annotations

from datetime import UTC, datetime

from coordinator_core.errors import UsageError
from coordinator_core.whole_numbers import whole_number


def parse_time(text: str) -> int:
    """Return a time in ms since the epoch, from ISO 8601 (UTC unless it has a zone) or from a number of ms.

    Raises:
        UsageError: the text is neither.
    """
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    if (number := whole_number(digits)) is not None:
        return sign * number
    try:
        return milliseconds(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise UsageError(
            f"invalid time {text!r}: use ISO 8601, as in 2026-11-21T03:12:00Z, or milliseconds since the epoch"
        ) from None


def milliseconds(time: datetime) -> int:
    """Return a time in ms since the epoch; a time without a zone is in UTC."""
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
