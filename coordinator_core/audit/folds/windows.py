"""Stretches of time in which something happens often."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Stretch(NamedTuple):
    """Times that follow each other, each in a window that has enough of them; ``most``: those in the fullest one."""

    times: slice
    most: int


def stretches(times_ms: Sequence[int], least: int, window_ms: int) -> Iterator[Stretch]:
    """Yield the stretches of these times, in their order, with at least so many in a window."""
    first, last, most, begin = 0, -1, 0, 0
    # times_ms[begin : end + 1] is the window that ends at this time: each time enters and leaves it once.
    for end, time_ms in enumerate(times_ms):
        while time_ms - times_ms[begin] > window_ms:
            begin += 1
        if end - begin + 1 < least:
            continue
        if begin > last:  # none of the stretch so far is in this window: it is over, and another one begins
            if most:
                yield Stretch(slice(first, last + 1), most)
            first, most = begin, 0
        last, most = end, max(most, end - begin + 1)
    if most:
        yield Stretch(slice(first, last + 1), most)
