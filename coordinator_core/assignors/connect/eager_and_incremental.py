"""Connect's assignors: the eager one (``default``) and the incremental cooperative one (KIP-415).

Eager: connectors, then tasks, one each in turn. Incremental: workers keep what they run. New work goes to the workers
with the least work. The work of a worker that left waits for its return, up to the largest delay. A worker with too
much work stops some of it, which other workers get in the next round.

Source: Kafka 4.3.1 ``EagerAssignor``, and ``IncrementalCooperativeAssignor``, protocols ``compatible`` and
``sessioned``.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, cycle, islice
from typing import Annotated, TypeVar

from coordinator_core.assignors.connect.work import (
    CONFIG_MISMATCH,
    ConnectorsAndTasks,
    LeaderAssignment,
    Share,
    config_offset,
    configured,
    written,
)
from coordinator_core.assignors.inputs import Assignment, ConnectGroupSpec, ConnectorTask
from coordinator_core.assignors.profiles import Profile
from coordinator_core.cluster.image import TopicImage
from coordinator_core.java.hash_codes import STRING, TASK_ID, utf16
from coordinator_core.java.order import copied_order, hash_order
from coordinator_core.state_json import StoredAs

E = TypeVar("E")

BACKOFF_MULTIPLIER = 40


STORED_WORK = StoredAs(
    tuple[list[str], list[ConnectorTask]],
    lambda work: (list(work.connectors), list(work.tasks)),
    lambda listed: ConnectorsAndTasks.of(*listed),
)


@dataclass(frozen=True, slots=True)
class AssignorMemory:
    """What a leader's assignor keeps from round to round.

    ``assigned`` is all that was assigned after the round of ``generation``, lost work included; ``revoked`` is what
    that round stopped. ``candidates`` are workers that had nothing while lost work waited: they are the first to get
    it. ``rebalance_at_ms`` is the time of the scheduled rebalance (0: none), ``delay_ms`` the delay last announced.
    ``balancing``: the round stopped work for balance; ``consecutive`` counts how often in a row that was postponed.
    """

    assigned: Annotated[ConnectorsAndTasks, STORED_WORK] = field(default_factory=ConnectorsAndTasks.of)
    revoked: Annotated[ConnectorsAndTasks, STORED_WORK] = field(default_factory=ConnectorsAndTasks.of)
    generation: int = -1
    workers: Annotated[frozenset[str], StoredAs(list[str], sorted, frozenset)] = frozenset()
    candidates: tuple[str, ...] = ()
    rebalance_at_ms: int = 0
    delay_ms: int = 0
    balancing: bool = False
    consecutive: int = 0

    def without_delay(self) -> "AssignorMemory":
        """Return the same memory without a scheduled rebalance."""
        return replace(self, candidates=(), rebalance_at_ms=0, delay_ms=0)


def assign_incremental(spec: ConnectGroupSpec, image: TopicImage, profile: Profile) -> Assignment[LeaderAssignment]:
    """Assign one round of a Connect group; topics are not used. ``memory`` is an ``AssignorMemory``."""
    memory: AssignorMemory = spec.memory or AssignorMemory()
    if spec.config_offset < config_offset(spec):
        return Assignment(written(spec, profile.jdk, {}, error=CONFIG_MISMATCH), memory)
    round_ = _Round(spec, memory, profile.jdk)
    shares = round_.build()
    return Assignment(written(spec, profile.jdk, shares, delay_ms=round_.memory.delay_ms), round_.memory)


class _Round:
    """One round. ``next`` is each worker's work after it, ``stop`` what each is told to stop."""

    def __init__(self, spec: ConnectGroupSpec, memory: AssignorMemory, jdk: int) -> None:
        self.spec = spec
        self.memory = memory
        self.jdk = jdk
        self.now: dict[str, ConnectorsAndTasks] = {
            worker: ConnectorsAndTasks.of(spec.members[worker].connectors, spec.members[worker].tasks)
            for worker in hash_order(STRING, list(spec.members))
        }
        self.stop: dict[str, ConnectorsAndTasks] = {worker: ConnectorsAndTasks.of() for worker in self.now}
        self.next: dict[str, ConnectorsAndTasks] = {}

    def build(self) -> dict[str, Share]:
        spec = self.spec
        everything = configured(spec)
        active = ConnectorsAndTasks.union(self.now.values())
        before = (
            # Another leader assigned in between: what this one remembers is of an older round.
            self.memory.assigned
            if self.memory.generation == spec.last_completed_generation
            else ConnectorsAndTasks.of()
        )
        # Workers still run what the last round stopped: they did not take it in, so what they run is the truth.
        if self.memory.revoked.touches(active):
            before = active
        deleted = before.minus(everything)
        lost = before.minus(active, deleted).sorted()
        created = everything.minus(before, active).sorted()
        duplicated = _duplicated(self.now.values())

        self._stop_everywhere(deleted)
        self._stop_everywhere(duplicated)
        self.next = {worker: work.minus(deleted, duplicated) for worker, work in self.now.items()}
        created.add(self._handle_lost(lost))
        self._balance(everything)
        _spread(created.connectors, {worker: work.connectors for worker, work in self.next.items()})
        _spread(created.tasks, {worker: work.tasks for worker, work in self.next.items()})

        stopped = ConnectorsAndTasks.union(self.stop.values())
        assigned = ConnectorsAndTasks.union(self.next.values()).minus(stopped)
        # Lost work stays among what is assigned: the next round finds it missing again, and the delay goes on.
        assigned.add(lost)
        self.memory = replace(
            self.memory, assigned=assigned, revoked=stopped, generation=spec.generation, workers=frozenset(self.now)
        )
        return {
            # Only what is new is sent: in this protocol a worker goes on with all that it is not told to stop.
            worker: Share(self.next[worker].minus(work.minus(deleted)), self.stop[worker])
            for worker, work in self.now.items()
        }

    def _stop_everywhere(self, work: ConnectorsAndTasks) -> None:
        """Tell all workers that run some of this work to stop it."""
        for worker, running in self.now.items():
            connectors = (c for c in copied_order(STRING, list(running.connectors), self.jdk) if c in work.connectors)
            tasks = (t for t in copied_order(TASK_ID, list(running.tasks), self.jdk) if t in work.tasks)
            self.stop[worker].add(ConnectorsAndTasks.of(connectors, tasks))

    def _handle_lost(self, lost: ConnectorsAndTasks) -> ConnectorsAndTasks:
        """Decide about work that no worker runs any more; return what is to be assigned as new now."""
        memory, spec = self.memory, self.spec
        if not lost and not memory.balancing:
            self.memory = memory.without_delay()
            return lost
        # Work was lost, but no worker left: a delay would wait for nobody.
        nobody_left = memory.rebalance_at_ms <= 0 and memory.workers <= self.now.keys()
        if nobody_left or spec.max_delay_ms == 0:
            return lost
        if 0 < memory.rebalance_at_ms <= spec.now_ms:
            candidates = [worker for worker in memory.candidates if worker in self.now]
            self.memory = replace(memory.without_delay(), balancing=False)
            if not candidates:
                return lost
            for connector, worker in zip(lost.connectors, cycle(candidates), strict=False):
                self.next[worker].connectors[connector] = None
            for task, worker in zip(lost.tasks, cycle(candidates), strict=False):
                self.next[worker].tasks[task] = None
            return ConnectorsAndTasks.of()
        idle = hash_order(STRING, [worker for worker, work in self.next.items() if not work])
        # A delay that has begun goes on; a new round does not begin it again.
        remaining = memory.rebalance_at_ms - spec.now_ms
        delay = min(remaining, spec.max_delay_ms) if remaining > 0 else spec.max_delay_ms
        self.memory = replace(
            memory,
            candidates=tuple(dict.fromkeys(chain(memory.candidates, idle))),
            rebalance_at_ms=spec.now_ms + delay,
            delay_ms=delay,
        )
        return ConnectorsAndTasks.of()

    def _balance(self, everything: ConnectorsAndTasks) -> None:
        """Stop what is above an even share, unless a delay is running or the former round did so already."""
        memory = self.memory
        if memory.delay_ms:
            self.memory = replace(memory, balancing=False)
            return
        surplus = self._surplus(everything)
        if not surplus:
            if memory.balancing:
                self.memory = replace(memory, balancing=False, consecutive=0)
            return
        if memory.balancing:
            consecutive = memory.consecutive + 1
            delay = _backoff(consecutive, self.spec.max_delay_ms)
            self.memory = memory = replace(memory, consecutive=consecutive, delay_ms=delay)
            if delay:
                self.memory = replace(memory, rebalance_at_ms=self.spec.now_ms + delay)
                return
        else:
            self.memory = replace(memory, balancing=True)
        for worker, work in surplus.items():
            self.stop[worker].add(work)
            self.next[worker] = self.next[worker].minus(work)

    def _surplus(self, everything: ConnectorsAndTasks) -> dict[str, ConnectorsAndTasks]:
        """What each worker runs above an even share of everything configured."""
        if not any(self.next.values()) or not everything:
            return {}
        connectors = _above_share(
            len(everything.connectors), {worker: work.connectors for worker, work in self.next.items()}
        )
        tasks = _above_share(len(everything.tasks), {worker: work.tasks for worker, work in self.next.items()})
        return {
            worker: ConnectorsAndTasks.of(connectors.get(worker, ()), tasks.get(worker, ()))
            for worker in self.next
            if worker in connectors or worker in tasks
        }


