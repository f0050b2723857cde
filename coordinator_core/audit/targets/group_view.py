"""A group with epochs in its coordinator's memory: all that decides about an assignor's input and its order."""

from copy import copy
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.assignors.coordinator_view import AssignorVotes, StreamsView, SubscriptionView
from coordinator_core.assignors.inputs import AssignedGroupType as AssignedType
from coordinator_core.assignors.inputs import Tasks
from coordinator_core.audit.targets.inputs import process, subscriber
from coordinator_core.audit.targets.map_orders import MemberMap, MemberOrders
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.record_types import RecordTypes
from coordinator_core.java.hash_codes import STRING
from coordinator_core.java.order import TimelineHashMap
from coordinator_core.record_fields.consumer_group import (
    ConsumerGroupRegularExpressionRecord,
    ConsumerGroupTargetAssignmentMemberValue,
)
from coordinator_core.record_fields.share_group import ShareGroupTargetAssignmentMemberValue
from coordinator_core.record_fields.streams_group import StreamsGroupTargetAssignmentMemberValue
from coordinator_core.records import AnyRecord

View = SubscriptionView | StreamsView


@dataclass(slots=True)
class GroupView:
    """What the audit keeps about a group with epochs besides its state: the orders of its maps.

    ``votes`` counts the assignors that members ask for; ``asked`` has the assignor by member, for members that ask for
    one.
    """

    kind: RecordTypes
    view: View
    orders: MemberOrders = field(default_factory=MemberOrders)
    votes: AssignorVotes = field(default_factory=AssignorVotes)
    asked: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: RecordTypes, jdk: int) -> "GroupView":
        """Return the view of a group without members."""
        if kind.group is GroupType.STREAMS:
            return cls(kind, StreamsView(jdk=jdk))
        assigned = AssignedType.SHARE if kind.group is GroupType.SHARE else AssignedType.CONSUMER
        return cls(kind, SubscriptionView(assigned, jdk=jdk))

    def apply(self, record: AnyRecord) -> None:
        """Take in a record of the group; its operation has been judged."""
        kind, view, value = self.kind, self.view, record.value
        if record.type == kind.current:
            member_id = record.key["memberId"]
            self.orders.change(record.at, member_id, metadata=False, present=value is not None)
            if value is not None or member_id in view.members:
                view.put_again(member_id)
        elif record.type == kind.member:
            member_id = record.key["memberId"]
            self.orders.change(record.at, member_id, metadata=True, present=value is not None)
            self._vote(member_id, None if value is None else value.get("serverAssignor"))
            if value is None:
                view.remove_member(member_id)
            elif isinstance(view, StreamsView):
                view.put_member(member_id, process(value))
            else:
                view.put_member(member_id, subscriber(value))
        elif record.type == kind.target:
            if value is None:
                view.remove_target(record.key["memberId"])
            elif isinstance(view, StreamsView):
                view.put_target(record.key["memberId"], recorded_tasks(value))
            else:
                view.put_target(record.key["memberId"], recorded_partitions(value).items())
        elif isinstance(view, SubscriptionView) and "regularExpression" in record.key:
            resolved: ConsumerGroupRegularExpressionRecord = record
            topics = None if resolved.value is None else resolved.value["topics"]
            view.resolve(resolved.key["regularExpression"], topics)

    def _vote(self, member_id: str, assignor: str | None) -> None:
        self.votes.change(self.asked.pop(member_id, None), assignor)
        if assignor is not None:
            self.asked[member_id] = assignor

    def ordered(self, members: MemberMap) -> View:
        """Return the same view with the members in the order of this map."""
        view = copy(self.view)
        items = ((member, self.view.members[member]) for member in members)
        ordered: TimelineHashMap[str, Any] = TimelineHashMap.restored(STRING, members.capacity, items)
        view.members = ordered
        return view

    def adopt(self, view: View, fitted: str) -> None:
        """Continue with a view in another order, now proven to be the coordinator's."""
        self.view, self.orders.story = view, fitted


def recorded_partitions(
    value: ConsumerGroupTargetAssignmentMemberValue | ShareGroupTargetAssignmentMemberValue,
) -> dict[str, list[int]]:
    """Return partitions by topic id from a target record, in its order."""
    return {partition["topicId"]: partition["partitions"] for partition in value["topicPartitions"]}


def recorded_tasks(value: StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    """Return the tasks of a streams target record, in its order."""
    active, standby, warmup = (
        {task["subtopologyId"]: task["partitions"] for task in tasks}
        for tasks in (value["activeTasks"], value["standbyTasks"], value["warmupTasks"])
    )
    return Tasks(active, standby, warmup)
