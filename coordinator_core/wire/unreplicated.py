"""Copies of one log partition by several brokers: which of their records were never replicated (KIP-101, KIP-279).

The leader epochs of a log never go back. A record of one copy is not in the log of the newest leader if that has a
record of a higher epoch at or before its offset, or one of a lower epoch at or behind it: it was written by a leader
that went before the others had it, and the broker cuts it off once it follows the new leader.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class CopiedRecords(NamedTuple):
    """The records of a copy, in the order of the log: offset, leader epoch (-1: the batch has none) and time (ms)."""

    offsets: npt.NDArray[np.int64]
    epochs: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]


def tails(copies: Sequence[CopiedRecords]) -> list[int | None]:
    """Return by copy the offset from which on its records are not in the log of the newest leader; None: all are.

    The newest leader's copy is that of the highest epoch, the longest of several. Copies that have nothing in common
    with it are logs of something else, and are left as they are.
    """
    if len(copies) < 2 or not all(len(copy.offsets) and (copy.epochs >= 0).all() for copy in copies):
        return [None] * len(copies)
    newest = max(copies, key=lambda copy: (copy.epochs[-1], copy.offsets[-1]))
    return [None if copy is newest else _tail(copy, newest) for copy in copies]


def _tail(copy: CopiedRecords, newest: CopiedRecords) -> int | None:
    # By record of the copy: the newest leader's last record at or before its offset, and the first at or behind it.
    before = np.searchsorted(newest.offsets, copy.offsets, side="right") - 1
    behind = np.searchsorted(newest.offsets, copy.offsets, side="left")
    is_over = (before >= 0) & (newest.epochs[np.maximum(before, 0)] > copy.epochs)
    last = len(newest.offsets) - 1
    is_over |= (behind <= last) & (newest.epochs[np.minimum(behind, last)] < copy.epochs)
    if not is_over.any():
        return None
    first = int(np.argmax(is_over))
    kept = before[:first]
    shared = kept[(kept >= 0) & (newest.offsets[np.maximum(kept, 0)] == copy.offsets[:first])]
    # Logs of something else share offsets with it, but hardly the times of all records there.
    times = copy.times[:first][np.isin(copy.offsets[:first], newest.offsets[shared])]
    is_one_log = len(shared) > 0 and np.array_equal(times, newest.times[shared])
    return int(copy.offsets[first]) if is_one_log else None