def _duplicated(works: Iterable[ConnectorsAndTasks]) -> ConnectorsAndTasks:
    """What more than one worker runs."""
    works = list(works)
    connectors = Counter(chain.from_iterable(work.connectors for work in works))
    tasks = Counter(chain.from_iterable(work.tasks for work in works))
    return ConnectorsAndTasks.of(
        (c for c, count in connectors.items() if count > 1), (t for t, count in tasks.items() if count > 1)
    )


def _above_share(total: int, running: Mapping[str, Mapping[E, None]]) -> dict[str, list[E]]:
    """The first of each worker's that it must stop so that none has more than an even share."""
    least, extras = divmod(total, len(running))
    sizes = Counter(len(units) for units in running.values())
    # It is even already, whichever workers have one more.
    if sizes[least + 1] == extras and sizes[least] + sizes[least + 1] == len(running):
        return {}
    surplus: dict[str, list[E]] = {}
    for worker, units in running.items():
        if len(units) <= least:
            continue
        keep = least
        if extras:
            extras -= 1
            keep += 1
        if len(units) > keep:
            surplus[worker] = list(units)[: len(units) - keep]
    return surplus


def _spread(work: Iterable[E], running: Mapping[str, dict[E, None]]) -> None:
    """Assign work to the workers with the least, level by level, by worker id among equals."""
    workers = sorted(running, key=lambda worker: (len(running[worker]), utf16(worker)))
    todo = iter(work)
    # One each to all at the lowest level; then that level is one higher, and more workers may be on it.
    while units := list(islice(todo, _lowest(workers, running))):
        for unit, worker in zip(units, workers, strict=False):
            running[worker][unit] = None


