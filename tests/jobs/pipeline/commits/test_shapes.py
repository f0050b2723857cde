"""Nights of a billion commits as plans: how many tasks the pass over commits has, and how many rows each of them."""

from collections import Counter
from itertools import accumulate
from types import SimpleNamespace
from typing import cast

import pytest

from jobs.pipeline.on_spark import commits as on_spark
from jobs.pipeline.on_spark.commits import SLICE_ROWS, TASKS
from jobs.tables.delta import Tables

BILLION = 10**9

SHAPES = {
    "even": dict.fromkeys(range(50), BILLION // 50),
    "one log partition has all commits": {17: BILLION},
    "one log partition has most commits": {**dict.fromkeys(range(50), BILLION // 1000), 3: BILLION * 95 // 100},
    "many log partitions": dict.fromkeys(range(1000), BILLION // 1000),
}


def sliced(records: dict[int, int], tasks: int) -> dict[int, int]:
    """The slices of each log partition; the ledger is the only thing that is asked."""
    ledger = [{"log_partition": each, "new_records": count, "all_records": count} for each, count in records.items()]
    engine = SimpleNamespace(rows=lambda sql, **given: ledger)
    tables = cast(Tables, SimpleNamespace(engine=lambda: engine))
    return on_spark.of_log_partitions(tables, "c", ("", "r"), (), tasks)


def rows_of_tasks(records: dict[int, int], slices: dict[int, int], tasks: int) -> Counter[int]:
    """The rows of each task, as ``divided`` numbers them."""
    first = dict(zip(slices, accumulate(slices.values(), initial=0), strict=False))
    found: Counter[int] = Counter()
    for partition, count in slices.items():
        for number in range(count):
            found[(first[partition] + number) % tasks] += records[partition] // count
    return found


@pytest.mark.parametrize("tasks", [TASKS, 1000])
@pytest.mark.parametrize("records", SHAPES.values(), ids=SHAPES)
def test_no_task_has_much_more_than_its_share(records: dict[int, int], tasks: int) -> None:
    slices = sliced(records, tasks)
    found = rows_of_tasks(records, slices, tasks)
    share = sum(records.values()) / tasks
    assert len(found) >= min(tasks, sum(records.values()) // SLICE_ROWS) * 0.9
    assert max(found.values()) <= share + 2 * SLICE_ROWS


def test_few_tasks_bound_the_slices() -> None:
    """A session with the default of one machine has four: a billion commits take four tasks, and each streams."""
    slices = sliced(SHAPES["even"], 4)
    assert max(slices.values()) == 4
    assert max(rows_of_tasks(SHAPES["even"], slices, 4).values()) == BILLION // 4
