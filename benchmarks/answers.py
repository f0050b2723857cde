"""How long a question to tables takes, as a process of its own: ``python -m benchmarks.answers [--records N]``.

The tables are those of the demo (``--tables``; default: a nightly run on the samples fills new ones). With
``--records``, so many commit records of 2,000 more groups in 40 more log partitions are added to a copy of them;
delta-rs writes these rows, in the layout that decoding gives them. Prints a JSON line for each question: seconds of the
clock and of the processor, and the ratio of the processor's to those of the same question to the samples' log files.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake

from coordinator_core.records import LOG_TOPICS, Family, RecordType
from jobs.pipeline.commits.fold import INPUT, PassOver, What, summarizer
from jobs.sources.files import FIRST_SEGMENT

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "data" / "samples" / "logs"
GROUP = "A-coop-a2d7"
QUESTIONS = {
    "help": ["--help"],
    **{
        name: [name, GROUP]
        for name in (
            "describe",
            "offsets",
            "history",
            "explain",
            "audit --group",
            "findings --group",
            "rebalances --group",
        )
    },
    "groups": ["groups"],
    "describe --all": ["describe", "--all"],
}
PARTITIONS, GROUPS, TOPICS, FIRST_PARTITION = 40, 2_000, 100, 1_000
BEGIN_MS = 1_700_000_000_000
ROWS_IN_A_FILE = 1_000_000
TEXTS = ("group_id", "topic", "metadata", "topic_id", "outcome", "state")
"""The columns of the pass over commits that have text; the others have numbers."""


class Took(NamedTuple):
    """Seconds of one process."""

    clock: float
    processor: float


def ask(*arguments: str) -> Took:
    """Run a command once to warm the caches of files, and measure the second run."""
    for _ in range(2):
        used, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-m", "jobs", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        clock, now = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(clock, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)


def fill(tables: Path) -> None:
    night = ["nightly", SAMPLES, "--config", "conf/small.yaml", "--tables", tables, "--cluster", "sample", "--quiet"]
    subprocess.run([sys.executable, "-m", "jobs", *map(str, night)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def enlarge(tables: Path, records: int) -> None:
    """Append commit records, a file for each part of a log partition, and what a night derives from them."""
    each = records // PARTITIONS
    for number in range(PARTITIONS):
        commits = commit_rows(number, each)
        append(tables, "log_records", log_rows(number, each))
        append(tables, "offset_commits", commits)
        append(tables, "log_ranges", ranges(number, each))
        for batch in summaries(commits):
            append(tables, "commit_summaries", dict(zip(batch.schema.names, batch.columns, strict=True)))


def append(tables: Path, name: str, rows: dict[str, pa.Array]) -> None:
    place = DeltaTable(tables / name)
    schema = pa.schema(place.schema())
    count = len(rows["cluster"])
    columns = [rows.get(field.name, pa.nulls(count, field.type)).cast(field.type) for field in schema]
    properties = WriterProperties(compression="SNAPPY", max_row_group_size=ROWS_IN_A_FILE)
    table = pa.Table.from_arrays(columns, schema=schema)
    write_deltalake(place, table, mode="append", writer_properties=properties)


def summaries(commits: dict[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    """Return the rows of ``commit_summaries``, as the pass over the commits of a night makes them."""
    count = len(commits["cluster"])
    known = {**commits, "what": same(What.COMMIT.value, count), "run": same(0, count)}
    rows = pa.table(
        {name: known.get(name, pa.nulls(count, pa.string() if name in TEXTS else pa.int64())) for name in INPUT}
    )
    rows = rows.sort_by("log_offset")
    return summarizer(PassOver("sample", LOG_TOPICS[Family.GROUP], ["large"]))(rows.to_batches())


def ranges(number: int, each: int) -> dict[str, pa.Array]:
    """Return the row of ``log_ranges``: the whole log partition."""
    return {
        **placed(number, np.zeros(1, np.int64)),
        "first_offset": pa.array([0]),
        "last_offset": pa.array([each - 1]),
        "leader_epoch": same(0, 1),
        "records": pa.array([each]),
        "first_ms": pa.array([BEGIN_MS]),
        "last_ms": pa.array([BEGIN_MS + each - 1]),
        "has_start": same(True, 1),
    }


def log_rows(number: int, each: int) -> dict[str, pa.Array]:
    offset = np.arange(each, dtype=np.int64)
    return {
        **placed(number, offset),
        "kind": same("record", each),
        "record_type": same(RecordType.OFFSET_COMMIT.value, each),
        "batch_base": pa.array(offset),
        "batch_last": pa.array(offset),
        "leader_epoch": same(0, each),
        "is_transactional": same(False, each),
        "source": same(f"/dump/{LOG_TOPICS[Family.GROUP]}-{FIRST_PARTITION + number}/{FIRST_SEGMENT}", each),
    }


def commit_rows(number: int, each: int) -> dict[str, pa.Array]:
    chance = np.random.default_rng(number)
    of_group = GROUPS // PARTITIONS
    group, topic = np.sort(chance.integers(0, of_group, each)), chance.integers(0, TOPICS, each)
    order = np.argsort(group, kind="stable")
    offset = chance.permutation(each)[order].astype(np.int64)
    names = pa.array([f"load-{number + PARTITIONS * index}" for index in range(of_group)])
    return {
        **placed(number, offset),
        "group_id": names.take(pa.array(group)),
        "topic": pa.array([f"topic-{index}" for index in range(TOPICS)]).take(pa.array(topic)),
        "partition": same(0, each),
        "is_tombstone": same(False, each),
        "producer_id": same(-1, each),
        "committed_offset": pa.array(offset),
        "commit_timestamp": pa.array(BEGIN_MS + offset),
        "metadata": same("", each),
    }


def placed(number: int, offset: Any) -> dict[str, pa.Array]:
    each = len(offset)
    return {
        "cluster": same("sample", each),
        "run_id": same("large", each),
        "log_topic": same(LOG_TOPICS[Family.GROUP], each),
        "log_partition": same(FIRST_PARTITION + number, each),
        "log_offset": pa.array(offset),
        "timestamp_ms": pa.array(BEGIN_MS + offset),
    }


def same(value: str | int | bool, count: int) -> pa.Array:
    return pa.repeat(value, count)


def measured(tables: Path, questions: list[str]) -> Iterator[dict[str, Any]]:
    for name, command in QUESTIONS.items():
        if questions and name not in questions:
            continue
        words = [word for part in command for word in part.split()]
        if name == "help":
            yield {"question": name, "clock_s": round(ask(*words).clock, 2)}
            continue
        of_tables = ask(*words, "--store", str(tables))
        of_files = ask(*words, "--log", str(SAMPLES))
        ratio = of_tables.processor / of_files.processor
        yield {
            "question": name,
            "clock_s": round(of_tables.clock, 2),
            "processor_s": round(of_tables.processor, 2),
            "files_clock_s": round(of_files.clock, 2),
            "ratio_to_files": round(ratio, 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--records", type=int, default=0)
    parser.add_argument("questions", nargs="*", help=f"default: all of {', '.join(QUESTIONS)}")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tables = Path(folder) / "tables"
        if wanted.tables is None:
            fill(tables)
        else:
            shutil.copytree(wanted.tables, tables)
        if wanted.records:
            enlarge(tables, wanted.records)
        for line in measured(tables, wanted.questions):
            print(json.dumps({"records": wanted.records, **line}), flush=True)


if __name__ == "__main__":
    main()
