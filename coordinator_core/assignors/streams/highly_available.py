"""The ``highly_available`` task assignor of KIP-1071: balance, without a pause for tasks that have state.

No broker has it yet. The document calls it similar to the HighAvailabilityTaskAssignor of Kafka Streams (KIP-441,
KIP-708). So each process gets the active tasks and the copies that this class of Kafka 4.3.1 gives it:

1. Stateful active tasks get a home: one process after the other in turns, then evened out. It does not count where the
   tasks were before.
2. Standby tasks go to the least loaded processes, in other racks where ``rack_aware_tags`` are configured.
3. An active task whose home is not caught up goes to a process that is. It warms up at home while one of the
   ``num.warmup.replicas`` is free. Standby tasks move in the same way.
4. Stateless tasks go to the processes with the fewest active tasks for each member.
5. The members of a process share its tasks evenly and keep what they had.

KIP-1071 is the reason for each departure from that class:

- Warm-up tasks are a role. Kafka's class counts them as standby tasks.
- There is no probing rebalance: a warm-up task that has caught up asks for the next assignment, a standby task does
  not. Where Kafka's class exchanges an active task and its standby task, the copy at home is a standby task that waits
  for the next probing rebalance. Here it is a warm-up task while one is free.
- An offset beyond the known end is caught up: members report offsets and ends at different times. Kafka's class takes
  such a copy as corrupt.
- A task whose end offset is not known is never caught up, even if any lag is acceptable (2^63 - 1). The copy with the
  largest offset comes first.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from coordinator_core.assignors.inputs import Assignment, StreamsConfigs, StreamsGroupSpec, Tasks
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.streams.placement import LeastLoaded, Placement, TaskState, former_holders
from coordinator_core.assignors.streams.topology import CLIENT_TASK_ID, NumberedTopology, is_number, subtopology_order
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from coordinator_core.java.heap import PriorityQueue
from coordinator_core.java.order import hash_order


def assign(spec: StreamsGroupSpec, image: TopicImage, profile: Profile) -> Assignment[Tasks]:
    """Assign active, standby and warm-up tasks.

    Raises AssignorError (TaskAssignorException) when there are tasks and no members.
    """
    topology = NumberedTopology(spec.subtopologies, subtopology_order)
    if topology.tasks and not spec.members:
        raise AssignorError("TaskAssignorException", "No member available to assign tasks")
    if not spec.members:
        return Assignment({})
    state = TaskState(spec, topology)
    placement = Placement([len(members) for members in state.members])
    for turn, task in enumerate(topology.stateful):
        placement.active[turn % len(state.members)].add(task)
    placement.even_out(placement.active)
    place_standbys(placement, topology, state.tags, spec.configs)
    movements = Movements(placement, state, spec.configs.num_warmup_replicas)
    movements.move_active()
    movements.move_standby()
    movements.warm_up_exchanged()
    # Last: they can run anywhere, and so even out what the state of the others dictates.
    stateless = _place_stateless(placement, topology)
    return _by_member(spec, topology, placement, state, stateless)


def _place_stateless(placement: Placement, topology: NumberedTopology) -> set[int]:
    """Give each stateless task to the process with the fewest active tasks for each member; return those tasks."""
    stateless = set(range(len(topology.tasks))).difference(topology.stateful)
    queue = LeastLoaded(placement.active_load, placement.processes)
    for task in sorted(stateless):
        process = queue.pick(lambda _: True)
        if process is not None:
            placement.active[process].add(task)
    return stateless


def _by_member(
    spec: StreamsGroupSpec, topology: NumberedTopology, placement: Placement, state: TaskState, stateless: set[int]
) -> Assignment[Tasks]:
    """Share each process's tasks among its members: stateful ones, stateless ones, then copies."""
    shares = MemberShares(len(spec.members), former_holders(spec, topology))
    active: list[list[int]] = [[] for _ in spec.members]
    standby: list[list[int]] = [[] for _ in spec.members]
    warmup: list[list[int]] = [[] for _ in spec.members]
    for process, members in enumerate(state.members):
        for kind in (placement.active[process] - stateless, placement.active[process] & stateless):
            for task, member in shares.share(members, kind).items():
                active[member].append(task)
        for task, member in shares.share(members, placement.standby[process]).items():
            (warmup if task in placement.warmup[process] else standby)[member].append(task)
    return Assignment(
        {
            member: Tasks(*(topology.by_subtopology(role[number]) for role in (active, standby, warmup)))
            for number, member in enumerate(spec.members)
        }
    )


