"""A large log through three nights: ``python -m benchmarks.nightly [--records N] [--groups N] [--log FOLDER]``.

The first night has all but the last hundredth of the log, the second nothing new, the third the last hundredth. Prints
JSON for each: seconds of the clock and of processors and counts of each step, records a second over all, and the peak
memory (resident, MiB) of this process (driver), of the largest JVM and of the largest Python worker. Then Spark copies
the rows of the log from Parquet to Delta, in the same session, and the first night is given as a multiple of that. The
log is generated: commits of consumer groups, and their rebalances. ``--log`` keeps it, and reads it if it is there.
"""

import argparse
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.generate import generate
from jobs import nightly_run, settings
from jobs.tables import session
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from tests.jobs.null_listener import NullListener

EVERY_S = 0.5
LATER = 0.01
ROWS_OF_THE_LOG = (LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS)


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """The largest resident sizes seen, in MiB: of this process (driver), of a Python worker, and of a JVM."""
    found = {"driver": 0, "java": 0, "python": 0}
    done, me = threading.Event(), psutil.Process()

    def look() -> None:
        while not done.wait(EVERY_S):
            found["driver"] = max(found["driver"], me.memory_info().rss >> 20)
            for process in me.children(recursive=True):
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


def processor_seconds() -> float:
    """The processor time of this process, of the JVM and of the Python workers, of those that have ended, too."""
    spent = 0.0
    for process in [(me := psutil.Process()), *me.children(recursive=True)]:
        try:
            spent += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return spent


class ProcessorTimes(NullListener):
    """Notes the processor time of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.spent: dict[str, float] = {}
        self._before = processor_seconds()

    def note(self, message: str, **facts: Any) -> None:
        """Note the time since the message before."""
        now = processor_seconds()
        if "step" in facts:
            self.spent[facts["step"]] = round(now - self._before, 1)
        self._before = now


def hold_back(log: Path, out: Path, share: float) -> None:
    """Move the last batches of each log partition, about this share of it, to a segment of its own in ``out``."""
    for folder in log.iterdir():
        files = sorted(folder.glob("*.log"))
        wanted = share * sum(file.stat().st_size for file in files)
        data, cut = files[-1].read_bytes(), 0
        while len(data) - cut > wanted and (end := cut + 12 + int.from_bytes(data[cut + 8 : cut + 12], "big")) < len(
            data
        ):
            cut = end
        held = out / folder.name / f"{int.from_bytes(data[cut : cut + 8], 'big'):020d}.log"
        held.parent.mkdir(parents=True)
        held.write_bytes(data[cut:])
        if cut:
            files[-1].write_bytes(data[:cut])
        else:
            files[-1].unlink()


def night(tables: Tables, chosen: settings.Settings) -> dict[str, Any]:
    """Run one night; return its figures.

    Raises:
        RuntimeError: a step failed: then the figures are of another night.
    """
    times, start, before = ProcessorTimes(), time.monotonic(), processor_seconds()
    steps = nightly_run.run(tables, chosen, times).steps
    seconds = time.monotonic() - start
    failed = [f"{step.step}: {step.error}" for step in steps if step.error is not None]
    if failed:
        raise RuntimeError("; ".join(failed))
    records = next(step.counts.get("records", 0) for step in steps)
    return {
        "records": records,
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor_seconds() - before, 1),
        "records_a_second": round(records / seconds),
        "steps": {
            step.step: {"seconds": step.seconds, "processor_seconds": times.spent[step.step], **step.counts}
            for step in steps
        },
    }


def make_log(place: Path, kept: Path | None, records: int, groups: int, partitions: int) -> tuple[Path, Path]:
    """Return the folders of the log and of what the third night adds, in a place; copied from ``kept`` if given."""
    made = place if kept is None else kept
    if not (made / "log").exists():
        generate(made / "log", records, groups, partitions=partitions)
        hold_back(made / "log", made / "later", LATER)
    if kept is not None:
        for name in ("log", "later"):
            shutil.copytree(kept / name, place / name)
    return place / "log", place / "later"


def copy_seconds(tables: Tables, home: Path) -> float:
    """Return the seconds in which Spark copies the Parquet files of the log's rows to new Delta tables."""
    spark, files = tables.spark, {table.name: tables.read(table).inputFiles() for table in ROWS_OF_THE_LOG}
    begin = time.monotonic()
    for name, parquet in files.items():
        spark.read.parquet(*parquet).write.format("delta").save(str(home / name))
    return round(time.monotonic() - begin, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--log", type=Path)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nightly-") as place:
        log, later = make_log(Path(place), wanted.log, wanted.records, wanted.groups, wanted.partitions)
        flags = {"input.paths": [str(log)], "spark.master": "local[2]", "nightly.report": Path(place, "report.html")}
        chosen = settings.load(environment={}, flags=flags)
        tables = Tables(session.get_or_create(chosen.spark), str(Path(place, "tables")))
        nights: dict[str, Any] = {}
        with peaks() as found:
            for name in ("first", "nothing new", "a hundredth new"):
                if name == "a hundredth new":
                    for file in later.rglob("*.log"):
                        shutil.move(file, log / file.parent.name)
                nights[name] = night(tables, chosen)
        copied = copy_seconds(tables, Path(place, "copy"))
        nights["copy"] = {"seconds": copied, "first night": round(nights["first"]["seconds"] / copied, 2)}
    print(json.dumps({**nights, **{f"{kind}_mib": size for kind, size in found.items()}}, indent=1))


if __name__ == "__main__":
    main()
