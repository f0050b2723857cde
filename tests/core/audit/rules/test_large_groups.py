"""What the rules do for each record does not grow with the number of members."""

import sys
from types import FrameType

from coordinator_core.groups.group import Group
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, RecordType
from tests.core.builders import GroupLog, at_once
from tests.core.whole_log import judge

WAITING, EACH = 2, 10


def waiting_members(count: int) -> list[CoordinatorRecord]:
    """All members of a new group reach its first target, and wait for partitions that no member has."""
    log, members = GroupLog(), [f"m{number}" for number in range(count)]
    records = [*map(log.member, members), log.epoch(2)]
    for index, member in enumerate(members):
        records.append(log.target(member, {"t": [*range(index * EACH, index * EACH + EACH)]}))
    records.append(log.target_epoch(2))
    return at_once([*records, *(log.current(member, 2, state=WAITING) for member in members)])


def members_of_one_process(count: int) -> list[CoordinatorRecord]:
    """All members of a new streams group run in one process, and reach a target without tasks."""
    log, members = GroupLog(), [f"m{number}" for number in range(count)]
    records = [*(log.streams_member(member, processId="p") for member in members), log.topology(), log.streams_epoch(2)]
    records += [log.streams_target(member, {}) for member in members]
    value = {"assignmentEpoch": 2, "assignmentTimestamp": 1}
    records.append(log.record(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, value))
    return at_once([*records, *(log.streams_current(member, 2) for member in members)])


def calls(records: list[CoordinatorRecord]) -> tuple[int, list[Violation]]:
    """Count the calls of functions, and steps of generators, while the records are judged."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        found = list(judge(records, Group("g", from_start=True), Coverage({0: [(0, 10_000)]}), 0))
    finally:
        sys.setprofile(None)
    return count, found


def test_four_times_the_members_take_four_times_the_work() -> None:
    few, _ = calls(waiting_members(50))
    many, found = calls(waiting_members(200))
    assert sum(each.rule is Rule.ASSIGNED_NOT_THE_TARGET for each in found) == 200
    assert many < 5 * few


def test_four_times_the_members_without_new_tasks_take_four_times_the_work() -> None:
    few, _ = calls(members_of_one_process(50))
    many, _ = calls(members_of_one_process(200))
    assert many < 5 * few
