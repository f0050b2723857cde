"""Which processes get standby tasks: the least loaded ones, in other racks as far as there are any (KIP-708)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from coordinator_core.assignors.inputs import StreamsConfigs
from coordinator_core.assignors.streams.client_order import CLIENT_TASK_ID, is_number
from coordinator_core.assignors.streams.placement import LeastLoaded, Placement
from coordinator_core.assignors.streams.topology import NumberedTopology
from coordinator_core.java.order import hash_order

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
