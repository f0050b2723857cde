"""The truth about a simulated log: every rebalance with its causes, every action of a client, and how it all ended.

It does not come from the records, except that they show when an epoch opens: clients report what they do, and the
coordinator's state shows who is in a group. Rows are plain data for JSON.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.memory import LiveGroup
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.groups.connect.describe import group_state
from coordinator_core.groups.connect.state import ConnectGroup, ConnectGroupState
from coordinator_core.groups.consumer.state import ConsumerMemberState
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from coordinator_core.groups.streams.state import StreamsGroup, StreamsMemberState
from coordinator_core.records import ConnectRecordType, Family, Fields, RecordType
from coordinator_core.simulator.bulk_commits import Committed, SimulatedTransaction
from coordinator_core.simulator.log import GroupBatch

Row = dict[str, Any]
AnyGroup = LiveGroup | ConnectGroup
"""A group in the coordinator's state; for Connect groups on KIP-848, its state in the log."""

LEFT, EXPIRED = "left", "expired"

CLASSIC = "CLASSIC"
CONNECT = "CONNECT"
_TYPES: dict[Family, dict[int, str]] = {
    Family.GROUP: {
        RecordType.GROUP_METADATA: CLASSIC,
        RecordType.CONSUMER_GROUP_METADATA: "CONSUMER",
        RecordType.SHARE_GROUP_METADATA: "SHARE",
        RecordType.STREAMS_GROUP_METADATA: "STREAMS",
    },
    Family.CONNECT: {ConnectRecordType.GROUP_METADATA: CONNECT},
}
"""By log: records that open an epoch or complete a generation, and the types of their groups."""
_STABLE = {
    LiveConsumerGroup: ConsumerMemberState.STABLE,
    LiveStreamsGroup: StreamsMemberState.STABLE,
    LiveShareGroup: 0,
}


class TrueCause(NamedTuple):
    """A cause of a rebalance; ``kind`` as in the history, ``how`` what no log contains.

    ``unseen`` names what left no trace at all, such as a member that joined and left between two generations.
    """

    kind: str
    member_id: str | None = None
    topics: tuple[str, ...] = ()
    how: str | None = None
    unseen: bool = False

    def row(self) -> Row:
        """Return the cause as a row without empty fields."""
        row: Row = {"kind": self.kind, "member_id": self.member_id, "topics": list(self.topics), "how": self.how}
        row["unseen"] = self.unseen
        return {name: value for name, value in row.items() if value}


DYNAMIC_LEFT, STATIC_LEFT = "member_left_or_expired", "static_member_left"
RETURNED, REPLACED = "static_member_returned", "static_member_replaced"
MOVED_BACK = TrueCause("group_downgraded")
_MEMBERSHIP = frozenset(("member_joined", RETURNED, REPLACED, DYNAMIC_LEFT, STATIC_LEFT))
_TOPICS = frozenset(("topic_created", "topic_grown", "topic_deleted"))
FLEETING = frozenset(("assignor_changed", "rack_changed", RETURNED, REPLACED, "topology_changed", "warmup_caught_up"))
"""Causes that count only if they open an epoch at once."""


class _Opened(NamedTuple):
    """A record that opens an epoch of a group of a type: its place in the batch, and its value (None: a tombstone)."""

    place: int
    type: str
    value: Fields | None


@dataclass(slots=True)
class _Rebalance:
    type: str
    from_epoch: int | None
    to_epoch: int
    batch: GroupBatch
    index: int
    causes: tuple[TrueCause, ...]
    outcome: str = "open"
    finished_ms: int | None = None


class _Decision(NamedTuple):
    """What a leader decided for a generation: who loses something for later, and how long work waits."""

    generation: int
    losers: frozenset[str]
    delay_ms: int


