"""What a night costs by step, and what that means for large logs: ``python -m benchmarks.scale [--write]``.

Runs four first nights over generated logs, each in a new JVM: three on one core (``--records`` commits, 4 times as
many, 4 times the groups), and the one with more commits on two executors of one core. From the first three follow the
processor seconds of each step: a fixed part, one for each million commits, and one for each thousand groups. Prints
them, and what they mean for nights of 1, 10 and 100 billion commits, with shuffled bytes, files and memory.
``--write`` puts what is measured into ``benchmarks/README.md``, and the plan into ``docs/nightly.md``.

The figures of each night are kept in ``build/scale.json``: after a night that failed, the same command goes on with it.
``--again`` measures all nights again. Take it on a machine that does nothing else.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyspark

from benchmarks.generate import generate
from benchmarks.nightly import night, peaks
from jobs import settings
from jobs.sources.segments import SPLIT_BYTES
from jobs.tables import session
from jobs.tables.delta import Tables

ROOT = Path(__file__).parents[1]
MEASURED_PAGE, PLAN_PAGE = ROOT / "benchmarks" / "README.md", ROOT / "docs" / "nightly.md"
KEPT = ROOT / "build" / "scale.json"
BEGIN, END = "<!-- benchmarks.scale: begin -->", "<!-- benchmarks.scale: end -->"
LOG_PARTITIONS = 50
"""The default of offsets.topic.num.partitions."""

NIGHT_S = 1200
"""Seconds after which a night is given up."""

WINDOW_S = 2 * 3600
"""Seconds that a large night may take."""

BUSY = 0.7
"""Share of the time in which an executor's core has work."""

SHUFFLE_TASK_BYTES = 128 << 20
"""What one task of a shuffle should get."""

PLANNED = {1: 2_000, 10: 10_000, 100: 50_000}
"""Groups of a night, by billions of commits."""


class StepCost(NamedTuple):
    """What grows linearly: a fixed part, one for each million commits, and one for each thousand groups."""

    fixed: float
    million: float
    groups: float

    def of(self, millions: float, thousands: float) -> float:
        """Return the cost of a night."""
        return self.fixed + self.million * millions + self.groups * thousands


class NightCost(NamedTuple):
    """One night, as the child process prints it."""

    records: int
    groups: int
    steps: dict[str, float]
    """Seconds of processors, those of compiling in the JVM included."""

    seconds: float
    """Of the clock, without the start of Spark."""

    shuffled: int
    spilled: int
    files: int
    log_bytes: int
    table_bytes: int
    driver_mib: int
    python_mib: int
    java_mib: int


def tasks(folder: Path) -> Iterator[dict[str, Any]]:
    """The metrics of each task, from Spark's event log."""
    for file in folder.rglob("[!.]*"):
        for line in file.read_text().splitlines() if file.is_file() else ():
            if '"SparkListenerTaskEnd"' in line and "Task Metrics" in (event := json.loads(line)):
                yield event["Task Metrics"]


def measure(master: str, records: int, groups: int) -> NightCost:
    """Run one night in this process."""
    with tempfile.TemporaryDirectory(prefix="scale-") as place:
        log, events, home = Path(place, "log"), Path(place, "events"), Path(place, "tables")
        events.mkdir()
        written = generate(log, records, groups, partitions=8)
        conf = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.executor.memory": "1g",
            "spark.sql.shuffle.partitions": "8",
        }
        flags = {"input.paths": [str(log)], "spark.master": master, "spark.conf": conf}
        steps = ["ingest", "decode", "replay", "offsets", "findings", "checks"]
        chosen = settings.load(environment={}, flags=flags | {"nightly.steps": steps})
        tables = Tables(session.get_or_create(chosen.spark), str(home))
        with peaks() as found:
            done = night(tables, chosen)
        tables.spark.stop()
        metrics = list(tasks(events))
        data = [file for file in home.rglob("*.parquet") if "_delta_log" not in file.parts]
        return NightCost(
            records=written,
            groups=groups,
            steps={name: step["processor_seconds"] for name, step in done["steps"].items()},
            seconds=done["seconds"],
            shuffled=sum(each["Shuffle Write Metrics"]["Shuffle Bytes Written"] for each in metrics),
            spilled=sum(each["Disk Bytes Spilled"] for each in metrics),
            files=len(data),
            log_bytes=sum(file.stat().st_size for file in log.rglob("*.log")),
            table_bytes=sum(file.stat().st_size for file in data),
            driver_mib=found["driver"],
            python_mib=found["python"],
            java_mib=found["java"],
        )


