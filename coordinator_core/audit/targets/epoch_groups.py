"""Targets of groups with epochs (consumer, share, streams), recomputed as the coordinator computed them.

Sources: KIP-848, KIP-932, KIP-1071; the coordinator of Kafka 4.3.1 (TargetAssignmentBuilder and its callers).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from coordinator_core.assignors.inputs import GroupSpec, GroupSpecs, StreamsGroupSpec, Tasks
from coordinator_core.assignors.profiles import OTHER_BEFORE
from coordinator_core.assignors.registry import assign, is_reproduced
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.attempts import Attempt, Attempts
from coordinator_core.audit.targets.gap import GroupGap
from coordinator_core.audit.targets.group_view import GroupView, recorded_partitions, recorded_tasks
from coordinator_core.audit.targets.inputs import EpochState, MissingInput, Topics, topics_used
from coordinator_core.audit.targets.operation import TargetOperation
from coordinator_core.audit.targets.releases import NEWER, PREVIEW, may_be_newer, may_be_preview
from coordinator_core.audit.targets.task_offsets import (
    MISSING,
    NONE_REPORTED,
    broken_task_invariants,
    caught_up_text,
    explaining,
    offsets_decide,
)
from coordinator_core.audit.targets.verdict import (
    Judgement,
    broken_invariants,
    count_units,
    described,
    differing,
    figures_of,
    identical,
    judge,
    undecided,
    units,
    verdict_row,
)
from coordinator_core.cluster.clocks import utc
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import AssignorError, InputError
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.epoch_records import MemberTargetRecord
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.streams.configs import streams_configs
from coordinator_core.groups.streams.sources import topic_names
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.groups.streams.topology import configure
from coordinator_core.history.holdings import WorkUnit
from coordinator_core.java.hash_codes import utf16
from coordinator_core.records import LogPosition

NO_WORK: object = {}
RANKS_BY_OFFSETS = (4, 4)
"""The release since which the streams assignor of brokers looks at what members run, and at their task offsets."""
OFFSETS_OF_4_4 = (
    "the task offsets of the members' heartbeats: brokers of Kafka 4.4 may decide by them, and no log has them"
)
ORDER_FREE = frozenset(("range",))
"""Assignors of the coordinator that have one result, in whatever order the members are presented to them."""


class TargetRecord(NamedTuple):
    """One target record: a member, and its work in the order of the record."""

    member_id: str
    work: Any

    @property
    def exact(self) -> object:
        """The work with its orders."""
        if isinstance(self.work, Tasks):
            roles = (self.work.active, self.work.standby, self.work.warmup)
            return self.member_id, [[(name, list(numbers)) for name, numbers in role.items()] for role in roles]
        return self.member_id, [(name, list(numbers)) for name, numbers in self.work.items()]


class JudgedTarget(NamedTuple):
    """The verdict on one target, and its grounds.

    ``attempt`` is the input that the target was compared with (None: the topics are unknown). ``adopt``: it had the
    members in another order than the group's view, and this order is now proven.
    """

    judgement: Judgement
    topics: Topics | None = None
    attempt: Attempt | None = None
    adopt: bool = False
    basis: Basis = Basis.ASSIGNOR


@dataclass(eq=False)
class EpochTargetAudit:
    """The audit of one target, created once its operation is complete. It does not change its arguments.

    ``state`` is the group after the operation, ``group_view`` before; ``opened`` is its first record. ``gap``: the part
    of the group's past that was not seen. ``is_followed``: everything was seen since a target that was identical, or
    since the group began.
    """

    group_view: GroupView
    state: EpochState
    operation: TargetOperation
    opened: LogPosition
    history: TopicHistory | None
    settings: AuditSettings
    gap: GroupGap | None
    is_followed: bool = field(kw_only=True)

    def __post_init__(self) -> None:
        self.view = self.group_view.view
        self.kind = self.group_view.kind
        self.recorded = [self._written(record) for record in self.operation.targets]
        self.recorded_exactly = [target.exact for target in self.recorded]
        self.attempts = Attempts(self.group_view, self.state, self.operation, self.history, self.settings)

    def judged(self) -> JudgedTarget:
        """Return the verdict: that of the first attempt that yields the target, else of the likeliest one. Raises
        nothing.
        """
        if isinstance(self.state, StreamsGroup):
            try:
                streams_configs(self.state.last_assignment_configs)
            except InputError as error:
                return JudgedTarget(undecided(str(error)))
        topics = topics_used(self.state, self.operation.end.at, self.history, self.settings)
        if isinstance(topics, MissingInput):
            missing = topics.missing if self.gap is None else f"{topics.missing}; {self.gap.missing}"
            return JudgedTarget(undecided(missing))
        try:
            return self._compared(topics)
        except InputError as error:
            return JudgedTarget(undecided(str(error)), topics)

    def _compared(self, topics: Topics) -> JudgedTarget:
        """Raise InputError if the log has an input that Kafka does not accept."""
        first: tuple[Attempt, list[TargetRecord]] | None = None
        failure: tuple[Attempt, str] | None = None
        for attempt in self.attempts.of(topics.image):
            self._require_plausible(attempt, topics.image)
            try:
                expected = self._expected(attempt, topics.image)
            except (AssignorError, InputError) as error:
                failure = failure or (attempt, str(error))
                continue
            if self._is_recorded(expected):
                return self._identical(attempt, topics)
            # The likeliest attempt stands for the expected target: others would show differences that nobody can
            # explain.
            first = first or (attempt, expected)
        if first is not None:
            return self._different(*first, topics)
        assert failure is not None
        return self._not_recomputed(*failure, topics)

    def _require_plausible(self, attempt: Attempt, image: TopicImage) -> None:
        spec = attempt.spec
        recorded = sum(map(count_units, self._whole(spec, self.recorded).values()))
        problem = self.settings.plausible.problem(spec, image, recorded)
        if problem is not None:
            raise InputError(f"plausible numbers of partitions: {problem}")

    def _is_recorded(self, expected: list[TargetRecord]) -> bool:
        return [target.exact for target in expected] == self.recorded_exactly

    def _identical(self, attempt: Attempt, topics: Topics) -> JudgedTarget:
        missing = self._unproven(attempt.spec, topics.image)
        if missing is not None:
            return JudgedTarget(undecided(missing), topics, attempt)
        figures = None
        if self.is_followed:
            figures = figures_of(attempt.spec, topics.image, self._whole(attempt.spec, self.recorded))
        fitted = attempt.fitted + attempt.release + (NONE_REPORTED if self._offsets_decide(attempt) else "")
        return JudgedTarget(identical(fitted, figures), topics, attempt, adopt=attempt.view is not self.view)

    def _unproven(self, spec: GroupSpecs, image: TopicImage) -> str | None:
        """Why it proves nothing that the assignor gives what is recorded; None: it does.

        Where former records may be missing, members may be, and what members had. The target itself shows that none is:
        each partition or task is with a member that is known, and the assignor gives just that.
        """
        if self.gap is None:
            return None
        if self.gap.is_after(self._begin):
            return self.gap.missing
        given = {unit for work in self._whole(spec, self.recorded).values() for unit in units(work)}
        wanted = set().union(*self._wanted(spec, image).values())
        lacking = sorted(unit for unit in wanted - given if unit.role in ("", "active"))
        if not given:
            return f"{self.gap.missing}; no target of a member is left to compare with"
        if lacking:
            named = described(lacking[0], lambda topic: self._name_of(topic, image))
            return f"{self.gap.missing}; no known member has {named}"
        strange = self.view.targets.keys() - spec.members.keys() - {self.operation.replaced}
        if strange:
            return f"{self.gap.missing}; nothing but a target is left of member {min(strange)}"
        unseen = [] if self.is_followed else [member for member in spec.members if self._had_unseen(member)]
        return f"{self.gap.missing}; what member {min(unseen)} had before is not known" if unseen else None

    @property
    def _begin(self) -> int:
        """The offset from which the whole operation must be there: its batch, or the record before it."""
        end = self.operation.end
        return end.batch if end.batch >= 0 else self.opened.offset - 1

    def _had_unseen(self, member: str) -> bool:
        """Whether a member that was there before the gap ends has no target that was seen."""
        if self._holder(member) in self.view.targets:
            return False
        joined = self.operation.member
        if joined is not None and joined.key["memberId"] == member:
            return False
        assert self.gap is not None
        return self.gap.is_after(self.group_view.orders.written(member))

    def _different(self, attempt: Attempt, expected: list[TargetRecord], topics: Topics) -> JudgedTarget:
        """No attempt gave the target: it is wrong, or what the log does not say may explain it."""
        judgement = self._judge(attempt.assignor, attempt.spec, topics.image, expected)
        missing = next(self._doubts(judgement, topics), None)
        if missing is None and (self._offsets_decide(attempt) or self._may_be_4_4()):
            if judgement.verdict is Verdict.INVALID:
                return JudgedTarget(self._invalid(attempt.spec, topics.image, expected), topics, attempt)
            missing = self._task_offsets(attempt, expected, topics.image)
        return JudgedTarget(judgement if missing is None else undecided(missing), topics, attempt)

    def _offsets_decide(self, attempt: Attempt) -> bool:
        return isinstance(attempt.spec, StreamsGroupSpec) and offsets_decide(attempt.assignor, attempt.spec)

    def _may_be_4_4(self) -> bool:
        """Whether a broker of 4.4 may have made the target of a streams group."""
        profiles = self.attempts.profiles() if isinstance(self.state, StreamsGroup) else []
        return any(profile.release >= RANKS_BY_OFFSETS for profile, _ in profiles)

    def _invalid(self, spec: GroupSpecs, image: TopicImage, expected: list[TargetRecord]) -> Judgement:
        """The judgement where the expected target is not known: it says only what the recorded one breaks."""
        return differing(Verdict.INVALID, self._broken_by_coordinator(spec, image, self._whole(spec, expected)))

    def _task_offsets(self, attempt: Attempt, expected: list[TargetRecord], image: TopicImage) -> str:
        """What is missing where task offsets decide, and which offsets explain the target, if some are found."""
        assert isinstance(attempt.spec, StreamsGroupSpec)
        if self._may_be_4_4():
            return OFFSETS_OF_4_4
        recorded, computed = self._whole(attempt.spec, self.recorded), self._whole(attempt.spec, expected)
        explained = attempt._replace(spec=explaining(attempt.spec, recorded))
        if not self._is_recorded(self._expected(explained, image)):
            return MISSING
        return f"{MISSING}; {caught_up_text(attempt.spec, computed, recorded)}"

    def _doubts(self, judgement: Judgement, topics: Topics) -> Iterator[str]:
        """Yield what may explain the difference and is not in the log, the weightiest first."""
        # What one operation gives to two members is wrong whatever was written before.
        if self.gap is not None and not (judgement.verdict is Verdict.INVALID and self._contradicts_itself()):
            yield self.gap.missing
        if isinstance(self.state, StreamsGroup) and self._waited_for_members():
            unready = self._unready(self.state, topics)
            if unready is not None:
                met = f"offset {unready.offset} of the topics' log, {utc(unready.timestamp_ms)}"
                yield f"whether an earlier failed heartbeat saw a topology that was not ready (topics as of {met})"
        for profile, _ in self.attempts.profiles():
            if not isinstance(self.state, ConsumerGroup) and profile.release < OTHER_BEFORE:
                yield f"what the assignor of {profile.name} does: a broker may have been of that release"
        may_be = self.settings.older is None and judgement.verdict is Verdict.DIVERGENT
        if may_be and may_be_preview(self.state, self.history, self.operation.end.at.timestamp_ms):
            yield PREVIEW
        # What those of 4.4 do in streams groups is open anyway.
        is_open = judgement.verdict is Verdict.DIVERGENT and not isinstance(self.state, StreamsGroup)
        if is_open and may_be_newer(self.history, self.operation.end.at.timestamp_ms):
            yield NEWER
        other = self._other_default(topics.image)
        if other is not None:
            yield f"the brokers' default assignor: no member chose one, and {other!r} gives the recorded target"

    def _other_default(self, image: TopicImage) -> str | None:
        """The assignor that made this target, if that is the brokers' default instead of the one of the settings."""
        for attempt in self.attempts.by_other_defaults(image):
            with suppress(AssignorError):
                if self._is_recorded(self._expected(attempt, image)):
                    return attempt.assignor
        return None

    def _waited_for_members(self) -> bool:
        """Whether this is the first target, made by the timer of the initial rebalance delay, and empty."""
        operation = self.operation
        made_by_timer = operation.member is None and operation.epoch is None and not self.view.targets
        return made_by_timer and not any(True for target in self.recorded for _ in units(target.work))

    def _unready(self, state: StreamsGroup, topics: Topics) -> LogPosition | None:
        """Topics after the group's own with which its topology is not ready, None if there were none.

        The timer takes the topology as it was last configured: in a heartbeat, and where that failed without a record.
        """
        if state.topology is None or self.history is None or topics.at is None:
            return None
        until = self.operation.end.at.timestamp_ms + self.settings.clock_slack_ms
        for version in self.history.window(topics.at.timestamp_ms, until, topic_names(state.topology, self.history)):
            if configure(state.topology, version.image).problem is not None:
                return version.at
        return None

    def _not_recomputed(self, attempt: Attempt, failure: str, topics: Topics) -> JudgedTarget:
        """An assignor that is none of Kafka's, or that refuses this input: what holds for any assignor is checked."""
        broken = self._broken(attempt.spec, topics.image, self._whole(attempt.spec, self.recorded))
        if self.gap is None and not is_reproduced(attempt.spec.type, attempt.assignor):
            judgement = differing(Verdict.INVALID if broken else Verdict.SOUND, broken)
            return JudgedTarget(judgement, topics, attempt, basis=Basis.INVARIANTS)
        if broken and self.gap is None:
            return JudgedTarget(differing(Verdict.INVALID, broken), topics, attempt)
        return JudgedTarget(undecided(f"what the assignor {attempt.assignor!r} does: {failure}"), topics, attempt)

    def _expected(self, attempt: Attempt, image: TopicImage) -> list[TargetRecord]:
        """The target records that the coordinator would write, in its order: of the members whose target changes."""
        spec = attempt.spec
        if not spec.members or (isinstance(spec, StreamsGroupSpec) and not spec.subtopologies):
            members: Mapping[str, object] = {}  # of an emptied streams group brokers of 4.4 record a target, too
        else:
            members = assign(attempt.assignor, spec, image, attempt.profile).members
        written = []
        for member in spec.members:
            new = members.get(member, Tasks() if isinstance(spec, StreamsGroupSpec) else NO_WORK)
            if isinstance(new, Tasks):
                new = as_recorded(new)
            old = self.view.targets.get(member)
            # The coordinator compares sets: a member whose target only changed its order gets no record.
            if old is None or (old != new and _sets(old) != _sets(new)):
                written.append(TargetRecord(member, new))
        return written

    def _holder(self, member: str) -> str:
        """Whose target the member had: its own, or that of the static member whose place it takes."""
        operation = self.operation
        joined = operation.member
        if operation.replaced is not None and joined is not None and member == joined.key["memberId"]:
            return operation.replaced
        return member

    def _whole(self, spec: GroupSpecs, written: list[TargetRecord]) -> dict[str, Any]:
        """The target of every member once these records are written."""
        whole = {}
        for member in spec.members:
            kept = self.view.targets.get(self._holder(member))
            whole[member] = kept if kept is not None else (Tasks() if isinstance(spec, StreamsGroupSpec) else NO_WORK)
        whole.update({target.member_id: target.work for target in written})
        return whole

    def _judge(self, assignor: str, spec: GroupSpecs, image: TopicImage, expected: list[TargetRecord]) -> Judgement:
        computed = self._whole(spec, expected)
        judged = judge(
            spec,
            image,
            computed,
            self._whole(spec, self.recorded),
            self._broken_by_coordinator(spec, image, computed),
            lambda topic: self._name_of(topic, image),
            has_one_result=assignor in ORDER_FREE,
        )
        if not judged.difference_count:
            return judged._replace(differences=("the same assignment with its records in another order",))
        return judged

    def _broken_by_coordinator(self, spec: GroupSpecs, image: TopicImage, computed: Mapping[str, object]) -> list[str]:
        """What the recorded target breaks; what the assignor itself breaks here is not held against the record."""
        # Kafka's assignors break rules themselves on some inputs, such as topics that were deleted: the record is
        # right then.
        excused = set(self._broken(spec, image, computed))
        recorded = self._broken(spec, image, self._whole(spec, self.recorded))
        return [breach for breach in recorded if breach not in excused]

    def _broken(self, spec: GroupSpecs, image: TopicImage, whole: Mapping[str, Any]) -> list[str]:
        broken = broken_invariants(
            spec.members,
            whole,
            self._wanted(spec, image),
            shared=self.kind.group is GroupType.SHARE,
            name_of=lambda topic_id: self._name_of(topic_id, image),
        )
        if isinstance(spec, StreamsGroupSpec) and self.attempts.is_kip_1071:
            broken += broken_task_invariants(spec, whole)
        return broken

    def _contradicts_itself(self) -> bool:
        """Whether the records of the operation alone assign a partition twice, whatever was there before."""
        given = {target.member_id: target.work for target in self.recorded}
        anything = {unit for work in given.values() for unit in units(work)}
        shared = self.kind.group is GroupType.SHARE
        return bool(broken_invariants(given, given, dict.fromkeys(given, anything), shared=shared, name_of=str))

    def _wanted(self, spec: GroupSpecs, image: TopicImage) -> dict[str, set[WorkUnit]]:
        """What each member may be given: in a group that counts as homogeneous, what any of them subscribes to."""
        if isinstance(spec, StreamsGroupSpec):
            tasks = {
                WorkUnit(role, subtopology.id, number)
                for subtopology in spec.subtopologies
                for number in range(subtopology.tasks)
                for role in ("active", "standby", "warm-up")
            }
            return dict.fromkeys(spec.members, tasks)
        assert isinstance(spec, GroupSpec)
        everyone = frozenset(topic_id for had in spec.members.values() for topic_id in had.topics)
        wanted = {
            member: everyone if spec.homogeneous else frozenset(had.topics) for member, had in spec.members.items()
        }
        by_topics = {topic_ids: _partitions(spec, image, topic_ids) for topic_ids in set(wanted.values())}
        return {member: by_topics[topic_ids] for member, topic_ids in wanted.items()}

    def _name_of(self, topic_id: str, image: TopicImage) -> str:
        topic = image.by_id.get(topic_id)
        known = topic.name if topic else self.history.topic_name(topic_id) if self.history else None
        return known or f"topic id {topic_id}"

    def _written(self, record: MemberTargetRecord) -> TargetRecord:
        value = record.value
        assert value is not None
        work = recorded_partitions(value) if "topicPartitions" in value else recorded_tasks(value)
        return TargetRecord(record.key["memberId"], work)

    def row(self, judged: JudgedTarget) -> TargetAuditRow:
        """Return the verdict as a row."""
        end, topics, judgement = self.operation.end, judged.topics, judged.judgement
        attempt = judged.attempt
        is_in_doubt = self.gap is not None and judgement.verdict is Verdict.UNKNOWN
        epoch = self.operation.epoch_number
        row = verdict_row(end.group_id, self.kind.group, epoch, end.at, judgement, judged.basis)
        return row._replace(
            opened=self.opened,
            assignor=None if is_in_doubt else attempt.assignor if attempt else self.attempts.assignors()[0],
            members=None if self.gap is not None else len(attempt.spec.members if attempt else self.state.members),
            topics_at=topics.at if topics else None,
            topics_proven=topics.proven if topics else None,
        )


def as_recorded(tasks: Tasks) -> Tasks:
    """Return tasks as the coordinator writes them: ordered by subtopology id, partitions ascending."""
    active, standby, warmup = (
        {key: sorted(role[key]) for key in sorted(role, key=utf16)}
        for role in (tasks.active, tasks.standby, tasks.warmup)
    )
    return replace(tasks, active=active, standby=standby, warmup=warmup)


def _partitions(spec: GroupSpec, image: TopicImage, topic_ids: Iterable[str]) -> set[WorkUnit]:
    """The partitions of these topics that may be assigned."""
    return {
        WorkUnit("", topic_id, number)
        for topic_id in topic_ids
        for number in (
            range(image.by_id[topic_id].partitions) if spec.assignable is None else spec.assignable.get(topic_id, ())
        )
    }


def _sets(work: Any) -> object:
    if isinstance(work, Tasks):
        return [_sets(role) for role in (work.active, work.standby, work.warmup)]
    return {name: set(numbers) for name, numbers in work.items()}
