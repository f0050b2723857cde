"""The document's worked cases, as transcripts that can be read: see case_studies.txt."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coordinator_core.assignors.connect.selection import VersionRange, breaches, select_worker
from coordinator_core.assignors.connect.work import ConnectorOrTask, configured
from coordinator_core.assignors.inputs import ConnectGroupSpec, WorkerSpec
from coordinator_core.assignors.leader_round import DeclaredTarget, declare_target

TRANSCRIPT = Path(__file__).with_name("case_studies.txt")
DELAY_S = 300


@dataclass
class Group:
    """A Connect group on KIP-848, in which every worker has done what its target says."""

    connectors: dict[str, int] = field(default_factory=dict)
    works: dict[str, list[ConnectorOrTask]] = field(default_factory=dict)
    epoch: int = 0
    generation: int = 0
    completed: int = -1
    now_s: int = 0
    due_s: int | None = None
    computes: str | None = None
    memory: Any = None

    def command(self, name: str, arguments: list[str]) -> list[str]:
        """Carry a command out; the lines that describe the group after it."""
        if name == "connectors":
            self.connectors = {connector: int(tasks) for connector, tasks in (a.split(":") for a in arguments)}
            return []
        if name == "join":
            self.works |= {worker: [] for worker in arguments}
        elif name == "leave":
            self.works = {worker: work for worker, work in self.works.items() if worker not in arguments}
        else:
            self.now_s += int(arguments[0])
            if self.due_s is None or self.now_s < self.due_s:
                return ["  no rebalance is due"]
        return list(self.rebalance())

    def rebalance(self) -> Iterator[str]:
        self.epoch += 1
        computes = select_worker(dict.fromkeys(self.works, VersionRange(0, 2)), self.computes)
        if computes != self.computes:
            self.computes, self.memory = computes, None
        spec = ConnectGroupSpec(
            members={
                worker: WorkerSpec(
                    f"http://{worker}",
                    1,
                    [unit for unit in work if isinstance(unit, str)],
                    [unit for unit in work if not isinstance(unit, str)],
                )
                for worker, work in self.works.items()
            },
            leader=computes,
            connectors=self.connectors,
            config_offset=1,
            generation=self.generation + 1,
            last_completed_generation=self.completed,
            now_ms=self.now_s * 1000,
            max_delay_ms=DELAY_S * 1000,
            memory=self.memory,
        )
        declared = declare_target("sessioned", spec)
        self.generation = self.completed = declared.generation
        self.memory = declared.memory
        self.works = {worker: work.units() for worker, work in declared.works.items()}
        self.due_s = self.now_s + declared.delay_ms // 1000 if declared.delay_ms else None
        assert not breaches(self.works, configured(spec).units(), self.works, declared.waiting)
        yield from self.describe(declared)

    def describe(self, declared: DeclaredTarget) -> Iterator[str]:
        yield f"  group epoch {self.epoch}, {self.computes} computes"
        for worker in sorted(self.works):
            yield f"  {worker}: {units(self.works[worker])}"
        if declared.waiting:
            yield f"  waiting {declared.delay_ms // 1000} s: {units(declared.waiting)}"


def units(work: list[ConnectorOrTask] | tuple[ConnectorOrTask, ...]) -> str:
    """As the document writes them: AC0 is connector A, AT1 its first task."""
    names = [f"{u}C0" if isinstance(u, str) else f"{u[0]}T{u[1] + 1}" for u in work]
    return " ".join(sorted(names)) or "-"


def transcript(text: str) -> str:
    """The transcript with every answer computed."""
    lines: list[str] = []
    group = Group()
    for line in text.splitlines():
        if line.startswith("=="):
            group = Group()
        if line.startswith("> "):
            name, *arguments = line[2:].split()
            lines += [line, *group.command(name, arguments)]
        elif not line.startswith("  "):
            lines.append(line)
    return "\n".join(lines) + "\n"


def test_the_transcript_is_what_happens() -> None:
    recorded = TRANSCRIPT.read_text(encoding="utf-8")
    computed = transcript(recorded)
    if os.environ.get("GOLDEN") == "rewrite":
        TRANSCRIPT.write_text(computed, encoding="utf-8")
        recorded = computed
    assert computed == recorded