@dataclass(slots=True)
class GroupTruth:
    """What is known about one group: ``members`` with their instance ids, as of the last operation. ``present`` are
    those of them that were there: a group with epochs records that a static member is away.

    In classic groups ``decided`` has the leader's last decision. The generation after the last complete one gives out
    what ``losers`` lost in that one, and from ``due_ms`` on the work that waited.
    """

    group_id: str
    family: Family = Family.GROUP
    type: str = ""
    epoch: int | None = None
    members: dict[str, str | None] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    pending: list[TrueCause] = field(default_factory=list)
    rebalances: list[_Rebalance] = field(default_factory=list)
    topics: dict[str, Topic | None] = field(default_factory=dict)
    connectors: Mapping[str, int] | None = None
    recorded: dict[str, str | None] = field(default_factory=dict)
    hash: int = 0
    decided: _Decision | None = None
    losers: frozenset[str] = frozenset()
    due_ms: int | None = None

    def takes(self, generation: int, losers: Iterable[str], delay_ms: int = 0) -> None:
        """Take in that the leader of a classic group takes work from these members, or delays work, for a later
        generation.
        """
        self.decided = _Decision(generation, frozenset(losers), delay_ms)

    def assigned(self, names: Collection[str], image: TopicImage) -> None:
        """Take in that the leader of a classic group assigns these topics as they are now."""
        now = {name: image.by_name.get(name) for name in names}
        for name, topic in now.items():
            before = self.topics.get(name)
            if name in self.topics and topic != before:
                kind = "topic_deleted" if topic is None else "topic_grown"
                self.expect(TrueCause("topic_created" if before is None else kind, topics=(name,)))
        self.topics = now

    def configured(self, connectors: Mapping[str, int]) -> None:
        """Take in that the leader of a Connect group assigns these connectors; the numbers are task counts."""
        if self.connectors is not None and connectors != self.connectors:
            changed = dict(set(connectors.items()) ^ set(self.connectors.items()))
            self.expect(TrueCause("connectors_changed", topics=tuple(sorted(changed))))
        self.connectors = connectors

    def loaded(self, live: AnyGroup | None) -> None:
        """Take in that another coordinator has read the group from the log: only the members in it remain."""
        self.members, self.present = _members_of(live), _present_in(live)

    def expect(self, why: TrueCause) -> None:
        """Take in a cause that will make the group rebalance at the next opportunity."""
        if why not in self.pending:
            self.pending.append(why)

    def operation(self, live: AnyGroup | None, why: tuple[TrueCause, ...], batch: GroupBatch | None, how: str) -> None:
        """Take in an operation: its causes, what it wrote, and how the members left that are no longer there."""
        earlier = list(self.pending)
        self.pending += why
        self._members(live, how)
        if batch is not None:
            opened = self._opened(batch)
            is_another = any(record.value is not None and record.type != self.type for record in opened)
            if is_another and self.epoch is not None:
                self._opened_as_another_type(opened, batch, earlier)
            else:
                for record in opened:
                    self._epoch(record, batch)
        if self.pending and not isinstance(live, LiveClassicGroup):
            self.pending = [cause for cause in self.pending if cause.kind not in FLEETING]
        if self.rebalances and batch is not None and live is not None:
            self._maybe_converged(self.rebalances[-1], live, batch)

    def _opened(self, batch: GroupBatch) -> list[_Opened]:
        """The records of the batch that open an epoch of the group, or end it."""
        types = _TYPES[self.family]
        return [
            _Opened(index, types[record.type], record.value)
            for index, record in enumerate(batch.records)
            if record.type in types and record.group_id == self.group_id
        ]

    def _opened_as_another_type(self, opened: list[_Opened], batch: GroupBatch, earlier: list[TrueCause]) -> None:
        """The batch converts the group. The tombstone of its former type ends nothing.

        A conversion has only the ``earlier`` causes where the new type opens another epoch in the same batch.
        """
        for number, record in enumerate(opened):
            if record.value is None:
                continue
            if record.type == self.type:
                self._epoch(record, batch)
            else:
                self._convert(record, record.value, batch, earlier if number + 1 < len(opened) else self.pending)

    def _members(self, live: AnyGroup | None, how: str) -> None:
        now, present = _members_of(live), self.present
        self.present = _present_in(live)
        if now.keys() == self.members.keys():
            return
        self.pending += (
            why._replace(how=how) if why.kind in (DYNAMIC_LEFT, STATIC_LEFT) else why
            for why in _changes(self.members, now, present)
        )
        self.members = now

    def _epoch(self, opened: _Opened, batch: GroupBatch) -> None:
        index, group_type, value = opened
        if value is None:
            if group_type == self.type:
                self._end("group deleted", batch)
                self.epoch, self.recorded, self.decided = None, {}, None
                self.topics, self.connectors = {}, None
                self.pending = [cause for cause in self.pending if cause.kind not in _MEMBERSHIP]
            return
        epoch = value["generation" if group_type == CLASSIC else "epoch"]
        # Written again within a generation, which opens nothing: a static member came back under another id (KIP-345).
        if group_type == self.type and epoch == self.epoch:
            self.recorded = dict(self.members)
            self.losers &= self.members.keys()
            self.pending.clear()
            return
        has_members = value["members"] if group_type == CLASSIC else self.members or epoch > 0
        born_empty = self.epoch is None and not has_members
        self.type = group_type
        if born_empty and group_type != CLASSIC:
            self._taken_in(value.get("metadataHash", 0))
        elif not born_empty:
            self._end("superseded", batch)
            if group_type == CLASSIC:
                causes, self.pending = tuple(self._since_generation(batch.time_ms)), []
                self._leave_to_do(epoch, batch.time_ms)
            else:
                causes = tuple(self._taken_in(value.get("metadataHash", 0)))
            # Workers that were a classic group go on from its last generation, which is in another log.
            is_moved = group_type == CONNECT and self.epoch is not None and epoch > self.epoch + 1
            before = epoch if is_moved else self.epoch
            self.rebalances.append(_Rebalance(group_type, before, epoch, batch, index, causes))
            if group_type == CLASSIC:
                self._end("converged" if value["members"] else "emptied", batch)
                if not value["members"]:
                    self.topics, self.connectors = {}, None
        self.epoch = epoch
        self.recorded = dict(self.members) if value.get("members", True) else {}

    def _convert(self, opened: _Opened, value: Fields, batch: GroupBatch, why: list[TrueCause]) -> None:
        """The group goes on under another type, at once; members of a group made classic have to join again."""
        index, group_type, _ = opened
        down = group_type == CLASSIC
        self._end("group downgraded" if down else "group upgraded", batch)
        shown = [cause for cause in why if down or cause.kind not in FLEETING]
        causes = (TrueCause("group_downgraded" if down else "group_upgraded"), *dict.fromkeys(shown))
        epoch = value["generation" if down else "epoch"]
        self.rebalances.append(_Rebalance(group_type, self.epoch, epoch, batch, index, causes))
        self.pending = [MOVED_BACK] if down else [cause for cause in self.pending if cause not in why]
        self.type, self.epoch, self.topics, self.recorded = group_type, epoch, {}, dict(self.members)
        self.losers, self.due_ms = frozenset(), None
        self.hash = value.get("metadataHash", 0)
        if down or self.pending:
            self._end("converged", batch)

    def _leave_to_do(self, generation: int, time_ms: int) -> None:
        """A generation is complete, with what it leaves to the next one; nothing if no leader decided about it."""
        decided = self.decided
        if decided is None or decided.generation != generation:
            self.losers, self.due_ms = frozenset(), None
        else:
            self.losers = decided.losers
            self.due_ms = time_ms + decided.delay_ms if decided.delay_ms else None

    def _since_generation(self, time_ms: int) -> Iterator[TrueCause]:
        """Causes of a generation: who is another than in the last one, why, and what left no trace in the log.

        Workers that moved back from KIP-848, in a log of their own, do not join.
        """
        if self.epoch is None and MOVED_BACK in self.pending:
            yield MOVED_BACK
            return
        pending = dict.fromkeys(self.pending)
        how = {cause.member_id: cause.how for cause in pending if cause.how is not None}
        shown = {
            TrueCause(cause.kind, cause.member_id, cause.topics) for cause in pending if cause.kind not in _MEMBERSHIP
        }
        changes, seen = _changes(self.recorded, self.members), set()
        for why in changes:
            yield why._replace(how=how.get(why.member_id))
            seen.add(why.member_id)
        if self.losers and self.members:
            yield TrueCause("partitions_revoked")
        if self.due_ms is not None and time_ms >= self.due_ms and not self.recorded.keys().isdisjoint(self.members):
            yield TrueCause("delay_elapsed")
        for why in pending:
            if why in shown:
                yield why
            elif why.member_id not in seen:
                yield why._replace(unseen=True)

    def _taken_in(self, metadata_hash: int) -> list[TrueCause]:
        """Causes of an epoch. A change of topics is not yet one if the epoch has the old hash or no member is left."""
        taken = list(dict.fromkeys(self.pending))
        self.pending = []
        if metadata_hash == self.hash:
            self.pending = [cause for cause in taken if cause.kind in _TOPICS]
            taken = [cause for cause in taken if cause.kind not in _TOPICS]
        elif not self.members:
            taken = [cause._replace(unseen=cause.kind in _TOPICS) for cause in taken]
        self.hash = metadata_hash
        return taken

    def _end(self, outcome: str, batch: GroupBatch) -> None:
        if self.rebalances and self.rebalances[-1].outcome == "open":
            self.rebalances[-1].outcome = outcome
            self.rebalances[-1].finished_ms = batch.time_ms

    def _maybe_converged(self, rebalance: _Rebalance, live: AnyGroup, batch: GroupBatch) -> None:
        if rebalance.outcome != "open" or isinstance(live, LiveClassicGroup):
            return
        if not self.members:
            self._end("emptied", batch)
        elif settled(live):
            self._end("not ready" if isinstance(live, LiveStreamsGroup) and not _runs(live.log) else "converged", batch)

    def rows(self) -> Iterator[Row]:
        """Yield the rebalances that ended and are in the log, each in one call only."""
        kept = []
        for rebalance in self.rebalances:
            if rebalance.outcome == "open" or rebalance.batch.base_offset < 0:
                kept.append(rebalance)
            else:
                yield self._row(rebalance)
        self.rebalances = kept

    def last_rows(self) -> Iterator[Row]:
        """Yield the rebalances that the end of the simulation cuts off."""
        for rebalance in self.rebalances:
            yield self._row(rebalance)

    def _row(self, rebalance: _Rebalance) -> Row:
        return {
            "kind": "rebalance",
            "group_id": self.group_id,
            "group_type": rebalance.type,
            "from_epoch": rebalance.from_epoch,
            "to_epoch": rebalance.to_epoch,
            "at": rebalance.batch.position(rebalance.index)._asdict(),
            "causes": [why.row() for why in rebalance.causes],
            "outcome": rebalance.outcome,
            "finished_ms": rebalance.finished_ms,
        }


