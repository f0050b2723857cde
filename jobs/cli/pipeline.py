"""``ingest``, ``decode``, ``replay`` and ``tables``: the Spark jobs that fill the tables, and a list of the tables."""

import re
from collections.abc import Mapping
from typing import Annotated

import typer

from coordinator_core.errors import InputError
from coordinator_core.records import LOG_TOPICS, Family
from jobs.cli.console import Console
from jobs.cli.options import BrokerLogOption, BrokerZoneOption, ClusterOption, CopiedTopicOption, with_options
from jobs.cli.output import Line, print_lines
from jobs.cli.stored_source import open_reader, warn_of_unfinished
from jobs.cli.table_options import TableOptions
from jobs.pipeline import beside_logs, broker_logs, decode, findings, ingest, lag_history, replay, snapshots
from jobs.pipeline import offsets as committed
from jobs.pipeline.runs import RunRow, new_run_id
from jobs.secret_values import without_credentials
from jobs.sources.dump import DumpFormat, Kafka, open_dump
from jobs.sources.files import log_name, with_copy
from jobs.sources.log_settings import note_beside
from jobs.sources.spark_end_offsets import ends_in_spark
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from jobs.tables.reader import TableReader, sql_name

OFFSET_RANGE = re.compile(r"(?P<partition>\d+):(?P<first>\d*)-(?P<end>\d*)")

INGESTED = ("first_offset", "last_offset", "records", "control")
GAPS = ("compacted_offsets", "unknown_offsets", "missing_offsets", "damaged_offsets")
DECODED = ("records", "decoded", "quarantined", "control")


@with_options(TableOptions)
def ingest_command(
    options: TableOptions,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Segments, archives of them, what Kafka's tools print, Parquet, Delta or JSON lines; folders that "
            "contain them; or kafka://HOST:PORT/TOPIC.",
        ),
    ],
    cluster: ClusterOption = None,
    dump_format: Annotated[
        DumpFormat | None,
        typer.Option(
            "--format", metavar="|".join(DumpFormat), help="Input format; detected from file names by default."
        ),
    ] = None,
    topic: Annotated[str, typer.Option(metavar="TOPIC", help="Topic to assume for records without one.")] = LOG_TOPICS[
        Family.GROUP
    ],
    copied_topic: CopiedTopicOption = None,
    broker_log: BrokerLogOption = None,
    broker_log_zone: BrokerZoneOption = None,
    offsets: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARTITION:FROM-TO",
            help="Offsets to read from a live broker; TO is excluded; FROM or TO may be omitted.",
        ),
    ] = None,
) -> None:
    """Ingest dumped coordinator logs into the tables, each record once, decoded on the way.

    Files of the command snapshot go into the tables end_offsets and snapshot_settings. Of a cluster that is read from
    kafka://, a snapshot is taken before and after, unless the setting input.snapshots is false. Lines of brokers'
    application logs go into the table broker_events.
    """
    console = options.console
    ranges = dict(_offset_range(text) for text in offsets or [])
    flags: dict[str, object] = {
        "cluster": cluster,
        "input.paths": paths,
        "input.copied_topic": copied_topic,
        "input.broker_logs": [str(path) for path in broker_log or ()] or None,
        "input.broker_log_zone": broker_log_zone,
    }
    beside = note_beside(paths, console.note)
    with options.writing(begin=True, beside=beside, **flags) as (tables, chosen):
        with console.step("taking in what is beside the logs"):
            # It takes out of the paths what is no log: only what is left is opened as dumps.
            lines, taken, paths = beside_logs.take(tables, chosen.input, chosen.cluster, console.warn, dump_format)
        if lines is not None:
            console.note(f"broker logs: {lines} lines of the coordinator", lines=lines)
        if taken is not None:
            console.note(
                f"snapshots: {taken.snapshots} new, with {taken.end_offsets} partitions and {taken.settings} settings",
                **taken._asdict(),
            )
            if not paths:
                return
        live = paths if chosen.input.snapshots else []

        def take() -> list[RunRow]:
            with console.step("opening the dumps"):
                kafka = Kafka(chosen.kafka, ranges)
                dumps = open_dump(
                    tables.session,
                    paths,
                    dump_format=dump_format,
                    topic=topic,
                    kafka=kafka,
                    warn=console.warn,
                    topics=with_copy(chosen.input.copied_topic),
                )
            with console.step("ingesting the dumps"):
                return ingest.run(tables, dumps, chosen.cluster)

        with snapshots.around(tables, live, chosen.kafka, chosen.cluster, console.warn) as snapped:
            rows = ingest.listed_again(take)
            damaged = _damaged(tables, rows)
        if snapped.count:
            console.note(f"snapshots of the cluster: {snapped.count} taken", snapshots=snapped.count)
    _print_rows(console, "ingested", rows, INGESTED + GAPS)
    for row in rows:
        if row.missing_offsets:
            console.warn(f"{_log(row)}: {row.missing_offsets} offsets are missing")
    ingested = sum(row.records for row in rows)
    if damaged is not None:
        count = damaged["number"]
        damage = f"{count} damaged lines or byte ranges, the first in {damaged['source']}: {damaged['error']}"
        # Damaged lines count as rows: where there is nothing else, the path has no log at all.
        if count == ingested:
            raise InputError(f"no record was ingested: {damage}")
        console.warn(f"put into quarantine: {damage}")


