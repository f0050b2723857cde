"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.errors import InputError, UsageError
from jobs import settings
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.queries.from_logs.groups import AsOf
from jobs.queries.interface import Answers, LogAnswers
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
ClusterOption = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the cluster that the logs are of.")]
TablesOption = Annotated[
    str | None, typer.Option("--tables", metavar="PLACE", help="Folder or catalog schema of the tables.")
]
RemoteOption = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark Connect: sc://host:port, or local[2] for one of our own.")
]
GroupOption = Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Of one group only.")]
SinceOption = Annotated[str | None, typer.Option("--since", metavar="TIME", help="From this time on: ISO 8601 or ms.")]
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


@dataclass(frozen=True, kw_only=True)
class AnswerSource:
    """Where an answering command finds its answers, and how it gives them."""

    context: typer.Context
    log: LogsOption = None
    store: StoreOption = None
    cluster: ClusterOption = None
    config: ConfigOption = None
    quiet: QuietOption = False
    json: JsonOption = False

    @property
    def console(self) -> Console:
        """The console of this run."""
        return Console.of(self.context)

    def answers(self) -> Answers:
        """Who answers: the logs of ``--log``, or the tables of ``--store``; Spark is needed for the tables only."""
        self.check()
        flags = {"tables": self.store, "cluster": self.cluster}
        if self.store is None:
            logs = find_logs(self.log or [], snapshots=True)
            return LogAnswers(logs, self.console.warn, settings.load(self.config, flags=flags))
        from jobs.api import CoordinatorAudit
        from jobs.cli.pipeline import open_tables
        from jobs.queries.from_tables.answers import StoredAnswers

        at, chosen = open_tables(self.console, self.config, flags)
        return StoredAnswers(CoordinatorAudit(at.spark, chosen.tables, chosen.cluster, chosen))

    def check(self) -> None:
        """Wrong usage unless there is one place to look at."""
        if bool(self.log) == (self.store is not None):
            raise typer.BadParameter("give either --log FOLDER or --store TABLES")


def refuse_unknown(answers: Answers, group_id: str | None) -> None:
    """Nothing was found of this group: raises InputError if that is because there is no such group."""
    if group_id is not None and answers.history(group_id) is None:
        raise InputError(f"no history of a group {group_id!r} in these logs")


def parse_time(text: str) -> int:
    """A time as milliseconds since the epoch; UsageError if it is none."""
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time: give ISO 8601, as in 2026-11-21T03:12:00Z, or milliseconds") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_moment(at: str | None, at_offsets: list[str] | None) -> AsOf:
    """The moment that ``--at`` and ``--at-offset`` name; UsageError if they cannot be read."""
    offsets: dict[int, int] = {}
    for text in at_offsets or []:
        partition, colon, offset = text.partition(":")
        if not (colon and partition.isdigit() and offset.isdigit()):
            raise UsageError(f"{text!r} is no PARTITION:OFFSET, as in 3:971")
        if int(partition) in offsets:
            raise UsageError(f"--at-offset names partition {partition} twice")
        offsets[int(partition)] = int(offset)
    return AsOf(None if at is None else parse_time(at), offsets)
