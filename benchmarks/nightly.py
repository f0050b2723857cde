"""A large log through a whole night: ``python -m benchmarks.nightly [--records N] [--groups N]``.

Prints JSON: seconds and counts of each step, records a second over all, and the peak memory (resident, MiB) of the JVM
and of the largest Python process beside it. The log is generated: commits of consumer groups, and their rebalances.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.generate import generate
from jobs import nightly_run, settings
from jobs.tables import session
from jobs.tables.delta import Tables

EVERY_S = 0.5


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """The largest resident sizes seen: of this process and its Python workers, and of the JVM."""
    found = {"java": 0, "python": 0}
    done = threading.Event()

    def look() -> None:
        while not done.wait(EVERY_S):
            for process in [(me := psutil.Process()), *me.children(recursive=True)]:
                try:
                    # Others are copies of the JVM that are about to become Python, and have its memory until then.
                    kind = next((kind for kind in ("java", "python") if process.name().startswith(kind)), None)
                    if kind is not None:
                        found[kind] = max(found[kind], process.memory_info().rss >> 20)
                except psutil.NoSuchProcess:
                    continue

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    try:
        yield found
    finally:
        done.set()
        looker.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=4)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nightly-") as place:
        log = Path(place, "log")
        count = generate(log, wanted.records, wanted.groups, partitions=wanted.partitions)
        flags = {"input.paths": [str(log)], "spark.master": "local[2]", "nightly.report": Path(place, "report.html")}
        chosen = settings.load(environment={}, flags=flags)
        tables = Tables(session.get_or_create(chosen.spark), str(Path(place, "tables")))
        with peaks() as found:
            start = time.monotonic()
            steps = nightly_run.run(tables, chosen, nightly_run.NullListener()).steps
            seconds = time.monotonic() - start
    print(
        json.dumps(
            {
                "records": count,
                "seconds": round(seconds, 1),
                "records_a_second": round(count / seconds),
                **{f"{kind}_mib": size for kind, size in found.items()},
                "steps": {step.step: {"seconds": step.seconds, **step.counts, "error": step.error} for step in steps},
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
