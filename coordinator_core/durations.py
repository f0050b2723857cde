"""Durations as people read them."""

from typing import Final

LAST_DIGITS: Final = ((1000, 1), (10_000, 100), (3_600_000, 1000), (86_400_000, 60_000))
"""What the last digit of a duration below a limit stands for (ms)."""


def duration(milliseconds: int) -> str:
    """Return a duration (ms) in its two largest units, such as 3 h 20 min; below a minute in seconds.

    What is below the last digit is cut off, so that a duration below a limit never reads like the limit.
    """
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        seconds, tenths = divmod(milliseconds // 100, 10)
        return f"{seconds}.{tenths} s" if seconds < 10 else f"{seconds} s"
    parts, rest = [], milliseconds // 1000
    for name, each in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, each)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def durations(least_ms: int, most_ms: int) -> str:
    """Return two bounds of a duration (ms), the upper one rounded up: ``191 ms to 4.6 s``; once, if they read the
    same.
    """
    least, most = duration(least_ms), duration(most_ms)
    last_digit = next((digit for below, digit in LAST_DIGITS if most_ms < below), 3_600_000)
    return least if least == most else f"{least} to {duration(-(-most_ms // last_digit) * last_digit)}"
