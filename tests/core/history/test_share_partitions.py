"""The rows of ``share_partitions``: of the recorded log against what its clients did, and of logs made by hand."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from coordinator_core.audit.rules.share_state import judge_share_state
from coordinator_core.groups.share.delivery import DeliveryState, changes
from coordinator_core.groups.share.state_log import SharePartition, ShareStateLog, next_state
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.rows import OffsetRange, SharePartitionRow, StateCount
from coordinator_core.history.share_partitions import OpenShareHistory, SharePartitionFold
from coordinator_core.records import AnyRecord
from tests.core.groups.share_delivery import Line, decoded_records, known_lines
from tests.core.share_log import ShareLog

WHOLE = Coverage({0: [(0, 10_000)], 1: [(0, 10_000)]})
WANTED = {"accept": DeliveryState.ACKNOWLEDGED, "release": DeliveryState.AVAILABLE, "reject": DeliveryState.ARCHIVED}


def rows_of(records: Iterable[AnyRecord], coverage: Coverage = WHOLE) -> list[SharePartitionRow]:
    """All rows, in the order in which they begin."""
    folds: dict[str, SharePartitionFold] = {}
    found: list[SharePartitionRow] = []
    for record in records:
        new = SharePartitionFold(OpenShareHistory(record.group_id), None, coverage)
        found += folds.setdefault(record.group_id, new).feed(record)
    for fold in folds.values():
        found += fold.open_rows()
    return sorted(found, key=lambda row: (row.since.timestamp_ms, row.since.partition, row.since.offset))


def topic_names() -> dict[str, str]:
    admin = [line for line in known_lines("truth") if line["row"] == "admin"]
    return {topic["id"]: name for line in admin for name, topic in line["topics"].items()}


# --- the recorded log ------------------------------------------------------------------------------------------------


def test_start_offset_leader_epoch_and_lag_are_what_admin_said() -> None:
    """Lag is the end offset of the data, less start offset, less complete deliveries: records in flight count."""
    log, read = ShareStateLog(), dict.fromkeys((0, 1), 0)
    waiting: dict[int, list[AnyRecord]] = defaultdict(list)
    for record in decoded_records():
        waiting[record.at.partition].append(record)
    compared: Counter[str] = Counter()
    for line in known_lines("truth"):
        if line["row"] != "admin" or not line["stable"]:
            continue
        for partition in read:
            end = line["log_ends"].get(f"__share_group_state-{partition}", 0)
            for record in waiting[partition][read[partition] : end]:
                log.apply(record)
            read[partition] = end
        compared.update(_compared(log, line))
    assert compared == {"equal": 545, "not set": 124}


def _compared(log: ShareStateLog, line: Line) -> Iterator[str]:
    ids = {name: topic["id"] for name, topic in line["topics"].items()}
    for group, told in line["groups"].items():
        for name, said in told.get("offsets", {}).items():
            topic, _, number = name.rpartition("-")
            state = log.partitions.get(SharePartition(group, ids.get(topic, ""), int(number)))
            if said is None:
                yield "not set" if state is None or state.start_offset == -1 else f"{group} {name} is set"
                continue
            assert state is not None
            end = line["data"][name]["end_offset"]
            lag = end - state.start_offset - state.delivery_complete_count
            found = {"start_offset": state.start_offset, "leader_epoch": state.leader_epoch, "lag": lag}
            yield "equal" if found == said else f"{group} {name}: {found}, not {said}"


def test_what_consumers_acknowledged_is_what_the_log_says_changed() -> None:
    """A release at the delivery limit is archived; an acknowledgement below the start offset writes nothing."""
    names, written = topic_names(), defaultdict(list)
    states = {}
    for record in decoded_records():
        which = SharePartition.of(record)
        before = states.get(which)
        states[which] = after = next_state(before, record)
        for change in changes(before.batches if before else (), after.batches if after else ()):
            if change.after is not None:
                place = (which.group_id, names.get(which.topic_id), which.partition)
                written[place].append((record.at.timestamp_ms, change))
    told: Counter[str] = Counter()
    for line in (line for line in known_lines("truth") if line["row"] == "delivery"):
        for ack in line["acknowledgements"]:
            if ack["result"] != "ok" or ack["type"] == "renew" or "sent_ms" not in ack:
                continue
            found = {
                change.after
                for at, change in written[line["group"], line["topic"], line["partition"]]
                if ack["sent_ms"] - 50 <= at <= ack["result_ms"] + 50 and change.first <= line["offset"] <= change.last
            }
            count, wanted = line["delivery_count"], WANTED[ack["type"]]
            if (wanted, count) in found:
                told["as sent"] += 1
            elif (DeliveryState.ARCHIVED, count) in found:
                told[f"{ack['type']}, archived"] += 1
            else:
                told["other" if found else "nothing written"] += 1
    assert told == {"as sent": 576, "release, archived": 7, "nothing written": 17}


def test_records_by_state_add_up() -> None:
    rows = rows_of(decoded_records())
    assert len(rows) == 226
    assert Counter(row.write for row in rows) == {
        "delivery": 164,
        "leader changed": 31,
        "initialized": 27,
        "altered": 4,
    }
    for row in rows:
        assert row.history_complete
        assert row.missing is None
        counted: Counter[str] = Counter()
        for state, _, records in row.counts:
            counted[state] += records
        assert (
            counted
            == Counter(available=row.available, acknowledged=row.acknowledged, archived=row.archived) - Counter()
            or not row.counts
        )
        if row.start_offset is not None and row.end_offset is not None:
            assert counted.total() + (row.unknown or 0) == row.end_offset - row.start_offset


def test_records_deleted_under_the_group_are_passed_over() -> None:
    rows = [row for row in rows_of(decoded_records()) if row.passed_over]
    assert [(row.group_id, row.start_offset, row.passed_over) for row in rows] == [("mailer", 15, 6)]


def test_altered_offsets_are_seen() -> None:
    rows = [row for row in rows_of(decoded_records()) if row.write == "altered"]
    found = sorted((row.group_id, row.partition, row.start_offset or 0) for row in rows)
    assert found == [("planned", 1, 2), ("replay", 0, 15), ("replay", 1, 39), ("replay", 2, 12)]


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_a_cold_snapshot_and_a_repeated_one_make_no_row() -> None:
    log = ShareLog()
    batches = [(0, 3, 2, 1), (4, 4, 0, 1)]
    records = [log.snapshot(), log.update(0, batches, 4), log.snapshot(0, batches, 4, writeTimestamp=9)]
    assert [row.write for row in rows_of(records)] == ["initialized", "delivery"]


def test_what_a_write_does_is_told_with_its_offsets() -> None:
    log = ShareLog()
    records = [
        log.snapshot(),
        log.update(0, [(0, 3, 2, 1), (4, 5, 0, 1), (6, 6, 4, 1)], 5),
        log.update(0, [(4, 4, 0, 2), (5, 5, 4, 2), (9, 9, 2, 1)], 7),
        log.tombstone(),
    ]
    _, first, second = rows_of(records)
    assert (first.accepted_now, first.released_now, first.archived_now, first.redelivered_now) == (
        4,
        (OffsetRange(4, 5, 1),),
        (OffsetRange(6, 6, 1),),
        0,
    )
    assert (second.released_now, second.archived_now, second.redelivered_now) == (
        (OffsetRange(4, 4, 2),),
        (OffsetRange(5, 5, 2),),
        2,
    )
    assert (first.start_offset, first.next_offset, first.end_offset, first.unknown) == (0, 4, 7, 0)
    assert (second.next_offset, second.end_offset, second.unknown) == (4, 10, 2)
    assert second.counts == (
        StateCount("available", 2, 1),
        StateCount("acknowledged", 1, 5),
        StateCount("archived", 1, 1),
        StateCount("archived", 2, 1),
    )
    assert second.advanced == records[1].at
    assert (first.until, first.ended_by) == (records[2].at, "next write")
    assert (second.until, second.ended_by, second.is_open) == (records[3].at, "state deleted", False)


def test_after_a_gap_counts_are_unknown_until_the_next_snapshot() -> None:
    log = ShareLog()
    records = [log.snapshot(), log.update(0, [(0, 3, 2, 1)], 4)]
    log.offset += 2
    batches = [(0, 6, 2, 1)]
    records += [log.update(0, [(5, 5, 2, 1)], 6), log.snapshot(0, batches, 7), log.update(0, [(7, 7, 2, 1)], 8)]
    *_, after_gap, snapshot, last = rows_of(records, Coverage({0: [(0, 1), (4, 6)]}))
    assert (after_gap.acknowledged, after_gap.unknown, after_gap.next_offset, after_gap.counts) == (
        None,
        None,
        None,
        (),
    )
    assert (after_gap.start_offset, after_gap.complete, after_gap.history_complete) == (0, 6, False)
    assert after_gap.missing == "records of __share_group_state-0 after offset 1, up to offset 4"
    assert (snapshot.acknowledged, snapshot.history_complete) == (7, False)
    assert (last.acknowledged, last.history_complete, last.missing) == (8, True, None)
    # It may have moved to 7 in the gap. Where it moves to 8 is seen again.
    assert (snapshot.next_offset, snapshot.advanced, snapshot.next_offset_shown) == (7, None, records[3].at)
    assert (last.next_offset, last.advanced, last.next_offset_shown) == (8, records[4].at, records[4].at)


def test_a_log_that_begins_in_the_middle_knows_only_what_its_records_say() -> None:
    log = ShareLog()
    log.offset = 50
    records = [log.update(4, [(6, 7, 2, 2)], 2), log.snapshot(4, [(4, 5, 0, 1), (6, 7, 2, 2)], 2)]
    first, second = rows_of(records, Coverage({0: [(50, 51)]}))
    assert (first.write, first.start_offset, first.acknowledged) == ("first seen", 4, None)
    assert (first.accepted_now, first.redelivered_now, first.state_epoch) == (2, 2, None)
    assert first.missing == "records of __share_group_state-0 from the beginning of the log, up to offset 50"
    assert (second.available, second.acknowledged, second.history_complete) == (2, 2, False)


def test_updates_behind_a_snapshot_that_is_lost_break_no_rule() -> None:
    """Offset 1 is missing; the updates behind it name the snapshot that was there."""
    log = ShareLog()
    first, _lost = log.snapshot(), log.snapshot()
    records = [first, log.update(0, [(0, 3, 2, 1)], 4), log.update(0, [(4, 5, 2, 1)], 6)]
    fold = SharePartitionFold(OpenShareHistory("g"), None, Coverage({0: [(0, 0), (2, 3)]}))
    for record in records:
        assert judge_share_state(fold.known_before(record), record) == []
        fold.feed(record)
