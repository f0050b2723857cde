"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.errors import UsageError
from jobs.queries.interface import AsOf
from jobs.times import parse_time

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


MATCHED = 3
"""Exit code when something is of a kind that ``--fail-on`` names."""


def read_kinds(text: str, known: Sequence[str], *, every: str | None = None) -> set[str]:
    """Return the kinds that a comma-separated ``--fail-on`` names; ``every`` is the word for all of them.

    Raises UsageError for a kind that is not known.
    """
    kinds = {each.strip() for each in text.split(",") if each.strip()}
    if every in kinds:
        return set(known)
    for unknown in sorted(kinds.difference(known)):
        named = (*known, *([every] if every else []))
        close = difflib.get_close_matches(unknown, named, 1)
        hint = f": did you mean {close[0]!r}?" if close else "."
        raise UsageError(f"--fail-on knows no {unknown!r}{hint} Known: {', '.join(named)}")
    return kinds


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
