"""Random logs of a coordinator with groups of every type, and what compaction and loss leave of them.

Groups join, leave, reconcile, are deleted, converted and made again as their coordinators record it; offsets are
committed plainly and in transactions, and removed.
"""

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import Any, NamedTuple

from coordinator_core.records import ConnectRecordType, CoordinatorRecord, Family
from coordinator_core.wire.batch_writer import NewRecord, Producer, frame, record_bytes
from coordinator_core.wire.control import ABORT, COMMIT, encode_marker
from coordinator_core.wire.record_codec import encode_key, encode_value
from tests.core.builders import GroupLog, classic_member

VALUE_VERSIONS = {1: 4, 2: 3}
Make = Callable[[], list[CoordinatorRecord]]
TOPIC_IDS = ("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg")
MEMBERS = ("a", "b", "c", "d")


class Entry(NamedTuple):
    """One offset of the log: a record, or the end of a transaction (``ends``: whether it was committed)."""

    offset: int
    timestamp: int
    record: CoordinatorRecord | None
    batch: tuple[int, int]
    producer_id: int | None = None
    ends: bool | None = None

    @property
    def key(self) -> bytes | None:
        return None if self.record is None else key_of(self.record)

    @property
    def is_tombstone(self) -> bool:
        return self.record is not None and self.record.value is None


def key_of(record: CoordinatorRecord) -> bytes:
    return repr((int(record.type), sorted(record.key.items()))).encode()


class RandomCoordinator:
    """A partition of the log of groups, or with ``family`` CONNECT of the log of Connect groups."""

    def __init__(self, chance: Random, family: Family = Family.GROUP) -> None:
        self.chance = chance
        self.family = family
        self.log: list[Entry] = []
        self._open: set[int] = set()
        kinds = {Family.GROUP: (_Classic, _Consumer, _Share, _Streams, _Consumer), Family.CONNECT: (_Connect, _Connect)}
        self._groups = [
            kind(f"{kind.__name__[1:].lower()}-{number}", chance) for number, kind in enumerate(kinds[family])
        ]

    def run(self, operations: int) -> list[Entry]:
        for _ in range(operations):
            group = self.chance.choice(self._groups)
            if not isinstance(group, _Share | _Connect) and self.chance.random() < 0.4:
                self._offsets(group)
            else:
                self._write(group.log, group.step())
        return self.log

    def _write(self, log: GroupLog, make: Make, producer_id: int | None = None) -> None:
        first = len(self.log)
        log.offset = first
        records = make()
        bounds = (first, first + len(records) - 1)
        self.log += [Entry(each.at.offset, each.at.timestamp_ms, each, bounds, producer_id) for each in records]

    def _offsets(self, group: "_Group") -> None:
        """A commit, one in a transaction, the end of one, or a tombstone. Commits come from members, or from anyone."""
        log, what = group.log, self.chance.random()
        topic, partition = self.chance.choice(("orders", "payments")), self.chance.randrange(2)
        offset = self.chance.randrange(1000)
        if what < 0.5:
            group.offsets.add((topic, partition))
            self._write(log, lambda: [log.commit(topic, partition, offset)])
        elif what < 0.7:
            group.offsets.add((topic, partition))
            producer_id = self.chance.randrange(3)
            self._write(log, lambda: [log.commit(topic, partition, offset)], producer_id)
            self._open.add(producer_id)
        elif what < 0.9 and self._open:
            producer_id = self.chance.choice(sorted(self._open))
            self._open.discard(producer_id)
            at = len(self.log)
            is_committed = self.chance.random() < 0.6
            self.log.append(Entry(at, 1_000 * at, None, (at, at), producer_id, is_committed))
        else:
            group.offsets.discard((topic, partition))
            self._write(log, lambda: [log.no_commit(topic, partition), *group.end_of_offsets()])


# --- groups ----------------------------------------------------------------------------------------------------------


class _Group:
    """A group and what is in its coordinator's memory: enough of it to write what Kafka would write."""

    def __init__(self, group_id: str, chance: Random) -> None:
        self.log = GroupLog(group_id)
        self.chance = chance
        self.members: list[str] = []
        self.epoch = 0
        self.offsets: set[tuple[str, int]] = set()

    def end_of_offsets(self) -> list[CoordinatorRecord]:
        """A group that only committed ends with its last offset."""
        return [] if self.offsets or self.epoch else [self.log.tombstone(2)]

    def no_offsets(self) -> list[CoordinatorRecord]:
        """What goes before the end of a group: its offsets."""
        gone = [self.log.no_commit(topic, partition) for topic, partition in sorted(self.offsets)]
        self.offsets.clear()
        return gone

    def step(self) -> Make:
        raise NotImplementedError

    def units(self) -> dict[str, list[int]]:
        some = self.chance.sample(TOPIC_IDS, self.chance.randrange(len(TOPIC_IDS) + 1))
        return {topic_id: sorted(self.chance.sample(range(4), 2)) for topic_id in some}


