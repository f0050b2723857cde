"""Assignments made by the leaders of classic Connect groups, recomputed round by round (KIP-415).

The configured connectors and tasks are in the config topic, not in the coordinator log. The log shows what workers run,
start, stop and wait for; the configurations that this allows are tried.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice, product
from typing import NamedTuple

from coordinator_core.assignors.connect.eager_and_incremental import AssignorMemory
from coordinator_core.assignors.connect.work import (
    CONNECTOR,
    ConnectorsAndTasks,
    LeaderAssignment,
    target,
    worker,
    worker_assignment,
)
from coordinator_core.assignors.inputs import Assignment, ConnectGroupSpec, WorkerSpec
from coordinator_core.assignors.registry import assign
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.classic_groups import generation_row
from coordinator_core.audit.targets.verdict import (
    Judgement,
    broken_invariants,
    described,
    figures_of,
    identical,
    judge,
    undecided,
    units,
)
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError, DecodeError, InputError
from coordinator_core.groups.classic.protocols import CONNECT_EAGER, CONNECT_PROTOCOL_TYPE
from coordinator_core.history.holdings import WorkUnit
from coordinator_core.record_fields.classic_group import GroupMetadataRecord
from coordinator_core.wire.embedded import decode_assignment, decode_subscription

NO_TOPICS = TopicImage.of(())
EAGER = CONNECT_EAGER
MOST_CONFIGURATIONS = 256
"""At most this many sets of connectors are tried against one round."""
MOST_READINGS = 8
"""At most this many readings of a round are kept; where more fit it, none of them counts as known."""


@dataclass(frozen=True, slots=True)
class RoundReading:
    """One input that gives what a round assigned: the task counts, and what the assignor kept then."""

    connectors: dict[str, int]
    assignor: AssignorMemory | None


@dataclass(slots=True)
class ConnectTargetState:
    """What the earlier rounds of a Connect group have shown.

    ``assignor`` is what the assignor of ``leader`` kept after ``generation``; None: not known. ``connectors`` has the
    task counts as of ``config_offset``; at -1 they are a guess, because no round showed them. ``longest_delay_ms`` is
    the longest delay that was announced. ``fits``: an input was found that gives what the last round assigned.
    ``others`` are inputs that give the same: a connector that is stopped may be gone, or is to move without tasks.
    """

    leader: str | None = None
    generation: int = -1
    assignor: AssignorMemory | None = None
    config_offset: int = -1
    connectors: dict[str, int] = field(default_factory=dict)
    longest_delay_ms: int = 0
    fits: bool = False
    others: list[RoundReading] = field(default_factory=list)


class _Attempt(NamedTuple):
    """One input of the leader's assignor; ``known``: earlier rounds showed its configuration."""

    spec: ConnectGroupSpec
    fitted: str
    known: bool


