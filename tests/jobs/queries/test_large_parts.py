"""Commits that are left out of large parts of a log: those that others overwrite, and those of other groups."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.history.knowledge import Knowledge
from coordinator_core.records import CoordinatorRecord, Fields, LogPosition, RecordType
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.control import ABORT, COMMIT
from coordinator_core.wire.record_codec import encode_key
from jobs.queries.from_logs import log_partition, taken_rows
from jobs.queries.from_logs.answers import replay
from jobs.queries.from_logs.history import group_histories
from jobs.relations.moment import AsOf
from jobs.sources.files import LogFile, find_logs
from tests.jobs.logs import batch, marker, write_segment

PRODUCERS = (7, 8)
GROUPS = ("group-a", "group-b")
TOPIC_IDS = {"orders": ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"], "payments": ["AAAAAAAAAAAAAAAAAAAAAw"]}


class MadeLog:
    """A log of commits that mostly go forward, with all that may lie between them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.offset, self.time_ms, self.committed = 0, 1_000, 0
        self.topic_id = TOPIC_IDS["orders"][0]
        self.batches: list[bytes] = []

    def fill(self, events: int) -> list[bytes]:
        weights = {
            self.commit: 40,
            self.commit_in_transaction: 2,
            self.end_transaction: 2,
            self.remove: 1,
            self.rebalance: 1,
            self.unreadable: 1,
            self.missing: 1,
            self.damaged: 1,
            self.compacted: 2,
        }
        for event in self.rng.choices(list(weights), list(weights.values()), k=events):
            event()
        return self.batches

    def add(self, record_type: int, key: Fields, value: Fields | None, producer: int | None = None) -> None:
        record = CoordinatorRecord(self.place(), record_type, key, value)
        self.batches.append(batch(record, producer_id=producer))

    def place(self) -> LogPosition:
        self.offset += 1
        self.time_ms += self.rng.choice((0, 10, 900, 5_000))
        return LogPosition(0, self.offset - 1, self.rng.choice((self.time_ms, self.time_ms, -1)))

    def commit(self, producer: int | None = None, *, is_removed: bool = False) -> None:
        topic = self.rng.choice(list(TOPIC_IDS))
        key = {"group": self.rng.choice(GROUPS), "topic": topic, "partition": self.rng.randrange(2)}
        self.committed += self.rng.choice((0, 1, 1, 1, 1, 5, -3))
        value = {
            "offset": max(0, self.committed),
            "leaderEpoch": -1,
            "metadata": "",
            "commitTimestamp": self.time_ms,
            "topicId": self.rng.choice(TOPIC_IDS[topic]) if self.rng.random() < 0.1 else TOPIC_IDS[topic][0],
        }
        self.add(RecordType.OFFSET_COMMIT, key, None if is_removed else value, producer)

    def forward(self) -> None:
        """A commit of the first group that goes forward."""
        self.committed += 1
        key = {"group": GROUPS[0], "topic": "orders", "partition": 0}
        value = {"offset": self.committed, "leaderEpoch": -1, "metadata": "", "commitTimestamp": self.time_ms}
        self.add(RecordType.OFFSET_COMMIT, key, {**value, "topicId": self.topic_id})

    def commit_in_transaction(self) -> None:
        self.commit(self.rng.choice(PRODUCERS))

    def end_transaction(self) -> None:
        at = self.place()
        kind, producer = self.rng.choice((COMMIT, ABORT)), self.rng.choice(PRODUCERS)
        self.batches.append(marker(kind, producer, at.offset, at.timestamp_ms))

    def remove(self) -> None:
        self.commit(is_removed=True)

    def rebalance(self) -> None:
        value = {"protocolType": "consumer", "generation": self.offset, "protocol": None, "leader": None, "members": []}
        value["currentStateTimestamp"] = self.time_ms
        is_removed = self.rng.random() < 0.2
        self.add(RecordType.GROUP_METADATA, {"group": self.rng.choice(GROUPS)}, None if is_removed else value)

    def unreadable(self) -> None:
        """A value of no known version; sometimes a key that is cut."""
        at, key = self.place(), {"group": self.rng.choice(GROUPS), "topic": "orders", "partition": 0}
        whole = encode_key(RecordType.OFFSET_COMMIT, key)
        cut = whole[:-2] if self.rng.random() < 0.2 else whole
        self.batches.append(encode_batch([NewRecord(at.offset, at.timestamp_ms, cut, b"\x00\x63")]))

    def missing(self) -> None:
        self.offset += 2

    def compacted(self) -> None:
        """A batch of which the record in the middle is gone."""
        key = {"group": self.rng.choice(GROUPS), "topic": "orders", "partition": 0}
        before, after = self.place(), self.place()._replace(offset=self.offset)
        self.offset += 1
        records = (CoordinatorRecord(at, RecordType.OFFSET_COMMIT, key, None) for at in (before, after))
        self.batches.append(batch(*records))

    def damaged(self) -> None:
        self.commit()
        self.batches[-1] = self.batches[-1][:-1] + bytes([self.batches[-1][-1] ^ 1])


