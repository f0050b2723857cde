"""Delivery states of the records of a share partition, as runs of offsets (KIP-932, KIP-1191).

The share state log has batches: runs of offsets with a delivery state and a delivery count. Lists of batches are
sorted and do not overlap; neighbours differ in state or count.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import NamedTuple


class DeliveryState(IntEnum):
    """The states in the log. Acquired (1) is never written: the log does not show which records are in flight."""

    AVAILABLE = 0
    """Delivered before and given back: released, or its lock timed out. It will be delivered again."""
    ACKNOWLEDGED = 2
    """Accepted."""
    ARCHIVING = 3
    """Given up, rejected or at the delivery limit, and on its way to the group's dead-letter queue: from 4.4.0 on, with
    share.version 2. It becomes archived then, also where it could not be written there (KIP-1191).
    """
    ARCHIVED = 4
    """Given up: rejected, at the delivery limit, or an offset without a record for the application."""


TERMINAL = frozenset((DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED))
"""States in which no further delivery follows and nothing remains to do."""
GIVEN_UP = frozenset((DeliveryState.ARCHIVING, DeliveryState.ARCHIVED))
"""States of what is not delivered again although no member accepted it."""


def state_name(state: int) -> str:
    """Return the name of a delivery state, such as ``available``; of a state that is not known its number."""
    return DeliveryState(state).name.lower() if state in STATES else str(state)


STATES = frozenset(DeliveryState)
NEWEST_STATE = max(STATES)
"""A state above it comes from a newer release."""


class StateBatch(NamedTuple):
    """Offsets ``first`` to ``last``, both included, with their ``state`` (DeliveryState) and delivery count."""

    first: int
    last: int
    state: int
    delivery_count: int

    @property
    def records(self) -> int:
        """The number of its offsets."""
        return self.last - self.first + 1

    @property
    def rank(self) -> tuple[int, int]:
        """What decides between batches that have the same offset: the higher count holds, then the higher state."""
        return self.delivery_count, self.state


class DeliveryChange(NamedTuple):
    """Offsets ``first`` to ``last`` went from one state and count to another; None: the log does not say from which."""

    first: int
    last: int
    before: tuple[int, int] | None
    after: tuple[int, int] | None


_FIRST, _LAST = attrgetter("first"), attrgetter("last")


def merge_batches(known: Sequence[StateBatch], new: Iterable[StateBatch]) -> list[StateBatch]:
    """Return the known batches with new ones laid over them: for each offset the batch of the higher rank holds."""
    merged = list(known)
    for batch in new:
        if batch.first <= batch.last:
            _lay_over(merged, batch)
    return merged


def _lay_over(batches: list[StateBatch], new: StateBatch) -> None:
    # batches[low:high] overlap the new one. As batches do not overlap each other, their first and last offsets both
    # rise.
    low = bisect_left(batches, new.first, key=_LAST)
    high = bisect_right(batches, new.last, key=_FIRST)
    pieces: list[StateBatch] = []
    position = new.first
    for known in batches[low:high]:
        if known.first < position:
            pieces.append(known._replace(last=position - 1))
        elif known.first > position:
            pieces.append(new._replace(first=position, last=known.first - 1))
        first, last = max(known.first, position), min(known.last, new.last)
        pieces.append(max(known, new, key=lambda batch: batch.rank)._replace(first=first, last=last))
        if known.last > new.last:
            pieces.append(known._replace(first=new.last + 1))
        position = last + 1
    if position <= new.last:
        pieces.append(new._replace(first=position))
    # With one neighbour on each side, of which the outer pieces may have the rank now.
    before, after = max(low - 1, 0), min(high + 1, len(batches))
    batches[before:after] = _joined([*batches[before:low], *pieces, *batches[high:after]])


def _joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Neighbours of one state and count as one batch."""
    joined: list[StateBatch] = []
    for batch in batches:
        if joined and joined[-1].last + 1 == batch.first and joined[-1].rank == batch.rank:
            joined[-1] = joined[-1]._replace(last=batch.last)
        else:
            joined.append(batch)
    return joined


def batches_from(batches: Sequence[StateBatch], start_offset: int) -> list[StateBatch]:
    """Return what is left of the batches at or above an offset."""
    left = list(batches[bisect_left(batches, start_offset, key=_LAST) :])
    if left and left[0].first < start_offset:
        left[0] = left[0]._replace(first=start_offset)
    return left


def changes(before: Sequence[StateBatch], after: Sequence[StateBatch]) -> Iterator[DeliveryChange]:
    """Yield the offsets whose state or count differs, in their order."""
    # Reversed, so that the batch at hand is the last one, which a list gives up at once.
    olds, news = list(reversed(before)), list(reversed(after))
    position = 0
    while olds or news:
        old, new = olds[-1] if olds else None, news[-1] if news else None
        position = max(position, min(window.first for window in (old, new) if window is not None))
        old_here, new_here = _at(old, position), _at(new, position)
        # Up to the nearer of the two ends both lists say the same of each offset.
        last = min(_end(old, position), _end(new, position))
        if old_here != new_here:
            yield DeliveryChange(position, last, old_here, new_here)
        position = last + 1
        for batches in (olds, news):
            if batches and batches[-1].last < position:
                batches.pop()


def _at(batch: StateBatch | None, offset: int) -> tuple[int, int] | None:
    """State and count of an offset; ``batch`` is the first that does not lie before it."""
    return (batch.state, batch.delivery_count) if batch is not None and batch.first <= offset else None


_NEVER = 1 << 63


def _end(batch: StateBatch | None, offset: int) -> int:
    """The last offset up to which ``batch`` says the same of the offsets from ``offset`` on."""
    if batch is None:
        return _NEVER
    return batch.last if batch.first <= offset else batch.first - 1