class _Classic(_Group):
    def step(self) -> Make:
        if self.epoch and not self.members and self.chance.random() < 0.3:
            self.epoch = 0
            return lambda: [*self.no_offsets(), self.log.tombstone(2)]
        self.epoch += 1
        self.members = self.chance.sample(MEMBERS, self.chance.randrange(4))
        return lambda: [self.log.classic(self.epoch, [classic_member(each) for each in self.members])]


class _Epochs(_Group):
    """Groups with epochs; the records of one type come from its own functions."""

    tombstones: tuple[int, int, int] = (0, 0, 0)
    """Of a member: current assignment, target, metadata."""
    group_tombstones: tuple[int, ...] = ()

    def step(self) -> Make:
        what = self.chance.random()
        if what < 0.35 and len(self.members) < len(MEMBERS):
            return self._join
        if what < 0.55 and self.members:
            return self._leave
        if what < 0.65 and self.epoch and not self.members:
            return self._delete
        if what < 0.75 and self.members and self.group_tombstones[0] == 6:
            return self._convert
        if self.members:
            return lambda: [self.current(self.chance.choice(self.members))]
        return self._join

    def _join(self) -> list[CoordinatorRecord]:
        member = self.chance.choice([each for each in MEMBERS if each not in self.members])
        self.members.append(member)
        self.epoch = max(self.epoch, 1) + 1
        records = [self.metadata(member), *self.group_epoch()]
        if self.chance.random() < 0.7:
            records += [*(self.target(each) for each in self.members), self.target_epoch()]
        return [*records, self.current(member)] if self.chance.random() < 0.8 else records

    def _leave(self) -> list[CoordinatorRecord]:
        member = self.chance.choice(self.members)
        self.members.remove(member)
        self.epoch += 1
        gone = [self.log.tombstone(each, memberId=member) for each in self.tombstones]
        return [*gone, *self.group_epoch()]

    def _delete(self) -> list[CoordinatorRecord]:
        self.epoch = 0
        return [*self.no_offsets(), *(self.log.tombstone(each) for each in self.group_tombstones)]

    def _convert(self) -> list[CoordinatorRecord]:
        """To a classic group and back, as a live migration does."""
        gone = [self.log.tombstone(each, memberId=member) for each in self.tombstones for member in self.members]
        ended = [self.log.tombstone(each) for each in self.group_tombstones]
        classic = self.log.classic(self.epoch, [classic_member(each) for each in self.members])
        if self.chance.random() < 0.5:
            self.members = []
            self.epoch = 0
            return [*gone, *ended, classic, *self.no_offsets(), self.log.tombstone(2)]
        records = [*gone, *ended, classic, self.log.tombstone(2)]
        records += [self.metadata(each) for each in self.members]
        records += self.group_epoch()
        return [*records, *(self.target(each) for each in self.members), self.target_epoch()]

    def metadata(self, member: str) -> CoordinatorRecord:
        raise NotImplementedError

    def group_epoch(self) -> list[CoordinatorRecord]:
        raise NotImplementedError

    def target(self, member: str) -> CoordinatorRecord:
        raise NotImplementedError

    def target_epoch(self) -> CoordinatorRecord:
        raise NotImplementedError

    def current(self, member: str) -> CoordinatorRecord:
        raise NotImplementedError


class _Consumer(_Epochs):
    tombstones = (8, 7, 5)
    group_tombstones = (6, 4, 3)

    def metadata(self, member: str) -> CoordinatorRecord:
        return self.log.member(member, serverAssignor=self.chance.choice((None, "range", "uniform")))

    def group_epoch(self) -> list[CoordinatorRecord]:
        return [self.log.epoch(self.epoch, self.chance.randrange(9))]

    def target(self, member: str) -> CoordinatorRecord:
        return self.log.target(member, self.units())

    def target_epoch(self) -> CoordinatorRecord:
        return self.log.target_epoch(self.epoch)

    def current(self, member: str) -> CoordinatorRecord:
        state = self.chance.randrange(3)
        return self.log.current(member, self.epoch, self.units(), self.units() if state == 1 else None, state)


class _Share(_Epochs):
    tombstones = (14, 13, 10)
    group_tombstones = (12, 15, 11)

    def metadata(self, member: str) -> CoordinatorRecord:
        return self.log.share_member(member)

    def group_epoch(self) -> list[CoordinatorRecord]:
        return [self.log.record(11, {"epoch": self.epoch, "metadataHash": self.chance.randrange(9)})]

    def target(self, member: str) -> CoordinatorRecord:
        parts = [{"topicId": topic_id, "partitions": numbers} for topic_id, numbers in self.units().items()]
        return self.log.record(13, {"topicPartitions": parts}, memberId=member)

    def target_epoch(self) -> CoordinatorRecord:
        return self.log.record(12, {"assignmentEpoch": self.epoch})

    def current(self, member: str) -> CoordinatorRecord:
        return self.log.share_current(member, self.epoch, self.units())


