"""Batches of delivery state as a share coordinator combines them (Kafka's ``PersisterStateBatchCombiner``).

The delivery states are those of ``merge_batches``, but neighbours in the same state remain apart where Kafka does not
join them: it finds pairs that overlap or can be joined from the first offset on, and never returns to what lies before.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence

from coordinator_core.groups.share.delivery import StateBatch, batches_from
from coordinator_core.groups.share.state_log import UNSET


def combine_batches(known: Sequence[StateBatch] | None, new: Iterable[StateBatch], start: int) -> list[StateBatch]:
    """Return the known batches with new ones laid over them, from the start offset on; those of a snapshot (``known``
    None) remain as they are.
    """
    if known is None:
        return list(new)
    batches = [*known, *new]
    if start != UNSET:
        batches = [piece for batch in batches for piece in batches_from([batch], start)]
    if len(batches) < 2:
        return batches
    # Reversed, so that the first batch is at the end: to take it is one pop. Kafka has them in a TreeSet: equal ones
    # are one.
    waiting = sorted(set(batches), key=_order, reverse=True)
    combined: list[StateBatch] = []
    while waiting:
        batch = waiting.pop()
        if not waiting or not _meet(batch, waiting[-1]):
            combined.append(batch)
            continue
        for piece in _resolved(batch, waiting.pop()):
            insort(waiting, piece, key=_reverse_order)
    return combined


def _order(batch: StateBatch) -> tuple[int, int, tuple[int, int]]:
    return batch.first, batch.last, batch.rank


def _reverse_order(batch: StateBatch) -> tuple[int, int, int, int]:
    count, state = batch.rank
    return -batch.first, -batch.last, -count, -state


def _meet(batch: StateBatch, following: StateBatch) -> bool:
    """Whether two batches overlap, or can be joined."""
    can_join = batch.last + 1 == following.first and batch.rank == following.rank
    return following.first <= batch.last or can_join


def _resolved(batch: StateBatch, following: StateBatch) -> Iterator[StateBatch]:
    """What becomes of two batches that meet: where they overlap, the higher rank holds."""
    if batch.rank == following.rank:
        yield batch._replace(last=max(batch.last, following.last))
    elif following.rank < batch.rank:
        yield batch
        if following.last > batch.last:
            yield following._replace(first=batch.last + 1)
    else:
        if batch.first < following.first:
            yield batch._replace(last=following.first - 1)
        yield following
        if following.last < batch.last:
            yield batch._replace(first=following.last + 1)