def _members_of(live: AnyGroup | None) -> dict[str, str | None]:
    if live is None:
        return {}
    if isinstance(live, ConnectGroup):
        return {member_id: member.instance_id for member_id, member in live.members.items()}
    if isinstance(live, LiveClassicGroup):
        return {member_id: member.instance_id for member_id, member in live.members.items()}
    if not isinstance(live, (LiveConsumerGroup, LiveShareGroup, LiveStreamsGroup)):
        return {}
    return {member_id: member.instance_id for member_id, member in live.log.members.items()}


def _runs(group: StreamsGroup) -> bool:
    """Whether the topology is valid, or members have tasks without it, as in a group that was converted just now."""
    return group.is_validated is not False or any(target.active for target in group.targets.values())


def settled(live: AnyGroup) -> bool:
    """Whether every member of the group is at its target."""
    if isinstance(live, ConnectGroup):
        return group_state(live) in (ConnectGroupState.STABLE, ConnectGroupState.EMPTY)
    if isinstance(live, LiveClassicGroup):
        return live.state is ClassicGroupState.STABLE
    if not isinstance(live, (LiveConsumerGroup, LiveShareGroup, LiveStreamsGroup)):
        return True
    stable = _STABLE[type(live)]
    return live.assignment_epoch == live.group_epoch and all(
        member.member_epoch == live.group_epoch and member.state == stable for member in live.log.members.values()
    )


