"""Answers of the page from log files: they are read once, and one group's window again where the report cut it."""

import json
import time
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock, Thread
from types import MappingProxyType
from typing import Final, NamedTuple

from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.errors import CoordinatorAuditError
from coordinator_core.groups.end_offsets import NewestEnds
from jobs.formatting import plain
from jobs.queries.interface import Answers
from jobs.report.data import GroupDetail, Report
from jobs.report.group_page import detail
from jobs.report.offsets_over_time import NOTHING
from jobs.serve.group_times import FOREVER_MS, GroupTimes, TimedLag, newest
from jobs.serve.newer import NOTHING_NEWER, Newer, history_with_newer, offsets_with_newer
from jobs.serve.offsets import settings_at
from jobs.serve.served_rows import FoundRow, GroupAt, GroupsPage, ServedOffset, ServedSettings
from jobs.serve.site import GroupsAsked, Packed

MOST_FOUND: Final = 20
"""Names of each kind that a search finds."""
AGAIN_S: Final = 10.0
"""The logs are read again after so long at the earliest, if a watch has read more of them."""
AGAIN_TIMES: Final = 10.0
"""And after so many times what it took the last time, so that a large log does not take the whole processor."""


class LogsRead(NamedTuple):
    """What was made of the log files, and how many records a watch beside it had read of each group."""

    report: Report
    times: Mapping[str, GroupTimes]
    answers: Answers
    watched: Mapping[str, int] = MappingProxyType({})
    lags: Mapping[str, Sequence[TimedLag]] = MappingProxyType({})


class _Kept(NamedTuple):
    """What is kept of the groups: those of one pass over the logs, of which single ones were read again since."""

    overview: Report
    order: Sequence[str]
    findings: dict[str, int]
    cut: Collection[str]
    packed: dict[str, bytes]
    times: Mapping[str, GroupTimes]
    lags: Mapping[str, Sequence[TimedLag]]
    answers: Answers
    watched: Mapping[str, int]
    asked: dict[str, int]

    @classmethod
    def of(cls, read: LogsRead) -> "_Kept":
        groups = {group.line.group_id: group for group in read.report.groups}
        return cls(
            read.report._replace(groups=()),
            sorted(groups),
            {group_id: group.line.findings for group_id, group in groups.items()},
            {group_id for group_id, group in groups.items() if is_cut(group)},
            {group_id: _packed(_served(group)) for group_id, group in groups.items()},
            read.times,
            read.lags,
            read.answers,
            read.watched,
            dict(read.watched),
        )

    def at(self, group_id: str, time_ms: int) -> GroupAt:
        """Return a group at a moment."""
        then = self.times[group_id].at(time_ms, self.findings[group_id])
        seen = max((each for each in self.lags.get(group_id, ()) if each.at_ms <= time_ms), default=None)
        return then if seen is None else then._replace(lag=seen.lag, lag_ms=seen.at_ms)

    def changes(self, group_id: str, one_ms: int, other_ms: int) -> bool:
        """Return whether a group changed between two moments."""
        return self.times[group_id].changes(min(one_ms, other_ms), max(one_ms, other_ms))


