"""When the findings of a group are made again: soon after it has news, but never so often that it costs much."""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Final

from jobs.watch.events import GroupKey

ROUND_S: Final = 0.1
"""Findings of other groups wait for the next round once those of this round have taken so long."""
SOON_S: Final = 0.25
"""Findings of one group are made at most this often."""
SHARE_OF_TIME: Final = 0.05
"""Findings of one group take at most this share of the time: those of a large group are made less often."""
COMMITS_S: Final = 10.0
"""So long after a look a group is looked at again that had nothing but commits since."""
SWEEP_S: Final = 300.0
"""So long after a look a group is looked at again that had nothing at all: some findings arise from silence."""


class Looks:
    """Which groups are to be looked at next. ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._queue: list[tuple[float, int, GroupKey]] = []
        self._due: dict[GroupKey, float] = {}
        self._allowed: dict[GroupKey, float] = {}
        self._number = count()

    def note(self, key: GroupKey, *, only_commits: bool = False) -> None:
        """Note that a group has news."""
        allowed = self._allowed.get(key, 0.0)
        self._put(key, allowed + COMMITS_S if only_commits and key in self._allowed else allowed)

    def forget(self, key: GroupKey) -> None:
        """Look at a group no more."""
        self._due.pop(key, None)
        self._allowed.pop(key, None)

    def due(self) -> Iterator[GroupKey]:
        """Yield the groups to be looked at now, the longest waiting first: at least one, but no more than a round may.

        The look is the time that the caller takes with each.
        """
        begin = self._clock()
        while self._queue and self._queue[0][0] <= begin:
            due_s, _, key = heappop(self._queue)
            # A heap gives nothing up from its middle: an entry that was replaced by an earlier one is passed over
            # here.
            if self._due.get(key) != due_s:
                continue
            del self._due[key]
            looked_s = self._clock()
            yield key
            done_s = self._clock()
            self._allowed[key] = done_s + max(SOON_S, (done_s - looked_s) / SHARE_OF_TIME)
            self._put(key, done_s + SWEEP_S)
            if done_s - begin > ROUND_S:
                return

    def _put(self, key: GroupKey, due_s: float) -> None:
        known = self._due.get(key)
        if known is None or due_s < known:
            self._due[key] = due_s
            heappush(self._queue, (due_s, next(self._number), key))
