"""Rows, numbers and times as people write and read them, and for JSON.

Everywhere else a time is a number of milliseconds since the epoch (UTC).
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from coordinator_core.errors import UsageError
from coordinator_core.whole_numbers import whole_number

SCALARS: Final = frozenset({str, int, float, bool, type(None)})
"""Types of values that are in JSON as they are. A report has millions of them, and a call for each takes time."""


def plain(value: object) -> Any:
    """Return a row as JSON values: named tuples become objects, other tuples lists."""
    if isinstance(value, tuple):
        values = [part if part.__class__ in SCALARS else plain(part) for part in value]
        fields = getattr(value, "_fields", None)
        return values if fields is None else dict(zip(fields, values, strict=True))
    return value


def visible(text: str) -> str:
    """Return a text for a terminal: control characters, bidirectional marks and the like are escaped."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def json_text(value: object) -> str:
    """Return a value as one line of JSON in which no character can act on a terminal."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def number_ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: ``0-3,7``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


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
