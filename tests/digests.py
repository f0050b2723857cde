"""Digests of what tables hold after three nights, and of what commands answer: to compare engines, and two releases.

    python -m tests.digests FOLDER LOGS... [--engine spark] [--only-tables] > digests.jsonl

fills tables below FOLDER with the logs (folders of log partitions), and prints a line for each table and each answer.
``tests/data/table_digests.json`` keeps the digests of tables, which ``test_table_digests.py`` compares.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs import nightly_run, settings
from jobs.tables import session
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from tests.commands import run_command
from tests.jobs.conftest import SMALL
from tests.jobs.null_listener import NullListener

NIGHTS: Final = 3
STEPS: Final = ["ingest", "decode", "replay", "offsets", "findings", "trend"]
OF_RUN: Final = {
    *("run_id", "revised_by", "night", "found_in", "changed_in", "version"),
    *("started_at", "finished_at", "seconds", "ended_ms"),
}
"""Columns that say which run wrote a row, and when."""
OF_MACHINE: Final = {"leases", "nightly_steps", "dumped_files", "arrived", "group_pages"}
"""Tables about runs, about the files of this machine, or that only nights without Spark keep."""

ENGINES: Final = ("alone", "here", "spark", "connect")
"""This process without Spark; a local session of which this process takes over what it can; the same, of which it takes
over nothing; a session through Spark Connect."""

Digests = dict[str, str]


def fill(tables: Tables, logs: Path, dumps: Path) -> None:
    """Three nights of the logs of a folder: each brings a third of the batches of each segment's log partition."""
    for night in range(1, NIGHTS + 1):
        for log in sorted(path for path in logs.iterdir() if path.is_dir()):
            _grow(log, dumps / log.name, night)
        chosen = settings.load(flags={"input.paths": [str(dumps)], "nightly.steps": STEPS, "cluster": "c"})
        outcome = nightly_run.run(tables, chosen, NullListener())
        assert [step.error for step in outcome.steps if step.error] == []


def _grow(log: Path, dump: Path, night: int) -> None:
    """Write the first ``night`` of three parts of a log partition, cut between batches."""
    segments = {path: _batches(path.read_bytes()) for path in sorted(log.glob("*.log"))}
    left = sum(map(len, segments.values())) * night // NIGHTS
    for path, batches in segments.items():
        if left > 0 or not any(batches):
            dump.mkdir(parents=True, exist_ok=True)
            (dump / path.name).write_bytes(b"".join(batches[:left]))
        left -= len(batches)


def _batches(data: bytes) -> list[bytes]:
    """The batches of a segment: 8 bytes of offset, 4 of length, and as many bytes as the length says."""
    found, at = [], 0
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12])
        found.append(data[at:end])
        at = end
    return found


def of_tables(location: str, dumps: Path) -> Digests:
    """A digest of the sorted rows of each table; paths of files as below ``dumps``."""
    found = {}
    for name in CATALOG:
        if name in OF_MACHINE or not DeltaTable.is_deltatable(f"{location}/{name}"):
            continue
        rows = pa.table(DeltaTable(f"{location}/{name}").to_pyarrow_table()).to_pylist()
        lines = [json.dumps(_plain(row), sort_keys=True, default=_hex).replace(str(dumps), "") for row in rows]
        found[f"table {name}"] = f"{len(lines)} {_digest(sorted(lines))}"
    return found


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in OF_RUN}


def _hex(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def of_answers(where: list[str], groups: list[str], topics: list[str]) -> Digests:
    """A digest of what each command prints as JSON about these groups and topics, from files or tables."""
    found = {}
    for words in _questions(groups, topics):
        result = run_command("--json", *words, *where)
        found[" ".join(words)] = f"{result.exit_code} {_digest([_steady(result.stdout)])}"
    return found


def _steady(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if "version" not in line.split(":")[0])


def _questions(groups: list[str], topics: list[str]) -> Iterator[list[str]]:
    yield from (["groups"], ["rebalances"], ["audit"], ["findings"], ["metrics"], ["describe", "--all"])
    for group in groups:
        yield from ([command, group] for command in ("history", "explain", "offsets", "commits", "describe"))
        yield ["describe", group, "--at-offset", "0:100"]
    yield from (["owners", topic, "--history"] for topic in topics)


def names_of(where: list[str]) -> tuple[list[str], list[str]]:
    """The groups, and the topics that they committed to."""
    printed = run_command("--json", "groups", *where).stdout.splitlines()
    groups = sorted({row.get("groupId") or row.get("group_id") or row.get("group") for row in map(json.loads, printed)})
    chosen = [group for group in groups if group][::5]
    lines = [run_command("--json", "offsets", group, *where).stdout for group in chosen]
    rows = [json.loads(line) for text in lines for line in text.splitlines()]
    return chosen, sorted({row["topic"] for row in rows if "topic" in row})[:5]


def of_nights(spark: SparkSession | None, home: Path, logs: Path) -> Digests:
    """The digests of tables below ``home`` after three nights of these logs; None: without Spark."""
    tables = Tables(spark, str(home / "tables"))
    fill(tables, logs, home / "dumps")
    return of_tables(tables.location, home / "dumps")


def of_files_and_tables(home: Path, logs: Path) -> Digests:
    """The digests of answers from these logs, and from the tables below ``home``."""
    from_files, from_tables = ["--log", str(logs)], ["--tables", str(home / "tables")]
    groups, topics = names_of(from_files)
    return {
        f"{name}: {words}": digest
        for name, where in (("files", from_files), ("tables", from_tables))
        for words, digest in of_answers(where, groups, topics).items()
    }


def new_session(engine: str) -> SparkSession | None:
    """The session of an engine, in a process that has none yet."""
    if engine == "alone":
        return None
    if engine == "spark":
        Tables.is_here = lambda self: False  # type: ignore[method-assign]
    place = {"spark.remote": "local[2]"} if engine == "connect" else {"spark.master": "local[2]"}
    return session.get_or_create(settings.load(flags=place | {"spark.conf": SMALL}).spark)


def main() -> None:
    """Print the digests of each folder of logs."""
    parser = argparse.ArgumentParser(prog="python -m tests.digests")
    parser.add_argument("folder", type=Path)
    parser.add_argument("logs", type=Path, nargs="+")
    parser.add_argument("--engine", choices=ENGINES, default="alone")
    parser.add_argument("--only-tables", action="store_true")
    chosen = parser.parse_args()
    spark = new_session(chosen.engine)
    for number, logs in enumerate(chosen.logs):
        home = chosen.folder / str(number)
        found = of_nights(spark, home, logs)
        if not chosen.only_tables:
            found |= of_files_and_tables(home, logs)
        for name, digest in found.items():
            print(json.dumps({"logs": "/".join(logs.parts[-2:]), "of": name, "digest": digest}), flush=True)


if __name__ == "__main__":
    main()
