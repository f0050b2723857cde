"""Spans of one log, such as the stays of members, of which it is asked whether any of them lasts at an offset."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple, Self

from coordinator_core.records import LogPosition


class OffsetSpans(NamedTuple):
    """The offsets at which spans begin, in order, and the latest end of those so far."""

    begins: Sequence[int] = ()
    latest: Sequence[float] = ()

    @classmethod
    def of(cls, spans: Iterable[tuple[LogPosition, LogPosition | None]]) -> Self:
        """Return those that begin and end with these records; None: a span lasts."""
        in_order = sorted((begin.offset, math.inf if end is None else end.offset) for begin, end in spans)
        return cls([begin for begin, _ in in_order], [*accumulate(map(itemgetter(1), in_order), max)])

    def any_at(self, offset: int) -> bool:
        """Whether one of them was there before an offset and after it."""
        before = bisect_left(self.begins, offset)
        return before > 0 and self.latest[before - 1] > offset
