"""How far the state of tasks is restored, as members report it (KIP-1071, cumulative task changelog offsets).

It is in no record: a new coordinator does not know it until members report again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from coordinator_core.assignors.inputs import TaskId
from coordinator_core.records import Fields

Offsets = Mapping[TaskId, int]
"""Task to the sum of its offsets in its changelog topics."""


@dataclass(frozen=True, slots=True)
class _Report:
    process_id: str
    offsets: Offsets
    end_offsets: Offsets


@dataclass(slots=True)
class TaskOffsets:
    """The last report of each member, the most recent one last."""

    _reports: dict[str, _Report] = field(default_factory=dict)

    def report(self, member_id: str, process_id: str, offsets: Offsets | None, end_offsets: Offsets | None) -> None:
        """Note what a heartbeat reports; None: as before."""
        known = self._reports.get(member_id)
        if offsets is None and end_offsets is None and known is not None and known.process_id == process_id:
            return
        known = self._reports.pop(member_id, None) or _Report(process_id, {}, {})
        self._reports[member_id] = _Report(
            process_id,
            known.offsets if offsets is None else offsets,
            known.end_offsets if end_offsets is None else end_offsets,
        )

    def forget(self, member_id: str) -> None:
        """Forget the reports of a member that left."""
        self._reports.pop(member_id, None)

    def of_member(self, member_id: str) -> tuple[Offsets, Offsets]:
        """Return offsets and end offsets that the member reported."""
        report = self._reports.get(member_id)
        return ({}, {}) if report is None else (report.offsets, report.end_offsets)

    def of_process(self, process_id: str) -> dict[TaskId, int]:
        """Return the offsets of the state on the process's disk; if its members differ, the most recent report
        counts.
        """
        merged: dict[TaskId, int] = {}
        for report in self._reports.values():
            if report.process_id == process_id:
                merged.update(report.offsets)
        return merged

    def lag(self, process_id: str, task: TaskId) -> int | None:
        """Return how far the process's copy is behind; None if it is not known.

        The end is that of the process's own reports, else the largest of the others: see ``TaskState`` of the assignor.
        """
        offset = self.of_process(process_id).get(task)
        known = [report for report in self._reports.values() if task in report.end_offsets]
        own = [report.end_offsets[task] for report in known if report.process_id == process_id]
        ends = own or [report.end_offsets[task] for report in known]
        return None if offset is None or not ends else max(ends) - offset


def from_fields(values: Iterable[Fields] | None) -> dict[TaskId, int] | None:
    """Return the offsets of a heartbeat."""
    if values is None:
        return None
    return {(each["subtopologyId"], each["partition"]): each["offset"] for each in values}


def as_fields(offsets: Offsets) -> list[Fields]:
    """Return the offsets as StreamsGroupDescribe has them."""
    return [
        {"subtopologyId": subtopology_id, "partition": partition, "offset": offsets[subtopology_id, partition]}
        for subtopology_id, partition in sorted(offsets)
    ]
