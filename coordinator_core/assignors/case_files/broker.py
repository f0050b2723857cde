"""Cases of groups whose broker assigns: consumer groups (uniform, range) and share groups (simple)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from coordinator_core.assignors.case_files.case_forms import BrokerCase, BrokerStep, CaseSubscriber, CaseTopic
from coordinator_core.assignors.coordinator_view import Subscriber, SubscriptionView
from coordinator_core.assignors.inputs import AssignedGroupType, GroupSpec, Partitions
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.registry import Assign
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.errors import AssignorError, InputError

StepResult = dict[str, object]


class _Group:
    """The group of a case with the topics of its cluster, as the steps have left them."""

    def __init__(
        self, group_type: AssignedGroupType, assignor: str, case: BrokerCase, profile: Profile, assign: Assign
    ) -> None:
        self.assign = assign
        self.view = SubscriptionView(group_type, jdk=profile.jdk)
        self.assignor = assignor
        self.profile = profile
        self.topics: dict[str, Topic] = {}
        self.uninitialized: dict[str, set[int]] = {}
        self.change_topics(case.get("topics", ()))

    def change_topics(self, changes: Sequence[CaseTopic]) -> None:
        """New topics, other partition counts, deletions (-1)."""
        for change in changes:
            if change["partitions"] == -1:
                self.topics.pop(change["name"], None)
            else:
                self.topics[change["name"]] = Topic(change["name"], change["id"], change["partitions"])

    def step(self, step: BrokerStep) -> StepResult:
        """Return what one step gives; where the assignor fails, nothing of its result is applied."""
        self.change_topics(step.get("topics", ()))
        for regex, topics in step.get("regexes", {}).items():
            self.view.resolve(regex, topics)
        if "uninitialized" in step:
            self.uninitialized = {}
            for topic, number in step["uninitialized"]:
                self.uninitialized.setdefault(topic, set()).add(number)
        if step["op"] == "join":
            member = step["member"]
            return self._assign({member["id"]: _subscriber(member)})
        if step["op"] == "bulk":
            for member in step["members"]:
                self.view.put_member(member["id"], _subscriber(member))
        elif step["op"] == "leave":
            for member_id in step["members"]:
                self.view.remove_target(member_id)
                self.view.remove_member(member_id)
        elif step["op"] == "set_target":
            for member_id, target in step["assignments"].items():
                self.view.put_target(member_id, target)
        elif step["op"] != "topics":
            raise InputError(f"no step {step['op']!r} in a case of {self.assignor}")
        by = step.get("by", "")
        if by not in self.view.members:
            return {"skipped": True}
        return self._assign({by: self.view.members[by]})

    def _assign(self, updates: dict[str, Subscriber]) -> StepResult:
        """One heartbeat of a member that leads to a new target, and the records that it causes.

        Kafka compares targets with those before the heartbeat, in which a static member's successor has none.
        """
        view = self.view
        member, subscriber = next(iter(updates.items()))
        replaced = view.static.get(subscriber.instance_id or "", member)
        laid_over: dict[str, Subscriber | None] = dict(updates)
        if replaced != member:
            laid_over[replaced] = None
        image = TopicImage.of(self.topics.values())
        spec = view.spec(image, laid_over, homogeneous=view.judge(member, subscriber), assignable=self._assignable())
        presented = {"presented": _presented(spec)}
        try:
            assignment = self.assign(self.assignor, spec, image, self.profile)
        except AssignorError as error:
            return {**presented, "error": error.kind, "message": error.message}
        before = dict(view.targets)
        if replaced != member:
            view.put_target(member, view.targets.get(replaced, {}).items())
            view.remove_target(replaced)
            view.remove_member(replaced)
        if view.members.get(member) is not subscriber:
            view.put_member(member, subscriber)
        for member_id in spec.members:
            target = assignment.members.get(member_id, {})
            if member_id not in before or not _same(target, before[member_id]):
                view.put_target(member_id, target.items())
        return {**presented, "assignment": _listed(assignment.members)}

    def _assignable(self) -> dict[str, set[int]] | None:
        if self.view.type is not AssignedGroupType.SHARE:
            return None
        return {
            topic.id: set(range(topic.partitions)) - self.uninitialized.get(topic.id, set())
            for topic in self.topics.values()
        }


def run(
    group_type: AssignedGroupType, assignor: str, case: BrokerCase, profile: Profile, assign: Assign
) -> dict[str, object]:
    """Return every step of the case, one after another."""
    group = _Group(group_type, assignor, case, profile, assign)
    return {"steps": [group.step(step) for step in case["steps"]]}


uniform = partial(run, AssignedGroupType.CONSUMER, "uniform")
range_ = partial(run, AssignedGroupType.CONSUMER, "range")
simple = partial(run, AssignedGroupType.SHARE, "simple")


def _subscriber(member: CaseSubscriber) -> Subscriber:
    return Subscriber(tuple(member["topics"]), member.get("regex"), member.get("instance"), member.get("rack"))


def _same(one: Partitions, other: Partitions) -> bool:
    return one.keys() == other.keys() and all(set(numbers) == set(other[topic]) for topic, numbers in one.items())


def _presented(spec: GroupSpec) -> dict[str, object]:
    return {
        "type": "HOMOGENEOUS" if spec.homogeneous else "HETEROGENEOUS",
        "order": list(spec.members),
        "subs": {member: list(had.topics) for member, had in spec.members.items()},
        "prev": _listed({member: had.previous for member, had in spec.members.items()}),
    }


def _listed(assignment: Mapping[str, Partitions]) -> dict[str, list[list[object]]]:
    """Assignments as ordered lists; members without any are left out."""
    return {
        member: [[topic, list(numbers)] for topic, numbers in partitions.items()]
        for member, partitions in assignment.items()
        if partitions
    }
