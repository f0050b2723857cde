"""Findings of share groups, on logs made by hand: each one where it is, and where it just is not."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from coordinator_core.audit.audited_rows import AuditedRow
from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.folds.group_history import GroupHistory, ShareLogs
from coordinator_core.audit.group_audit import ShareAudit
from coordinator_core.cluster.given_topics import NO_REACH, TopicReach
from coordinator_core.groups.group import Group
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.history.rows import SharePartitionRow
from coordinator_core.records import GROUP_LOG, SHARE_LOG, AnyRecord, RecordType
from jobs.settings import load
from tests.core.audit.histories import assignment, at, member
from tests.core.builders import GroupLog
from tests.core.known_topics import EVERYWHEN, at_end
from tests.core.share_log import TOPIC_ID, ShareLog
from tests.core.whole_log import fold

LIMITS = load(environment={}).findings
WHOLE = Coverage({0: [(0, 10_000)]})
MINUTE = 60_000
PARTITIONS = {"orders": 1, "__share_group_state": 1}


def share_rows(records: Iterable[AnyRecord]) -> list[AuditedRow]:
    audit = ShareAudit.begin("g", None, WHOLE)
    return [*(row for record in records for row in audit.feed(record)), *audit.open_rows()]


def found(
    kind: FindingKind, rows: Iterable[AuditedRow], now_ms: int = MINUTE, logs: ShareLogs | None = None
) -> list[FindingRow]:
    logs = logs or ShareLogs({0: now_ms}, frozenset((0,)))
    history = GroupHistory.gather("g", now_ms, rows, at_end(PARTITIONS), logs)
    return [row for row in findings(history, LIMITS) if row.kind == kind]


# --- deliveries ------------------------------------------------------------------------------------------------------


def test_records_given_up_after_redelivery_are_named() -> None:
    log = ShareLog()
    records = [
        log.snapshot(),
        log.update(0, [(0, 6, 2, 1), (7, 8, 0, 1), (9, 9, 4, 1)], 8),
        log.update(0, [(7, 8, 4, 2)], 10),
    ]
    (row,) = found(FindingKind.SHARE_ARCHIVED, share_rows(records))
    name = f"{TOPIC_ID}-0"
    assert row.detail == (
        f"2 records of {TOPIC_ID} given up: {name} 7 to 8 after 2 deliveries; 1 offset archived at the first delivery, "
        f"rejected or without a record (a transaction marker, compaction): {name} 9 after 1 delivery"
    )
    assert (row.value, row.threshold, row.subject, row.log_topic) == (2, 1, TOPIC_ID, "__share_group_state")
    assert row.evidence == (records[2].at,)


def test_a_topic_that_was_created_again_has_a_finding_of_its_own() -> None:
    """Without the metadata log, or with a part of it, nothing tells that two topic ids have one name."""
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(0, 6, 2, 1), (7, 8, 0, 1)], 8), log.update(0, [(7, 8, 4, 2)], 10)]
    rows = [row for row in share_rows(records) if isinstance(row, SharePartitionRow)]
    twice = [row._replace(topic="orders", topic_id=topic_id) for topic_id in ("first", "second") for row in rows]
    assert [(row.subject, row.value) for row in found(FindingKind.SHARE_ARCHIVED, twice)] == [("orders", 2)] * 2


@pytest.mark.parametrize(
    ("partitions", "logs", "complete"),
    [
        ([0], ShareLogs({0: MINUTE}, frozenset((0,))), True),
        ([0, 1], ShareLogs({0: MINUTE}, frozenset((0,))), False),
        ([0], ShareLogs({0: MINUTE}, frozenset()), False),
    ],
    ids=["all", "the state of another share partition was not given", "not from its beginning"],
)
def test_records_given_up_are_counted_as_far_as_their_log_is_there(
    partitions: list[int], logs: ShareLogs, complete: bool
) -> None:
    log, group = ShareLog(), GroupLog()
    initialized = [group.share_member("m1"), group.share_state({TOPIC_ID: ("orders", partitions)})]
    records = [log.snapshot(), log.update(0, [(0, 6, 2, 1), (7, 8, 0, 1)], 8), log.update(0, [(7, 8, 4, 2)], 10)]
    (row,) = found(FindingKind.SHARE_ARCHIVED, [*phases(initialized), *share_rows(records)], logs=logs)
    assert (row.value, row.history_complete) == (2, complete)


def test_transaction_markers_are_not_called_poison() -> None:
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(0, 3, 2, 1), (4, 4, 4, 1), (5, 7, 2, 1), (8, 8, 4, 1)], 9)]
    assert found(FindingKind.SHARE_ARCHIVED, share_rows(records)) == []


def test_a_topic_that_is_rejected_at_the_first_delivery_is_found() -> None:
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(0, 3, 2, 1), (4, 8, 4, 1)], 9)]
    (row,) = found(FindingKind.SHARE_ARCHIVED, share_rows(records))
    assert (row.value, row.level) == (5, "notice"), "of a compacted topic they may have been no records"
    assert row.detail.startswith(
        f"5 offsets of {TOPIC_ID} archived at the first delivery, rejected or without a record"
    )
    again = [*records, log.update(0, [(9, 9, 0, 1)], 10), log.update(0, [(9, 9, 4, 2)], 10)]
    (row,) = found(FindingKind.SHARE_ARCHIVED, share_rows(again))
    assert (row.value, row.level) == (1, "alarm")


def test_many_redeliveries_are_found_by_their_share() -> None:
    def rows(acknowledged: int) -> list[AuditedRow]:
        log = ShareLog()
        last = 19 + acknowledged
        return share_rows(
            [
                log.snapshot(),
                log.update(0, [(0, 19, 0, 1), (20, last, 2, 1)], acknowledged),
                log.update(0, [(0, 19, 2, 2)], last + 1),
            ]
        )

    (row,) = found(FindingKind.SHARE_REDELIVERED, rows(60))
    assert (row.value, row.log_topic) == (20, "__share_group_state")
    assert row.detail.startswith(f"20 of 100 deliveries of {TOPIC_ID} (20%) were of records delivered before, up to 2 ")
    assert found(FindingKind.SHARE_REDELIVERED, rows(61)) == []


def stalls(
    records: list[AnyRecord],
    now_ms: int,
    *,
    assigned: int | None = 1,
    led_again: Mapping[tuple[str, int], int | None] = MappingProxyType({}),
    lost: int = 0,
    reach: TopicReach = EVERYWHEN,
) -> list[FindingRow]:
    """``assigned``: since which second a member has the share partition; ``lost``: an offset behind the log's end."""
    held = [] if assigned is None else [assignment("m1", 0, at(assigned), group_type="SHARE", topic_id=TOPIC_ID)]
    topics = at_end(PARTITIONS)._replace(led_again=led_again, reach=reach)
    missing = LostRecords({(SHARE_LOG, 0): [(lost, lost)]} if lost else {})
    logs = ShareLogs({0: now_ms}, frozenset((0,)))
    history = GroupHistory.gather("g", now_ms, [*share_rows(records), *held], topics, logs, missing)
    return [row for row in findings(history, LIMITS) if row.kind == FindingKind.SHARE_STALLED]


