"""A segment of 1 GB, read by one task of Spark: ``python -m benchmarks.large_segment``.

The figure is the largest resident size that a Python worker reached: the file is not split, so one reads all of it.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.generate import generate
from benchmarks.workers import Workers
from coordinator_core.records import GROUP_LOG
from jobs import settings
from jobs.sources.files import KNOWN_TOPICS
from jobs.sources.in_spark import rows_of
from jobs.sources.segments import SegmentsReader
from jobs.tables import session


def one_file(folder: Path) -> Path:
    """The segments of a partition on end: a log is one whatever its files."""
    first, *others = sorted(folder.rglob("*.log"))
    with first.open("ab") as whole:
        for segment in others:
            with segment.open("rb") as part:
                shutil.copyfileobj(part, whole)
            segment.unlink()
    return first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=12_000_000, help="size of the segment: 1.1 GB")
    given = parser.parse_args()
    spark = session.get_or_create(settings.load(flags={"spark.master": "local[2]"}).spark)
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), given.commits, 2000)
        segment = one_file(Path(folder))
        size = segment.stat().st_size
        workers = Workers()
        workers.start()
        source = SegmentsReader([str(segment)], KNOWN_TOPICS, GROUP_LOG, 2 * size)
        began = time.perf_counter()
        records = rows_of(spark, source).count()
        taken = time.perf_counter() - began
    print(f"{size / 1e6:.0f} MB, {records} records in {taken:.0f} s; largest Python worker: {workers.peak >> 20} MB")


if __name__ == "__main__":
    main()