def _damaged(tables: Tables, rows: list[RunRow]) -> Mapping[str, object] | None:
    """Return ``source`` and ``error`` of the first damaged row that these runs ingested, and their ``number``."""
    damaged = tables.engine().rows(
        "SELECT source, error, count(*) OVER () AS number FROM $log_records "
        "WHERE run_id IN :runs AND kind = 'damaged' ORDER BY source, place LIMIT 1",
        runs=sorted({row.run_id for row in rows}),
    )
    return next(damaged, None)


def _offset_range(text: str) -> tuple[int, tuple[int | None, int | None]]:
    parts = OFFSET_RANGE.fullmatch(text)
    if parts is None:
        raise typer.BadParameter(f"invalid --offsets {text!r}: use PARTITION:FROM-TO, as in 3:100-200")
    first, end = (int(bound) if bound else None for bound in parts.group("first", "end"))
    return int(parts["partition"]), (first, end)


@with_options(TableOptions)
def decode_command(options: TableOptions) -> None:
    """Complete ingested records: add what was learned of earlier ones, check the counts, sum up commits."""
    console = options.console
    with options.writing() as (tables, _), console.step("completing the decoded records"):
        rows = decode.run(tables)
    _print_rows(console, "decoded", rows, DECODED)
    for row in rows:
        if row.quarantined:
            console.warn(f"{_log(row)}: {row.quarantined} rows in quarantine")


@with_options(TableOptions)
def replay_command(
    options: TableOptions,
    cluster: ClusterOption = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Replay all records again, not only new ones.")] = False,
    ends: Annotated[
        str | None,
        typer.Option(
            "--end-offsets", metavar="PATH", help="End offsets to compute the lag in group_offsets: JSON or Parquet."
        ),
    ] = None,
) -> None:
    """Replay the decoded records that are not replayed yet: history, violations, verdicts, findings, offsets."""
    console = options.console
    with options.writing(cluster=cluster) as (tables, chosen):
        with console.step("replaying"):
            summaries = replay.run(tables, chosen.audit, rebuild=rebuild)
            broker_logs.settle(tables, chosen.cluster)
        with console.step("storing the committed offsets"):
            committed.run(tables, None if ends is None else ends_in_spark(tables.spark, ends, chosen.cluster))
            lag_history.run(tables)
        # At last: findings look at the history, and at offsets and lag.
        with console.step("computing findings"):
            by_kind = findings.run(tables, chosen.findings, new_run_id())
    print_lines([_summary_line(summary, console) for summary in summaries], as_json=console.json, title="replayed")
    console.note(f"findings: {sum(by_kind.values())}", **by_kind)
    for summary in summaries:
        if summary.unplaced:
            console.warn(f"{summary.cluster}: {summary.unplaced} group records without an offset are not replayed")


def _summary_line(summary: replay.ReplaySummary, console: Console) -> Line:
    if console.json:
        return summary._asdict()
    counts = {"groups": summary.groups, "rebuilt": summary.rebuilt, "without offset": summary.unplaced}
    return {"cluster": summary.cluster, **counts, **summary.rows}


@with_options(TableOptions)
def tables_command(options: TableOptions) -> None:
    """List the tables and their row counts."""
    console = options.console
    tables = open_reader(console, options.config, options.flags)
    warn_of_unfinished(console, tables)
    lines = [
        {
            "table": sql_name(without_credentials(tables.location), name),
            "rows": _row_count(tables, name),
            "about": table.about,
        }
        for name, table in CATALOG.items()
        if tables.exists(name)
    ]
    if not lines:
        raise InputError(f"{tables.location} has no tables of coordinator-audit")
    print_lines(lines, as_json=console.json, title=f"tables at {tables.location}")


def _row_count(tables: TableReader, name: str) -> int:
    (row,) = tables.rows(f"SELECT count(*) AS number FROM ${name}")
    return int(row["number"])


def _print_rows(console: Console, title: str, rows: list[RunRow], columns: tuple[str, ...]) -> None:
    lines = [{"log": _log(row), **{name: getattr(row, name) for name in columns}} for row in rows if row.records]
    print_lines(sorted(lines, key=lambda line: line["log"]), as_json=console.json, title=title)


def _log(row: RunRow) -> str:
    """Return the name of the log partition; "unknown" if the dump does not contain it."""
    if row.log_topic is None:
        return "unknown"
    return row.log_topic if row.log_partition is None else log_name(row.log_topic, row.log_partition)
