"""Cases of groups whose broker assigns: consumer groups (uniform, range), share groups (simple), and streams groups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from coordinator_core.assignors.case_files.case_forms import (
    BrokerCase,
    BrokerStep,
    CaseProcess,
    CaseSubscriber,
    CaseTopic,
    CaseTopology,
    StreamsInput,
    StreamsStep,
)
from coordinator_core.assignors.coordinator_view import Process, StreamsView, Subscriber, SubscriptionView
from coordinator_core.assignors.inputs import (
    AssignedGroupType,
    Assignment,
    GroupSpec,
    Partitions,
    StreamsConfigs,
    StreamsGroupSpec,
    SubtopologyTasks,
    TaskId,
    Tasks,
)
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.registry import Assign
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.errors import AssignorError, InputError
from coordinator_core.java.hash_codes import utf16

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


StreamsAssign = Callable[[StreamsGroupSpec, TopicImage, Profile], Assignment[Tasks]]
Offsets = dict[TaskId, int]


class StreamsCase:
    """The group of a case after the steps so far.

    ``offsets`` has what each member reported last: the offsets of its process's state, and the ends that it knows.
    """

    def __init__(self, view: StreamsView, run_assignor: StreamsAssign, case: StreamsInput, profile: Profile) -> None:
        self.view = view
        self.run_assignor = run_assignor
        self.profile = profile
        self.offsets: dict[str, tuple[Offsets, Offsets]] = {}
        self.subtopologies: list[SubtopologyTasks] = []
        self.configs = StreamsConfigs()
        self.change_topology(case)

    def change_topology(self, change: CaseTopology) -> None:
        """Set other subtopologies, or other configurations."""
        if "subtopologies" in change:
            self.subtopologies = [
                SubtopologyTasks(subtopology["id"], subtopology["tasks"], subtopology["stateful"])
                for subtopology in change["subtopologies"]
            ]
        tags = change.get("rack_aware_tags")
        now = self.configs
        self.configs = StreamsConfigs(
            change.get("num_standby_replicas", now.num_standby_replicas),
            change.get("num_warmup_replicas", now.num_warmup_replicas),
            change.get("acceptable_recovery_lag", now.acceptable_recovery_lag),
            now.rack_aware_tags if tags is None else tuple(tags),
        )

    def step(self, step: StreamsStep) -> StepResult:
        """Return the result of one step; if the assignor fails, nothing of its result is applied."""
        self.change_topology(step)
        if step["op"] == "join":
            member = step["member"]
            self._report(member)
            return self._assign(member["id"], _process(member))
        if step["op"] == "bulk":
            for member in step["members"]:
                self._report(member)
                self.view.put_member(member["id"], _process(member))
        elif step["op"] == "leave":
            for member_id in step["members"]:
                self.view.remove_target(member_id)
                self.view.remove_member(member_id)
                self.offsets.pop(member_id, None)
        elif step["op"] == "report":
            for member in step["members"]:
                self._report(member)
        elif step["op"] == "set_target":
            for member_id, target in step["assignments"].items():
                self.view.put_target(member_id, Tasks(target["active"], target["standby"], target.get("warmup", {})))
        elif step["op"] != "topology":
            raise InputError(f"no step {step['op']!r} in a case of a streams group")
        by = step.get("by", "")
        if by not in self.view.members:
            return {"skipped": True}
        return self._assign(by, self.view.members[by])

    def _report(self, member: CaseProcess) -> None:
        """Take in the task offsets of a member, by task id such as ``0_3``; a member without any keeps its former."""
        if "offsets" in member or "end_offsets" in member:
            self.offsets[member["id"]] = _by_task(member.get("offsets", {})), _by_task(member.get("end_offsets", {}))

    def _with_offsets(self, spec: StreamsGroupSpec) -> StreamsGroupSpec:
        members = {
            member_id: replace(had, task_offsets=reported[0], task_end_offsets=reported[1])
            for member_id, had in spec.members.items()
            if (reported := self.offsets.get(member_id)) is not None
        }
        return replace(spec, members={**spec.members, **members}) if members else spec

    def _assign(self, member: str, process: Process) -> StepResult:
        """One heartbeat of a member that leads to a new target, and the records that it causes.

        Kafka compares targets with those before the heartbeat, in which a static member's successor has none.
        """
        view = self.view
        replaced = view.static.get(process.instance_id or "", member)
        updates: dict[str, Process | None] = {member: process}
        if replaced != member:
            updates[replaced] = None
        spec = self._with_offsets(view.spec(self.subtopologies, self.configs, updates))
        presented = {"presented": _presented_tasks(spec)}
        try:
            assignment = self.run_assignor(spec, TopicImage.of(()), self.profile)
        except AssignorError as error:
            return {**presented, "error": error.kind, "message": error.message}
        before = dict(view.targets)
        if replaced != member:
            view.put_target(member, view.targets.get(replaced, Tasks()))
            view.remove_target(replaced)
            view.remove_member(replaced)
        if view.members.get(member) is not process:
            view.put_member(member, process)
        for member_id in spec.members:
            target = assignment.members.get(member_id, Tasks())
            if member_id not in before or _sets(target) != _sets(before[member_id]):
                view.put_target(member_id, _as_recorded(target))
        return {
            **presented,
            "assignment": {member_id: _as_json(assignment.members[member_id]) for member_id in spec.members},
        }


def run_streams(name: str, case: StreamsInput, profile: Profile, assign: Assign) -> dict[str, object]:
    """Return every step of a case of the streams assignor of that name."""
    group = StreamsCase(StreamsView(jdk=profile.jdk), partial(assign, name), case, profile)
    return {"steps": [group.step(step) for step in case["steps"]]}


def _by_task(offsets: Mapping[str, int]) -> Offsets:
    """Return offsets by task, from ids as ``0_3``: subtopology and partition."""
    return {(task.rpartition("_")[0], int(task.rpartition("_")[2])): offset for task, offset in offsets.items()}


def _process(member: CaseProcess) -> Process:
    return Process(member["process_id"], member.get("instance"), member.get("rack"), member.get("tags", {}))


def _sets(tasks: Tasks) -> list[dict[str, set[int]]]:
    return [
        {key: set(numbers) for key, numbers in role.items()} for role in (tasks.active, tasks.standby, tasks.warmup)
    ]


def _as_recorded(tasks: Tasks) -> Tasks:
    """As the coordinator writes it: by subtopology id, partitions ascending."""
    active, standby, warmup = (
        {key: sorted(role[key]) for key in sorted(role, key=utf16)}
        for role in (tasks.active, tasks.standby, tasks.warmup)
    )
    return Tasks(active, standby, warmup)


def _as_json(tasks: Tasks) -> dict[str, object]:
    recorded = _as_recorded(tasks)
    shown: dict[str, object] = {"active": recorded.active, "standby": recorded.standby}
    # Only KIP-1071 has this role; results of a release are compared with recordings that do not have it.
    return {**shown, "warmup": recorded.warmup} if recorded.warmup else shown


def _presented_tasks(spec: StreamsGroupSpec) -> dict[str, object]:
    previous = {}
    for member, had in spec.members.items():
        active, standby = (
            [[key, list(numbers)] for key, numbers in role.items()]
            for role in (had.previous.active, had.previous.standby)
        )
        previous[member] = {"active": active, "standby": standby}
    return {"order": list(spec.members), "prev": previous}
