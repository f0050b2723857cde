"""Targets of groups with epochs (consumer, share, streams), recomputed as the coordinator computed them.

Sources: KIP-848, KIP-932, KIP-1071; the coordinator of Kafka 4.3.1 (TargetAssignmentBuilder and its callers).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from coordinator_core.assignors.java_hash import STRING, utf16
from coordinator_core.assignors.java_order import TimelineHashMap
from coordinator_core.assignors.presented import StreamsView, SubscriptionView
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.registry import assign
from coordinator_core.assignors.spec import GroupSpec, GroupSpecs, StreamsGroupSpec, Tasks
from coordinator_core.assignors.spec import GroupType as AssignedType
from coordinator_core.audit.inputs import (
    EpochState,
    MissingInput,
    Topics,
    assignable,
    assignor_of,
    process,
    streams_spec,
    subscriber,
    subscription_spec,
    topics_used,
)
from coordinator_core.audit.operation import RecordTypes, TargetOperation
from coordinator_core.audit.orders import MemberMap, MemberOrders
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.verdict import Judgement, Unit, broken_invariants, figures_of, judge, units
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import AssignorError, InputError
from coordinator_core.groups.group import GroupType
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.records import CoordinatorRecord, Fields, LogPosition

View = SubscriptionView | StreamsView
NO_WORK: Any = {}


class Written(NamedTuple):
    """One target record: a member, and its work in the order of the record."""

    member_id: str
    work: Any

    @property
    def exact(self) -> Any:
        """The work with its orders."""
        if isinstance(self.work, Tasks):
            roles = (self.work.active, self.work.standby, self.work.warmup)
            return self.member_id, [[(name, list(numbers)) for name, numbers in role.items()] for role in roles]
        return self.member_id, [(name, list(numbers)) for name, numbers in self.work.items()]


@dataclass(slots=True)
class GroupView:
    """What the audit keeps of a group with epochs besides its state: the orders of its maps."""

    kind: RecordTypes
    view: View
    orders: MemberOrders

    @classmethod
    def of(cls, kind: RecordTypes, jdk: int) -> GroupView:
        """The view of a group without members."""
        if kind.group is GroupType.STREAMS:
            return cls(kind, StreamsView(jdk=jdk), MemberOrders())
        assigned = AssignedType.SHARE if kind.group is GroupType.SHARE else AssignedType.CONSUMER
        return cls(kind, SubscriptionView(assigned, jdk=jdk), MemberOrders())

    def apply(self, record: CoordinatorRecord) -> None:
        """Take in a record of the group that is part of no operation under judgement any more."""
        kind, view, value = self.kind, self.view, record.value
        if record.type == kind.current:
            member_id = record.key["memberId"]
            self.orders.change(record.at, member_id, metadata=False, present=value is not None)
            if value is not None or member_id in view.members:
                view.put_again(member_id)
        elif record.type == kind.member:
            member_id = record.key["memberId"]
            self.orders.change(record.at, member_id, metadata=True, present=value is not None)
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
            view.resolve(record.key["regularExpression"], None if value is None else value["topics"])

    def ordered(self, members: MemberMap) -> View:
        """The same view with the members in the order of that map."""
        view = copy(self.view)
        items = ((member, self.view.members[member]) for member in members)
        ordered: TimelineHashMap[str, Any] = TimelineHashMap.restored(STRING, members.capacity, items)
        view.members = ordered
        return view

    def adopt(self, view: View, story: str) -> None:
        """Go on with a view in another order, which is now known to be the coordinator's."""
        self.view, self.orders.story = view, story


def recorded_partitions(value: Fields) -> dict[str, list[int]]:
    """Topic ids and partitions of a target record, in its order."""
    return {each["topicId"]: each["partitions"] for each in value["topicPartitions"]}


def recorded_tasks(value: Fields) -> Tasks:
    """Tasks of a streams target record, in its order."""
    active, standby, warmup = (
        {each["subtopologyId"]: each["partitions"] for each in value[role]}
        for role in ("activeTasks", "standbyTasks", "warmupTasks")
    )
    return Tasks(active, standby, warmup)


class _Attempt(NamedTuple):
    """One input of the assignor that the log allows, and what it takes for granted."""

    view: View
    spec: GroupSpecs
    profile: Profile
    story: str
    release: str


