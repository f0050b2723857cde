"""A log with all its records in one log partition: ``python -m benchmarks.skew [--records N] [--groups N]``.

The pass over commits and the search for what was read of the log, each with the log partition as one task and divided.
Prints for each: seconds of the clock and of processors, and of the largest task its share of the rows and its seconds.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.generate import generate
from benchmarks.nightly import night, processor_seconds
from benchmarks.scale import tasks
from jobs import settings
from jobs.pipeline import commit_summaries
from jobs.pipeline.on_spark import commits as on_spark
from jobs.relations import replay
from jobs.settings import EngineLimits
from jobs.sources.files import REPLAYED_TOPICS
from jobs.tables import session
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.spark_reader import SparkReader

ONE_TASK = 1 << 50
QUIET_S = 4
"""Seconds without a new task in the event log, after which all tasks are in it."""


def pass_over_commits(tables: Tables) -> None:
    """Sum up all commits, as a first night does."""
    shutil.rmtree(Path(tables.location, COMMIT_SUMMARIES.name))
    commit_summaries.update(Tables(tables.spark, tables.location))


def search(tables: Tables) -> None:
    """Look up what was read of the log at every commit: replay does it at records of groups."""
    nothing = ("batch_base", "key", "value", "committed_topic", "committed_partition", "committed_topic_id")
    commits = f"SELECT *, {', '.join(f'NULL AS {name}' for name in nothing)}, NULL AS unreadable FROM $offset_commits"
    text = f"WITH chosen AS ({commits}), {replay.LOCATED} SELECT * FROM located WHERE is_row = 1"
    read = SparkReader(tables.spark, tables.location)
    found = read.query(text, cluster="default", topics=REPLAYED_TOPICS, block=replay.BLOCK)
    found.write.format("noop").mode("overwrite").save()


CASES: dict[str, tuple[Callable[[Tables], None], Any, str, int]] = {
    "pass over commits": (pass_over_commits, on_spark, "SLICE_ROWS", on_spark.SLICE_ROWS),
    "search of ranges": (search, replay, "BLOCK", replay.BLOCK),
}
"""What is measured, and the setting that divides it, with its value."""


def written(events: Path) -> list[dict[str, Any]]:
    """Return the metrics of all tasks. Spark writes its event log a little later: wait until it has."""
    found: list[dict[str, Any]] = []
    for _ in range(60):
        time.sleep(QUIET_S)
        now = list(tasks(events))
        if now and len(now) == len(found):
            break
        found = now
    return found


def measure(run: Callable[[Tables], None], tables: Tables, events: Path) -> dict[str, float]:
    """Run one case; return its figures. The largest task is that which read most rows of a shuffle."""
    before, began, spent = len(written(events)), time.monotonic(), processor_seconds()
    run(tables)
    clock, processors = time.monotonic() - began, processor_seconds() - spent
    new = written(events)[before:]
    read = [task["Shuffle Read Metrics"]["Total Records Read"] for task in new]
    largest = max(range(len(new)), key=lambda number: read[number])
    return {
        "seconds": round(clock, 1),
        "processor_seconds": round(processors, 1),
        "largest_task_rows": read[largest],
        "largest_task_seconds": round(new[largest]["Executor Run Time"] / 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--tasks", type=int, default=8, help="spark.sql.shuffle.partitions")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="skew-") as place:
        log, events = Path(place, "log"), Path(place, "events")
        events.mkdir()
        generate(log, wanted.records, wanted.groups)
        conf = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.sql.shuffle.partitions": str(wanted.tasks),
        }
        flags = {"input.paths": [str(log)], "spark.master": "local[2]", "spark.conf": conf}
        chosen = settings.load(environment={}, flags=flags | {"nightly.steps": ["ingest", "decode"]})
        tables = Tables(session.get_or_create(chosen.spark), str(Path(place, "tables")))
        night(tables, chosen)
        # A small log is summed up by this process otherwise.
        tables.limits = EngineLimits(rows=-1)
        found: dict[str, dict[str, dict[str, float]]] = {}
        for name, (run, module, setting, value) in CASES.items():
            run(tables)
            for how, chosen_value in (("one task", ONE_TASK), ("divided", min(value, wanted.records // wanted.tasks))):
                setattr(module, setting, chosen_value)
                found.setdefault(name, {})[how] = measure(run, tables, events)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
