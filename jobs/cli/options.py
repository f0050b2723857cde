"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.errors import InputError
from jobs.local import Moment

LogOption = Annotated[
    list[Path],
    typer.Option(
        "--log",
        metavar="PATH",
        help="Segment file or folder of the coordinator log, the cluster metadata or the share state; repeatable.",
    ),
]
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