def test_records_that_wait_without_any_write_are_a_stall() -> None:
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(0, 3, 2, 1), (4, 5, 0, 2)], 4)]
    since = records[1].at.timestamp_ms
    (row,) = stalls(records, since + 5 * MINUTE)
    assert (row.value, row.subject, row.evidence) == (5 * MINUTE, f"{TOPIC_ID}-0", (records[1].at,))
    assert "offset 4 blocks it, 2 records wait" in row.detail
    assert stalls(records, since + 5 * MINUTE - 1) == []
    assert stalls(records, since + 5 * MINUTE, assigned=None) == []


def test_a_first_offset_that_stays_while_later_ones_are_settled_is_a_stall() -> None:
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(1, 3, 2, 1)], 3)]
    log.offset += 300
    records.append(log.update(0, [(4, 9, 2, 1)], 9))
    (row,) = stalls(records, records[2].at.timestamp_ms)
    assert "the first unsettled offset stays" in row.detail
    assert row.evidence == (records[1].at,)
    moved = [*records[:2], log.update(0, [(0, 0, 2, 2)], 4)]
    assert stalls(moved, moved[2].at.timestamp_ms) == []


def test_records_that_a_member_may_be_at_work_on_are_no_more_than_a_notice() -> None:
    """Nothing is said of offsets 0 to 2: a member that works on them renews its lock, or compaction removed them.

    Locks are not written: that one member has the share partition does not say that it holds the records.
    """
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(3, 5, 2, 1)], 3)]
    since = records[1].at.timestamp_ms
    (row,) = stalls(records, since + 5 * MINUTE)
    assert (row.value, row.level, row.subject) == (5 * MINUTE, "notice", f"{TOPIC_ID}-0")
    assert "offset 0 blocks it, 0 records wait for the next delivery; 3 offsets in the hands of members" in row.detail
    assert stalls(records, since + 5 * MINUTE - 1) == []
    log.offset += 300
    records.append(log.update(0, [(6, 7, 2, 1), (8, 8, 0, 1)], 5))
    (row,) = stalls(records, records[2].at.timestamp_ms)
    assert (row.value, row.level, row.evidence) == (301_000, "notice", (records[1].at,)), "8 waits, and does not block"


