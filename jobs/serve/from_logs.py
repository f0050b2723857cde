"""Answers of the page from log files: they are read once, and one group's window again where the report cut it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Final

from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.groups.end_offsets import NewestEnds
from jobs.formatting import plain
from jobs.queries.interface import Answers
from jobs.report.data import GroupDetail, Report
from jobs.report.group_page import detail
from jobs.serve.group_settings import settings_at
from jobs.serve.group_times import FOREVER_MS, GroupTimes, newest
from jobs.serve.offsets import offsets_at
from jobs.serve.served_rows import FoundRow, GroupsPage, ServedOffset, ServedSettings
from jobs.serve.site import GroupsAsked, Packed

MOST_FOUND: Final = 20
"""Names of each kind that a search finds."""


class ServedLogs:
    """Answers from log files. Groups are kept packed; ``answers`` reads the logs again."""

    def __init__(
        self, report: Report, times: Mapping[str, GroupTimes], answers: Answers, limits: Thresholds, ends: NewestEnds
    ) -> None:
        self._overview = report._replace(groups=())
        self._order = sorted(group.line.group_id for group in report.groups)
        self._findings = {group.line.group_id: group.line.findings for group in report.groups}
        self._cut = {group.line.group_id for group in report.groups if is_cut(group)}
        self._packed = {group.line.group_id: _packed(group) for group in report.groups}
        self._times, self._answers, self._limits, self._ends = times, answers, limits, ends
        self._lock = Lock()
        """One question reads the logs at a time."""

    def overview(self) -> Report:
        """Return the report without its groups."""
        return self._overview

    def groups(self, asked: GroupsAsked) -> GroupsPage:
        """Return groups at a moment, by id."""
        at_ms = FOREVER_MS - 1 if asked.at_ms is None else asked.at_ms

        def is_wanted(group_id: str) -> bool:
            return (
                (asked.find is None or asked.find.lower() in group_id.lower())
                and (not asked.only_found or self._findings[group_id] > 0)
                and (asked.group_type is None or self._at(group_id, FOREVER_MS - 1).group_type == asked.group_type)
                and (not asked.only_changed or asked.than_ms is None or self._changes(group_id, at_ms, asked.than_ms))
            )

        there = [group_id for group_id in self._order if is_wanted(group_id)]
        page = there[asked.first : asked.first + asked.most]
        than = () if asked.than_ms is None else tuple(self._at(group_id, asked.than_ms) for group_id in page)
        return GroupsPage(tuple(self._at(group_id, at_ms) for group_id in page), than, asked.first, len(there))

    def group(self, group_id: str, since_ms: int | None, until_ms: int | None) -> GroupDetail | Packed | None:
        """Return one group as in the report; of one that the report cuts, what lies in the window."""
        if group_id not in self._packed:
            return None
        if group_id in self._cut and (since_ms is not None or until_ms is not None):
            with self._lock:
                history = self._answers.history(group_id)
            if history is not None:
                return detail(history, self._limits, self._ends, since_ms, until_ms)
        return Packed(zlib.decompress(self._packed[group_id]))

    def offsets(self, group_id: str, at_ms: int | None) -> Sequence[ServedOffset]:
        """Return committed offsets; the logs are replayed up to the moment."""
        with self._lock:
            return offsets_at(self._answers, group_id, at_ms)

    def settings(self, group_id: str, at_ms: int | None) -> ServedSettings:
        """Return settings; the logs are replayed up to the moment."""
        with self._lock:
            return settings_at(self._answers, group_id, at_ms)

    def search(self, text: str) -> Sequence[FoundRow]:
        """Return where a text occurs."""
        low = text.lower()
        return newest((row for times in self._times.values() for row in times.found(low)), MOST_FOUND)

    def _at(self, group_id: str, time_ms: int) -> Any:
        return self._times[group_id].at(time_ms, self._findings[group_id])

    def _changes(self, group_id: str, one_ms: int, other_ms: int) -> bool:
        return self._times[group_id].changes(min(one_ms, other_ms), max(one_ms, other_ms))


def is_cut(group: GroupDetail) -> bool:
    """Return whether the report has only the newest part of a group."""
    return len(group.rebalances) < group.line.rebalances or len(group.members) < group.line.members_seen


def _packed(group: GroupDetail) -> bytes:
    return zlib.compress(json.dumps(plain(group), ensure_ascii=False, separators=(",", ":")).encode(), 6)