@dataclass(eq=False)
class ConnectAudit:
    """The audit of one generation of a Connect group.

    ``record`` is the group's, with members; ``is_followed``: its record before was seen, or there is none.
    """

    memory: ConnectTargetState
    record: GroupMetadataRecord
    settings: AuditSettings
    is_followed: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        assert self.record.value is not None
        self.value = self.record.value
        self.tried = 0
        self.leader = self.value["leader"] or ""
        self.protocol = self.value["protocol"] or ""
        self.workers: dict[str, WorkerSpec] = {}
        self.assignments: dict[str, LeaderAssignment] = {}

    def row(self) -> TargetAuditRow:
        """Return the verdict and keep the round in ``memory``; raises nothing."""
        try:
            self._read()
        except DecodeError as error:
            return self._row(undecided(f"a readable blob of each worker: {error}"))
        first: tuple[_Attempt, Assignment[LeaderAssignment]] | None = None
        failure = ""
        attempts = self._attempts()
        for attempt in attempts:
            try:
                result = self._result(attempt)
            except (AssignorError, InputError) as error:
                failure = failure or str(error)
                continue
            first = first or (attempt, result)
            if self._is_recorded(result):
                # From the rest of the same iterator: what it has tried so far did not give the round.
                readings = self._readings(attempt, result, attempts)
                self._remember(attempt, result, fits=True)
                self._keep(readings)
                figures = figures_of(attempt.spec, NO_TOPICS, target(attempt.spec.members, self.assignments))
                return self._row(identical(attempt.fitted, figures))
        if first is None:
            return self._row(undecided(failure or "the assignments of all workers"))
        return self._differs(*first)

    def _result(self, attempt: _Attempt) -> Assignment[LeaderAssignment]:
        """Return what the assignor makes of an input; raises AssignorError or InputError."""
        listed = sum(len(work.units()) for work in (self._started(), self._running()))
        problem = self.settings.plausible.problem(attempt.spec, NO_TOPICS, listed)
        if problem is not None:
            raise InputError(f"plausible numbers of tasks: {problem}")
        return assign(self.protocol, attempt.spec, NO_TOPICS, self.settings.chosen)

    def _is_recorded(self, result: Assignment[LeaderAssignment]) -> bool:
        return all(_exact(result.members[name]) == _exact(self.assignments[name]) for name in self.workers)

    def _readings(
        self, fitting: _Attempt, result: Assignment[LeaderAssignment], others: Iterator[_Attempt]
    ) -> list[RoundReading]:
        """Return the readings of a round, the likeliest first: it may not show which configuration it was."""
        found = [RoundReading(dict(fitting.spec.connectors), result.memory)]
        for other in others:
            past = {"connectors": other.spec.connectors, "memory": other.spec.memory}
            if other.fitted != fitting.fitted or other.spec != replace(fitting.spec, **past):
                continue
            try:
                same = self._result(other)
            except (AssignorError, InputError):
                continue
            reading = RoundReading(dict(other.spec.connectors), same.memory)
            if self._is_recorded(same) and reading not in found:
                found.append(reading)
        return found

    def _keep(self, readings: list[RoundReading]) -> None:
        memory = self.memory
        memory.others = readings[1:] if len(readings) <= MOST_READINGS else []
        if len(readings) > MOST_READINGS:
            memory.config_offset, memory.fits = -1, False

    def _differs(self, attempt: _Attempt, result: Assignment[LeaderAssignment]) -> TargetAuditRow:
        spec = attempt.spec
        # The first of its log, and not the first of a group: with it the group may have come back from KIP-848.
        if self.memory.generation < 0 and self.value["generation"] > 1:
            return self._converted(attempt, result)
        expected, recorded = (target(spec.members, assignments) for assignments in (result.members, self.assignments))
        everything = {unit for work in recorded.values() for unit in units(work)}
        broken = broken_invariants(
            spec.members, recorded, dict.fromkeys(spec.members, everything), shared=False, name_of=str
        )
        # Not from the sets of ``target``: what is listed twice is in them once.
        broken += self._listed_twice()
        is_proven = self._knows_inputs()
        judged = judge(spec, NO_TOPICS, expected, recorded, broken, str, has_one_result=is_proven)
        self._remember(attempt, result, fits=False)
        if judged.verdict is Verdict.INVALID or is_proven:
            return self._row(judged)
        missing = f"the config topic at offset {spec.config_offset}, or what the leader kept from earlier rounds"
        return self._row(undecided(missing))

    def _converted(self, attempt: _Attempt, result: Assignment[LeaderAssignment]) -> TargetAuditRow:
        """Such a generation gives each worker what it runs. The eager protocol has no field for that."""
        self._remember(attempt, result, fits=False)
        copied = self.protocol != EAGER and all(
            not (assignment.revoked_connectors or assignment.revoked_tasks)
            and set(assignment.connectors) == set(self.workers[worker_id].connectors)
            and set(assignment.tasks) == set(self.workers[worker_id].tasks)
            for worker_id, assignment in self.assignments.items()
        )
        if copied:
            row = generation_row(self.record, identical(), basis=Basis.DOWNGRADE)
            return row._replace(assignor=None)
        missing = "the group's earlier generations, or its end in __worker_offsets if it came back from KIP-848"
        return self._row(undecided(missing))

    def _listed_twice(self) -> list[str]:
        """Return what the leader gives to one worker twice, in words."""
        broken = []
        for worker_id, assignment in self.assignments.items():
            connectors = (WorkUnit("connector", connector, CONNECTOR) for connector in assignment.connectors)
            tasks = (WorkUnit("task", connector, number) for connector, number in assignment.tasks)
            for unit, count in Counter([*connectors, *tasks]).items():
                if count > 1:
                    broken.append(f"{described(unit, str)}: given to {worker_id} twice")
        return broken

    def _knows_inputs(self) -> bool:
        """Whether all that the leader can have been given was tried, so that it is proven wrong if nothing fits.

        The eager protocol assigns all that is configured in each round, and keeps nothing. In the others the leader
        remembers the round before, which is known if that was explained; while work waits for a worker, the exact time
        counts too.
        """
        if self.protocol == EAGER:
            return True
        memory = self.memory
        kept = (memory.assignor, *(other.assignor for other in memory.others))
        waits = self.assignments[self.leader].delay_ms or any(each and each.rebalance_at_ms for each in kept)
        is_explained = memory.fits or memory.generation < 0
        return self.is_followed and is_explained and not waits and self.tried < MOST_CONFIGURATIONS

    def _read(self) -> None:
        for member in self.value["members"]:
            metadata = decode_subscription(CONNECT_PROTOCOL_TYPE, self.protocol, member["subscription"])
            assignment = decode_assignment(CONNECT_PROTOCOL_TYPE, self.protocol, member["assignment"])
            if metadata is None:
                raise DecodeError("no metadata", record_type=member["memberId"])
            self.workers[member["memberId"]] = worker(metadata)
            if assignment is not None:
                self.assignments[member["memberId"]] = worker_assignment(assignment.fields)

    def _attempts(self) -> Iterator[_Attempt]:
        """Inputs that the log allows, the likeliest first."""
        if self.assignments.keys() != self.workers.keys() or self.leader not in self.workers:
            return
        assignment = self.assignments[self.leader]
        last_round = (self.memory.connectors, self.memory.assignor)
        announced = assignment.delay_ms
        longest = max(self.memory.longest_delay_ms, announced)
        # No record has the workers' scheduled.rebalance.max.delay.ms; a delay that was announced is at most that.
        max_delays = list(dict.fromkeys((self.settings.connect_max_delay_ms, longest, announced)))
        # What earlier rounds left open is carried along: each reading of them may be the one that this round fits.
        for before, kept in (last_round, *((other.connectors, other.assignor) for other in self.memory.others)):
            configurations = self._configurations(before, kept)
            self.tried = max(self.tried, len(configurations))
            for (connectors, known), (memory, remembered), delay, now in product(
                configurations, self._memories(kept), max_delays, self._times(assignment, kept)
            ):
                generation = self.value["generation"]
                last = memory.generation if memory is not None else -1
                spec = ConnectGroupSpec(
                    self.workers,
                    self.leader,
                    connectors,
                    assignment.config_offset,
                    generation,
                    last,
                    now,
                    delay,
                    memory,
                )
                fitted = f"configuration {'of an earlier round' if known else 'that the round shows'}, {remembered}"
                yield _Attempt(spec, fitted, known)

    def _memories(self, kept: AssignorMemory | None) -> list[tuple[AssignorMemory | None, str]]:
        """What the leader's assignor may have kept."""
        fresh: tuple[AssignorMemory | None, str] = (None, "a leader without memory")
        if kept is None or self.protocol == EAGER:
            return [fresh]
        lost = (AssignorMemory(), "a leader that lost a generation")
        if self.memory.leader != self.leader:
            return [fresh, (kept, "the memory of the leader before"), lost]
        return [(kept, "the leader's memory"), fresh, lost]

    def _times(self, assignment: LeaderAssignment, kept: AssignorMemory | None) -> list[int]:
        """When the leader assigned: a delay that goes on says it to the millisecond."""
        times = [self.record.at.timestamp_ms]
        scheduled = kept.rebalance_at_ms if kept else 0
        if scheduled:
            times.append(scheduled - assignment.delay_ms)
        return times

    def _configurations(self, before: dict[str, int], kept: AssignorMemory | None) -> list[tuple[dict[str, int], bool]]:
        """Task counts of the connectors that the log allows, each with whether a former round showed it.

        At one offset of the config topic there is one configuration.
        """
        memory, assignments = self.memory, self.assignments.values()
        configurations: list[tuple[dict[str, int], bool]] = []
        # The config topic is one log: the same offset is the same configuration.
        if memory.config_offset == self.assignments[self.leader].config_offset and memory.config_offset >= 0:
            return [(before, True)]
        if memory.config_offset < 0 and before:
            configurations.append((before, False))
        started, running = self._started(), self._running()
        stopped = ConnectorsAndTasks.union(
            ConnectorsAndTasks.of(assignment.revoked_connectors, assignment.revoked_tasks) for assignment in assignments
        )
        waiting = kept.assigned.minus(running) if kept else ConnectorsAndTasks.of()
        if self.protocol == EAGER:
            running = stopped = waiting = ConnectorsAndTasks.of()
        # Work that waits is configured, unless its connector was deleted meanwhile: both are possible.
        for parts in ([running, started, waiting], [running, started]):
            for counts in islice(
                _remaining(_counts(ConnectorsAndTasks.union(parts)), stopped, started), MOST_CONFIGURATIONS
            ):
                if all(counts != known for known, _ in configurations):
                    configurations.append((counts, False))
        return configurations

    def _started(self) -> ConnectorsAndTasks:
        """What workers are to start; in the eager protocol, all that they are to run."""
        return ConnectorsAndTasks.union(
            ConnectorsAndTasks.of(assignment.connectors, assignment.tasks) for assignment in self.assignments.values()
        )

    def _running(self) -> ConnectorsAndTasks:
        """What workers ran when they joined."""
        return ConnectorsAndTasks.union(
            ConnectorsAndTasks.of(joined.connectors, joined.tasks) for joined in self.workers.values()
        )

    def _remember(self, attempt: _Attempt, result: Assignment[LeaderAssignment], *, fits: bool) -> None:
        """Work that waits for a worker is in no assignment: a round with a delay does not show the configuration."""
        memory = self.memory
        shown = attempt.known or (fits and not self.assignments[self.leader].delay_ms)
        memory.leader, memory.generation, memory.assignor = self.leader, self.value["generation"], result.memory
        memory.config_offset = attempt.spec.config_offset if shown else -1
        memory.fits = fits
        memory.others = []
        memory.connectors = dict(attempt.spec.connectors)
        memory.longest_delay_ms = max(memory.longest_delay_ms, self.assignments[self.leader].delay_ms)

    def _row(self, judged: Judgement) -> TargetAuditRow:
        return generation_row(self.record, judged, basis=Basis.LEADER)


