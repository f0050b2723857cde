"""Targets of groups with epochs (consumer, share, streams), recomputed as the coordinator computed them.

Sources: KIP-848, KIP-932, KIP-1071; the coordinator of Kafka 4.3.1 (TargetAssignmentBuilder and its callers).
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from coordinator_core.assignors.inputs import GroupSpec, GroupSpecs, Partitions, StreamsGroupSpec, Tasks
from coordinator_core.assignors.profiles import OTHER_BEFORE
from coordinator_core.assignors.registry import assign, is_reproduced
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.attempts import Attempt, Attempts
from coordinator_core.audit.targets.group_view import GroupView, recorded_partitions, recorded_tasks
from coordinator_core.audit.targets.inputs import EpochState, Topics, topics_used
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
    GroupGap,
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
EARLIER_GROUP = (
    "what the group was in epoch {}: a broker after Kafka 4.4 computes targets beside the heartbeats, while epochs open"
)
ORDER_FREE = frozenset(("range",))
"""Assignors of the coordinator that have one result, in whatever order the members are presented to them."""


Written = list[tuple[str, Any]]
"""Target records: members, each with its work in the order of the record."""


@dataclass(eq=False)
class EpochTargetAudit:
    """The audit of one target, created once its operation is complete. It does not change its arguments.

    ``state`` is the group after the operation, ``group_view`` before; ``opened`` is its first record. ``gap``: the part
    of the group's past that was not seen. ``is_followed``: everything was seen since a target that was identical, or
    since the group began. After ``row``, ``attempt`` is the input that the target was compared with (None: the topics
    are unknown).
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
        self.recorded_exactly = _exact(self.recorded)
        self.attempts = Attempts(self.group_view, self.state, self.operation, self.history, self.settings)
        self.topics: Topics | None = None
        self.image = TopicImage.of(())
        self.attempt: Attempt | None = None
        self.basis = Basis.ASSIGNOR

    def row(self) -> TargetAuditRow:
        """Return the verdict: that of the first attempt that yields the target, else of the likeliest one. Raises
        nothing.
        """
        try:
            judgement = self._judgement()
        except InputError as error:  # the log has an input that Kafka does not accept
            judgement = undecided(str(error))
        end, topics, attempt = self.operation.end, self.topics, self.attempt
        is_in_doubt = self.gap is not None and judgement.verdict is Verdict.UNKNOWN
        epoch = self.operation.epoch_number
        row = verdict_row(end.group_id, self.kind.group, epoch, end.at, judgement, self.basis)
        return row._replace(
            opened=self.opened,
            assignor=None if is_in_doubt else attempt.assignor if attempt else self.attempts.assignors()[0],
            members=None if self.gap is not None else len(attempt.spec.members if attempt else self.state.members),
            topics_at=topics.at if topics else None,
            topics_proven=topics.proven if topics else None,
        )

    def _judgement(self) -> Judgement:
        if isinstance(self.state, StreamsGroup):
            streams_configs(self.state.last_assignment_configs)
        epoch = self.operation.epoch_number
        if epoch < (self.state.group_epoch or 0):
            return undecided(EARLIER_GROUP.format(epoch))
        topics = topics_used(self.state, self.operation.end.at, self.history, self.settings)
        if isinstance(topics, str):
            return undecided(topics if self.gap is None else f"{topics}; {self.gap.missing}")
        self.topics, self.image = topics, topics.image
        first: tuple[Attempt, Written] | None = None
        failure: tuple[Attempt, str] | None = None
        for attempt in self.attempts.of(self.image):
            self._require_plausible(attempt)
            try:
                expected = self._expected(attempt)
            except (AssignorError, InputError) as error:
                failure = failure or (attempt, str(error))
                continue
            if self._is_recorded(expected):
                judged, self.attempt = self._identical(attempt), attempt
                return judged
            # The likeliest attempt stands for the expected target: others would show differences that nobody can
            # explain.
            first = first or (attempt, expected)
        if first is not None:
            judged, self.attempt = self._different(*first), first[0]
            return judged
        assert failure is not None
        judged, self.attempt = self._not_recomputed(*failure), failure[0]
        return judged

    def _require_plausible(self, attempt: Attempt) -> None:
        spec = attempt.spec
        recorded = sum(map(count_units, self._whole(spec, self.recorded).values()))
        problem = self.settings.plausible.problem(spec, self.image, recorded)
        if problem is not None:
            raise InputError(f"plausible numbers of partitions: {problem}")

    def _is_recorded(self, expected: Written) -> bool:
        return _exact(expected) == self.recorded_exactly

    def _identical(self, attempt: Attempt) -> Judgement:
        missing = self._unproven(attempt.spec)
        if missing is not None:
            return undecided(missing)
        figures = None
        if self.is_followed:
            figures = figures_of(attempt.spec, self.image, self._whole(attempt.spec, self.recorded))
        return identical(
            attempt.fitted + attempt.release + (NONE_REPORTED if self._offsets_decide(attempt) else ""), figures
        )

    def _unproven(self, spec: GroupSpecs) -> str | None:
        """Why it proves nothing that the assignor gives what is recorded; None: it does.

        Where former records may be missing, members may be, and what members had. The target itself shows that none is:
        each partition or task is with a member that is known, and the assignor gives just that.
        """
        if self.gap is None:
            return None
        if self.gap.is_after(self._begin):
            return self.gap.missing
        given = {unit for work in self._whole(spec, self.recorded).values() for unit in units(work)}
        wanted = set().union(*self._wanted(spec).values())
        lacking = sorted(unit for unit in wanted - given if unit.role in ("", "active"))
        if not given:
            return f"{self.gap.missing}; no target of a member is left to compare with"
        if lacking:
            named = described(lacking[0], self._name_of)
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

    def _different(self, attempt: Attempt, expected: Written) -> Judgement:
        """No attempt gave the target: it is wrong, or what the log does not say may explain it."""
        judgement = self._judge(attempt.assignor, attempt.spec, expected)
        missing = next(self._doubts(judgement), None)
        if missing is None and (self._offsets_decide(attempt) or self._may_be_4_4()):
            if judgement.verdict is Verdict.INVALID:
                # The expected target is not known, but what the recorded one breaks is.
                computed = self._whole(attempt.spec, expected)
                return differing(Verdict.INVALID, self._broken_by_coordinator(attempt.spec, computed))
            missing = self._task_offsets(attempt, expected)
        return judgement if missing is None else undecided(missing)

    def _offsets_decide(self, attempt: Attempt) -> bool:
        return isinstance(attempt.spec, StreamsGroupSpec) and offsets_decide(attempt.assignor, attempt.spec)

    def _may_be_4_4(self) -> bool:
        """Whether a broker of 4.4 may have made the target of a streams group."""
        profiles = self.attempts.profiles() if isinstance(self.state, StreamsGroup) else []
        return any(profile.release >= RANKS_BY_OFFSETS for profile, _ in profiles)

    def _task_offsets(self, attempt: Attempt, expected: Written) -> str:
        """What is missing where task offsets decide, and which offsets explain the target, if some are found."""
        assert isinstance(attempt.spec, StreamsGroupSpec)
        if self._may_be_4_4():
            return OFFSETS_OF_4_4
        recorded, computed = self._whole(attempt.spec, self.recorded), self._whole(attempt.spec, expected)
        explained = attempt._replace(spec=explaining(attempt.spec, recorded))
        if not self._is_recorded(self._expected(explained)):
            return MISSING
        return f"{MISSING}; {caught_up_text(attempt.spec, computed, recorded)}"

    def _doubts(self, judgement: Judgement) -> Iterator[str]:
        """Yield what may explain the difference and is not in the log, the weightiest first."""
        # What one operation gives to two members is wrong whatever was written before.
        if self.gap is not None and not (judgement.verdict is Verdict.INVALID and self._contradicts_itself()):
            yield self.gap.missing
        if isinstance(self.state, StreamsGroup) and self._waited_for_members():
            unready = self._unready(self.state)
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
        other = self._other_default()
        if other is not None:
            yield f"the brokers' default assignor: no member chose one, and {other!r} gives the recorded target"

    def _other_default(self) -> str | None:
        """The assignor that made this target, if that is the brokers' default instead of the one of the settings."""
        for attempt in self.attempts.by_other_defaults(self.image):
            with suppress(AssignorError):
                if self._is_recorded(self._expected(attempt)):
                    return attempt.assignor
        return None

    def _waited_for_members(self) -> bool:
        """Whether this is the first target, made by the timer of the initial rebalance delay, and empty."""
        operation = self.operation
        made_by_timer = operation.member is None and operation.epoch is None and not self.view.targets
        return made_by_timer and not any(True for _, work in self.recorded for _ in units(work))

    def _unready(self, state: StreamsGroup) -> LogPosition | None:
        """Topics after the group's own with which its topology is not ready, None if there were none.

        The timer takes the topology as it was last configured: in a heartbeat, and where that failed without a record.
        """
        since = self.topics.at if self.topics else None
        if state.topology is None or self.history is None or since is None:
            return None
        until = self.operation.end.at.timestamp_ms + self.settings.clock_slack_ms
        for version in self.history.window(since.timestamp_ms, until, topic_names(state.topology, self.history)):
            if configure(state.topology, version.image).problem is not None:
                return version.at
        return None

    def _not_recomputed(self, attempt: Attempt, failure: str) -> Judgement:
        """An assignor that is none of Kafka's, or that refuses this input: what holds for any assignor is checked."""
        broken = self._broken(attempt.spec, self._whole(attempt.spec, self.recorded))
        if self.gap is None and not is_reproduced(attempt.spec.type, attempt.assignor):
            self.basis = Basis.INVARIANTS
            return differing(Verdict.INVALID if broken else Verdict.SOUND, broken)
        if broken and self.gap is None:
            return differing(Verdict.INVALID, broken)
        return undecided(f"what the assignor {attempt.assignor!r} does: {failure}")

    def _expected(self, attempt: Attempt) -> Written:
        """The target records that the coordinator would write, in its order: of the members whose target changes."""
        spec = attempt.spec
        if not spec.members or (isinstance(spec, StreamsGroupSpec) and not spec.subtopologies):
            members: Mapping[str, object] = {}  # of an emptied streams group brokers of 4.4 record a target, too
        else:
            members = assign(attempt.assignor, spec, self.image, attempt.profile).members
        written = []
        for member in spec.members:
            new = members.get(member, Tasks() if isinstance(spec, StreamsGroupSpec) else NO_WORK)
            if isinstance(new, Tasks):
                new = as_recorded(new)
            old = self.view.targets.get(member)
            # The coordinator compares sets: a member whose target only changed its order gets no record.
            if old is None or (old != new and _sets(old) != _sets(new)):
                written.append((member, new))
        return written

    def _holder(self, member: str) -> str:
        """Whose target the member had: its own, or that of the static member whose place it takes."""
        operation = self.operation
        joined = operation.member
        if operation.replaced is not None and joined is not None and member == joined.key["memberId"]:
            return operation.replaced
        return member

    def _whole(self, spec: GroupSpecs, written: Written) -> dict[str, Any]:
        """The target of every member once these records are written."""
        whole = {}
        for member in spec.members:
            kept = self.view.targets.get(self._holder(member))
            whole[member] = kept if kept is not None else (Tasks() if isinstance(spec, StreamsGroupSpec) else NO_WORK)
        whole.update(written)
        return whole

    def _judge(self, assignor: str, spec: GroupSpecs, expected: Written) -> Judgement:
        computed = self._whole(spec, expected)
        judged = judge(
            spec,
            self.image,
            computed,
            self._whole(spec, self.recorded),
            self._broken_by_coordinator(spec, computed),
            self._name_of,
            has_one_result=assignor in ORDER_FREE,
        )
        if not judged.difference_count:
            return judged._replace(differences=("the same assignment with its records in another order",))
        return judged

    def _broken_by_coordinator(self, spec: GroupSpecs, computed: Mapping[str, object]) -> list[str]:
        """What the recorded target breaks; what the assignor itself breaks here is not held against the record."""
        # Kafka's assignors break rules themselves on some inputs, such as topics that were deleted: the record is
        # right then.
        excused = set(self._broken(spec, computed))
        recorded = self._broken(spec, self._whole(spec, self.recorded))
        return [breach for breach in recorded if breach not in excused]

    def _broken(self, spec: GroupSpecs, whole: Mapping[str, Any]) -> list[str]:
        shared = self.kind.group is GroupType.SHARE
        broken = broken_invariants(spec.members, whole, self._wanted(spec), shared=shared, name_of=self._name_of)
        if isinstance(spec, StreamsGroupSpec) and self.attempts.is_kip_1071:
            broken += broken_task_invariants(spec, whole)
        return broken

    def _contradicts_itself(self) -> bool:
        """Whether the records of the operation alone assign a partition twice, whatever was there before."""
        given = dict(self.recorded)
        anything = {unit for work in given.values() for unit in units(work)}
        shared = self.kind.group is GroupType.SHARE
        return bool(broken_invariants(given, given, dict.fromkeys(given, anything), shared=shared, name_of=str))

    def _wanted(self, spec: GroupSpecs) -> dict[str, set[WorkUnit]]:
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
        # One set for each subscription: in a large group most members have the same one.
        by_topics = {topic_ids: _partitions(spec, self.image, topic_ids) for topic_ids in set(wanted.values())}
        return {member: by_topics[topic_ids] for member, topic_ids in wanted.items()}

    def _name_of(self, topic_id: str) -> str:
        topic = self.image.by_id.get(topic_id)
        known = topic.name if topic else self.history.topic_name(topic_id) if self.history else None
        return known or f"topic id {topic_id}"

    def _written(self, record: MemberTargetRecord) -> tuple[str, Any]:
        value = record.value
        assert value is not None
        work = recorded_partitions(value) if "topicPartitions" in value else recorded_tasks(value)
        return record.key["memberId"], work


def as_recorded(tasks: Tasks) -> Tasks:
    """Return tasks as the coordinator writes them: ordered by subtopology id, partitions ascending."""
    active, standby, warmup = ({key: sorted(role[key]) for key in sorted(role, key=utf16)} for role in _roles(tasks))
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


def _roles(work: Any) -> tuple[Partitions, ...]:
    return (work.active, work.standby, work.warmup) if isinstance(work, Tasks) else (work,)


def _sets(work: Any) -> object:
    return [{name: set(numbers) for name, numbers in role.items()} for role in _roles(work)]


def _exact(written: Written) -> object:
    """The records with their orders."""
    return [
        (member, [[(name, list(numbers)) for name, numbers in role.items()] for role in _roles(work)])
        for member, work in written
    ]