def in_new_process(master: str, records: int, groups: int) -> NightCost:
    """Run one night in a process of its own, with its own JVM."""
    command = [sys.executable, "-m", "benchmarks.scale", "--one", master]
    sizes = ["--records", str(records), "--groups", str(groups)]
    environment = os.environ | {"SPARK_HOME": str(Path(pyspark.__file__).parent)}
    done = subprocess.run(
        [*command, *sizes], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=NIGHT_S
    )
    return NightCost(**json.loads(done.stdout.splitlines()[-1]))


def cost(step: str, one: NightCost, more: NightCost, grouped: NightCost) -> StepCost:
    """Return the line through three nights: a small one, one with more records, one with more groups."""
    base = one.steps[step]
    million = max(0.0, (more.steps[step] - base) / ((more.records - one.records) / 1e6))
    groups = max(0.0, (grouped.steps[step] - base) / ((grouped.groups - one.groups) / 1e3))
    return StepCost(max(0.0, base - million * one.records / 1e6 - groups * one.groups / 1e3), million, groups)


def planned(costs: dict[str, StepCost], large: NightCost) -> Iterator[str]:
    """Yield the rows of the table for nights that cannot be measured here."""
    for billions, groups in PLANNED.items():
        commits = billions * 1e9
        log, tables, shuffled = (
            size * commits / large.records for size in (large.log_bytes, large.table_bytes, large.shuffled)
        )
        seconds = sum(each.of(commits / 1e6, groups / 1e3) for each in costs.values())
        cores = max(2, math.ceil(seconds / (WINDOW_S * BUSY)))
        partitions = max(LOG_PARTITIONS, math.ceil(shuffled / SHUFFLE_TASK_BYTES))
        # A task that reads writes a file to log_records, offset_commits and group_records each; a task of the two
        # shuffles of commits and of records writes one.
        files = 3 * math.ceil(log / SPLIT_BYTES) + 2 * partitions
        sizes = " | ".join(f"{size / 1e9:,.0f} GB" for size in (log, tables, shuffled))
        named = f"{billions} billion, {groups:,} groups"
        yield f"| {named} | {seconds / 3600:,.0f} | {cores:,} | {sizes} | {files:,} | {partitions:,} |"


def measured(nights: dict[str, NightCost]) -> Iterator[str]:
    """Yield the rows of the table of the nights that were measured."""
    for name, one in nights.items():
        times = f"{one.seconds:,.0f} | {one.records / one.seconds:,.0f} | {sum(one.steps.values()):,.0f}"
        sizes = f"{one.shuffled >> 20:,} | {one.spilled >> 20:,} | {one.files}"
        memory = f"{one.python_mib:,} | {one.driver_mib:,} | {one.java_mib:,}"
        yield f"| {name} | {one.records:,} | {one.groups:,} | {times} | {sizes} | {memory} |"