class _Streams(_Epochs):
    tombstones = (22, 21, 19)
    group_tombstones = (20, 17, 23)

    def metadata(self, member: str) -> CoordinatorRecord:
        return self.log.streams_member(member, processId=f"process-{self.chance.randrange(3)}")

    def group_epoch(self) -> list[CoordinatorRecord]:
        topology = [self.log.topology()] if len(self.members) == 1 else []
        return [*topology, self.log.streams_epoch(self.epoch, self.chance.choice((-1, 0)))]

    def target(self, member: str) -> CoordinatorRecord:
        return self.log.streams_target(member, {"0": [self.chance.randrange(4)]})

    def target_epoch(self) -> CoordinatorRecord:
        return self.log.record(20, {"assignmentEpoch": self.epoch, "assignmentTimestamp": 1})

    def current(self, member: str) -> CoordinatorRecord:
        state = self.chance.choice((1, 2, 3))
        revoking = {"0": [3]} if state == 2 else None
        return self.log.streams_current(member, self.epoch, {"0": [self.chance.randrange(3)]}, {}, revoking, state)


class _Connect(_Epochs):
    tombstones = (7, 5, 5)
    group_tombstones = (ConnectRecordType.TARGET_ASSIGNMENT, 4, 8, 3)

    def step(self) -> Make:
        step = super().step()
        return self._join_or_report if step == self._convert else step

    def _join_or_report(self) -> list[CoordinatorRecord]:
        return [self.current(self.chance.choice(self.members))]

    def _leave(self) -> list[CoordinatorRecord]:
        member = self.chance.choice(self.members)
        self.members.remove(member)
        self.epoch += 1
        gone = [self.log.tombstone(each, memberId=member) for each in (7, 5)]
        return [*gone, *self.group_epoch()]

    def metadata(self, member: str) -> CoordinatorRecord:
        value = {
            "groupEpoch": self.epoch,
            "instanceId": None,
            "clientId": f"client-{self.chance.randrange(3)}",
            "clientHost": "/10.0.0.1",
            "subscribedTopicNames": [],
            "subscribedTopicRegex": None,
            "assignors": [],
        }
        return self.log.record(ConnectRecordType.MEMBER_METADATA, value, memberId=member)

    def group_epoch(self) -> list[CoordinatorRecord]:
        return [self.log.record(ConnectRecordType.GROUP_METADATA, {"epoch": self.epoch})]

    def target(self, member: str) -> CoordinatorRecord:
        work = {"epoch": self.epoch, "connectorsTasks": self._work()}
        return self.log.record(ConnectRecordType.CONNECTORS_TASKS_METADATA, work)

    def target_epoch(self) -> CoordinatorRecord:
        members = [{"memberId": each, **self._assignment()} for each in self.members]
        value = {"assignmentEpoch": self.epoch, "members": members}
        return self.log.record(ConnectRecordType.TARGET_ASSIGNMENT, value)

    def current(self, member: str) -> CoordinatorRecord:
        value = {"memberEpoch": self.epoch, **self._assignment()}
        return self.log.record(ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT, value, memberId=member)

    def _work(self) -> list[dict[str, Any]]:
        return [{"connectors": ["sink"], "tasks": [{"connectorId": "sink", "taskId": self.chance.randrange(3)}]}]

    def _assignment(self) -> dict[str, Any]:
        return {"error": 0, "connectorsTasks": self._work(), "version": 1, "metadata": b""}


# --- as bytes ---------------------------------------------------------------------------------------------------------


def segment(log: Iterable[Entry], family: Family = Family.GROUP) -> bytes:
    """The bytes of a segment; batches keep their bounds when records of them are gone."""
    return b"".join(_batch(list(entries), family) for _, entries in groupby(log, attrgetter("batch")))


def _batch(entries: list[Entry], family: Family) -> bytes:
    first = entries[0]
    (base, last), producer = first.batch, Producer(-1 if first.producer_id is None else first.producer_id, 0, 0)
    records = [_written(entry, family) for entry in entries]
    body = b"".join(record_bytes(each, each.offset - base, each.timestamp - records[0].timestamp) for each in records)
    attributes = (0x10 if first.producer_id is not None else 0) | (0x20 if first.ends is not None else 0)
    return frame(
        body,
        base_offset=base,
        last_offset=last,
        count=len(records),
        base_timestamp=records[0].timestamp,
        max_timestamp=records[-1].timestamp,
        attributes=attributes,
        producer=producer,
    )


def _written(entry: Entry, family: Family) -> NewRecord:
    record = entry.record
    if record is None:
        return NewRecord(entry.offset, entry.timestamp, *encode_marker(COMMIT if entry.ends else ABORT, 0))
    version = VALUE_VERSIONS.get(record.type, 0) if family is Family.GROUP else 0
    value = None if record.value is None else encode_value(record.type, version, record.value, family)
    return NewRecord(entry.offset, entry.timestamp, encode_key(record.type, record.key, family), value)
