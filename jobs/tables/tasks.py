"""Work in tasks: Spark's workers do them where Spark runs the steps, otherwise processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa

from jobs.tables.engine import Session, runs_steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

ALONE_BYTES: Final = 64 << 20
"""Tasks of fewer bytes together are done in this process: the others need a second to start."""

SPARK_TASKS: Final = 10_000
"""More tasks than this are not planned in Spark; each then has several."""


def done(session: Session, tasks: Sequence[T], work: Callable[[Sequence[T]], list[R]], size: int) -> list[R]:
    """Return what ``work`` makes of some tasks at a time, in the order of the tasks.

    ``size``: the bytes of all tasks together. Tasks, work and results go to other processes (pickle).
    """
    if not tasks:
        return []
    if runs_steps(session):
        return _in_spark(session, tasks, work)
    workers = min(os.cpu_count() or 1, len(tasks))
    if workers == 1 or size < ALONE_BYTES:
        return work(tasks)
    with processes(workers) as pool:
        share = -(-len(tasks) // workers)
        some = [tasks[begin : begin + share] for begin in range(0, len(tasks), share)]
        return [result for results in pool.map(work, some) for result in results]


def processes(count: int, begin: Callable[[], object] | None = None) -> ProcessPoolExecutor:
    """Return so many processes of this machine, each of which begins with a call.

    They are not forked: the threads of Arrow and of delta-rs would be missing in them. Ctrl-C ends them in silence.
    """
    return ProcessPoolExecutor(count, _Context(), _begin, (begin,))


class _Process(SpawnProcess):
    """A process that Ctrl-C does not reach while it starts: it would print where in its imports it was."""

    def start(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the new process inherits it
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Context(SpawnContext):
    Process = _Process


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _begin(call: Callable[[], object] | None) -> None:
    # A process whose parent was killed would wait for work forever.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if call is not None:
        call()


def _in_spark(spark: SparkSession, tasks: Sequence[T], work: Callable[[Sequence[T]], list[R]]) -> list[R]:
    def results(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            some = [tasks[number] for number in batch.column("id").to_pylist()]
            yield pa.RecordBatch.from_pydict({"results": [pickle.dumps(work(some))]})

    numbers = spark.range(0, len(tasks), 1, min(len(tasks), SPARK_TASKS))
    rows = numbers.mapInArrow(results, "results binary").collect()
    return [result for row in rows for result in pickle.loads(row.results)]
