"""Share delivery in simulations: what the state log says against what is true, and nothing found where nothing is."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from coordinator_core.audit.audited_rows import AuditedRow
from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.folds.group_history import GroupHistory, ShareLogs
from coordinator_core.audit.group_audit import ShareAudit
from coordinator_core.groups.share.delivery import DeliveryState
from coordinator_core.groups.share.state_log import ShareStateLog
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.rows import SharePartitionRow
from coordinator_core.records import AnyRecord, Family
from coordinator_core.simulator.group_course import share_states
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.simulator.topic_plan import plan_topics
from jobs.settings import load
from tests.core.audit.histories import assignment
from tests.core.known_topics import at_end
from tests.core.simulator.simulations import decoded, rows_of

Truth = list[dict[str, Any]]
CLUSTER = {"brokers": 3, "partitions": 2, "share_partitions": 1}
ORDERS = {"partitions": 3, "replicas": 2, "rate": 20}
GROUP = {"type": "share", "topics": ["orders"], "members": 2, "commits": {"every": "2s"}}
KEPT_ALL = {"releases": 0.02, "forgets": 0.01, "rejects": 0.005, "poison": 0.005}
CHAOS = {"every": "30s", "of": ["join", "leave", "crash", "deploy", "zombie"], "most": 4}


def simulated(seed: int = 1, **changes: Any) -> tuple[list[AnyRecord], Truth]:
    """The share state log of one group, and the truth about it."""
    cluster = CLUSTER | changes.pop("cluster", {})
    group = GROUP | changes
    lasts = group.pop("lasts", "10m")
    scenario = Scenario.model_validate(
        {"lasts": lasts, "cluster": cluster, "topics": {"orders": ORDERS}, "groups": {"g": group}}
    )
    states = share_states(scenario, plan_topics(scenario, seed), seed, 0)
    records = list(decoded(rows_of(states.run()), 0, Family.SHARE))
    return records, [*states.take_truth(), *states.last_truth()]


def audited(records: list[AnyRecord]) -> list[SharePartitionRow | Violation]:
    audit = ShareAudit.begin("g", None, Coverage({0: [(0, len(records) - 1)]}))
    return [*(row for record in records for row in audit.feed(record)), *audit.open_rows()]


def found(records: list[AnyRecord], rows: list[AuditedRow]) -> Iterator[FindingRow]:
    end_ms = records[-1].at.timestamp_ms
    logs = ShareLogs({0: end_ms}, frozenset((0,)))
    partitions = {"orders": 3, "__share_group_state": 1}
    history = GroupHistory.gather("g", end_ms, rows, at_end(partitions), logs)
    return iter(findings(history, load(environment={}).findings))


def totals(truth: Truth) -> Counter[str]:
    rows = [row for row in truth if row["kind"] == "share-offset"]
    return Counter({name: sum(row[name] for row in rows) for name in rows[0] if isinstance(rows[0][name], int)})


def test_members_that_accept_all_leave_nothing_to_find():
    records, truth = simulated()
    rows = audited(records)
    assert not [row for row in rows if isinstance(row, Violation)]
    assert not list(found(records, rows))
    happened = totals(truth)
    assert happened["accepted"] > 30_000
    assert not sum(happened[name] for name in ("rejected", "limit", "released", "timed_out", "redelivered", "refused"))


@pytest.mark.parametrize("seed", range(6))
def test_the_log_says_what_happened(seed):
    outages = [{"at": "3m", "broker": 1}, {"at": "6m", "broker": 0, "lasts": "90s"}]
    settings = {"share.record.lock.duration.ms": "15000", "share.auto.offset.reset": "earliest"}
    cluster = {"outages": outages, "config": {"share.coordinator.snapshot.update.records.per.snapshot": 20}}
    records, truth = simulated(seed, cluster=cluster, delivery=KEPT_ALL, chaos=CHAOS, config=settings)
    rows = audited(records)
    assert [row for row in rows if isinstance(row, Violation)] == []
    history = [row for row in rows if isinstance(row, SharePartitionRow)]
    happened = totals(truth)
    assert sum(row.accepted_now for row in history) == happened["accepted"]
    given_back = sum(each.last - each.first + 1 for row in history for each in row.released_now)
    assert given_back == happened["released"] + happened["timed_out"] + happened["session_ended"]
    given_up = sorted((each.first, each.last, each.delivery_count) for row in history for each in row.archived_now)
    told = [row for row in truth if row["kind"] == "share-archived"]
    assert sum(last - first + 1 for first, last, _ in given_up) == happened["rejected"] + happened["limit"]
    assert sum(row["last_offset"] - row["first_offset"] + 1 for row in told) == happened["rejected"] + happened["limit"]
    assert {row["delivery_count"] for row in told if row["why"] == "limit"} == {5}
    for name in ("released", "timed_out", "session_ended", "limit", "rejected", "redelivered"):
        assert happened[name], name
    assert max(row.leader_epoch for row in history) > 0
    (archived,) = [row for row in found(records, rows) if row.kind == FindingKind.SHARE_ARCHIVED]
    after_redelivery = [row for row in told if row["delivery_count"] > 1]
    assert archived.value == sum(row["last_offset"] - row["first_offset"] + 1 for row in after_redelivery)


@pytest.mark.parametrize(
    "habits", [{"releases": 0.3}, {"releases": 0.2, "forgets": 0.1}], ids=["released", "timed out"]
)
@pytest.mark.parametrize("minutes", [4, pytest.param(10, marks=pytest.mark.long)])
def test_redeliveries_are_found_as_they_were(habits, minutes):
    """All members leave in the end, so that each delivery has ended."""
    leave = {"at": f"{minutes - 1}m", "scale": 0}
    records, truth = simulated(delivery=habits, lasts=f"{minutes}m", events=[leave])
    again = [row for row in found(records, audited(records)) if row.kind == FindingKind.SHARE_REDELIVERED]
    assert [row.value for row in again] == [totals(truth)["redelivered"]]


def test_a_member_that_hangs_with_long_locks_stalls_its_partition():
    """It holds 40 records of one partition; the others settle what follows, until the partition has all its locks."""
    longest = {"group.share.max.record.lock.duration.ms": 3_600_000}
    records, truth = simulated(
        members=3,
        lasts="12m",
        events=[{"at": "2m", "zombie": {"lasts": "15m"}}],
        config={"share.record.lock.duration.ms": "3600000"},
        cluster={"config": longest},
    )
    rows = audited(records)
    current = [row for row in rows if isinstance(row, SharePartitionRow) and row.is_open]
    held = [
        assignment("m", row.partition, row.since, group_type="SHARE", topic_id=row.topic_id, topic="orders")
        for row in current
    ]
    (stall,) = [row for row in found(records, [*rows, *held]) if row.kind == FindingKind.SHARE_STALLED]
    (stuck,) = [row for row in truth if row["kind"] == "share-offset" and row["next_offset"] < 10_000]
    assert f"offset {stuck['next_offset']} blocks it" in stall.detail
    assert "40 offsets in the hands of members" in stall.detail
    assert stall.value == records[-1].at.timestamp_ms - stall.evidence[0].timestamp_ms


def test_a_record_that_nobody_can_process_is_given_up_at_the_limit():
    records, truth = simulated(delivery={"poison": 0.001}, config={"share.delivery.count.limit": "3"})
    told = [row for row in truth if row["kind"] == "share-archived"]
    assert told
    assert {(row["why"], row["delivery_count"], row["last_offset"] - row["first_offset"]) for row in told} == {
        ("limit", 3, 0)
    }
    log = ShareStateLog()
    for record in records:
        log.apply(record)
    batches = [batch for each in log.partitions.values() for batch in each.batches]
    assert all(batch.state != DeliveryState.AVAILABLE or batch.delivery_count < 3 for batch in batches)


def test_acknowledging_later_than_the_lock_ends_gives_everything_up():
    _, truth = simulated(commits={"every": "20s"}, config={"share.record.lock.duration.ms": "15000"})
    happened = totals(truth)
    assert happened["accepted"] == 0
    assert happened["limit"]
    assert happened["refused"]


def test_a_crash_gives_records_back_at_once_and_a_process_that_hangs_does_not():
    events = {"crash": {"at": "2m", "crash": 1}, "zombie": {"at": "2m", "zombie": {"lasts": "2m"}}}
    for action, name, other in (("crash", "session_ended", "timed_out"), ("zombie", "timed_out", "session_ended")):
        _, truth = simulated(members=1, events=[events[action]])
        happened = totals(truth)
        assert happened[name]
        assert not happened[other]


def test_a_partition_has_at_most_its_locks_in_flight():
    # 10 is moved to the lowest value, 100; 200 records come in between.
    records, truth = simulated(config={"share.partition.max.record.locks": "10"}, commits={"every": "10s"})
    log = ShareStateLog()
    for record in records:
        log.apply(record)
        assert all(each.end_offset - each.start_offset <= 100 for each in log.partitions.values())
    assert totals(truth)["accepted"]


def test_cold_partitions_get_a_snapshot():
    records, _ = simulated(events=[{"at": "1m", "scale": 0}], lasts="12m")
    cold = [
        record.value
        for record in records
        if record.value
        and record.value.get("createTimestamp") is not None
        and record.value["createTimestamp"] != record.value["writeTimestamp"]
    ]
    assert len(cold) == 3


def test_the_same_seed_gives_the_same_log():
    changes = {"delivery": KEPT_ALL, "chaos": CHAOS}
    assert simulated(5, **changes) == simulated(5, **changes)
    assert simulated(5, **changes) != simulated(6, **changes)


@pytest.mark.parametrize(
    "wrong", [{"type": "consumer", "delivery": {"poison": 0.1}}, {"delivery": {"releases": 0.6, "rejects": 0.6}}]
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(ValidationError):
        simulated(**wrong)


def test_records_of_aborted_transactions_are_left_out_in_silence():
    """The leader settles them without a word in the state: they are no gap in the work, and nobody gave them up."""
    habits = {"aborted": 0.02, "releases": 0.02}
    outages = [{"at": "3m", "broker": 1}]
    committed = {"share.isolation.level": "read_committed", "share.auto.offset.reset": "earliest"}
    records, truth = simulated(delivery=habits, config=committed, cluster={"outages": outages})
    rows = audited(records)
    history = [row for row in rows if isinstance(row, SharePartitionRow)]
    happened = totals(truth)
    assert happened["aborted"] > 500
    assert [row for row in rows if isinstance(row, Violation)] == []
    assert sum(row.accepted_now for row in history) == happened["accepted"]
    assert not any(row.archived_now for row in history)
    assert all(row.kind != FindingKind.SHARE_ARCHIVED for row in found(records, rows))
    ends = [row for row in truth if row["kind"] == "share-offset"]
    settled = sum(row["next_offset"] for row in ends)
    assert 0 <= happened["accepted"] + happened["aborted"] - settled < 500, "the rest is settled above the start"


def test_without_read_committed_members_get_records_of_aborted_transactions():
    records, truth = simulated(delivery={"aborted": 0.02})
    plain, _ = simulated()
    assert totals(truth)["aborted"] == 0
    assert [(each.key, each.value) for each in records] == [(each.key, each.value) for each in plain]
