"""What-if for Connect: the rebalances that a change of workers or connectors leads to.

A leader's assignor keeps a memory, asks for another rebalance after workers stopped what it told them to stop, and
makes lost work wait for its worker. The rebalances that follow a change therefore depend on the assignor, and are
computed with it. Source: KIP-415.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

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


def following(changed: Sequence[Round]) -> Iterator[list[dict[str, frozenset[WorkUnit]]]]:
    """For each change, yield the assignments of the rebalances that it leads to; the next change ends what still
    waits.
    """
    generation, memory, leader = 0, None, ""
    running: dict[str, ConnectorsAndTasks] = {}
    for number, each in enumerate(changed):
        now = each.at.timestamp_ms
        until = changed[number + 1].at.timestamp_ms if number + 1 < len(changed) else None
        memory = memory if each.leader == leader else None
        leader = each.leader
        assigned = []
        for _ in range(MOST_FOLLOWING):
            generation += 1
            spec = _spec(each, running, generation, now, memory)
            step = _declared(each, spec) if each.is_declared else _told(each, spec)
            running, memory, generation = step.running, step.memory, step.generation
            assigned.append({worker: connect_units(work) for worker, work in running.items()})
            now += step.delay_ms
            if not step.asks_again or (until is not None and now >= until):
                break
        yield assigned


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
