"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.errors import InputError
from jobs import settings
from jobs.answers import Answers, LogAnswers
from jobs.cli.console import Console
from jobs.local import Moment
from jobs.sources.files import find_logs

_LOG = typer.Option(
    "--log",
    metavar="PATH",
    help="Segment file or folder of the coordinator log, the cluster metadata or the share state; repeatable.",
)
LogsOption = Annotated[list[Path] | None, _LOG]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", "--tables", metavar="PLACE", help="The tables to read the logs from, instead of --log."),
]
EndsOption = Annotated[
    Path | None,
    typer.Option(
        "--end-offsets",
        metavar="FILE",
        help="End offsets of data partitions, for lag: JSON lines or Parquet with topic, partition, timestamp_ms, "
        "end_offset.",
    ),
]
ConfigOption = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings (YAML).")]
ClusterOption = Annotated[str | None, typer.Option(help="Name of the cluster whose logs are in the tables.")]
AtOption = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="As of this time: ISO 8601 (UTC unless it says) or ms.")
]
AtOffsetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--at-offset",
        metavar="PARTITION:OFFSET",
        help="As of this end offset of a partition of the coordinator log: records below it count; repeatable.",
    ),
]


def answers(
    context: typer.Context,
    log: list[Path] | None,
    store: str | None,
    cluster: str | None = None,
    config: Path | None = None,
) -> Answers:
    """Who answers: the logs of ``--log``, or the tables of ``--store``; Spark is needed for the tables only."""
    if bool(log) == (store is not None):
        raise typer.BadParameter("give either --log or --store")
    chosen = settings.load(config, flags={"tables": store, "cluster": cluster})
    if store is None:
        return LogAnswers(find_logs(log or [], snapshots=True), Console.of(context).warn, chosen)
    from jobs import session
    from jobs.api import CoordinatorAudit
    from jobs.stored_answers import StoredAnswers

    spark = session.get_or_create(chosen.spark)
    return StoredAnswers(CoordinatorAudit(spark, chosen.tables, chosen.cluster, chosen))


def parse_time(text: str) -> int:
    """A time as milliseconds since the epoch; InputError if it is none."""
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no time: give ISO 8601, as in 2026-11-21T03:12:00Z, or milliseconds") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_moment(at: str | None, at_offsets: list[str] | None) -> Moment:
    """The moment that ``--at`` and ``--at-offset`` name; InputError if they cannot be read."""
    offsets: dict[int, int] = {}
    for text in at_offsets or []:
        partition, colon, offset = text.partition(":")
        if not (colon and partition.isdigit() and offset.isdigit()):
            raise InputError(f"{text!r} is no PARTITION:OFFSET, as in 3:971")
        if int(partition) in offsets:
            raise InputError(f"--at-offset names partition {partition} twice")
        offsets[int(partition)] = int(offset)
    return Moment(None if at is None else parse_time(at), offsets)
