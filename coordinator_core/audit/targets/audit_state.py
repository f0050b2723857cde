"""What the target audit of a group keeps between two records, apart from the group's state; and how it is stored where
classes have no JSON form: records, and maps with an order.
"""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from coordinator_core.assignors.coordinator_view import Process, StreamsView, Subscriber
from coordinator_core.assignors.inputs import Partitions, Tasks
from coordinator_core.audit.targets.classic_connect import ConnectTargetState
from coordinator_core.audit.targets.connect_inputs import WorkerTargetState
from coordinator_core.audit.targets.group_view import GroupView
from coordinator_core.audit.targets.leader_views import LeaderMemory
from coordinator_core.audit.targets.map_orders import MemberOrders
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.record_types import EPOCH_GROUP_RECORDS, RecordTypes
from coordinator_core.java.hash_codes import STRING
from coordinator_core.java.order import TimelineHashMap
from coordinator_core.records import AnyRecord, CoordinatorRecord, LogPosition
from coordinator_core.state_json import StoredAs
from coordinator_core.wire.record_codec import decode_record, encode_key, encode_value

_KIND_OF = {kind.group: kind for kind in EPOCH_GROUP_RECORDS}


class _StoredRecord(NamedTuple):
    """A record of a group, key and value in Kafka's own bytes."""

    at: LogPosition
    key: bytes
    value: bytes | None
    batch: int


def _write_record(record: AnyRecord) -> _StoredRecord:
    value = None if record.value is None else encode_value(record.type, record.value_version or 0, record.value)
    return _StoredRecord(record.at, encode_key(record.type, record.key), value, record.batch)


def _read_record(stored: _StoredRecord) -> AnyRecord:
    number, _, key, version, value = decode_record(stored.key, stored.value)
    return CoordinatorRecord(stored.at, number, key, value, version, stored.batch)


STORED_RECORDS = StoredAs(
    list[_StoredRecord],
    lambda records: [_write_record(record) for record in records],
    lambda stored: [_read_record(record) for record in stored],
)


@dataclass(slots=True)
class _StoredSubscribers:
    """The part of a view that consumer and share groups have; ``members`` in the order of the map."""

    members: list[tuple[str, Subscriber]]
    targets: dict[str, Partitions]
    assigned: dict[str, dict[int, str]]
    regexes: dict[str, list[str]]
    homogeneous: bool


@dataclass(slots=True)
class _StoredProcesses:
    """The part of a view that streams groups have; ``members`` in the order of the map."""

    members: list[tuple[str, Process]]
    targets: dict[str, Tasks]


@dataclass(slots=True)
class _StoredView:
    """A view: of its maps of members and votes the capacity and the items in order, which say how they iterate."""

    kind: GroupType
    jdk: int
    capacity: int
    members: _StoredSubscribers | _StoredProcesses
    static: dict[str, str]
    orders: MemberOrders
    asked: dict[str, str]
    votes_capacity: int
    votes: list[tuple[str, int]]


def _write_view(group_view: GroupView) -> _StoredView:
    view, votes = group_view.view, group_view.votes.counts
    members: _StoredSubscribers | _StoredProcesses
    if isinstance(view, StreamsView):
        members = _StoredProcesses(list(view.members.items()), view.targets)
    else:
        subscribers = list(view.members.items())
        members = _StoredSubscribers(subscribers, view.targets, view.assigned, view.regexes, view.homogeneous)
    return _StoredView(
        group_view.kind.group,
        view.jdk,
        view.members.capacity,
        members,
        view.static,
        group_view.orders,
        group_view.asked,
        votes.capacity,
        list(votes.items()),
    )


def _read_view(stored: _StoredView) -> GroupView:
    group_view = GroupView.of(_KIND_OF[stored.kind], stored.jdk)
    group_view.orders, group_view.asked = stored.orders, stored.asked
    group_view.votes.counts = TimelineHashMap.restored(STRING, stored.votes_capacity, stored.votes)
    view, members = group_view.view, stored.members
    view.static = stored.static
    if isinstance(view, StreamsView) and isinstance(members, _StoredProcesses):
        view.members = TimelineHashMap.restored(STRING, stored.capacity, members.members)
        view.targets = members.targets
    elif not isinstance(view, StreamsView) and isinstance(members, _StoredSubscribers):
        view.restore(TimelineHashMap.restored(STRING, stored.capacity, members.members), members.regexes)
        view.targets, view.assigned, view.homogeneous = members.targets, members.assigned, members.homogeneous
    else:
        raise ValueError(f"a {stored.kind} group with members of another type")
    return group_view


STORED_VIEW = StoredAs(_StoredView, _write_view, _read_view)


DEFAULT_JDK = 17


@dataclass(slots=True)
class TargetAuditState:
    """What the audit keeps between two records.

    ``view`` has the orders of the maps of a group with epochs (None: the group has no epochs); ``pending`` are the
    records of the last operation (time and batch) that ``view`` does not contain yet. ``born``: the log has shown every
    record of the group since this offset; None: the group may have begun earlier. ``fitted`` is the offset of the last
    target with verdict ``identical``. ``leader_epoch`` is the leader epoch of the log partition, where known.
    ``connect`` is for Connect groups with the classic protocol, ``workers`` for those on KIP-848.
    """

    operation: tuple[int, int] = (-1, -1)
    pending: Annotated[list[AnyRecord], STORED_RECORDS] = field(default_factory=list)
    view: Annotated[GroupView, STORED_VIEW] | None = None
    born: int | None = None
    fitted: int | None = None
    leader_epoch: int | None = None
    classic: LeaderMemory = field(default_factory=LeaderMemory)
    connect: ConnectTargetState = field(default_factory=ConnectTargetState)
    workers: WorkerTargetState = field(default_factory=WorkerTargetState)

    def view_of(self, kind: RecordTypes, jdk: int | None) -> GroupView:
        """Return the view of the group as a group of this type."""
        if self.view is None or self.view.kind is not kind:
            self.view = GroupView.of(kind, jdk or DEFAULT_JDK)
        return self.view

    def note_leader(self, leader_epoch: int | None, offset: int) -> None:
        """Take in the leader epoch of an operation: with a new one, a coordinator has loaded the partition before
        it.
        """
        if leader_epoch is None:
            return
        if self.view is not None and self.leader_epoch is not None and leader_epoch > self.leader_epoch:
            self.view.orders.new_leader(leader_epoch, offset)
        self.leader_epoch = leader_epoch
