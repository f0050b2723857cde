"""Each rule of the share state log, broken once by hand; the recorded logs, and what they allow, break none."""

from collections.abc import Iterable

import pytest

from coordinator_core.audit.group_audit import ShareAudit
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import AnyRecord
from tests.core.groups.share_delivery import decoded_records
from tests.core.share_log import ShareLog

WHOLE = Coverage({0: [(0, 10_000)], 1: [(0, 10_000)]})


def broken(records: Iterable[AnyRecord], coverage: Coverage = WHOLE) -> list[Violation]:
    audits: dict[str, ShareAudit] = {}
    found: list[Violation] = []
    for record in records:
        audit = audits.setdefault(record.group_id, ShareAudit.begin(record.group_id, None, coverage))
        found += [row for row in audit.feed(record) if isinstance(row, Violation)]
    return found


def test_no_rule_fires_on_the_recorded_log() -> None:
    assert broken(decoded_records()) == []


def update_without_snapshot(log: ShareLog) -> list[AnyRecord]:
    return [log.update()]


def snapshot_epoch_wrong(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.snapshot(snapshotEpoch=2)]


def first_snapshot_epoch_wrong(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(snapshotEpoch=1)]


def update_of_another_snapshot(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.update(snapshotEpoch=3)]


def state_epoch_went_back(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(stateEpoch=4), log.snapshot(stateEpoch=3)]


def leader_epoch_went_back(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.update(leaderEpoch=3), log.update(leaderEpoch=2)]


def leader_epoch_went_back_in_a_snapshot(log: ShareLog) -> list[AnyRecord]:
    batches = [(0, 0, 2, 1)]
    return [log.snapshot(0, batches, leaderEpoch=3), log.snapshot(0, batches, leaderEpoch=2)]


def acknowledged_and_delivered_again(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.update(0, [(0, 5, 2, 1)], 6), log.update(0, [(5, 5, 0, 2)], 6)]


def unknown_delivery_state(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.update(0, [(0, 5, 1, 1)])]


def delivery_state_of_a_newer_release(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.update(0, [(0, 4, 2, 1), (5, 5, 3, 1)]), log.update(0, [(5, 5, 5, 1)])]


def batches_that_overlap(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.update(0, [(0, 5, 2, 1), (5, 6, 0, 1)])]


def batch_below_the_start(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.update(4, [(3, 5, 2, 1)])]


def batch_that_ends_before_it_begins(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.update(0, [(5, 3, 2, 1)])]


def start_offset_went_back(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.update(8), log.update(6)]


def tombstone_without_state(log: ShareLog) -> list[AnyRecord]:
    return [log.snapshot(), log.tombstone(), log.tombstone()]


BROKEN = {
    update_without_snapshot: Rule.SHARE_UPDATE_WITHOUT_SNAPSHOT,
    snapshot_epoch_wrong: Rule.SHARE_SNAPSHOT_EPOCH_WRONG,
    first_snapshot_epoch_wrong: Rule.SHARE_SNAPSHOT_EPOCH_WRONG,
    update_of_another_snapshot: Rule.SHARE_SNAPSHOT_EPOCH_WRONG,
    state_epoch_went_back: Rule.SHARE_STATE_EPOCH_WENT_BACK,
    leader_epoch_went_back: Rule.SHARE_LEADER_EPOCH_WENT_BACK,
    leader_epoch_went_back_in_a_snapshot: Rule.SHARE_LEADER_EPOCH_WENT_BACK,
    acknowledged_and_delivered_again: Rule.SHARE_SETTLED_AGAIN,
    unknown_delivery_state: Rule.SHARE_BATCH_WRONG,
    delivery_state_of_a_newer_release: Rule.SHARE_STATE_NEW,
    batches_that_overlap: Rule.SHARE_BATCH_WRONG,
    batch_below_the_start: Rule.SHARE_BATCH_WRONG,
    batch_that_ends_before_it_begins: Rule.SHARE_BATCH_WRONG,
    start_offset_went_back: Rule.SHARE_START_OFFSET_WENT_BACK,
    tombstone_without_state: Rule.SHARE_TOMBSTONE_WITHOUT_STATE,
}


@pytest.mark.parametrize("make", BROKEN, ids=lambda make: make.__name__)
def test_a_rule_is_broken_by_its_last_record(make) -> None:
    records = make(ShareLog())
    (found,) = broken(records)
    assert (found.rule, found.at) == (BROKEN[make], records[-1].at)
    assert found.detail.startswith("__share_group_state-0: ")


def test_every_rule_of_the_share_state_log_is_tested() -> None:
    of_initializations = {Rule.SHARE_STATE_MISSING, Rule.SHARE_STATE_LOST}
    assert {rule for rule in Rule if rule.startswith("share_")} - of_initializations == {*BROKEN.values()}


def test_what_kafka_writes_breaks_no_rule() -> None:
    """An altered offset, a cold snapshot, an initialization that is repeated, a deletion, and a new life."""
    log = ShareLog()
    records = [
        log.snapshot(),
        log.update(0, [(0, 3, 2, 1), (4, 4, 0, 1)], 4, leaderEpoch=4),
        log.snapshot(0, [(0, 3, 2, 1), (4, 4, 0, 1)], 4, leaderEpoch=4, writeTimestamp=60_000),
        log.update(-1, [], 4, leaderEpoch=-1),
        log.snapshot(2, [], 0, stateEpoch=5),
        log.update(2, [(2, 9, 2, 1)], 8),
        log.snapshot(stateEpoch=6),
        log.tombstone(),
        log.snapshot(),
        log.update(0, [(0, 0, 4, 1)], 1),
    ]
    assert broken(records) == []


def test_where_a_record_may_be_missing_nothing_is_judged_that_it_could_explain() -> None:
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(0, 5, 2, 1)], 6, leaderEpoch=3)]
    log.offset += 1
    records.append(log.update(0, [(5, 5, 0, 2)], 6, leaderEpoch=2, snapshotEpoch=1))
    with_gap = Coverage({0: [(0, 1), (3, 3)]})
    assert broken(records, with_gap) == []
    assert broken([log.update()], Coverage({0: [(log.offset, log.offset)]})) == []


def test_the_state_goes_through_json() -> None:
    whole, pieces = ShareAudit.begin("warehouse", None, WHOLE), ShareAudit.begin("warehouse", None, WHOLE)
    for record in (each for each in decoded_records() if each.group_id == "warehouse"):
        pieces = ShareAudit.resume(pieces.state(), None, WHOLE)
        assert pieces.feed(record) == whole.feed(record)
    assert pieces.open_rows() == whole.open_rows()