def _lowest(workers: Sequence[str], running: Mapping[str, dict[E, None]]) -> int:
    """How many workers, sorted by what they run, run as little as the first."""
    level = len(running[workers[0]])
    return next((at for at, worker in enumerate(workers) if len(running[worker]) > level), len(workers))


def _backoff(attempts: int, max_delay_ms: int) -> int:
    """1 ms, times 40 an attempt, up to the largest delay (Kafka's ``ExponentialBackoff`` without jitter)."""
    if max_delay_ms <= 1:
        return max_delay_ms
    # Without a limit the power would overflow after some attempts.
    exponent = min(attempts, math.log(max_delay_ms) / math.log(BACKOFF_MULTIPLIER))
    return min(int(math.pow(BACKOFF_MULTIPLIER, exponent)), max_delay_ms)


def assign_eager(spec: ConnectGroupSpec, image: TopicImage, profile: Profile) -> Assignment[LeaderAssignment]:
    """Assign a Connect group eagerly; topics are not used."""
    if spec.config_offset < config_offset(spec):
        return Assignment(written(spec, profile.jdk, {}, error=CONFIG_MISMATCH))
    shares = {worker: Share(ConnectorsAndTasks.of(), ConnectorsAndTasks.of()) for worker in spec.members}
    turns = cycle(sorted(spec.members, key=utf16))
    everything = configured(spec)
    for connector in everything.connectors:
        shares[next(turns)].start.connectors[connector] = None
    for task in everything.tasks:
        shares[next(turns)].start.tasks[task] = None
    return Assignment(written(spec, profile.jdk, shares))
