"""Durations as people read them."""

from __future__ import annotations

import re
from typing import Final

MILLISECONDS: Final = re.compile(r"(?<![\w.-])(?:(\d+) to )?(\d{4,}) ms\b")
"""A duration of a second or more in a sentence, or a range up to one."""


def duration(milliseconds: int) -> str:
    """Return a duration in its two largest units, such as 3 h 20 min; below a minute in seconds."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.{1 if milliseconds < 10_000 else 0}f} s"
    parts, rest = [], milliseconds // 1000
    for name, seconds in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, seconds)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def with_durations(sentence: str) -> str:
    """Return a sentence in which durations of a second or more are not in milliseconds."""
    return MILLISECONDS.sub(lambda match: " to ".join(duration(int(part)) for part in match.groups() if part), sentence)
