"""A Connect group that goes through rounds: workers come and go, follow what they are told, and time passes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.assignors.connect.work import ConnectorOrTask, ConnectorsAndTasks, LeaderAssignment, target
from coordinator_core.assignors.inputs import Assignment, ConnectGroupSpec, WorkerSpec
from coordinator_core.assignors.profiles import DEFAULT
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import TopicImage

MAX_DELAY_MS = 300_000


@dataclass
class Cluster:
    """Workers and what they run. The first worker leads while it is there."""

    connectors: dict[str, int]
    protocol: str = "sessioned"
    max_delay_ms: int = MAX_DELAY_MS
    now_ms: int = 1_000_000
    generation: int = 0
    completed: int = -1
    works: dict[str, ConnectorsAndTasks] = field(default_factory=dict)
    memories: dict[str, Any] = field(default_factory=dict)

    @property
    def leader(self) -> str:
        return next(iter(self.works))

    def spec(self) -> ConnectGroupSpec:
        return ConnectGroupSpec(
            members={
                worker: WorkerSpec(f"http://{worker}", 1, list(work.connectors), list(work.tasks))
                for worker, work in self.works.items()
            },
            leader=self.leader,
            connectors=self.connectors,
            config_offset=1,
            generation=self.generation,
            last_completed_generation=self.completed,
            now_ms=self.now_ms,
            max_delay_ms=self.max_delay_ms,
            memory=self.memories.get(self.leader),
        )

    def join(self, worker: str, work: ConnectorsAndTasks | None = None) -> None:
        self.works[worker] = work or ConnectorsAndTasks.of()

    def leave(self, worker: str) -> None:
        del self.works[worker]
        self.memories.pop(worker, None)

    def round(self) -> Mapping[str, LeaderAssignment]:
        """One rebalance, which every worker follows."""
        self.generation += 1
        spec = self.spec()
        told: Assignment[LeaderAssignment] = assign(self.protocol, spec, TopicImage.of(()), DEFAULT)
        self.memories[self.leader] = told.memory
        self.works = target(spec.members, told.members)
        self.completed = self.generation
        return told.members

    def settle(self) -> None:
        """Rebalance, waiting for every delay, until nothing is told to anybody."""
        for _ in range(20):
            told = self.round()
            delay = told[self.leader].delay_ms
            self.now_ms += delay
            if not delay and not any(
                mine.connectors or mine.tasks or mine.revoked_connectors or mine.revoked_tasks for mine in told.values()
            ):
                return
        raise AssertionError("the group does not come to rest")

    def holders(self) -> Counter[ConnectorOrTask]:
        return Counter(unit for work in self.works.values() for unit in work.units())