def _present_in(live: AnyGroup | None) -> frozenset[str]:
    """The members of a group with epochs that are not away; on the classic protocol none says that it is."""
    if not isinstance(live, (LiveConsumerGroup, LiveStreamsGroup)):
        return frozenset()
    return frozenset(
        name
        for name, member in live.log.members.items()
        if member.member_epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH and not member.speaks_classic
    )


def _changes(
    before: Mapping[str, str | None], now: Mapping[str, str | None], present: Container[str] = ()
) -> Iterator[TrueCause]:
    """Who came and who went; one with the instance id of another that went has taken its place, also that of one that
    was ``present`` until then.
    """
    gone = {each: instance for each, instance in before.items() if each not in now}
    for member_id, instance in now.items():
        if member_id not in before:
            former = next((other for other, held in gone.items() if instance is not None and held == instance), None)
            gone.pop(former or "", None)
            taken = REPLACED if former in present else RETURNED
            yield TrueCause("member_joined" if former is None else taken, member_id)
    for member_id, instance in gone.items():
        yield TrueCause(DYNAMIC_LEFT if instance is None else STATIC_LEFT, member_id)


def ending(
    group: GroupTruth, live: AnyGroup | None, commits: Committed, transactions: Iterable[SimulatedTransaction]
) -> Row:
    """Return the final state of a group: its members, the last commits, and the transactions that have not ended."""
    return {
        "kind": "ending",
        "group_id": group.group_id,
        "group_type": group.type if live is not None else None,
        "epoch": group.epoch,
        "members": sorted(_members_of(live)),
        "offsets": {f"{topic}-{partition}": offset for (topic, partition), (offset, _) in sorted(commits.items())},
        "open_transactions": [
            {
                "producer_id": transaction.producer_id,
                "since_ms": transaction.since_ms,
                "partitions": sorted(f"{topic}-{partition}" for topic, partition in transaction.partitions),
            }
            for transaction in transactions
        ],
    }
