"""What a log with missing offsets proves, case by case of the rule; random logs are in ``tests/jobs/queries``."""

import pytest

from coordinator_core.groups.certainty import CommitRecords, LogGaps, record_key
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.describe import CERTAIN_GROUP, KNOWN_IN_PART, POSSIBLY_THERE, Surroundings, describe
from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import GroupOffsets
from coordinator_core.groups.owners import UNKNOWN, possible_owners
from coordinator_core.groups.proven_state import GroupKeys, GroupThen, prove
from coordinator_core.records import CoordinatorRecord, RecordType
from tests.core.builders import GroupLog

COMPACTED = LogGaps(missing=10, at_end=False)
"""Compaction took offset 10, and something below it."""
LOST = LogGaps(missing=10, lost=10, at_end=True)


@pytest.mark.parametrize(
    ("gaps", "last", "is_followed", "is_proven"),
    [
        (LogGaps(), -1, False, True),
        (LogGaps(at_end=False), 3, True, True),
        (COMPACTED, 11, True, True),
        (COMPACTED, 9, False, True),
        (COMPACTED, 9, True, False),
        (COMPACTED, -1, False, True),
        (COMPACTED, -1, True, False),
        (LOST, 11, False, True),
        (LOST, 9, False, False),
        (LOST, -1, False, False),
        (LogGaps(missing=10, lost=4, at_end=False), 9, False, True),
        (LogGaps(missing=10, lost=4, at_end=False), 9, True, False),
        (LogGaps(missing=10, lost_later=True, at_end=False), 9, False, False),
    ],
)
def test_a_key_is_proven(gaps: LogGaps, last: int, is_followed: bool, is_proven: bool) -> None:
    assert gaps.proves(last, is_followed=is_followed) == is_proven


@pytest.mark.parametrize(
    ("records", "is_known"),
    [
        (CommitRecords(last=9), True),
        (CommitRecords(last=9, is_followed=True), False),
        (CommitRecords(last=9, pending=12), True),
        (CommitRecords(last=9, pending=12, is_decided_later=True), False),
        (CommitRecords(last=11, pending=12, is_decided_later=True, is_followed=True), True),
        (CommitRecords(pending=9, is_followed=True), False),
    ],
)
def test_a_pending_commit_may_have_replaced_the_one_that_was_committed(records: CommitRecords, is_known: bool) -> None:
    assert records.is_known(COMPACTED) == is_known


def proven(
    records: list[CoordinatorRecord], gaps: LogGaps, *followed: CoordinatorRecord, from_start: bool = True
) -> GroupThen:
    group, keys = Group("g", from_start=from_start), GroupKeys()
    for record in records:
        group.apply(record)
        keys.note(record, group)
    keys.followed.update(record_key(record.type, record.key) for record in followed)
    group, certainty = prove(group, keys, gaps)
    return GroupThen(group, GroupOffsets(), certainty)


def described(then: GroupThen) -> dict:
    return describe(*then[:2], Surroundings(default_assignor="uniform"), then.certainty)


def test_a_group_that_has_not_changed_since_is_certain() -> None:
    found = described(proven(GroupLog().join("a", 2, {"t": [0]}), COMPACTED))
    assert (found["certainty"], found["unknownFields"], found["incompleteLists"]) == (
        CERTAIN_GROUP,
        ["coordinator"],
        [],
    )
    assert found["listing"]["groupState"] == "STABLE"


def test_a_group_that_changed_later_is_known_in_part() -> None:
    log = GroupLog()
    then = proven(log.join("a", 2, {"t": [0]}), COMPACTED, log.current("a", 3), log.member("b"))
    found, consumer = described(then), described(then)["describe_consumer"]
    assert (found["certainty"], found["unknownFields"]) == (
        KNOWN_IN_PART,
        ["a.assignment", "coordinator", "groupState", "partitionAssignor"],
    )
    assert (consumer["groupEpoch"], consumer["groupState"], consumer["partitionAssignor"]) == (2, None, None)
    (member,) = consumer["members"]
    assert (member["clientId"], member["assignment"], member["memberEpoch"]) == ("client-a", None, None)
    assert member["targetAssignment"] == {"topicPartitions": ["t-0"]}
    assert (found["unknownMembers"], found["incompleteLists"]) == (["b"], ["members"])


def test_states_that_do_not_depend_on_what_is_unknown() -> None:
    log = GroupLog()
    records = [*log.join("a", 2, {"t": [0]}), log.epoch(3)]
    assert described(proven(records, COMPACTED, log.member("b")))["listing"]["groupState"] == "ASSIGNING"
    records += [log.target_epoch(3), log.current("a", 2, {"t": [0]}, {"t": [1]}, state=1)]
    assert described(proven(records, COMPACTED, log.member("b")))["listing"]["groupState"] == "RECONCILING"
    share = [log.share_member("a")]
    assert described(proven(share, COMPACTED, log.share_member("b")))["listing"]["groupState"] == "STABLE"


def test_a_group_that_only_later_records_show_is_possibly_there() -> None:
    found = described(proven([], COMPACTED, *GroupLog().join("a", 2, {})))
    assert (found["certainty"], found["listing"]["type"], found["unknownMembers"]) == (POSSIBLY_THERE, None, ["a"])


def test_the_end_of_a_group_ends_all_its_keys() -> None:
    """It lies behind what compaction took, so no member can have been there between it and the moment."""
    log = GroupLog()
    log.offset = 11
    ended = [*log.gone("a"), log.tombstone(6), log.tombstone(3)]
    assert not proven(ended, COMPACTED, *log.join("b", 2, {})).is_possible
    again = [*ended, *log.join("b", 2, {"t": [0]})]
    assert described(proven(again, COMPACTED, *log.gone("b")))["certainty"] == CERTAIN_GROUP


@pytest.mark.parametrize("record", [GroupLog().classic(1), GroupLog().epoch(2), GroupLog().streams_epoch(2)])
def test_what_is_lost_may_have_ended_a_group(record: CoordinatorRecord) -> None:
    found = described(proven([record], LOST))
    assert (found["certainty"], found["listing"]["type"]) == (POSSIBLY_THERE, None)


@pytest.mark.parametrize(("unread", "listed"), [(None, ("CLASSIC", "EMPTY")), (3, (None, None))])
def test_commits_show_a_group_of_offsets_only_where_no_record_of_the_group_is_unreadable(
    unread: int | None, listed: tuple[str | None, str | None]
) -> None:
    group, keys = Group("g", state=ClassicGroup(), from_start=True), GroupKeys()
    if unread is not None:
        keys.note_unreadable(RecordType.GROUP_METADATA, {"group": "g"}, unread)
    shown, certainty = prove(group, keys, LogGaps())
    found = described(GroupThen(shown, GroupOffsets(), certainty))
    assert (found["listing"]["type"], found["listing"]["groupState"]) == listed


def test_an_unknown_assignment_may_be_of_any_partition() -> None:
    log = GroupLog()
    then = proven(log.join("a", 2, {"t": [0]}), COMPACTED, log.current("a", 3), log.member("b"))
    found = [
        (each.member_id, each.client_id, each.partition, each.role) for each in possible_owners([then], None, "orders")
    ]
    assert found == [("a", "client-a", None, UNKNOWN), ("b", None, None, UNKNOWN)]
    assert list(possible_owners([proven(log.join("a", 2, {}), COMPACTED)], None, "orders")) == []
    (whole,) = possible_owners([proven([], COMPACTED, log.epoch(3))], None, "orders")
    assert (whole.group_id, whole.type, whole.member_id) == ("g", None, None)