def test_records_that_wait_block_what_is_settled_behind_them() -> None:
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(0, 0, 0, 1), (1, 3, 2, 1)], 3)]
    log.offset += 300
    records.append(log.update(0, [(4, 9, 2, 1)], 9))
    (row,) = stalls(records, records[2].at.timestamp_ms)
    assert (row.value, row.level, row.evidence) == (301_000, "alarm", (records[1].at,))
    assert stalls(records, records[2].at.timestamp_ms, assigned=3) == [], "for less than 5 min"


def test_what_waits_while_no_member_can_take_it_is_no_stall() -> None:
    """A member that came takes at once what is there: retention deleted what waited before, which nothing says. While
    the share state has no coordinator, or where the log is not read to its end, nothing tells what was settled.
    """
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(0, 3, 2, 1), (4, 5, 0, 2)], 4)]
    now_ms = 60 * MINUTE
    assert len(stalls(records, now_ms)) == 1
    assert stalls(records, now_ms, assigned=2) == stalls(records, now_ms, lost=2) == []


@pytest.mark.parametrize("place", [(TOPIC_ID, 0), (SHARE_LOG, 0)], ids=["the partition", "its state"])
def test_a_share_partition_stalls_only_while_it_and_its_state_have_a_leader(place: tuple[str, int]) -> None:
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(0, 3, 2, 1), (4, 5, 0, 2)], 4)]
    now_ms, back_ms = 60 * MINUTE, 55 * MINUTE
    assert stalls(records, now_ms, led_again={place: None}) == []
    (row,) = stalls(records, now_ms, led_again={place: back_ms, ("other", 0): None})
    assert (row.value, stalls(records, now_ms, led_again={place: back_ms + 1})) == (5 * MINUTE, [])
    assert "or it has no leader" not in row.detail
    (row,) = stalls(records, now_ms, reach=NO_REACH)
    assert row.detail.endswith("; or it has no leader: the metadata log, which would show it, does not reach so far")


def test_offsets_of_an_aborted_transaction_block_nothing() -> None:
    """Offsets 0 to 2 are complete without a state: the start moves past them with a later write."""
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(3, 5, 2, 1)], 6)]
    log.offset += 300
    records.append(log.update(0, [(6, 9, 2, 1)], 10))
    assert stalls(records, records[2].at.timestamp_ms) == []


def test_offsets_of_an_aborted_transaction_are_not_locked() -> None:
    """Offsets 0 to 2 are complete without a state in the log."""
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(3, 5, 2, 1)], 6)]
    assert stalls(records, records[1].at.timestamp_ms + 60 * MINUTE) == []


def test_a_share_partition_that_is_settled_does_not_stall() -> None:
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(0, 3, 2, 1)], 4)]
    assert stalls(records, records[1].at.timestamp_ms + 60 * MINUTE) == []


# --- initialization --------------------------------------------------------------------------------------------------


def initializing(log: GroupLog, topics: dict[str, tuple[str, list[int]]]) -> AnyRecord:
    listed = [{"topicId": i, "topicName": name, "partitions": p} for i, (name, p) in topics.items()]
    return log.share_state({}, initializingTopics=listed)


def phases(records: Iterable[AnyRecord]) -> list[Any]:
    return list(fold(records, Group("g", from_start=True), None, WHOLE))


ORDERS = {TOPIC_ID: ("orders", [0])}


def test_an_initialization_that_never_ends_bridges_the_lists_that_went_empty() -> None:
    log = GroupLog()
    records = [log.share_member("m1"), initializing(log, ORDERS)]
    log.offset += 30
    records += [log.share_state({}), initializing(log, ORDERS)]
    since = records[1].at
    (row,) = found(FindingKind.SHARE_INITIALIZING, phases(records), since.timestamp_ms + MINUTE)
    assert (row.value, row.subject, row.evidence) == (MINUTE, "orders", (since, records[3].at))
    assert "the share state of orders 0 was asked for 2 times in 1 min" in row.detail
    assert found(FindingKind.SHARE_INITIALIZING, phases(records), since.timestamp_ms + MINUTE - 1) == []
    done = [*records, log.share_state(ORDERS)]
    assert found(FindingKind.SHARE_INITIALIZING, phases(done), since.timestamp_ms + 10 * MINUTE) == []


def test_what_nobody_subscribes_to_any_more_is_not_waited_for() -> None:
    log = GroupLog()
    records = [log.share_member("m1"), initializing(log, {TOPIC_ID: ("mail", [0])})]
    assert found(FindingKind.SHARE_INITIALIZING, phases(records), 10 * MINUTE) == []


def test_a_deletion_that_never_ends_is_found() -> None:
    log = GroupLog()
    deleting = [{"topicId": TOPIC_ID, "topicName": "orders"}]
    records = [log.share_state(ORDERS), log.share_state({}, deletingTopics=deleting)]
    (row,) = found(FindingKind.SHARE_INITIALIZING, phases(records), 10 * MINUTE)
    assert "the deletion of the share state of orders has lasted" in row.detail
    assert found(FindingKind.SHARE_INITIALIZING, phases([*records, log.share_state({})]), 10 * MINUTE) == []


