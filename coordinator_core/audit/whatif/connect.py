"""What-if for Connect: the rebalances that a change of workers or connectors leads to.

A leader's assignor keeps a memory, asks for another rebalance after workers stopped what it told them to stop, and
makes lost work wait for its worker. The rebalances that follow a change therefore depend on the assignor, and are
computed with it. Source: KIP-415.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

from coordinator_core.assignors.connect.work import CONNECTOR, ConnectorsAndTasks, target
from coordinator_core.assignors.inputs import ConnectGroupSpec, WorkerSpec
from coordinator_core.assignors.leader_round import declare_target
from coordinator_core.assignors.registry import assign
from coordinator_core.audit.targets.rounds import Round, asks_again, connect_units
from coordinator_core.history.holdings import WorkUnit

NOT_DUE = -1
"""No work waits for a worker."""
MOST_FOLLOWING = 100
"""One change leads to at most this many rebalances; Kafka's assignor needs far fewer."""


def changes(happened: Sequence[Round]) -> list[Round]:
    """Return the rounds caused by a change of workers or connectors, not by the round before (which asks for another
    one to move work).

    The longest delay that was announced is known at the end.
    """
    kept: list[Round] = []
    asked = False
    for round_ in happened:
        changed = not kept or (round_.members, round_.connectors) != (kept[-1].members, kept[-1].connectors)
        if changed or not asked:
            kept.append(replace(round_, max_delay_ms=happened[-1].max_delay_ms))
        asked = round_.asks_again
    return kept


class Following(NamedTuple):
    """One rebalance: when it is, what is configured then, and what each worker runs after it."""

    at_ms: int
    wanted: frozenset[WorkUnit]
    assigned: Mapping[str, frozenset[WorkUnit]]


def recorded_step(round_: Round) -> Following:
    """Return a rebalance of the log."""
    return Following(round_.at.timestamp_ms, _units(round_.connectors), round_.recorded)


def following(changed: Sequence[Round], until_ms: int | None = None) -> Iterator[list[Following]]:
    """For each change, yield the rebalances that it leads to; the next change ends what still waits.

    What would come after ``until_ms``, the end of the log, is left out (None: nothing is).
    """
    generation = 0
    memories: dict[str, object] = {}
    running: dict[str, ConnectorsAndTasks] = {}
    due_ms = NOT_DUE
    for round_, later in zip_longest(changed, changed[1:]):
        now = round_.at.timestamp_ms
        until = until_ms if later is None else later.at.timestamp_ms
        # Memories of workers that left are gone: if they come back, they begin without one.
        memories = {worker: memory for worker, memory in memories.items() if worker in round_.members}
        if any(work for worker, work in running.items() if worker not in round_.members) and due_ms <= now:
            due_ms = now + round_.max_delay_ms
        steps = []
        for _ in range(MOST_FOLLOWING):
            generation += 1
            spec = _spec(round_, running, generation, now, memories.get(round_.leader))
            step = _declared_step(round_, spec, due_ms) if round_.is_declared else _classic_step(round_, spec)
            running, memories[round_.leader], generation = step.running, step.memory, step.generation
            runs = {worker: connect_units(work) for worker, work in running.items()}
            steps.append(Following(now, _units(round_.connectors), runs))
            now += step.delay_ms
            if not step.asks_again or (until is not None and now >= until):
                break
        yield steps


def waited_ms(steps: Iterable[Following]) -> int:
    """Return for how long work that a worker had run had none, summed over connectors and tasks.

    As in the history of the group, what is no longer configured when the wait ends does not count, nor what still
    waits at the end.
    """
    total, since, ran = 0, dict[WorkUnit, int](), frozenset[WorkUnit]()
    for at_ms, wanted, assigned in steps:
        runs = frozenset[WorkUnit]().union(*assigned.values())
        total += sum(max(at_ms - since[unit], 0) for unit in since.keys() & runs)
        since = {unit: begin for unit, begin in since.items() if unit in wanted and unit not in runs}
        since |= dict.fromkeys((ran & wanted) - runs, at_ms)
        ran = runs
    return total


def _units(connectors: Mapping[str, int]) -> frozenset[WorkUnit]:
    return frozenset(
        WorkUnit("", name, number) for name, tasks in connectors.items() for number in range(CONNECTOR, tasks)
    )


class _Step(NamedTuple):
    """One rebalance: what the workers run after it, and whether another one follows after ``delay_ms``."""

    running: dict[str, ConnectorsAndTasks]
    memory: object
    generation: int
    delay_ms: int
    asks_again: bool


def _classic_step(round_: Round, spec: ConnectGroupSpec) -> _Step:
    """A rebalance of the classic protocol: work is stopped in one and started in the next."""
    result = assign(round_.assignor, spec, round_.image)
    assigned = result.members.values()
    delay_ms = max(assignment.delay_ms for assignment in assigned)
    return _Step(target(spec.members, result.members), result.memory, spec.generation, delay_ms, asks_again(assigned))


def _declared_step(round_: Round, spec: ConnectGroupSpec, due_ms: int) -> _Step:
    """A rebalance on KIP-848: the target says what workers run in the end; only work that waits needs another one.

    The coordinator lets work wait from a worker's departure until ``due_ms``, whatever the assignor of the worker that
    computes still remembers: then another worker has to compute, which remembers nothing.
    """
    declared = declare_target(round_.assignor, spec)
    if declared.waiting and due_ms <= spec.now_ms:
        declared = declare_target(round_.assignor, replace(spec, memory=None))
    delay_ms = due_ms - spec.now_ms if declared.waiting else 0
    return _Step(dict(declared.works), declared.memory, declared.generation, delay_ms, bool(declared.waiting))


def _spec(
    of: Round, running: dict[str, ConnectorsAndTasks], generation: int, now_ms: int, memory: object
) -> ConnectGroupSpec:
    workers = {}
    for worker in of.members:
        work = ConnectorsAndTasks.of() if of.eager else running.get(worker, ConnectorsAndTasks.of())
        workers[worker] = WorkerSpec("", 0, tuple(work.connectors), tuple(work.tasks))
    return ConnectGroupSpec(
        workers, of.leader, of.connectors, 0, generation, generation - 1, now_ms, of.max_delay_ms, memory
    )