def measurements(costs: dict[str, StepCost], nights: dict[str, NightCost]) -> str:
    """Return the tables of what was measured."""
    large, two = nights[LARGE], nights[TWO]
    text = [
        "First nights over generated logs in 8 log partitions, from `python -m benchmarks.scale`. Seconds of",
        "processors include those in which the JVM compiles; memory is that of the largest process.",
        "",
        "| night | commits | groups | clock, s | commits a second | processors, s | shuffled, MiB | spilled, MiB "
        "| files | Python worker, MiB | driver's Python, MiB | JVM, MiB |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *measured(nights),
        "",
        "Seconds of one core by step, from the three nights on one core, and what the two large nights took:",
        "",
        "| step | fixed | for a million commits | for a thousand groups | large night | on two executors |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {each.fixed:.1f} | {each.million:.2f} | {each.groups:.2f} | {large.steps[name]:.0f} "
            f"| {two.steps[name]:.0f} |"
            for name, each in costs.items()
        ),
        "",
        f"On two executors the large night was {large.seconds / two.seconds:.2f} times as fast as on one core.",
    ]
    return "\n".join(text)


def plan(costs: dict[str, StepCost], large: NightCost) -> str:
    """Return the table of nights of whole days."""
    text = [
        "What nights of whole days need, by calculation from smaller ones (`python -m benchmarks.scale`):",
        "",
        "| commits a day | hours of one core | cores for 2 h | log | tables grow by | shuffled | files "
        "| `spark.sql.shuffle.partitions` |",
        "|---|---|---|---|---|---|---|---|",
        *planned(costs, large),
    ]
    return "\n".join(text)


SMALL, LARGE, GROUPS, TWO = "small, one core", "large, one core", "more groups, one core", "large, two executors"


def nights_of(records: int, groups: int, times: int = 4) -> dict[str, tuple[str, int, int]]:
    """Return master, commits and groups of each night."""
    return {
        SMALL: ("local[1]", records, groups),
        LARGE: ("local[1]", times * records, groups),
        GROUPS: ("local[1]", records, times * groups),
        TWO: ("local-cluster[2,1,1024]", times * records, groups),
    }


def measure_all(wanted: dict[str, tuple[str, int, int]], kept: dict[str, Any]) -> Iterator[str]:
    """Measure the nights that are not among the ``kept`` figures, and keep them there. Yield names of failed nights."""
    for name, sizes in wanted.items():
        key = " ".join(map(str, sizes))
        if kept.get(key, {}).keys() == set(NightCost._fields):
            print(f"{name}: as kept in {KEPT.relative_to(ROOT)}", file=sys.stderr)
            continue
        try:
            kept[key] = in_new_process(*sizes)._asdict()
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {error}", file=sys.stderr)
            yield name
            continue
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        print(f"{name}: {kept[key]['seconds']:.0f} s", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=750_000, help="commits of the smallest night")
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--one", metavar="MASTER", help="run a single night there, and print its figures as JSON")
    parser.add_argument("--again", action="store_true", help="measure nights again whose figures are kept")
    parser.add_argument("--write", action="store_true", help="put the tables into the two pages")
    wanted = parser.parse_args()
    if wanted.one:
        print(json.dumps(measure(wanted.one, wanted.records, wanted.groups)._asdict()))
        return
    sizes = nights_of(wanted.records, wanted.groups)
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() and not wanted.again else {}
    if failed := list(measure_all(sizes, kept)):
        sys.exit(f"failed: {', '.join(failed)}; the figures of the other nights are kept: run the same command again")
    nights = {name: NightCost(**kept[" ".join(map(str, of))]) for name, of in sizes.items()}
    three = (nights[SMALL], nights[LARGE], nights[GROUPS])
    costs = {name: cost(name, *three) for name in nights[SMALL].steps}
    between = re.compile(f"(?<={re.escape(BEGIN)}).*(?={re.escape(END)})", re.DOTALL)
    for path, text in ((MEASURED_PAGE, measurements(costs, nights)), (PLAN_PAGE, plan(costs, nights[LARGE]))):
        print(text)
        if wanted.write:
            before, _, after = between.sub("\0", path.read_text(encoding="utf-8")).partition("\0")
            path.write_text(f"{before}\n\n{text}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
