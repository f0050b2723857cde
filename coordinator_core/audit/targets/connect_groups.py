"""Targets of Connect groups on KIP-848, recomputed as the worker computed them that the coordinator chose.

The log has what the worker was given: what is configured (type 4), what each worker runs (type 7), the assignors that
all of them offer (type 5) and the delay (type 8). It does not have which worker computed, when it asked for this, and
what its assignor kept from former computations: what the log allows of these is tried.

Sources: Connect on KIP-848 (Assignment Process, Assignment Validation); the assignors are those of Kafka 4.3.1
(KIP-415).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from coordinator_core.assignors.connect.eager_and_incremental import AssignorMemory
from coordinator_core.assignors.connect.selection import select_assignor
from coordinator_core.assignors.connect.work import ConnectorsAndTasks
from coordinator_core.assignors.inputs import ConnectGroupSpec, WorkerSpec
from coordinator_core.assignors.leader_round import DeclaredTarget, declare_target
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.classic_connect import EAGER, NO_TOPICS
from coordinator_core.audit.targets.connect_inputs import (
    ConversionTarget,
    GroupInput,
    KeptMemory,
    WorkerTargetState,
    as_work,
)
from coordinator_core.audit.targets.verdict import (
    GroupGap,
    Judgement,
    broken_invariants,
    described,
    differing,
    figures_of,
    gives_twice,
    identical,
    judge,
    undecided,
    units,
    verdict_row,
)
from coordinator_core.errors import AssignorError, InputError
from coordinator_core.groups.connect.state import ConnectGroup, is_classic
from coordinator_core.groups.group_type import GroupType
from coordinator_core.record_fields.connect_group import ConnectWorkerGroupTargetAssignmentRecord

NEWEST_MEMORY = "the memory of the computation before"
FIRST_COMPUTATION = "the first computation"
NO_MEMORY = "an assignor that keeps nothing"
WITHOUT_MEMORY = "a worker without memory"
USUAL_STORIES = (NEWEST_MEMORY, FIRST_COMPUTATION, NO_MEMORY)


class _Attempt(NamedTuple):
    """An input that the log allows, and the target that the assignor makes of it (``works``)."""

    input: GroupInput
    kept: KeptMemory | None
    declared: DeclaredTarget
    works: dict[str, ConnectorsAndTasks]
    fitted: str


@dataclass(eq=False)
class WorkerTargetAudit:
    """The audit of one target of a Connect group on KIP-848.

    ``group`` is the group after its target record; ``gap`` is the part of its past that was not seen.
    """

    memory: WorkerTargetState
    group: ConnectGroup
    record: ConnectWorkerGroupTargetAssignmentRecord
    settings: AuditSettings
    gap: GroupGap | None

    def __post_init__(self) -> None:
        assert self.record.value is not None
        self.epoch = self.record.value["assignmentEpoch"]
        self.recorded = {worker: as_work(target.work) for worker, target in self.group.targets.items()}
        # The newest first: a worker is asked again when its input changes, and the last answer is the one that counts.
        self.inputs = [candidate for candidate in reversed(self.memory.inputs) if candidate.epoch == self.epoch]
        self.assignor: str | None = None

    def row(self) -> TargetAuditRow:
        """Return the verdict, and take the target into memory. Raise nothing."""
        failed = any(target.error for target in self.group.targets.values())
        row = self._kept() if failed else self._computed()
        self.memory.forget_inputs(self.epoch)
        return row

    def _computed(self) -> TargetAuditRow:
        # A worker joined or left while it was computed: only inputs with all workers of the target can be its own.
        inputs = [each for each in self.inputs if each.work is not None and self.recorded.keys() <= each.workers.keys()]
        if not inputs:
            self._remember_likely([])
            missing = f"what there was to run in group epoch {self.epoch}"
            return self._row(undecided(missing if self.gap is None else f"{missing}; {self.gap.missing}"))
        self.assignor = _common_assignor(inputs[0])
        first: _Attempt | None = None
        failure = ""
        try:
            for (kept, fitted), candidate in product(self._memories(), inputs):
                for attempt in self._attempts(candidate, kept, fitted):
                    if self._is_recorded(attempt.works):
                        return self._identical(attempt)
                    first = first or attempt
        except (AssignorError, InputError) as error:
            failure = str(error)
        row = self._different(first, inputs, failure)
        self._remember_likely([] if first is None else [first.declared.memory])
        return row

    def _kept(self) -> TargetAuditRow:
        """A target of a worker whose assignor failed: all keep what they run."""
        running = {
            member_id: as_work(member.current.work)
            for member_id, member in self.group.members.items()
            if member.current is not None
        }
        spec = _spec_of(running)
        if self._is_recorded(running):
            figures = figures_of(spec, NO_TOPICS, self.recorded)
            return self._row(identical(figures=figures), basis=Basis.KEPT)
        if self.gap is not None:
            return self._row(undecided(self.gap.missing), basis=Basis.KEPT)
        return self._row(judge(spec, NO_TOPICS, running, self.recorded, [], str), basis=Basis.KEPT)

    # --- what may have been computed ---------------------------------------------------------------------------------

    def _attempts(self, of: GroupInput, kept: KeptMemory | None, fitted: str) -> Iterator[_Attempt]:
        """Yield what the assignor gives for an input that the log allows, the likeliest first.

        Raises:
            AssignorError, InputError: it is none of Connect's own, or it refuses an input.
        """
        name = _common_assignor(of)
        first_task = _first_task(of)
        if name is None or first_task is None or any(worker.work is None for worker in of.workers.values()):
            return
        for now_ms in self._times(of, kept):
            spec = self._spec(of, name, first_task, kept, now_ms)
            declared = declare_target(name, spec, self.settings.chosen)
            works = {worker: _shifted(work, first_task) for worker, work in declared.works.items()}
            yield _Attempt(of, kept, declared, works, fitted)

    def _spec(
        self, of: GroupInput, name: str, first_task: int, kept: KeptMemory | None, now_ms: int
    ) -> ConnectGroupSpec:
        """Return what the worker gives its assignor; tasks are counted from 0 there."""
        assert of.work is not None
        connectors = dict.fromkeys(of.work.connectors, 0)
        for connector, _ in of.work.tasks:
            connectors[connector] += 1
        workers = {}
        for member_id in of.workers:
            runs = ConnectorsAndTasks.of()
            if name != EAGER:
                runs = _shifted(of.runs[member_id], -first_task)
            workers[member_id] = WorkerSpec(member_id, 0, list(runs.connectors), list(runs.tasks))
        memory = None if kept is None else kept.memory
        completed = -1 if memory is None else memory.generation
        leader = next(iter(workers))
        return ConnectGroupSpec(workers, leader, connectors, 0, of.epoch, completed, now_ms, of.max_delay_ms, memory)

    def _memories(self) -> Iterator[tuple[KeptMemory | None, str]]:
        """Yield what the assignor of the worker that computed may have kept, the likeliest first."""
        if self.assignor == EAGER:
            yield None, NO_MEMORY
            return
        known = self.memory.memories
        newest = [memory for memory in known if memory.epoch == known[0].epoch]
        yield from ((memory, NEWEST_MEMORY) for memory in newest)
        yield None, WITHOUT_MEMORY if newest else FIRST_COMPUTATION
        for memory in known[len(newest) :]:
            yield memory, f"the memory of the computation of epoch {memory.epoch}"

    def _times(self, of: GroupInput, kept: KeptMemory | None) -> Iterator[int]:
        """Yield when the worker may have computed. It matters only whether a delay is over for it then."""
        written_ms = self.record.at.timestamp_ms
        yield written_ms
        due_ms = 0 if kept is None else kept.memory.rebalance_at_ms
        doubt_ms = self.settings.clock_slack_ms + written_ms - of.at.timestamp_ms + (kept.within_ms if kept else 0)
        if due_ms and abs(due_ms - written_ms) <= doubt_ms:
            # The worker's clock may be on the other side of the delay's end than the log's.
            yield due_ms if due_ms > written_ms else due_ms - 1

    # --- verdicts ----------------------------------------------------------------------------------------------------

    def _is_recorded(self, works: dict[str, ConnectorsAndTasks]) -> bool:
        """Whether the target is this one; workers that left while it was computed are not in it."""
        if not self.recorded.keys() <= works.keys():
            return False
        return all(
            work == self.recorded[member_id] if member_id in self.recorded else member_id not in self.group.members
            for member_id, work in works.items()
        )

    def _identical(self, attempt: _Attempt) -> TargetAuditRow:
        if self.gap is not None and self.gap.is_after(attempt.input.at.offset):
            self._remember_likely([attempt.declared.memory])
            return self._row(undecided(self.gap.missing))
        # Several memories may give one target: all that do go on, as the next target may tell them apart.
        fitting = [
            other
            for kept, fitted in self._memories()
            for other in self._attempts(attempt.input, kept, fitted)
            if self._is_recorded(other.works)
        ]
        former = {None if other.kept is None else other.kept.epoch for other in fitting}
        within_ms = self.record.at.timestamp_ms - attempt.input.at.timestamp_ms
        self._remember(
            [other.declared.memory for other in fitting],
            superseded=former.pop() if len(former) == 1 else None,
            within_ms=within_ms,
        )
        figures = figures_of(_spec_of(attempt.input.runs), NO_TOPICS, self.recorded)
        judged = identical(attempt.fitted, figures)
        if self.gap is None and (broken := self._broken(attempt.input)):
            found = differing(Verdict.INVALID, broken)
            judged = found._replace(expected=figures, recorded=figures, fitted=attempt.fitted)
        return self._row(judged)

    def _different(self, attempt: _Attempt | None, inputs: list[GroupInput], failure: str) -> TargetAuditRow:
        """No input gives the target: it is wrong, or what the log does not say may explain it."""
        broken = min((self._broken(candidate) for candidate in inputs), key=len)
        if broken and (self.gap is None or gives_twice(self.recorded)):  # what one record says needs no other
            if attempt is None:
                return self._row(differing(Verdict.INVALID, broken))
            return self._row(judge(_spec_of(attempt.input.runs), NO_TOPICS, attempt.works, self.recorded, broken, str))
        if self.gap is not None:
            return self._row(undecided(self.gap.missing))
        if failure:
            return self._row(undecided(f"what the assignor {self.assignor!r} does: {failure}"))
        if attempt is None:
            return self._row(undecided(self._not_given(inputs[0])))
        if self.assignor != EAGER and not self.memory.is_complete:
            kept = "what the assignor of the worker that computed it kept from former computations"
            return self._row(undecided(kept))
        return self._row(judge(_spec_of(attempt.input.runs), NO_TOPICS, attempt.works, self.recorded, [], str))

    def _not_given(self, of: GroupInput) -> str:
        """Return what the log lacks of this input."""
        if self.assignor is None:
            return "the assignor: the workers have none in common"
        unseen = [member_id for member_id, worker in of.workers.items() if worker.work is None]
        if unseen:
            return f"what worker {unseen[0]} ran"
        return "which tasks are configured: those of a connector are not numbered one by one"

    def _broken(self, of: GroupInput) -> list[str]:
        """Return the invariants of the document that the target breaks, in words.

        All that is configured is assigned, once, to workers that exist, and nothing else. Work of workers that left
        may wait for them.
        """
        assert of.work is not None
        wanted = as_work(of.work)
        everything = set(units(wanted))
        allowed = dict.fromkeys(of.workers, everything)
        broken = broken_invariants(of.workers, self.recorded, allowed, shared=False, name_of=str)
        delay = self.memory.delay
        if delay.departure_epoch is not None and delay.departure_epoch > self.epoch:
            return broken  # a worker left while the target was computed: what it was to run is in no target
        lacking = wanted.minus(*self.recorded.values())
        if delay.may_wait(self.record.at.timestamp_ms):
            running = [
                as_work(member.current.work) for member in self.group.members.values() if member.current is not None
            ]
            waiting = lacking.minus(*running)
            lacking = lacking.minus(waiting)
        return broken + [f"{described(unit, str)}: given to no worker" for unit in units(lacking)]

    def _remember(
        self, memories: list[AssignorMemory | None], *, superseded: int | None = None, within_ms: int = 0
    ) -> None:
        """Take in what the worker that computed the target kept. The eager assignor keeps nothing."""
        new: list[KeptMemory] = []
        for memory in memories:
            if memory is not None:
                # Only that the same worker goes on from it matters of the generation.
                kept = KeptMemory(self.epoch, replace(memory, generation=0), within_ms)
                new += [kept] if kept not in new else []
        self.memory.remember(new, superseded)

    def _remember_likely(self, memories: list[AssignorMemory | None]) -> None:
        """Take in a target that no input gave: its worker kept what goes with the target, or with these memories."""
        self.memory.is_complete = False
        self._remember([self._as_recorded(), *memories])

    def _as_recorded(self) -> AssignorMemory:
        """Return what an assignor keeps that has decided on the recorded target."""
        numbered = (_first_task(each) for each in self.inputs if each.work is not None)
        # Only without them it is the lowest number of the target, which may lack first tasks.
        lowest = min((number for work in self.recorded.values() for _, number in work.tasks), default=0)
        first_task = next((first for first in numbered if first is not None), min(lowest, 1))
        assigned = ConnectorsAndTasks.union(_shifted(work, -first_task) for work in self.recorded.values())
        return AssignorMemory(assigned, generation=self.epoch, workers=frozenset(self.recorded))

    def _row(self, judged: Judgement, *, basis: Basis = Basis.LEADER) -> TargetAuditRow:
        is_in_doubt = self.gap is not None and judged.verdict is Verdict.UNKNOWN
        row = verdict_row(self.record.group_id, GroupType.CONNECT, self.epoch, self.record.at, judged, basis)
        return row if is_in_doubt else row._replace(assignor=self.assignor, members=len(self.recorded))


def begins_conversion(group: ConnectGroup, record: ConnectWorkerGroupTargetAssignmentRecord) -> ConversionTarget | None:
    """Return the target if it is that of a classic group that was converted: no worker could compute it."""
    workers = group.members.values()
    if record.value is None or not workers or not group.targets or not all(is_classic(worker) for worker in workers):
        return None
    works = {member_id: target.work for member_id, target in group.targets.items()}
    return ConversionTarget(record.value["assignmentEpoch"], record.at, works)


def conversion_row(
    target: ConversionTarget, group: ConnectGroup, group_id: str, gap: GroupGap | None
) -> TargetAuditRow | None:
    """Return the verdict on the target of a conversion, which is what the workers run; None: not all have said so."""
    members = [group.members.get(member_id) for member_id in target.works]
    running = {
        member.member_id: as_work(member.current.work) for member in members if member is not None and member.current
    }
    if len(running) < len(target.works):
        return None
    recorded = {member_id: as_work(work) for member_id, work in target.works.items()}
    judged = identical()
    if gap is not None and gap.is_after(target.at.offset):
        judged = undecided(gap.missing)
    elif running != recorded:
        judged = judge(_spec_of(running), NO_TOPICS, running, recorded, [], str)
    row = verdict_row(group_id, GroupType.CONNECT, target.epoch, target.at, judged, Basis.UPGRADE)
    # What is copied was not computed: figures would compare it with itself.
    return row._replace(members=len(recorded), expected=None, recorded=None)


def _spec_of(running: dict[str, ConnectorsAndTasks]) -> ConnectGroupSpec:
    """Return the input of workers that keep what they run; nothing else of it is looked at."""
    workers = {name: WorkerSpec(name, 0, list(work.connectors), list(work.tasks)) for name, work in running.items()}
    return ConnectGroupSpec(workers, next(iter(workers), ""), {}, 0, 0, -1, 0, 0)


def _common_assignor(of: GroupInput) -> str | None:
    """Return the assignor that all workers offer, None if there is none."""
    try:
        return select_assignor({member_id: worker.offered for member_id, worker in of.workers.items()})
    except AssignorError:
        return None


def _first_task(of: GroupInput) -> int | None:
    """Return the number of the first task of connectors, 0 or 1; None where tasks are not numbered one by one.

    Kafka counts tasks from 0, the examples of Connect on KIP-848 from 1.
    """
    assert of.work is not None
    numbers: dict[str, list[int]] = {connector: [] for connector in of.work.connectors}
    for connector, number in of.work.tasks:
        numbers.setdefault(connector, []).append(number)
    running = [task.task_id for worker in of.workers.values() if worker.work for task in worker.work.tasks]
    first = 0 if 0 in running or any(0 in tasks for tasks in numbers.values()) else 1
    whole = all(sorted(tasks) == list(range(first, first + len(tasks))) for tasks in numbers.values())
    return first if whole and len(numbers) == len(of.work.connectors) else None


def _shifted(work: ConnectorsAndTasks, by: int) -> ConnectorsAndTasks:
    """Return the work with other task numbers."""
    return ConnectorsAndTasks.of(work.connectors, ((connector, number + by) for connector, number in work.tasks))