def _counts(work: ConnectorsAndTasks) -> dict[str, int]:
    """Task counts of connectors that run this."""
    counts = dict.fromkeys(work.connectors, 0)
    for connector, number in work.tasks:
        counts[connector] = max(counts.get(connector, 0), number + 1)
    return counts


def _remaining(
    counts: dict[str, int], stopped: ConnectorsAndTasks, started: ConnectorsAndTasks
) -> Iterator[dict[str, int]]:
    """The task counts that may be left: what is stopped is to move, or is configured no more.

    A connector loses its last tasks, or all of them with itself; tasks that are started now are configured. The first
    two are that all of it is to move, and that none of it is configured any more: there are too many to try all.
    """
    choices: list[list[tuple[str, int | None]]] = []
    for name, count in counts.items():
        options: list[tuple[str, int | None]] = [(name, count)]
        # Tasks of a connector are numbered from 0 without a hole: fewer tasks are without the last ones.
        while count and (name, count - 1) in stopped.tasks and (name, count - 1) not in started.tasks:
            count -= 1
            options.append((name, count))
        if not count and name in stopped.connectors and name not in started.connectors:
            options.append((name, None))
        choices.append(options)
    likeliest = ([options[end] for options in choices] for end in (0, -1))
    for chosen in chain(likeliest, product(*choices)):
        yield {name: count for name, count in chosen if count is not None}


def _exact(assignment: LeaderAssignment) -> LeaderAssignment:
    """As comparable values, orders included."""
    # Decoded assignments have lists, computed ones may have tuples: these are never equal.
    return replace(
        assignment,
        connectors=tuple(assignment.connectors),
        tasks=tuple(assignment.tasks),
        revoked_connectors=tuple(assignment.revoked_connectors),
        revoked_tasks=tuple(assignment.revoked_tasks),
    )
