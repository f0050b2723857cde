"""Whole numbers in text that people and clients write."""

from typing import Final

LARGEST: Final = (1 << 63) - 1
"""The largest number that a record, and so a column, can have."""

DIGITS: Final = len(str(LARGEST))


def whole_number(text: str) -> int | None:
    """Return the number that plain digits are; None: the text has something else, or the number is too large."""
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS):
        return None
    return number if (number := int(text)) <= LARGEST else None