def groups(logs: list[LogFile], moment: AsOf) -> tuple[list[GroupThen], object]:
    then = replay(logs, moment, lambda message: None)
    return list(then.groups()), (then.gaps(), then.span(), then.times, then.knowledge().lost, sorted(then.named()))


def history(logs: list[LogFile], wanted: str | None) -> tuple[list[GroupHistory], list[str], list[object]]:
    said: list[str] = []
    known: list[object] = []

    def note(knowledge: Knowledge) -> None:
        known.extend((knowledge.gaps, knowledge.lost, knowledge.first_ms, knowledge.last_ms, knowledge.whole_from_ms))

    histories = list(group_histories(logs, said.append, wanted, noted=note, over_time=True))
    known.append([each.trails for each in histories])  # two histories are equal whatever their trails
    without = [replace(each, commit_counts=[]) for each in histories]
    assert [*group_histories(logs, ignore, wanted)] == without
    return histories, said, known


def ignore(message: str) -> None:
    """Warnings are those of another reading."""


def skipped(taken: taken_rows.TakenRow) -> int:
    """The number of commits that were left out before this row."""
    return len(taken.passed[0]) if taken.passed else 0


@pytest.mark.parametrize("seed", range(4))
def test_a_history_needs_no_commits_of_others_and_few_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    log = MadeLog(seed)
    write_segment(tmp_path / "__consumer_offsets-0", log.fill(200))
    log.batches, second = [], log.offset
    write_segment(tmp_path / "__consumer_offsets-0", log.fill(200), second)
    logs = find_logs([tmp_path])
    expected = [history(logs, wanted) for wanted in (*GROUPS, None)]
    monkeypatch.setattr(taken_rows, "FEW", 1)
    assert [history(logs, wanted) for wanted in (*GROUPS, None)] == expected


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_those_of_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    write_segment(tmp_path / "__consumer_offsets-0", MadeLog(seed).fill(200))
    logs = find_logs([tmp_path])
    moments = (AsOf(), AsOf(200_000), AsOf(offsets={0: 150}))
    expected = [groups(logs, moment) for moment in moments]
    monkeypatch.setattr(taken_rows, "FEW", 1)
    assert [groups(logs, moment) for moment in moments] == expected


def test_most_commits_of_a_group_that_works_are_not_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taken_rows, "FEW", 1)
    log = MadeLog(1)
    for _ in range(200):
        log.commit()
    write_segment(tmp_path / "__consumer_offsets-0", log.batches)
    applied = []
    monkeypatch.setattr(log_partition.LogPartition, "_apply", lambda _, row: applied.append(row.offset))
    replay(find_logs([tmp_path]), AsOf(), lambda message: None)
    assert len(applied) == len(GROUPS) * len(TOPIC_IDS) * 2


def test_of_commits_that_go_forward_two_become_rows_and_of_other_groups_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taken_rows, "FEW", 1)
    log = MadeLog(1)
    for _ in range(200):
        log.commit()
    write_segment(tmp_path / "__consumer_offsets-0", log.batches)
    (file,) = find_logs([tmp_path])
    (part,) = file.parts()
    name = GROUPS[0].encode()
    taken = [*taken_rows.taken_rows(part, file.family, GROUPS[0])]
    of_group = [each for each in taken if name in each.row.key]
    assert len(taken) - len(of_group) <= 2  # the first and the last
    commits = sum(name in key for key in part.column("key").to_pylist())
    assert sum(1 + skipped(each) for each in of_group) == commits > 2 * len(of_group)


def _rebalance(log: MadeLog, group: str = GROUPS[0]) -> None:
    value = {"protocolType": "consumer", "generation": 1, "protocol": None, "leader": None, "members": []}
    log.add(RecordType.GROUP_METADATA, {"group": group}, {**value, "currentStateTimestamp": 1})


def _marker(log: MadeLog) -> None:
    log.batches.append(marker(COMMIT, 7, log.place().offset, log.time_ms))


def _no_key(log: MadeLog) -> None:
    log.batches.append(encode_batch([NewRecord(log.place().offset, log.time_ms, b"\x00\x01\x00", b"")]))


def _lower(log: MadeLog) -> None:
    log.committed = 5


def _other_topic(log: MadeLog) -> None:
    log.topic_id = TOPIC_IDS["orders"][1]


def _other_group(log: MadeLog) -> None:
    _rebalance(log, GROUPS[1])


@pytest.mark.parametrize(
    ("between", "passed"),
    [(_other_group, [0, 6]), *((each, [0, 2, 0, 2]) for each in (_rebalance, _marker, _no_key, _lower, _other_topic))],
)
def test_commits_beside_what_they_may_explain_become_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: Callable[[MadeLog], None], passed: list[int]
) -> None:
    monkeypatch.setattr(taken_rows, "FEW", 1)
    log = MadeLog(1)
    log.committed = 10
    for turn in range(8):
        if turn == 4:
            between(log)
        log.forward()
    write_segment(tmp_path / "__consumer_offsets-0", log.batches)
    (file,) = find_logs([tmp_path])
    (part,) = file.parts()
    commits = [
        each for each in taken_rows.taken_rows(part, file.family, None) if each.row.value and b"orders" in each.row.key
    ]
    assert [skipped(each) for each in commits] == passed
