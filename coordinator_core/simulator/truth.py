"""The truth about a simulated log: every rebalance with what caused it, every deed of a client, how it all ended.

It is told by those who did it: clients say what they do, the coordinator's memory says who is in a group. Nothing is
read from records but that they open an epoch. Rows are plain data for JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.groups.classic.live import LiveClassicGroup
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.groups.consumer.live import LiveConsumerGroup
from coordinator_core.groups.consumer.state import MemberState as ConsumerMemberState
from coordinator_core.groups.memory import LiveGroup
from coordinator_core.groups.share.live import LiveShareGroup
from coordinator_core.groups.streams.live import LiveStreamsGroup
from coordinator_core.groups.streams.state import MemberState as StreamsMemberState
from coordinator_core.records import Fields, RecordType
from coordinator_core.simulator.log import GroupBatch

Row = dict[str, Any]

LEFT, EXPIRED = "left", "expired"

_EPOCHS = frozenset(
    (
        RecordType.GROUP_METADATA,
        RecordType.CONSUMER_GROUP_METADATA,
        RecordType.SHARE_GROUP_METADATA,
        RecordType.STREAMS_GROUP_METADATA,
    )
)
"""Records that open an epoch or complete a generation."""
_STABLE = {
    LiveConsumerGroup: ConsumerMemberState.STABLE,
    LiveStreamsGroup: StreamsMemberState.STABLE,
    LiveShareGroup: 0,
}


class Why(NamedTuple):
    """Something that makes a group rebalance; ``kind`` as history calls it, ``how`` what a log cannot tell."""

    kind: str
    member_id: str | None = None
    topics: tuple[str, ...] = ()
    how: str | None = None

    def row(self) -> Row:
        """Without what it does not say."""
        row = {"kind": self.kind, "member_id": self.member_id, "topics": list(self.topics), "how": self.how}
        return {name: value for name, value in row.items() if value}


FLEETING = frozenset(("assignor_changed", "rack_changed", "static_member_returned", "static_member_replaced"))
"""What matters only if it opens an epoch at once."""


@dataclass(slots=True)
class _Rebalance:
    type: str
    from_epoch: int | None
    to_epoch: int
    batch: GroupBatch
    index: int
    causes: tuple[Why, ...]
    outcome: str = "open"
    finished_ms: int | None = None


@dataclass(slots=True)
class GroupTruth:
    """What is known of one group: ``members`` with their instance ids, as of the last operation."""

    group_id: str
    type: str = ""
    epoch: int | None = None
    members: dict[str, str | None] = field(default_factory=dict)
    pending: list[Why] = field(default_factory=list)
    rebalances: list[_Rebalance] = field(default_factory=list)
    topics: dict[str, Topic | None] = field(default_factory=dict)
    _instances: dict[str, str] = field(default_factory=dict)

    def assigned(self, names: Collection[str], image: TopicImage) -> None:
        """The leader of a classic group assigns these topics as they are now."""
        now = {name: image.by_name.get(name) for name in names}
        for name, topic in now.items():
            before = self.topics.get(name)
            if name in self.topics and topic != before:
                kind = "topic_deleted" if topic is None else "topic_grown"
                self.expect(Why("topic_created" if before is None else kind, topics=(name,)))
        self.topics = now

    def expect(self, why: Why) -> None:
        """Something happened that will make the group rebalance at its next occasion."""
        if why not in self.pending:
            self.pending.append(why)

    def operation(self, live: LiveGroup | None, why: tuple[Why, ...], batch: GroupBatch | None, how: str) -> None:
        """An operation is over: what it was about, what it wrote, and how members went that are gone now."""
        self.pending += why
        self._members(live, how)
        for index, record in enumerate(batch.records if batch is not None else ()):
            if record.type in _EPOCHS and record.group_id == self.group_id and batch is not None:
                self._epoch(record.type, record.value, batch, index)
        if self.pending and not isinstance(live, LiveClassicGroup):
            self.pending = [each for each in self.pending if each.kind not in FLEETING]
        if self.rebalances and batch is not None and live is not None:
            self._maybe_converged(self.rebalances[-1], live, batch)

    def _members(self, live: LiveGroup | None, how: str) -> None:
        now = _members_of(live)
        if now.keys() == self.members.keys():
            return
        gone = {each: instance for each, instance in self.members.items() if each not in now}
        for member_id, instance in now.items():
            if member_id in self.members:
                continue
            if instance is not None:
                self._instances[member_id] = instance
            former = next((each for each, held in gone.items() if instance is not None and held == instance), None)
            if former is None:
                self.pending.append(Why("member_joined", member_id))
            else:
                del gone[former]
                self.pending.append(Why("static_member_returned", member_id))
        for member_id, instance in gone.items():
            kind = "member_left_or_expired" if instance is None else "static_member_left"
            self.pending.append(Why(kind, member_id, how=how))
        self.members = now

    def _epoch(self, record_type: int, value: Fields | None, batch: GroupBatch, index: int) -> None:
        group_type = RecordType(record_type).name.split("_")[0]
        group_type = "CLASSIC" if group_type == "GROUP" else group_type
        if value is None:
            if group_type == self.type:
                self._end("group deleted", batch)
                self.epoch = None
            return
        epoch = value["generation" if group_type == "CLASSIC" else "epoch"]
        if group_type == self.type and epoch == self.epoch:
            self.pending.clear()
            return
        born_empty = group_type == "CLASSIC" and self.epoch is None and not value["members"]
        if not born_empty:
            self._end("superseded", batch)
            causes = tuple(self._visible()) if group_type == "CLASSIC" else tuple(dict.fromkeys(self.pending))
            self.rebalances.append(_Rebalance(group_type, self.epoch, epoch, batch, index, causes))
            self.pending = []
            if group_type == "CLASSIC":
                self._end("converged" if value["members"] else "emptied", batch)
                if not value["members"]:
                    self.topics = {}
        self.type, self.epoch = group_type, epoch

    def _visible(self) -> Iterator[Why]:
        """Causes as the next generation shows them: who came and went again in between left no trace."""
        pending = dict.fromkeys(self.pending)
        fleeting = {each.member_id for each in pending if each.kind == "member_joined"} - self.members.keys()
        left = {
            self._instances.get(each.member_id or ""): each for each in pending if each.kind == "static_member_left"
        }
        returned = {instance for each, instance in self.members.items() if Why("member_joined", each) in pending}
        for why in pending:
            instance = self._instances.get(why.member_id or "")
            back = instance is not None and instance in left and instance in returned
            if back and why.kind == "member_joined":
                yield Why("static_member_returned", why.member_id, how=left[instance].how)
            elif why.member_id not in fleeting and not (back and why.kind == "static_member_left"):
                yield why

    def _end(self, outcome: str, batch: GroupBatch) -> None:
        if self.rebalances and self.rebalances[-1].outcome == "open":
            self.rebalances[-1].outcome = outcome
            self.rebalances[-1].finished_ms = batch.time_ms

    def _maybe_converged(self, rebalance: _Rebalance, live: LiveGroup, batch: GroupBatch) -> None:
        if rebalance.outcome != "open" or isinstance(live, LiveClassicGroup):
            return
        if not self.members:
            self._end("emptied", batch)
        elif settled(live):
            self._end("converged", batch)

    def rows(self) -> Iterator[Row]:
        """The rebalances that are over and in the log; they are told once."""
        kept = []
        for each in self.rebalances:
            if each.outcome == "open" or each.batch.base_offset < 0:
                kept.append(each)
            else:
                yield self._row(each)
        self.rebalances = kept

    def last_rows(self) -> Iterator[Row]:
        """The rebalances that the end of the simulation cuts off."""
        for each in self.rebalances:
            yield self._row(each)

    def _row(self, each: _Rebalance) -> Row:
        return {
            "kind": "rebalance",
            "group_id": self.group_id,
            "group_type": each.type,
            "from_epoch": each.from_epoch,
            "to_epoch": each.to_epoch,
            "at": each.batch.position(each.index)._asdict(),
            "causes": [why.row() for why in each.causes],
            "outcome": each.outcome,
            "finished_ms": each.finished_ms,
        }


def _members_of(live: LiveGroup | None) -> dict[str, str | None]:
    if live is None:
        return {}
    if isinstance(live, LiveClassicGroup):
        return {member_id: member.instance_id for member_id, member in live.members.items()}
    if not isinstance(live, (LiveConsumerGroup, LiveShareGroup, LiveStreamsGroup)):
        return {}
    return {member_id: getattr(member, "instance_id", None) for member_id, member in live.log.members.items()}


def settled(live: LiveGroup) -> bool:
    """Whether every member of the group is where it is to be."""
    if isinstance(live, LiveClassicGroup):
        return live.state is ClassicGroupState.STABLE
    if not isinstance(live, (LiveConsumerGroup, LiveShareGroup, LiveStreamsGroup)):
        return True
    stable = _STABLE[type(live)]
    return live.assignment_epoch == live.group_epoch and all(
        member.member_epoch == live.group_epoch and member.state == stable for member in live.log.members.values()
    )


def ending(group: GroupTruth, live: LiveGroup | None, commits: Mapping[tuple[str, int], tuple[int, int]]) -> Row:
    """How a group was left: its members, and the offsets committed last."""
    return {
        "kind": "ending",
        "group_id": group.group_id,
        "group_type": group.type if live is not None else None,
        "epoch": group.epoch,
        "members": sorted(_members_of(live)),
        "offsets": {f"{topic}-{partition}": offset for (topic, partition), (offset, _) in sorted(commits.items())},
    }
