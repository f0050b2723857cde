"""How far the state of tasks is restored, as members report it (KIP-1071, cumulative task changelog offsets).

It is in no record: a new coordinator does not know it until members report again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from coordinator_core.assignors.inputs import TaskId
from coordinator_core.record_fields.coordinator_requests import StreamsGroupHeartbeatTaskOffset
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
        # Taken out and put in again at the end: a dict keeps the place of a key that is only overwritten.
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

    def ends(self) -> dict[TaskId, int]:
        """Return the newest end of the changelog of each task: the largest that a member reported."""
        newest: dict[TaskId, int] = {}
        for report in self._reports.values():
            for task, end in report.end_offsets.items():
                newest[task] = max(end, newest.get(task, end))
        return newest

    def of_process(self, process_id: str) -> dict[TaskId, int]:
        """Return the offsets of the state on the process's disk, as if all members had reported together.

        Members report at different times (``task.offset.interval.ms``), and what was written in between is not lag: a
        copy that was 5 records behind the end that its process reported is taken as 5 records behind the newest end.
        State that the process does not have open comes without an end, and stays where it is. If the members of the
        process differ, the most recent report counts.
        """
        newest = self.ends()
        merged: dict[TaskId, int] = {}
        for report in self._reports.values():
            if report.process_id == process_id:
                for task, offset in report.offsets.items():
                    own_end = report.end_offsets.get(task)
                    merged[task] = offset if own_end is None else newest[task] - (own_end - offset)
        return merged

    def ends_of_member(self, member_id: str) -> dict[TaskId, int]:
        """Return the newest ends of the tasks of which the member reported an end."""
        newest = self.ends()
        return {task: newest[task] for task in self.of_member(member_id)[1]}

    def lag(self, process_id: str, task: TaskId) -> int | None:
        """Return how far the process's copy is behind; None if it is not known."""
        offset, end = self.of_process(process_id).get(task), self.ends().get(task)
        return None if offset is None or end is None else end - offset


def from_fields(values: Iterable[StreamsGroupHeartbeatTaskOffset] | None) -> dict[TaskId, int] | None:
    """Return the offsets of a heartbeat."""
    if values is None:
        return None
    return {(reported["subtopologyId"], reported["partition"]): reported["offset"] for reported in values}


def as_fields(offsets: Offsets) -> list[Fields]:
    """Return the offsets as StreamsGroupDescribe has them."""
    return [
        {"subtopologyId": subtopology_id, "partition": partition, "offset": offsets[subtopology_id, partition]}
        for subtopology_id, partition in sorted(offsets)
    ]