class MemberShares:
    """How the tasks of a process are shared among its members (threads): evenly, and as before where possible.

    Counts of tasks by member; ``former`` names the members that had a task before, the best one first.
    """

    def __init__(self, members: int, former: Mapping[int, Sequence[int]]) -> None:
        self.former = former
        self.counts = [0] * members

    def share(self, members: Sequence[int], tasks: Iterable[int]) -> dict[int, int]:
        """Return the member for each task. In the end no member of the process has two tasks more than another one."""
        counts = self.counts
        tasks = sorted(tasks)
        base, extras = divmod(sum(counts[member] for member in members) + len(tasks), len(members))
        # Who has more than the base has one of the larger shares already.
        extras -= sum(counts[member] > base for member in members)
        given: dict[int, int] = {}
        for task in tasks:
            for member in self.former.get(task, ()):
                if member in members and counts[member] < base + (extras > 0):
                    extras -= counts[member] == base
                    counts[member] += 1
                    given[task] = member
                    break
        for task in tasks:
            if task not in given:
                given[task] = min(members, key=lambda member: (counts[member], member))
                counts[given[task]] += 1
        return given


Tags = Mapping[str, str]


def place_standbys(
    placement: Placement, topology: NumberedTopology, tags: Sequence[Tags], configs: StreamsConfigs
) -> None:
    """Give each stateful task its standby tasks after the active tasks have been placed, then make the loads even.

    If ``rack_aware_tags`` are configured, loads are made even only between processes with the same tags.
    """
    if not configs.num_standby_replicas:
        return
    missing = dict.fromkeys(topology.stateful, configs.num_standby_replicas)
    queue = LeastLoaded(placement.load, placement.processes)
    if configs.rack_aware_tags:
        racks = _Racks(tags, configs.rack_aware_tags)
        homes = {task: process for process in placement.processes for task in placement.active[process]}
        for task in topology.stateful:
            missing[task] -= _place_apart(placement, queue, racks, task, homes[task], missing[task])
    for task in _in_map_order(topology) if configs.rack_aware_tags else topology.stateful:
        for _ in range(missing[task]):
            process = queue.pick(lambda other, task=task: not placement.holds(other, task))  # type: ignore[misc]
            if process is None:
                break
            placement.standby[process].add(task)
    if configs.rack_aware_tags:
        placement.even_out(placement.standby, lambda source, to: tags[source].items() <= tags[to].items())
    else:
        placement.even_out(placement.standby)


class _Racks:
    """Which values of which tags there are."""

    def __init__(self, tags: Sequence[Tags], keys: Sequence[str]) -> None:
        self.of = [{key: value for key, value in tag.items() if key in keys} for tag in tags]
        self.values = Counter(key for key, _ in {item for pairs in self.of for item in pairs.items()})

    def take(self, taken: defaultdict[str, set[str]], process: int, holders: int) -> None:
        """Add the process's tags to those taken; forget a tag once the task has as many holders as it has values."""
        for key, value in self.of[process].items():
            if self.values[key] <= holders:
                taken[key].clear()
            else:
                taken[key].add(value)


def _place_apart(placement: Placement, queue: LeastLoaded, racks: _Racks, task: int, home: int, wanted: int) -> int:
    """Give standby tasks to processes that share no tag with those that have the task; return their number.

    Once the task has as many holders as a tag has values, that tag no longer decides.
    """
    taken: defaultdict[str, set[str]] = defaultdict(set)

    def is_apart(process: int) -> bool:
        tags = racks.of[process]
        return not placement.holds(process, task) and not any(value in taken[key] for key, value in tags.items())

    process, given = home, 0
    while given < wanted:
        racks.take(taken, process, given + 1)
        picked = queue.pick(is_apart)
        if picked is None:
            break
        placement.standby[picked].add(task)
        process = picked
        given += 1
    return given


