"""The times that a moment of the logs of groups means in other logs: offsets say nothing there.

A moment names end offsets of log partitions, or a time. From files and from tables alike its times follow from how each
partition ends at it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from coordinator_core.groups.certainty import LogGaps
from coordinator_core.records import CONNECT_LOG, GROUP_LOG
from jobs.relations.moment import AsOf

BEFORE_ALL_MS: Final = -2
"""A time before that of each record, also of one without a time (-1)."""
ANY_LATER_MS: Final = 2**63 - 1
"""How late a moment may be that names an offset which the logs do not have: nothing bounds it."""


class LogEnd(NamedTuple):
    """How one partition of the logs of groups ends at a moment.

    ``asked`` is the end offset that the moment names, and ``gaps`` is what is missing as seen from it. ``last`` and
    ``last_ms`` are the offset and the time of the last record that counts, ``left_out`` and ``left_out_ms`` those of
    the first one that does not; None: there is none, or it has no time.
    """

    partition: int
    gaps: LogGaps
    asked: int | None = None
    last: int | None = None
    last_ms: int | None = None
    left_out: int | None = None
    left_out_ms: int | None = None

    @property
    def is_short(self) -> bool:
        """Whether the log, as far as it is there, does not reach the moment."""
        return self.gaps.is_short_of(self.asked)

    @property
    def sure_ms(self) -> int:
        """The latest time that was not later than the moment.

        Where the first record that is left out is beyond the end offset, the record there was removed, and the moment
        was between the two records. Where the log does not reach the end offset, it was after the last record.
        """
        if self.left_out_ms is not None and (self.asked is None or self.left_out == self.asked):
            # Records of one time may lie on both sides of the moment: only earlier ones are surely before it.
            return self.left_out_ms - 1
        return -1 if self.last_ms is None else self.last_ms - 1

    @property
    def latest_ms(self) -> int:
        """The latest time that the last record below the end offset may have had.

        If the one that is there is not right below the end offset, later ones may have been removed: they were not
        later than the first one that is left out.
        """
        is_last = self.asked is not None and self.last == self.asked - 1
        return self.last_ms if is_last and self.last_ms is not None else self.left_out_ms or 0


class MomentTimes(NamedTuple):
    """The times (ms) that a moment of the logs of groups means in other logs; None: their end.

    ``topics_ms``: topics are those of the last record that counts. ``shares_ms``: share state is that before the first
    record that does not count. ``sure_ms``: see ``LogEnd``; None: the moment is a time, or the end, and each log
    reaches it. ``upto_ms``: the latest time that the last record that counts may have had; None: ``topics_ms``.
    ``is_timed``: no offset of the moment is that of a record without a time. ``untimed``: the partitions of the log of
    Connect groups whose last records may be later than the moment.
    """

    topics_ms: int | None = None
    shares_ms: int | None = None
    sure_ms: int | None = None
    is_timed: bool = True
    upto_ms: int | None = None
    untimed: frozenset[int] = frozenset()

    @classmethod
    def looked_up(cls, moment: AsOf, ends_in: Callable[[Sequence[str], AsOf], Sequence[LogEnd]]) -> "MomentTimes":
        """Return those of a moment. ``ends_in`` reads logs, by topic, up to a moment: how their partitions end then.

        An offset is one of ``__consumer_offsets`` where that was given. The log of Connect groups has partitions of the
        same numbers, in which it says nothing: there the time of the moment counts, if it has one.
        """
        ends = ends_in([GROUP_LOG], moment) if moment.offsets else []
        if not ends:
            return cls.of(moment, ends_in([GROUP_LOG, CONNECT_LOG], moment))
        times = cls.of(moment, ends)
        sure_ms = ANY_LATER_MS if times.sure_ms is None else times.sure_ms
        of_workers = ends_in([CONNECT_LOG], AsOf(times.shares_ms) if times.is_timed else moment)
        later = (end.partition for end in of_workers if end.last_ms is not None and end.last_ms > sure_ms)
        return times._replace(untimed=frozenset(later))

    @classmethod
    def of(cls, moment: AsOf, ends: Iterable[LogEnd]) -> "MomentTimes":
        """Return those of a moment at which the log partitions end so."""
        ends = list(ends)
        at_offsets = moment.time_ms is None
        cuts = [end for end in ends if end.left_out_ms is not None] if at_offsets else []
        reached = {end.partition for end in ends if not end.is_short}
        sure_ms = min((end.sure_ms for end in (*cuts, *(end for end in ends if end.is_short))), default=None)
        if not cuts:
            is_timed = not at_offsets or all(end.left_out is None for end in ends)
            return cls(moment.time_ms, moment.time_ms, sure_ms if is_timed else BEFORE_ALL_MS, is_timed)
        # Each partition bounds the moment by its first record behind it: the earliest of these bounds all.
        shares_ms = min(cut.left_out_ms or 0 for cut in cuts) - 1
        return cls(
            max((cut.last_ms for cut in cuts if cut.last_ms is not None), default=shares_ms),
            shares_ms,
            sure_ms,
            upto_ms=max(cut.latest_ms for cut in cuts) if moment.offsets.keys() <= reached else ANY_LATER_MS,
        )
