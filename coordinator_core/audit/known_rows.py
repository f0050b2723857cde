"""Which rows of what lasts an earlier run has returned already: few records leave most of a group's rows as they are.

A group of which only offsets were committed has the same members and assignments as before. What is returned again is
what has changed. What a member has of one topic is compared as a whole, as it has few columns that differ; each other
row by itself. The state of the group keeps a digest of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from itertools import groupby
from typing import Final, TypeVar

from coordinator_core.history.rows import AssignmentRow

T = TypeVar("T", bound=tuple[object, ...])

DIGEST_BYTES: Final = 8
OF_RESOURCE: Final = AssignmentRow._fields.index("resource") + 1
"""How many columns name what a member has of one topic, subtopology or connector; they are the first ones."""

_text: Final = json.JSONEncoder(separators=(",", ":")).encode


def changed(rows: Iterable[T], known: bytes) -> tuple[list[T], bytes]:
    """Return the rows of which not all columns are ``known``, and digests of all rows, which the next run knows."""
    before = {known[at : at + DIGEST_BYTES] for at in range(0, len(known), DIGEST_BYTES)}
    now = list[bytes]()
    new = list[T]()
    for _, some in groupby(rows, _together):
        part = [*some]
        # As text, a value is the same whether it was made by this run or read from a state.
        digest = blake2b(_text(part).encode(), digest_size=DIGEST_BYTES).digest()
        now.append(digest)
        if digest not in before:
            new += part
    return new, b"".join(sorted(now))


def _together(row: tuple[object, ...]) -> tuple[object, ...]:
    """Return the same for rows that are compared as a whole."""
    return row[:OF_RESOURCE] if isinstance(row, AssignmentRow) else row
