"""``ingest``, ``decode``, ``replay`` and ``tables``: the Spark jobs that fill the tables, and what is in them."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.errors import InputError
from coordinator_core.records import LOG_TOPICS, Family
from jobs.cli.console import Console
from jobs.cli.option_groups import with_options
from jobs.cli.options import ClusterOption
from jobs.cli.output import print_lines
from jobs.cli.table_options import TableOptions
from jobs.pipeline import decode, findings, ingest, replay
from jobs.pipeline import offsets as committed
from jobs.pipeline.lag import read_end_offsets
from jobs.sources.dump import DumpFormat, Kafka, open_dump
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS

OFFSET_RANGE = re.compile(r"(?P<partition>\d+):(?P<first>\d*)-(?P<end>\d*)")

INGESTED = ("first_offset", "last_offset", "records", "control")
GAPS = ("compacted_offsets", "unknown_offsets", "missing_offsets", "damaged_offsets")
DECODED = ("records", "decoded", "quarantined", "control")


@with_options(TableOptions)
def ingest_command(
    lake: TableOptions,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Segments, archives of them, Parquet, Delta or JSON lines, folders of those, or kafka://HOST:PORT/TOPIC.",
        ),
    ],
    cluster: ClusterOption = None,
    shape: Annotated[
        DumpFormat | None,
        typer.Option(
            "--format", metavar="|".join(DumpFormat), help="What the dumps are, when their names do not tell."
        ),
    ] = None,
    topic: Annotated[str, typer.Option(metavar="TOPIC", help="Topic of records that do not say theirs.")] = LOG_TOPICS[
        Family.GROUP
    ],
    offsets: Annotated[
        list[str] | None,
        typer.Option(metavar="PARTITION:FROM-TO", help="Of a live broker; TO is excluded, either may be left out."),
    ] = None,
) -> None:
    """Take dumped coordinator logs into the table log_records, each record once."""
    console = lake.console
    ranges = dict(_offset_range(text) for text in offsets or [])
    with lake.writing(begin=True, cluster=cluster) as (at, chosen):
        with console.step("looking at the dumps"):
            kafka = Kafka(chosen.kafka, ranges)
            dumps = open_dump(at.spark, paths, shape=shape, topic=topic, kafka=kafka)
        with console.step("taking them in"):
            rows = ingest.run(at, dumps, chosen.cluster)
            damaged = _damaged(at, rows)
    _print(console, "taken in", rows, INGESTED + GAPS)
    for row in rows:
        if row.missing_offsets:
            console.warn(f"{_log(row)}: {row.missing_offsets} offsets are missing")
    taken = sum(row.records for row in rows)
    if count := damaged["number"]:
        what = f"{count} damaged lines or stretches of bytes, the first in {damaged.source}: {damaged.error}"
        if count == taken:
            raise InputError(f"no record was ingested: {what}")
        console.warn(f"not records, and put in quarantine: {what}")


def _damaged(at: Tables, rows: list[Row]) -> Row:
    """What these runs ingested that is not a record: its ``number``, and ``source`` and ``error`` of the first one."""
    run_ids = {row.run_id for row in rows}
    first = F.min_by(F.struct("source", "error"), F.struct("source", "place"))
    found = at.read(LOG_RECORDS).where(F.col("run_id").isin(run_ids) & (F.col("kind") == "damaged"))
    return found.agg(F.count("*").alias("number"), first.alias("first")).select("number", "first.*").collect()[0]


def _offset_range(text: str) -> tuple[int, tuple[int | None, int | None]]:
    found = OFFSET_RANGE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"--offsets wants PARTITION:FROM-TO, not {text}")
    first, end = (int(bound) if bound else None for bound in found.group("first", "end"))
    return int(found["partition"]), (first, end)


@with_options(TableOptions)
def decode_command(
    lake: TableOptions,
) -> None:
    """Decode what was taken in and is not decoded yet."""
    console = lake.console
    with lake.writing() as (at, _), console.step("decoding"):
        rows = decode.run(at)
    _print(console, "decoded", rows, DECODED)
    for row in rows:
        if row.quarantined:
            console.warn(f"{_log(row)}: {row.quarantined} rows in quarantine")


@with_options(TableOptions)
def replay_command(
    lake: TableOptions,
    cluster: ClusterOption = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Replay everything anew, not only what is new.")] = False,
    ends: Annotated[
        str | None,
        typer.Option(
            "--end-offsets", metavar="PATH", help="End offsets for the lag in group_offsets: JSON or Parquet."
        ),
    ] = None,
) -> None:
    """Replay what was decoded and is not replayed yet: history, broken rules, verdicts, findings, offsets."""
    console = lake.console
    with lake.writing(cluster=cluster) as (at, chosen):
        with console.step("replaying"):
            replayed = replay.run(at, chosen.audit, rebuild=rebuild)
        with console.step("keeping the offsets"):
            committed.run(at, None if ends is None else read_end_offsets(at.spark, ends, chosen.cluster))
        with console.step("finding what to look at"):
            found = findings.run(at, chosen.findings)
    lines = [
        {"cluster": of.cluster, "groups": of.groups, "begun anew": of.rebuilt, "without offset": of.unplaced, **of.rows}
        for of in replayed
    ]
    print_lines(lines, as_json=console.json, title="replayed")
    console.note(f"findings: {sum(found.values())}", **found)
    for of in replayed:
        if of.unplaced:
            console.warn(f"{of.cluster}: {of.unplaced} group records without an offset are not replayed")


@with_options(TableOptions)
def tables_command(
    lake: TableOptions,
) -> None:
    """The tables, with their rows."""
    console = lake.console
    at, _ = lake.open()
    lines = [
        {"table": at.name(table), "rows": at.read(table).count(), "about": table.about}
        for table in CATALOG.values()
        if at.exists(table)
    ]
    if not lines:
        raise InputError(f"no tables of coordinator-audit at {at.location}")
    print_lines(lines, as_json=console.json, title=f"tables at {at.location}")


def _print(console: Console, title: str, rows: list[Row], columns: tuple[str, ...]) -> None:
    lines = [{"log": _log(row), **{name: row[name] for name in columns}} for row in rows if row.records]
    print_lines(sorted(lines, key=lambda line: line["log"]), as_json=console.json, title=title)


def _log(row: Row) -> str:
    """The log partition, or that a dump did not say it."""
    if row.log_topic is None:
        return "unknown"
    return row.log_topic if row.log_partition is None else f"{row.log_topic}-{row.log_partition}"