class EpochTargetAudit:
    """The audit of one target: built once its operation is complete."""

    def __init__(
        self,
        group_view: GroupView,
        state: EpochState,
        operation: TargetOperation,
        history: TopicHistory | None,
        settings: AuditSettings,
        gap: str | None,
    ) -> None:
        """``state`` is the group after the operation, ``group_view`` before; ``gap``: what of its past was not seen."""
        self.group_view = group_view
        self.view = group_view.view
        self.kind = group_view.kind
        self.state = state
        self.operation = operation
        self.history = history
        self.settings = settings
        self.gap = gap
        self.recorded = [self._written(record) for record in operation.targets]
        self.assignor = assignor_of(state, settings.default_assignor)

    def row(self, opened: CoordinatorRecord) -> TargetAuditRow:
        """The verdict; raises nothing."""
        topics = topics_used(self.state, self.operation.end.at, self.history, self.settings.clock_slack_ms)
        if isinstance(topics, MissingInput):
            return self._row(opened, None, Judgement(Verdict.UNKNOWN), missing=topics.what)
        first: tuple[GroupSpecs, list[Written]] | None = None
        failure = ""
        for attempt in self._attempts(topics.image):
            spec = attempt.spec
            try:
                expected = self._expected(spec, topics.image, attempt.profile)
            except (AssignorError, InputError) as error:
                failure = failure or str(error)
                continue
            first = first or (spec, expected)
            if [each.exact for each in expected] == [each.exact for each in self.recorded]:
                figures = figures_of(spec, topics.image, self._whole(spec, self.recorded))
                judged = Judgement(Verdict.IDENTICAL, expected=figures, recorded=figures)
                if attempt.view is not self.view:
                    self.group_view.adopt(attempt.view, attempt.story)
                return self._row(
                    opened, topics, judged, fitted=attempt.story + attempt.release, members=len(spec.members)
                )
        if first is None:
            return self._row(opened, topics, Judgement(Verdict.UNKNOWN), missing=f"the assignor refuses: {failure}")
        spec, expected = first
        judged = self._judge(spec, topics.image, expected)
        if self.gap is not None and not (judged.verdict is Verdict.INVALID and self._contradicts_itself()):
            return self._row(
                opened, topics, judged._replace(verdict=Verdict.UNKNOWN), missing=self.gap, members=len(spec.members)
            )
        return self._row(opened, topics, judged, members=len(spec.members))

    def _attempts(self, image: TopicImage) -> Iterator[_Attempt]:
        """Inputs that the log allows, the likeliest first."""
        profiles = self.settings.profiles_for(recorded_topics=self.state_has_recorded_topics)
        for profile, name in profiles:
            yield _Attempt(self.view, self._spec(self.view, image), profile, self.group_view.orders.story, name)
        profile, name = profiles[0]
        present, known = tuple(self.view.members), set(self.view.members)
        for order in self.group_view.orders.possible(self._registrations()):
            if tuple(order.members) != present and set(order.members) == known:
                view = self.group_view.ordered(order.members)
                yield _Attempt(view, self._spec(view, image), profile, order.story, name)

    def _registrations(self) -> list[tuple[int, LogPosition]]:
        """Brokers that started while the group was there."""
        changes = self.group_view.orders.changes
        if self.history is None or not changes:
            return []
        found = self.history.registrations(changes[0].timestamp_ms, self.operation.end.at.timestamp_ms)
        return [(each.broker, each.at) for each in found]

    @property
    def state_has_recorded_topics(self) -> bool:
        """Whether the group's log is one of a broker before 4.1, which recorded the topics themselves."""
        return getattr(self.state, "subscription_metadata", None) is not None

    def _spec(self, view: View, image: TopicImage) -> GroupSpecs:
        if isinstance(view, StreamsView):
            assert isinstance(self.state, StreamsGroup)
            return streams_spec(view, self.operation, self.state, image)
        return subscription_spec(view, self.operation, image, assignable(self.state))

    def _expected(self, spec: GroupSpecs, image: TopicImage, profile: Profile) -> list[Written]:
        """The target records that the coordinator would write, in its order: of the members whose target changes."""
        if isinstance(spec, StreamsGroupSpec) and not spec.subtopologies:
            members: Mapping[str, Any] = {}
        else:
            members = assign(self.assignor, spec, image, profile).members
        written = []
        for member in spec.members:
            holder = self._holder(member)
            new = members.get(member, Tasks() if isinstance(spec, StreamsGroupSpec) else NO_WORK)
            if isinstance(new, Tasks):
                new = as_recorded(new)
            if holder not in self.view.targets or _sets(new) != _sets(self.view.targets[holder]):
                written.append(Written(member, new))
        return written

    def _holder(self, member: str) -> str:
        """Whose target the member had: its own, or that of the static member whose place it takes."""
        operation = self.operation
        joined = operation.member
        if operation.replaced is not None and joined is not None and member == joined.key["memberId"]:
            return operation.replaced
        return member

    def _whole(self, spec: GroupSpecs, written: list[Written]) -> dict[str, Any]:
        """The target of every member once these records are written."""
        whole = {}
        for member in spec.members:
            kept = self.view.targets.get(self._holder(member))
            whole[member] = kept if kept is not None else (Tasks() if isinstance(spec, StreamsGroupSpec) else NO_WORK)
        whole.update({each.member_id: each.work for each in written})
        return whole

    def _judge(self, spec: GroupSpecs, image: TopicImage, expected: list[Written]) -> Judgement:
        recorded = self._whole(spec, self.recorded)
        broken = broken_invariants(
            spec.members,
            recorded,
            self._wanted(spec, image),
            shared=self.kind.group is GroupType.SHARE,
            name_of=lambda topic_id: self._name_of(topic_id, image),
        )
        judged = judge(
            spec, image, self._whole(spec, expected), recorded, broken, lambda topic: self._name_of(topic, image)
        )
        if not judged.difference_count:
            return judged._replace(differences=("the same assignment, its records in another order",))
        return judged

    def _contradicts_itself(self) -> bool:
        """Whether the records of the operation alone assign a partition twice, whatever was there before."""
        given = {each.member_id: each.work for each in self.recorded}
        anything = {unit for work in given.values() for unit in units(work)}
        shared = self.kind.group is GroupType.SHARE
        return bool(broken_invariants(given, given, dict.fromkeys(given, anything), shared=shared, name_of=str))

    def _wanted(self, spec: GroupSpecs, image: TopicImage) -> dict[str, set[Unit]]:
        """What each member may be given: in a group that counts as homogeneous, what any of them subscribes to."""
        if isinstance(spec, StreamsGroupSpec):
            tasks = {
                Unit(role, each.id, number)
                for each in spec.subtopologies
                for number in range(each.tasks)
                for role in ("active", "standby", "warm-up")
            }
            return dict.fromkeys(spec.members, tasks)
        assert isinstance(spec, GroupSpec)
        everyone = {topic_id for had in spec.members.values() for topic_id in had.topics}
        return {
            member: {
                Unit("", topic_id, number)
                for topic_id in (everyone if spec.homogeneous else had.topics)
                for number in (
                    range(image.by_id[topic_id].partitions)
                    if spec.assignable is None
                    else spec.assignable.get(topic_id, ())
                )
            }
            for member, had in spec.members.items()
        }

    def _name_of(self, topic_id: str, image: TopicImage) -> str:
        topic = image.by_id.get(topic_id)
        known = topic.name if topic else self.history.topic_name(topic_id) if self.history else None
        return known or f"topic id {topic_id}"

    def _written(self, record: CoordinatorRecord) -> Written:
        value = record.value or {}
        is_streams = self.kind.group is GroupType.STREAMS
        return Written(record.key["memberId"], recorded_tasks(value) if is_streams else recorded_partitions(value))

    def _row(
        self,
        opened: CoordinatorRecord,
        topics: Topics | None,
        judged: Judgement,
        *,
        fitted: str | None = None,
        missing: str | None = None,
        members: int = 0,
    ) -> TargetAuditRow:
        end = self.operation.end
        return TargetAuditRow(
            group_id=end.group_id,
            group_type=self.kind.group,
            epoch=(end.value or {})["assignmentEpoch"],
            at=end.at,
            opened=opened.at,
            verdict=judged.verdict,
            basis=Basis.ASSIGNOR,
            assignor=self.assignor,
            fitted=fitted,
            missing=missing,
            differences=judged.differences,
            difference_count=judged.difference_count,
            members=members,
            expected=judged.expected,
            recorded=judged.recorded,
            topics_at=topics.at if topics else None,
            topics_proven=topics.proven if topics else None,
        )


def as_recorded(tasks: Tasks) -> Tasks:
    """As the coordinator writes it: by subtopology id, partitions ascending."""
    active, standby, warmup = (
        {key: sorted(role[key]) for key in sorted(role, key=utf16)}
        for role in (tasks.active, tasks.standby, tasks.warmup)
    )
    return replace(tasks, active=active, standby=standby, warmup=warmup)


def _sets(work: Any) -> Any:
    if isinstance(work, Tasks):
        return [_sets(role) for role in (work.active, work.standby, work.warmup)]
    return {name: set(numbers) for name, numbers in work.items()}
