"""Nights as cron runs them, a process each: ``python -m benchmarks.cron [--records N] [--groups N] [--runner RUNNER]``.

The first night has all but the last hundredth of the log, the second the last hundredth (the segments have grown), the
third nothing new; then a question is asked, twice. Prints JSON: seconds of the clock and of processors of each.
``--runner spark``: the same with Spark.
``--catalog``: each night also through Hive's metastore, which Spark has built in, with the ratios of the clock to the
folder: ``statements``, by Spark; ``published``, on a working copy that is kept; ``registered``, into a folder whose
tables are registered there. The metastore does not tell the paths of its tables, so that only Spark opens them.
"""

from __future__ import annotations

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

COMMAND = """
import sys
from coordinator_audit.__main__ import main
from jobs.tables import registered
registered.registered = lambda *given, **options: None
main()
"""

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


def night(place: Path, log: Path, runner: str, *options: str) -> dict[str, Any]:
    """One night by a process of its own; ``options`` say where the tables are."""
    words = ["nightly", str(log), *options, "--report", str(place / "report.html"), "--json"]
    return command(words, runner)


def command(words: Sequence[str], runner: str) -> dict[str, Any]:
    """Run a command in a process of its own. Return its seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        env={"PATH": os.environ["PATH"], "COORDINATOR_AUDIT_ENGINE__RUNNER": runner},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    return {"seconds": round(time.perf_counter() - began, 1), "processor_seconds": round(taken, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--runner", choices=("auto", "local", "spark"), default="auto")
    parser.add_argument("--catalog", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cron-") as folder:
        place = Path(folder)
        log = place / "log"
        generate(log, given.records, given.groups, partitions=4)
        whole = {file: file.read_bytes() for file in log.rglob("*.log")}
        hold_back(log, place / "later", LATER)
        homes = hive(place) if given.catalog else {}
        folder_options = ("--tables", str(place / "tables"))

        def nights() -> dict[str, Any]:
            made = {"folder": night(place, log, given.runner, *folder_options)}
            for name, file in homes.items():
                made[name] = night(place, log, given.runner, "--config", str(file))
                made[name]["ratio"] = round(made[name]["seconds"] / made["folder"]["seconds"], 2)
            return made

        found = {"first": nights()}
        for file, data in whole.items():
            file.write_bytes(data)
        found["a hundredth"] = nights()
        found["nothing new"] = nights()
        places: dict[str, tuple[str, ...]] = {"folder": folder_options}
        for name, file in homes.items():
            places[name] = ("--tables", json.loads(file.read_text())["tables"], "--config", str(file))
        for name, where in places.items():
            question = ["findings", *where, "--cluster", "default", "--json"]
            twice = [command(question, given.runner)["seconds"] for _ in range(2)]
            found.setdefault("answers", {})[name] = twice
    print(json.dumps({"runner": given.runner, "records": given.records, "groups": given.groups, **found}))


if __name__ == "__main__":
    main()
