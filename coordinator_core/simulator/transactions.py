"""Transactions in which members commit offsets (KIP-98, KIP-447), numbered from the start of a producer.

As of transaction version 2 (KIP-890) each transaction has its own producer epoch, and its marker has the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coordinator_core.wire.control import ABORT, COMMIT

Ints = NDArray[np.int64]

OPEN = -1
"""The outcome of a transaction that never ends; the other outcomes are ``ABORT`` and ``COMMIT``."""
EPOCHS = 32_766
"""After this many transactions a producer gets another id, because its epochs are used up."""
_BLOCK_BITS = 24
_STRAY = 1 << (_BLOCK_BITS - 1)


@dataclass(frozen=True, slots=True)
class Transactions:
    """The outcomes of one member's transactions: each lasts ``lasts_ms``, and ends at random.

    ``block`` identifies its producers. Of 2**32 transactions ``aborts`` are aborted and ``left_open`` never end. If the
    process crashes, its transaction is aborted ``timeout_ms`` after it began.
    """

    block: int
    seed: int
    lasts_ms: int
    timeout_ms: int
    aborts: int
    left_open: int

    def outcomes(self, first: int, end: int) -> Ints:
        """Return ``COMMIT``, ``ABORT`` or ``OPEN`` for each of the transactions from ``first`` to before ``end``."""
        lots = drawn(np.array(self.seed, np.uint64), np.arange(first, end))
        aborted = lots < self.left_open + self.aborts
        return np.where(lots < self.left_open, OPEN, np.where(aborted, ABORT, COMMIT))


def producers(blocks: Ints, numbers: Ints, left_open: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the producer ids and epochs of transactions; one that is left open has a producer of its own."""
    first = blocks << _BLOCK_BITS
    ids = np.where(left_open, first + _STRAY + numbers % _STRAY, first + numbers // EPOCHS)
    return ids, np.where(left_open, 0, numbers % EPOCHS)


def drawn(seeds: NDArray[np.uint64], numbers: Ints) -> Ints:
    """Return random numbers from 0 to below 2**32: the upper halves of SplitMix64's numbers with these seeds at
    these places.
    """
    state = seeds + (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    lots: Ints = ((state ^ (state >> np.uint64(31))) >> np.uint64(32)).astype(np.int64)
    return lots
