"""Values of settings as records hold them: texts, which Kafka reads as numbers."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


def int_setting(text: str, bits: int = 32) -> int | None:
    """Return a setting of Kafka's type INT, with 64 bits LONG; None for a text that Kafka does not accept."""
    trimmed = text.strip()
    if _NUMBER.fullmatch(trimmed) is None:
        return None
    number = int(trimmed)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None
