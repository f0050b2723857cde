"""What Spark's processes take: the memory of its Python workers, and the processor time of them and of the JVM."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import psutil

POLL_S = 0.2


class Workers(threading.Thread):
    """Watches the Python processes below this one; ``peak`` is the largest resident size seen, in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        """Until the process ends."""
        here = psutil.Process()
        while True:
            for child in here.children(recursive=True):
                try:
                    if "python" in child.name():
                        self.peak = max(self.peak, child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue
            time.sleep(POLL_S)


class WorkerTime(NamedTuple):
    """Seconds of the clock, and of processors: those of the JVM, and of the Python processes below it."""

    wall: float
    jvm: float
    python: float

    @property
    def cpu(self) -> float:
        """Of all processes."""
        return self.jvm + self.python


def taken(work: Callable[[], object]) -> WorkerTime:
    """What a piece of work takes. Workers that end meanwhile are counted once the daemon has waited for them."""
    began, (jvm, python) = time.perf_counter(), _cpu()
    work()
    after_jvm, after_python = _cpu()
    return WorkerTime(time.perf_counter() - began, after_jvm - jvm, max(0.0, after_python - python))


def _cpu() -> tuple[float, float]:
    jvm = python = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            name, times = process.name(), process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        if name == "java":
            jvm += times.user + times.system
        else:
            python += times.user + times.system + times.children_user + times.children_system
    return jvm, python
