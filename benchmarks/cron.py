"""Nights as cron runs them, a process each: ``python -m benchmarks.cron [--records N] [--groups N] [--runner RUNNER]``.

The first night has all but the last hundredth of the log, the second the last hundredth (the segments have grown), the
third nothing new. Prints JSON: seconds of the clock and of processors of each. ``--runner spark``: the same with Spark.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.generate import generate
from benchmarks.nightly import LATER, hold_back


def night(place: Path, log: Path, runner: str) -> dict[str, Any]:
    """One night by a process of its own."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    words = ["nightly", str(log), "--tables", str(place / "tables"), "--report", str(place / "report.html"), "--json"]
    subprocess.run(
        [sys.executable, "-m", "coordinator_audit", *words],
        env={"PATH": "/usr/bin:/bin", "COORDINATOR_AUDIT_ENGINE__RUNNER": runner},
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
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cron-") as folder:
        place = Path(folder)
        log = place / "log"
        generate(log, given.records, given.groups, partitions=4)
        whole = {file: file.read_bytes() for file in log.rglob("*.log")}
        hold_back(log, place / "later", LATER)
        found = {"first": night(place, log, given.runner)}
        for file, data in whole.items():
            file.write_bytes(data)
        found["a hundredth"] = night(place, log, given.runner)
        found["nothing new"] = night(place, log, given.runner)
    print(json.dumps({"runner": given.runner, "records": given.records, "groups": given.groups, **found}))


if __name__ == "__main__":
    main()