class ServedLogs:
    """Answers from log files. Groups are kept packed; a question for more reads the logs again.

    With a watch beside it, a group of which there is news is read again when it is asked for, and all of them, with
    their charts, by ``read_again``, which is called in the background now and then. ``newer`` is the watch.
    """

    def __init__(
        self,
        read: LogsRead,
        limits: Thresholds,
        ends: NewestEnds,
        newer: Newer = NOTHING_NEWER,
        read_again: Callable[[], LogsRead] | None = None,
    ) -> None:
        self._limits, self._ends, self._newer, self._read_again = limits, ends, newer, read_again
        self._lock, self._reading = Lock(), Lock()
        """One question reads the logs at a time; one thread reads them all again."""
        self._now = _Kept.of(read)
        self._took_s, self._read_s = 0.0, time.monotonic()

    def renew(self) -> float:
        """Begin to read all again, if there is news and the last time was long enough ago; return when that was."""
        pause = max(AGAIN_S, AGAIN_TIMES * self._took_s)
        is_due = self._read_again is not None and time.monotonic() - self._read_s >= pause
        if is_due and self._newer.read() != self._now.watched and self._reading.acquire(blocking=False):
            Thread(target=self._read_all, args=(self._read_again,), daemon=True).start()
        return self._read_s

    def _read_all(self, read_again: Callable[[], LogsRead]) -> None:
        try:
            began = time.monotonic()
            read = read_again()
            # One assignment: a question sees all that was there before, or all that is new.
            self._now = _Kept.of(read)
            self._took_s = time.monotonic() - began
        except CoordinatorAuditError:
            """What was read before stays the answer: the folder may be there again next time."""
        finally:
            # Also after a failure: a folder that is gone is not looked for with every question.
            self._read_s = time.monotonic()
            self._reading.release()

    def overview(self) -> Report:
        """Return the report without its groups."""
        self.renew()
        return self._now.overview

    def groups(self, asked: GroupsAsked) -> GroupsPage:
        """Return groups at a moment, by id."""
        self.renew()
        # Held for the whole answer: another thread may put what it has read in its place meanwhile.
        now = self._now
        at_ms = FOREVER_MS - 1 if asked.at_ms is None else asked.at_ms

        def is_wanted(group_id: str) -> bool:
            return (
                (asked.find is None or asked.find.lower() in group_id.lower())
                and (not asked.only_found or now.findings[group_id] > 0)
                and (asked.group_type is None or now.at(group_id, FOREVER_MS - 1).group_type == asked.group_type)
                and (not asked.only_changed or asked.than_ms is None or now.changes(group_id, at_ms, asked.than_ms))
            )

        there = [group_id for group_id in now.order if is_wanted(group_id)]
        page = there[asked.first : asked.first + asked.most]
        than = () if asked.than_ms is None else tuple(now.at(group_id, asked.than_ms) for group_id in page)
        return GroupsPage(tuple(now.at(group_id, at_ms) for group_id in page), than, asked.first, len(there))

    def group(self, group_id: str, since_ms: int | None, until_ms: int | None) -> GroupDetail | Packed | None:
        """Return one group as in the report; of one that the report cuts, what lies in the window."""
        now = self._now
        is_asked = group_id in now.cut and (since_ms is not None or until_ms is not None)
        watched = self._newer.read().get(group_id, 0)
        if is_asked or watched > now.asked.get(group_id, 0):
            with self._lock:
                history = history_with_newer(self._newer, group_id, now.answers.history(group_id))
            if history is not None:
                made = _served(detail(history, self._limits, self._ends, since_ms, until_ms))
                # Only the whole group is kept: of windows there are as many as questions.
                if since_ms is None and until_ms is None:
                    now.packed[group_id], now.asked[group_id] = _packed(made), watched
                return made
        packed = now.packed.get(group_id)
        return None if packed is None else Packed(zlib.decompress(packed))

    def offsets(self, group_id: str, at_ms: int | None) -> Sequence[ServedOffset]:
        """Return committed offsets; the logs are replayed up to the moment."""
        with self._lock:
            return offsets_with_newer(self._now.answers, self._newer, group_id, at_ms, self._now.overview.last_ms)

    def settings(self, group_id: str, at_ms: int | None) -> ServedSettings:
        """Return settings; the logs are replayed up to the moment."""
        with self._lock:
            return settings_at(self._now.answers, group_id, at_ms)

    def search(self, text: str) -> Sequence[FoundRow]:
        """Return where a text occurs."""
        self.renew()
        low = text.lower()
        return newest((row for times in self._now.times.values() for row in times.found(low)), MOST_FOUND)


def is_cut(group: GroupDetail) -> bool:
    """Return whether the report has only the newest part of a group."""
    return len(group.rebalances) < group.line.rebalances or len(group.members) < group.line.members_seen


def _served(group: GroupDetail) -> GroupDetail:
    """Return a group without the offsets of moments, for which the page asks."""
    return group._replace(offsets=tuple(row._replace(over_time=NOTHING) for row in group.offsets))


def _packed(group: GroupDetail) -> bytes:
    return zlib.compress(json.dumps(plain(group), ensure_ascii=False, separators=(",", ":")).encode(), 6)
