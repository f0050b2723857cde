"""The leader of a share partition and its share coordinator, in scripts that Kafka's own classes answered."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.coordinator.share.delivery_types import (
    Acknowledge,
    Acknowledgement,
    DeliverySettings,
    LogBatch,
    StateWrite,
)
from coordinator_core.coordinator.share.leader import SharePartitionLeader
from tests.core.coordinator.share_delivery import Line, ModelOfDelivery

RECORDED = Path(__file__).parents[2] / "data" / "share_leader.jsonl.gz"


def recorded_lines() -> list[Line]:
    with gzip.open(RECORDED, "rt") as lines:
        return [json.loads(line) for line in lines]


def test_what_kafka_did_is_what_the_model_does():
    model = ModelOfDelivery()
    done: Counter[str] = Counter()
    for number, line in enumerate(recorded_lines()):
        assert model.do_again(line) == line, f"line {number + 1}"
        done[line["op"]] += 1
    assert done["acknowledge"] > 400
    assert done["fetch"] > 500
    assert done["lead"] > 40


def test_the_scripts_have_all_that_can_happen():
    lines = recorded_lines()
    states = Counter(
        (batch["deliveryState"], record["type"])
        for line in lines
        for record in line.get("records", ())
        for batch in (record["value"] or {}).get("stateBatches", ())
    )
    assert set(states) == {(state, kind) for state in (0, 2, 4) for kind in (0, 1)}
    errors = Counter(line["error"] for line in lines if line.get("error"))
    assert set(errors) >= {"INVALID_RECORD_STATE", "INVALID_REQUEST", "NOT_LEADER_OR_FOLLOWER"}
    assert sum(_leaves_aborted_out(lines)) >= 5


def _leaves_aborted_out(lines: list[Line]) -> Iterator[bool]:
    """Of each fetch that got records: whether it went around a batch of an aborted transaction."""
    aborted: list[Line] = []
    for line in lines:
        if line["op"] == "header":
            aborted = []
        if line.get("aborted"):
            aborted.append(line)
        if line["op"] == "fetch" and line["deliveries"]:
            first, last = line["deliveries"][0][0], line["deliveries"][-1][1]
            inside = [each for each in aborted if first < each["first"] and each["last"] < last]
            gotten = {offset for begin, end, _ in line["deliveries"] for offset in range(begin, end + 1)}
            yield any(each["first"] not in gotten for each in inside)


class Leader:
    """A leader with ten records in its log, and what it has written."""

    def __init__(self, **settings: int) -> None:
        self.written: list[StateWrite] = []
        self.leader = SharePartitionLeader(DeliverySettings(**settings), self.written.append, 0)

    def fetch(self, member_id: str, now: int = 0, most: int = 500) -> list[tuple[int, int, int]]:
        offset = self.leader.next_fetch_offset
        fetched = [LogBatch(offset, offset) for offset in range(offset, 10)]
        found = self.leader.acquire(member_id, offset, fetched, now, most_records=most, batch_size=500)
        return [tuple(each) for each in found]

    def say(self, member_id: str, first: int, last: int, kind: Acknowledge, now: int = 0) -> None:
        self.leader.acknowledge(member_id, [Acknowledgement(first, last, (kind,))], now)

    @property
    def last_batches(self) -> list[tuple[int, int, int, int]]:
        return [tuple(each) for each in self.written[-1].batches]


def test_a_released_record_is_delivered_again_until_its_limit():
    here = Leader(delivery_limit=2)
    assert here.fetch("a", most=2) == [(0, 1, 1)]
    here.say("a", 0, 0, Acknowledge.RELEASE)
    assert here.last_batches == [(0, 0, 0, 1)]
    assert here.fetch("b", most=1) == [(0, 0, 2)]
    here.say("b", 0, 0, Acknowledge.RELEASE)
    assert here.last_batches == [(0, 0, 4, 2)]
    assert here.leader.start_offset == 1


def test_a_batch_of_an_aborted_transaction_is_settled_without_a_word():
    written: list[StateWrite] = []
    leader = SharePartitionLeader(DeliverySettings(reads_committed=True), written.append, 0)
    log = [LogBatch(0, 1), LogBatch(2, 3, is_aborted=True), LogBatch(4, 5)]
    deliveries = leader.acquire("a", 0, log, 0, most_records=500, batch_size=500)
    assert [tuple(each) for each in deliveries] == [(0, 1, 1), (4, 5, 1)]
    assert (leader.delivery_complete_count, written) == (2, [])
    leader.acknowledge("a", [Acknowledgement(0, 1, (Acknowledge.ACCEPT,))], 1)
    assert [tuple(each) for each in written[-1].batches] == [(0, 1, 2, 1)]
    assert leader.start_offset == 4


def test_a_lock_that_ends_is_a_release():
    here = Leader(lock_ms=1_000)
    assert here.fetch("a", now=5, most=3) == [(0, 2, 1)]
    assert here.leader.next_deadline_ms == 1_005
    here.leader.expire(1_004)
    assert not here.written
    here.leader.expire(1_005)
    assert here.last_batches == [(0, 2, 0, 1)]
    with pytest.raises(ApiError) as refused:
        here.say("a", 0, 2, Acknowledge.ACCEPT)
    assert refused.value.code is ErrorCode.INVALID_RECORD_STATE


def test_a_renewed_lock_ends_later():
    here = Leader(lock_ms=1_000)
    here.fetch("a", most=3)
    here.say("a", 0, 2, Acknowledge.RENEW, now=900)
    assert here.leader.next_deadline_ms == 1_900
    assert not here.written


def test_what_a_lost_session_held_keeps_its_count():
    here = Leader()
    here.fetch("a", most=2)
    here.fetch("b", most=2)
    here.leader.release("a")
    assert here.last_batches == [(0, 1, 0, 1)]
    assert here.fetch("b", most=1) == [(0, 1, 2)]


def test_one_wrong_acknowledgement_undoes_the_others_of_its_request():
    here = Leader()
    here.fetch("a", most=2)
    here.fetch("b", most=2)
    said = [Acknowledgement(0, 1, (Acknowledge.ACCEPT,)), Acknowledgement(2, 3, (Acknowledge.ACCEPT,))]
    with pytest.raises(ApiError):
        here.leader.acknowledge("a", said, 0)
    assert not here.written
    assert here.leader.delivery_complete_count == 0
    here.say("a", 0, 1, Acknowledge.ACCEPT)
    assert here.last_batches == [(0, 1, 2, 1)]


def test_the_start_moves_behind_what_is_settled_one_write_later():
    here = Leader()
    here.fetch("a", most=4)
    here.say("a", 2, 3, Acknowledge.ACCEPT)
    here.say("a", 0, 1, Acknowledge.REJECT)
    assert [(each.start_offset, each.delivery_complete_count) for each in here.written] == [(0, 2), (0, 4)]
    assert here.leader.start_offset == 4


def test_only_so_many_records_are_locked_at_a_time():
    here = Leader(most_locks=3)
    assert here.fetch("a") == [(0, 2, 1)]
    assert not here.leader.may_acquire
    assert here.fetch("b") == []
