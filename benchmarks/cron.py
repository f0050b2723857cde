"""Nights as cron runs them, a process each: ``python -m benchmarks.cron [--records N] [--groups N] [--runner RUNNER]``.

The first night has all but the last hundredth of the log, the second the last hundredth (the segments have grown), the
third nothing new; then a question is asked, twice. Prints a line of JSON for each, as soon as it is known: seconds of
the clock and of processors, records a second, and the memory of the largest process so far.
``--runner spark``: the same with Spark.
``--catalog``: each night also through Hive's metastore, which Spark has built in, with the ratios of the clock to the
folder: ``statements``, by Spark; ``published``, on a working copy that is kept and that answers the question;
``registered``, into a folder whose tables are registered there; without a name all three. The metastore does not tell
the paths of its tables, so that only Spark opens them.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.generate import generate
from benchmarks.nightly import LATER, hold_back
from jobs.cli.options import FAILED_GATE

COMMAND = """
import sys
from coordinator_audit.__main__ import main
from jobs.tables import registered
registered.registered = lambda *given, **options: None
main()
"""

HOMES = ("statements", "published", "registered")

SCHEMAS_MADE = """
import sys
from pathlib import Path
from jobs import settings
from jobs.tables import session
spark = session.get_or_create(settings.load(Path(sys.argv[1])).spark)
for name in ("statements", "published", "registered"):
    spark.sql(f"CREATE SCHEMA spark_catalog.{name}")
"""


def hive(place: Path) -> dict[str, Path]:
    """Make schemas in Hive's metastore. Return the files of settings of nights through each, by its name."""
    conf = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={place / 'derby'}",
    }
    homes: dict[str, dict[str, Any]] = {
        "statements": {"tables": "spark_catalog.statements", "engine": {"published_mb": 0}},
        "published": {"tables": "spark_catalog.published", "engine": {"working_copy": str(place / "copy")}},
        "registered": {"tables": str(place / "registered"), "registered_in": "spark_catalog.registered"},
    }
    files = {}
    for name, home in homes.items():
        files[name] = place / f"{name}.yaml"
        files[name].write_text(json.dumps(home | {"spark": {"conf": conf}}))
    subprocess.run([sys.executable, "-c", SCHEMAS_MADE, str(files["published"])], capture_output=True, check=True)
    return files


def night(report: Path, log: Path, runner: str, records: int, *options: str) -> dict[str, Any]:
    """One night with so many new records by a process of its own; ``options`` say where the tables are."""
    words = ["nightly", str(log), *options, "--report", str(report), "--json"]
    taken = command(words, runner)
    return taken | ({"records_per_second": round(records / taken["seconds"])} if records else {})


def command(words: Sequence[str], runner: str) -> dict[str, Any]:
    """Run a command in a process of its own. Return its seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        env={"PATH": os.environ["PATH"], "COORDINATOR_AUDIT_ENGINE__RUNNER": runner},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in (0, FAILED_GATE):  # a generated log may fail a check
        raise RuntimeError(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    seconds = round(time.perf_counter() - began, 1)
    return {"seconds": seconds, "processor_seconds": round(taken, 1), "peak_mib": after.ru_maxrss >> 10}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--runner", choices=("auto", "local", "spark"), default="auto")
    parser.add_argument("--catalog", nargs="*", choices=HOMES, metavar="|".join(HOMES))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cron-") as folder:
        place = Path(folder)
        log = place / "log"
        generate(log, given.records, given.groups, partitions=4)
        hold_back(log, place / "later", LATER)
        wanted = given.catalog if given.catalog else HOMES
        homes = {} if given.catalog is None else {name: file for name, file in hive(place).items() if name in wanted}
        where = {"folder": ("--tables", str(place / "tables"))}
        where |= {name: ("--config", str(file)) for name, file in homes.items()}

        def nights(number: str, records: int) -> None:
            of_folder = 0.0
            for name, options in where.items():
                made = night(place / f"{name}.html", log, given.runner, records, *options)
                of_folder = of_folder or made["seconds"]
                tell(night=number, home=name, **made, ratio=round(made["seconds"] / of_folder, 2))

        later = round(given.records * LATER)
        nights("first", given.records - later)
        for held in (place / "later").rglob("*.log"):  # the active segments grow
            with max((log / held.parent.name).glob("*.log")).open("ab") as segment:
                segment.write(held.read_bytes())
        nights("a hundredth", later)
        nights("nothing new", 0)
        for name, options in where.items():
            tables = ("--tables", json.loads(homes[name].read_text())["tables"]) if name in homes else ()
            question = ["findings", *options, *tables, "--cluster", "default", "--json"]
            for asked in ("first", "again"):
                tell(question=asked, home=name, **command(question, given.runner))
    tell(runner=given.runner, records=given.records, groups=given.groups)


def tell(**found: object) -> None:
    """Print a line of JSON."""
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
