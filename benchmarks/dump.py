"""``dump`` against kafka-dump-log on the same segment: ``python -m benchmarks.dump --segment FILE --kafka-libs DIR``.

Both write to a file. The figures are the ratios of records a second and of processor time, medians of several
alternating runs; only the second means anything on a machine that has other work. ``--kafka-libs`` (or KAFKA_LIBS) is
the folder with the jars of a Kafka distribution; Java must be on the path.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.generate import generate

OURS = (sys.executable, "-c", "from jobs.cli.app import main; main()", "dump", "--quiet")


class CommandTime(NamedTuple):
    """Seconds of the clock, and of all processors."""

    wall: float
    cpu: float


def taken(command: list[str], out: Path) -> CommandTime:
    began, before = time.perf_counter(), os.times()
    with out.open("wb") as stream:
        subprocess.run(command, stdout=stream, stderr=subprocess.DEVNULL, check=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return CommandTime(time.perf_counter() - began, cpu)


def theirs(libs: str) -> list[str]:
    tool = "org.apache.kafka.tools.DumpLogSegments"
    return ["java", "-Xmx1g", "-cp", f"{libs}/*", tool, "--offsets-decoder", "--files"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segment", type=Path, help="a segment of __consumer_offsets; generated unless given")
    parser.add_argument("--commits", type=int, default=2_000_000, help="size of the generated segment")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kafka-libs", default=os.environ.get("KAFKA_LIBS"), help="folder with Kafka's jars")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        if given.segment is None:
            generate(Path(folder), given.commits, 2000)
            given.segment = min(Path(folder).rglob("*.log"))
        tools = {"dump": list(OURS)} | ({"kafka-dump-log": theirs(given.kafka_libs)} if given.kafka_libs else {})
        times: dict[str, list[CommandTime]] = {name: [] for name in tools}
        for _ in range(given.runs):
            for name, command in tools.items():
                times[name].append(taken([*command, str(given.segment)], out))
                if name == "dump":
                    with out.open("rb") as stream:
                        records = sum(1 for _ in stream)
    medians = {name: CommandTime(*map(statistics.median, zip(*runs, strict=True))) for name, runs in times.items()}
    for name, median in medians.items():
        rate = records / median.wall / 1e6
        print(f"{name:16}{rate:8.2f} million records/s{median.wall:8.1f} s{median.cpu:8.1f} s of processors")
    if "kafka-dump-log" in medians:
        ours, kafka = medians["dump"], medians["kafka-dump-log"]
        print(f"{'ratio':16}{kafka.wall / ours.wall:8.1f}{'processors':>27}{kafka.cpu / ours.cpu:8.1f}")


if __name__ == "__main__":
    main()
