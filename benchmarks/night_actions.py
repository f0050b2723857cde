"""What Spark does in a night over the samples: ``python -m benchmarks.night_actions [--catalog] [LOGS]``.

Prints JSON for three nights, the first one, one with nothing new, and one with a changed file, by step: seconds, Spark
jobs, SQL executions, tasks and commits to Delta tables; and the seconds of processors of each night. Spark's event log
counts jobs, so that a session through Spark Connect could be counted, too. ``--catalog``: the tables are in Spark's
catalog, so that only Spark opens them.
"""

import argparse
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.nightly import processor_seconds
from jobs import nightly_run, settings
from jobs.nightly_run import StepRun
from jobs.tables import session
from jobs.tables.delta import Tables
from tests.jobs.null_listener import NullListener

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "data" / "samples" / "logs"
SMALL = yaml.safe_load((ROOT / "conf" / "small.yaml").read_text())["spark"]["conf"]
COUNTED = {
    "SparkListenerJobStart": ("jobs", "Submission Time"),
    "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart": ("executions", "time"),
    "SparkListenerTaskEnd": ("tasks", "Task Info"),
}


def events(folder: Path) -> Iterator[tuple[str, int]]:
    """The counted events of a session, with their time in ms."""
    for file in folder.rglob("[!.]*"):
        for line in file.read_text().splitlines() if file.is_file() else ():
            event = json.loads(line)
            if (counted := COUNTED.get(event["Event"])) is not None:
                name, time = counted
                yield name, int(event[time]["Launch Time"] if name == "tasks" else event[time])


def delta_commits(folder: Path) -> Iterator[int]:
    """The time of each commit to a Delta table, in ms."""
    for file in folder.glob("*/_delta_log/*.json"):
        for line in file.read_text().splitlines():
            if (info := json.loads(line).get("commitInfo")) is not None:
                yield int(info["timestamp"])


def counted(steps: list[StepRun], found: list[tuple[str, int]]) -> dict[str, dict[str, Any]]:
    """The seconds of each step, and how often each event happened in it."""
    rows: dict[str, dict[str, Any]] = {}
    for step in steps:
        begin = int(step.started_at.timestamp() * 1000)
        counts = Counter(name for name, time in found if begin <= time < begin + step.seconds * 1000)
        rows[step.step] = {"seconds": step.seconds, "error": step.error, **counts}
    names = ("seconds", "jobs", "executions", "tasks", "delta_commits")
    rows["all"] = {name: round(sum(row.get(name, 0) for row in rows.values()), 1) for name in names}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path, nargs="?", default=SAMPLES)
    parser.add_argument("--catalog", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="actions-") as place:
        logs, log_of_events, warehouse = (Path(place, name) for name in ("logs", "events", "warehouse"))
        home = warehouse / "audit.db"
        log_of_events.mkdir()
        folders = sorted(folder for folder in wanted.logs.iterdir() if folder.is_dir())
        for folder in folders[:-1]:
            shutil.copytree(folder, logs / folder.name)
        conf = SMALL | {"spark.eventLog.enabled": "true", "spark.eventLog.dir": log_of_events.as_uri()}
        conf |= {"spark.eventLog.compress": "false", "spark.sql.warehouse.dir": str(warehouse)}
        flags = {"input.paths": [str(logs)], "spark.master": "local[2]", "nightly.report": Path(place, "report.html")}
        chosen = settings.load(environment={}, flags=flags | {"spark.conf": conf})
        spark = session.get_or_create(chosen.spark)
        if wanted.catalog:
            spark.sql("CREATE SCHEMA audit")
        tables = Tables(spark, "spark_catalog.audit" if wanted.catalog else str(home), chosen.engine.limits)
        nights, spent = {}, {}
        for name in ("first", "nothing new", "another log partition"):
            if name == "another log partition":
                shutil.copytree(folders[-1], logs / folders[-1].name)
            before = processor_seconds()
            nights[name] = nightly_run.run(tables, chosen, NullListener()).steps
            spent[name] = {"processor_seconds": round(processor_seconds() - before, 1)}
        spark.stop()
        found = [*events(log_of_events), *(("delta_commits", time) for time in delta_commits(home))]
    print(json.dumps({name: counted(steps, found) | spent[name] for name, steps in nights.items()}, indent=1))


if __name__ == "__main__":
    main()