# --- two logs --------------------------------------------------------------------------------------------------------


def test_an_initialized_share_partition_without_state_is_an_orphan() -> None:
    log = GroupLog()
    records = [log.share_member("m1"), initializing(log, ORDERS), log.share_state(ORDERS)]
    (row,) = found(FindingKind.SHARE_STATE_ORPHANED, phases(records))
    assert row.detail == "1 share partition initialized without state in __share_group_state: orders-0"
    assert (row.evidence, row.log_topic) == ((records[2].at,), "__consumer_offsets")
    assert found(FindingKind.SHARE_STATE_ORPHANED, [*phases(records), *share_rows([ShareLog().snapshot()])]) == []


@pytest.mark.parametrize(
    "logs",
    [ShareLogs({0: MINUTE}, frozenset()), ShareLogs({0: 1_999}, frozenset((0,))), ShareLogs({}, frozenset())],
    ids=["not from its beginning", "ends before", "not there"],
)
def test_a_state_log_that_was_not_read_as_far_proves_no_orphan(logs: ShareLogs) -> None:
    log = GroupLog()
    records = [log.share_member("m1"), initializing(log, ORDERS), log.share_state(ORDERS)]
    assert found(FindingKind.SHARE_STATE_ORPHANED, phases(records), logs=logs) == []


def test_state_that_its_group_has_not_is_an_orphan() -> None:
    log = GroupLog()
    group = phases([initializing(log, ORDERS), log.share_state(ORDERS), log.share_state({})])
    state = share_rows([ShareLog().snapshot()])
    (row,) = found(FindingKind.SHARE_STATE_ORPHANED, [*group, *state])
    assert row.detail.startswith("1 share partition with state in __share_group_state that the group does not list: ")
    assert row.log_topic == "__share_group_state"
    group_goes_on = phases([initializing(GroupLog(), ORDERS)])
    assert found(FindingKind.SHARE_STATE_ORPHANED, [*group_goes_on, *state]) == []
    of_4_0, log = {"epoch": 1}, GroupLog()
    early = phases([log.share_member("m1"), log.record(RecordType.SHARE_GROUP_METADATA, of_4_0)])
    assert found(FindingKind.SHARE_STATE_ORPHANED, [*early, *state]) == [], "brokers of 4.0 do not record it"
    log = GroupLog()
    today = [log.share_member("m1"), log.record(RecordType.SHARE_GROUP_METADATA, {**of_4_0, "metadataHash": 7})]
    assert len(found(FindingKind.SHARE_STATE_ORPHANED, [*phases(today), *state])) == 1
    assert found(FindingKind.SHARE_STATE_ORPHANED, state) == []


def test_state_of_a_group_that_no_log_has_is_an_orphan() -> None:
    """Group ``g`` would be in partition 0 of the log of groups, which goes on after the state was written."""
    records = [ShareLog().snapshot()]
    whole = ShareLogs({0: MINUTE}, frozenset((0,)), {0: MINUTE})
    state = share_rows(records)

    def orphans(logs: ShareLogs, partitions: dict[str, int]) -> list[FindingRow]:
        history = GroupHistory.gather("g", 0, state, at_end(partitions), logs)
        return [row for row in findings(history, LIMITS) if row.kind == FindingKind.SHARE_STATE_ORPHANED]

    (row,) = orphans(whole, {GROUP_LOG: 1})
    assert row.detail == (
        "1 share partition with state in __share_group_state of a group that is not in __consumer_offsets: "
        f"{TOPIC_ID}-0"
    )
    assert (row.evidence, row.group_type) == ((records[0].at,), None)
    assert orphans(whole, {}) == []
    assert orphans(whole._replace(groups_ms={}), {GROUP_LOG: 1}) == []
    assert orphans(whole._replace(groups_ms={0: records[0].at.timestamp_ms - 1}), {GROUP_LOG: 1}) == []


def test_the_log_partition_of_a_share_partition() -> None:
    """As Kafka's ``SharePartitionKey.asCoordinatorKey`` hashes, in the recorded log."""
    assert log_partition_of("warehouse:33wrwoMERUuCw4D2_Gu8bA:0", 2) == 0
    assert log_partition_of("warehouse:33wrwoMERUuCw4D2_Gu8bA:1", 2) == 1


def test_a_member_that_left_does_not_wait() -> None:
    gone = member("m1", at(1), at(2), group_type="SHARE", subscribed_topics=("orders",))
    rows = phases([initializing(GroupLog(), ORDERS)])
    assert found(FindingKind.SHARE_INITIALIZING, [*rows, gone], 10 * MINUTE) == []