def _in_map_order(topology: NumberedTopology) -> list[int]:
    """The stateful tasks in the order of Kafka's HashMap of them; in their own order where they are not numbered."""
    ids = [topology.tasks[task] for task in topology.stateful]
    if not all(is_number(subtopology) for subtopology, _ in ids):
        return topology.stateful
    numbers = dict(zip(ids, topology.stateful, strict=True))
    return [numbers[task_id] for task_id in hash_order(CLIENT_TASK_ID, ids)]


class Movements:
    """Moves tasks away from processes that are behind. ``free`` counts the warm-up tasks that may still be assigned."""

    def __init__(self, placement: Placement, state: TaskState, free: int) -> None:
        self.placement = placement
        self.state = state
        self.free = free
        self.exchanged: list[tuple[int, int]] = []

    def move_active(self) -> None:
        """Move each active task whose process is behind to one that is caught up, else to the one that lags least.

        Tasks with the fewest caught-up copies come first. If the other process had the task as standby, the two
        exchange roles. If not, the home keeps a warm-up task while one is free.
        """
        placement, state = self.placement, self.state
        behind = [
            (len(state.ready(task)), task, home)
            for home in placement.processes
            for task in placement.active[home]
            if state.is_behind(home, task)
        ]
        # With the fewest caught-up copies first: these tasks have the least choice.
        for _, task, home in sorted(behind):
            to = self._stand_in(task)
            placement.active[home].remove(task)
            placement.active[to].add(task)
            if task in placement.standby[to]:
                placement.standby[to].remove(task)
                placement.standby[home].add(task)
                self.exchanged.append((task, home))
            elif self.free > 0:
                placement.standby[home].add(task)
                self._warm_up(task, home)

    def move_standby(self) -> None:
        """Move each standby task whose process is behind to a process without the task that is caught up or lags less.

        The former process keeps a warm-up task while one is free.
        """
        placement, state = self.placement, self.state
        behind = [
            (process, task)
            for process in placement.processes
            for task in sorted(placement.standby[process] - placement.warmup[process])
            if state.is_behind(process, task)
        ]
        tasks = 1 + max((task for _, task in behind), default=0)
        # Two keys in one number: by caught-up copies, then by task. Java's queue decides about equals as it does in
        # Kafka.
        queue = PriorityQueue([len(state.ready(task)) * tasks + task for _, task in behind], range(len(behind)))
        while queue:
            process, task = behind[queue.poll()]
            to = self._other(process, task)
            if to is None:
                continue
            placement.standby[to].add(task)
            if self.free > 0:
                self._warm_up(task, process)
            else:
                placement.standby[process].remove(task)

    def warm_up_exchanged(self) -> None:
        """Make the standby tasks of exchanged roles warm-up tasks while some are free.

        By KIP-1071 the next assignment is computed when a warm-up task has caught up, not when a standby task has.
        Kafka's client computes one every ``probing.rebalance.interval.ms``.
        """
        for task, home in self.exchanged:
            if self.free > 0 and task in self.placement.standby[home] - self.placement.warmup[home]:
                self._warm_up(task, home)

    def _warm_up(self, task: int, process: int) -> None:
        self.placement.warmup[process].add(task)
        self.free -= 1

    def _stand_in(self, task: int) -> int:
        """Return the process that runs an active task until its home is caught up."""
        ready = self.state.ready(task)
        standing = [process for process in ready if task in self.placement.standby[process]]
        chosen = self.placement.least_loaded(standing or ready)
        return self.state.by_lag(task)[0] if chosen is None else chosen

    def _other(self, process: int, task: int) -> int | None:
        """Return the process that takes a standby task over; None if there is none."""
        placement, state = self.placement, self.state
        chosen = placement.least_loaded(client for client in state.ready(task) if not placement.holds(client, task))
        if chosen is not None:
            return chosen
        for other in state.by_lag(task):
            if other == process:
                break
            if not placement.holds(other, task):
                return other
        return None
