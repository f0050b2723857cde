"""The moment that an answer is about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

NEVER_MS: Final = 1 << 62
"""Later than the time of each record: what has no time, or no end, never comes to it."""


@dataclass(frozen=True, slots=True)
class AsOf:
    """The moment up to which logs are replayed.

    ``time_ms``: each log is replayed up to its first record later than this time. ``offsets``: a partition of
    ``__consumer_offsets`` is replayed up to this offset (excluded), so an end offset gives the state when it was read.
    Without either, all records are replayed.

    Offsets without a time define a moment between two records of the log: the last one below the offset, and the next
    one. Topics are those at the time of the first, because the second may be about the deletion of a topic. Share
    state, on which groups do not depend, and the log of Connect groups are replayed up to the second.
    """

    time_ms: int | None = None
    offsets: Mapping[int, int] = field(default_factory=dict)

    @property
    def in_words(self) -> str:
        """Return where in the logs it is, as sentences name it."""
        return "at the end of these logs" if self == AsOf() else "in these logs at that moment"
