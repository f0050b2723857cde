"""What-if for Connect: the rebalances that a change of workers or connectors leads to.

A leader's assignor keeps a memory, asks for another rebalance after workers stopped what it told them to stop, and
makes lost work wait for its worker. The rebalances that follow a change therefore depend on the assignor, and are
computed with it. Source: KIP-415.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

from coordinator_core.assignors.connect.blobs import CONNECTOR
from coordinator_core.assignors.connect.work import ConnectorsAndTasks, target
from coordinator_core.assignors.declared_target import declare_target
from coordinator_core.assignors.inputs import ConnectGroupSpec, WorkerSpec
from coordinator_core.assignors.registry import assign
from coordinator_core.audit.targets.rounds import Round, asks_again, connect_units
from coordinator_core.history.work_units import WorkUnit

MOST_FOLLOWING = 100
"""One change leads to at most this many rebalances; Kafka's assignor needs far fewer."""


def changes(happened: Sequence[Round]) -> list[Round]:
    """Return the rounds caused by a change of workers or connectors, not by the round before (which asks for another
    one to move work).

    The longest delay that was announced is known at the end.
    """
    found: list[Round] = []
    asked = False
    for each in happened:
        changed = not found or (each.members, each.connectors) != (found[-1].members, found[-1].connectors)
        if changed or not asked:
            found.append(replace(each, max_delay_ms=happened[-1].max_delay_ms))
        asked = each.asks_again
    return found


class Following(NamedTuple):
    """One rebalance: what each worker runs after it, and for how long work then waited, summed over its units, in
    milliseconds.
    """

    assigned: dict[str, frozenset[WorkUnit]]
    waited_ms: int


def following(changed: Sequence[Round]) -> Iterator[list[Following]]:
    """For each change, yield the rebalances that it leads to; the next change ends what still waits."""
    generation, memory, leader = 0, None, ""
    running: dict[str, ConnectorsAndTasks] = {}
    for each, later in zip_longest(changed, changed[1:]):
        now = each.at.timestamp_ms
        until = None if later is None else later.at.timestamp_ms
        memory = memory if each.leader == leader else None
        leader = each.leader
        assigned = []
        for _ in range(MOST_FOLLOWING):
            generation += 1
            spec = _spec(each, running, generation, now, memory)
            step = _declared(each, spec) if each.is_declared else _told(each, spec)
            running, memory, generation = step.running, step.memory, step.generation
            runs = {worker: connect_units(work) for worker, work in running.items()}
            then = now + step.delay_ms if step.asks_again else until
            then = then if until is None or then is None else min(then, until)
            ends_here = until is not None and then == until
            afterwards = later.connectors if later is not None and ends_here else each.connectors
            assigned.append(Following(runs, waiting_ms(each.connectors, afterwards, runs, now, then)))
            if not step.asks_again or ends_here:
                break
            now += step.delay_ms
        yield assigned


def waiting_ms(
    connectors: Mapping[str, int],
    afterwards: Mapping[str, int],
    runs: Mapping[str, frozenset[WorkUnit]],
    since_ms: int,
    until_ms: int | None,
) -> int:
    """Return for how long connectors and tasks had no worker between two times, summed over them.

    Both mappings have numbers of tasks. As in the history of the group, what is no longer there ``afterwards`` does not
    count. ``until_ms`` None: it is not known how long this lasted, and counts nothing.
    """
    if until_ms is None:
        return 0
    waiting = (_units(connectors) & _units(afterwards)).difference(*runs.values())
    return len(waiting) * max(until_ms - since_ms, 0)


def _units(connectors: Mapping[str, int]) -> set[WorkUnit]:
    return {WorkUnit("", name, number) for name, tasks in connectors.items() for number in range(CONNECTOR, tasks)}


class _Step(NamedTuple):
    """One rebalance: what the workers run after it, and whether another one follows after ``delay_ms``."""

    running: dict[str, ConnectorsAndTasks]
    memory: Any
    generation: int
    delay_ms: int
    asks_again: bool


def _told(of: Round, spec: ConnectGroupSpec) -> _Step:
    """A rebalance of the classic protocol: work is stopped in one and started in the next."""
    result = assign(of.assignor, spec, of.image)
    told = result.members.values()
    delay_ms = max(each.delay_ms for each in told)
    return _Step(target(spec.members, result.members), result.memory, spec.generation, delay_ms, asks_again(told))


def _declared(of: Round, spec: ConnectGroupSpec) -> _Step:
    """A rebalance on KIP-848: the target says what workers run in the end; only work that waits needs another one."""
    declared = declare_target(of.assignor, spec)
    running = dict(declared.works)
    return _Step(running, declared.memory, declared.generation, declared.delay_ms, bool(declared.waiting))


def _spec(
    of: Round, running: dict[str, ConnectorsAndTasks], generation: int, now_ms: int, memory: Any
) -> ConnectGroupSpec:
    workers = {}
    for worker in of.members:
        work = ConnectorsAndTasks.of() if of.eager else running.get(worker, ConnectorsAndTasks.of())
        workers[worker] = WorkerSpec("", 0, tuple(work.connectors), tuple(work.tasks))
    return ConnectGroupSpec(
        workers, of.leader, of.connectors, 0, generation, generation - 1, now_ms, of.max_delay_ms, memory
    )
