"""Options that several commands share, and the parsing of their values."""

import difflib
import functools
import inspect
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final, get_type_hints

import typer

from coordinator_core.assignors.profiles import PROFILES
from coordinator_core.errors import UsageError
from coordinator_core.records import GROUP_LOG
from coordinator_core.whole_numbers import whole_number
from jobs.formatting import parse_time
from jobs.relations.moment import AsOf

_LOG = typer.Option(
    "--log",
    metavar="PATH",
    help="Segment file, folder or archive (tar, zip) with logs of the coordinator, the cluster metadata or the share "
    "state, or files of records that Kafka's tools or sinks printed; repeatable.",
)
LogsOption = Annotated[list[Path] | None, _LOG]
CopiedTopicOption = Annotated[
    str | None,
    typer.Option(
        "--copied-topic",
        metavar="TOPIC",
        help=f"Topic that is a copy of {GROUP_LOG}, as MirrorMaker makes it (source.{GROUP_LOG}): its segments are "
        "read as those of that log.",
    ),
]
TopicsOption = Annotated[
    Path | None,
    typer.Option(
        "--topics",
        metavar="FILE.jsonl",
        help="Snapshots of the cluster (command snapshot): its topics, where the logs lack the metadata log.",
    ),
]
BrokerLogOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--broker-log",
        metavar="PATH",
        help="Application logs of brokers (server.log): file, folder or pattern, also rotated or "
        "compressed; repeatable.",
    ),
]
BrokerZoneOption = Annotated[
    str | None,
    typer.Option(
        "--broker-log-zone",
        metavar="ZONE",
        help="Time zone of the lines in --broker-log, as Europe/Berlin or +02:00, if the log does not show it.",
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option("--tables", metavar="PLACE", help="Folder or catalog schema of the tables to read, instead of --log."),
]
KeepOption = Annotated[
    Path | None,
    typer.Option(
        "--keep",
        metavar="PLACE",
        help="Folder that keeps the logs of --log as tables: the next question with both reads only what is new.",
    ),
]
EndsOption = Annotated[
    Path | None,
    typer.Option(
        "--end-offsets",
        metavar="FILE",
        help="End offsets of the topics, to compute lag: JSON lines or Parquet with the columns topic, partition, "
        "timestamp_ms, end_offset, or what kafka-get-offsets or kafka-consumer-groups --describe printed, of the time "
        "at which the file was written.",
    ),
]
ConfigOption = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings file (YAML).")]
ClusterOption = Annotated[str | None, typer.Option(metavar="NAME", help="Cluster name.")]
TablesOption = Annotated[
    str | None, typer.Option("--tables", metavar="PLACE", help="Folder or catalog schema of the tables.")
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help=f"Release of the brokers, for the recomputation of targets: {', '.join(sorted(PROFILES))}. Without it, "
        "what the log shows of the brokers.",
    ),
]
RemoteOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark Connect URL, or local[N] to start a local Spark Connect server."),
]
GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="Group id.")]
GroupOption = Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Limit to this group.")]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Limit to this time and later: ISO 8601 or ms.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Limit to this time and earlier: ISO 8601 or ms.")
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="TIME", help="State at this time: ISO 8601 (UTC unless it has a zone) or ms since the epoch."
    ),
]
AtOffsetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--at-offset",
        metavar="PARTITION:OFFSET",
        help="State at this end offset of a partition of __consumer_offsets: only records below it count; repeatable.",
    ),
]


FAILED_GATE: Final = 3
"""Exit code if what a command looks for was found: a kind that ``--fail-on`` names, a critical check that failed, a
difference from a recorded behaviour.
"""


def finite_number(number: float) -> float:
    """Return the number: the callback of each option that takes one with a point.

    Raises:
        UsageError: it is infinite or none at all. Of what is compared to it nothing would ever count.
    """
    if not math.isfinite(number):
        raise UsageError(f"invalid number {number}: use a finite one")
    return number


def read_kinds(text: str, known: Sequence[str]) -> set[str]:
    """Return the kinds that a comma-separated ``--fail-on`` names.

    Raises:
        UsageError: a kind is unknown.
    """
    kinds = {kind.strip() for kind in text.split(",") if kind.strip()}
    for unknown in sorted(kinds.difference(known)):
        close = difflib.get_close_matches(unknown, known, 1)
        hint = f": did you mean {close[0]!r}?" if close else "."
        raise UsageError(f"invalid --fail-on {unknown!r}{hint} Use {', '.join(known)}")
    return kinds


SCHEME = "kafka://"


def cluster_servers(url: str) -> str:
    """Return the brokers that ``kafka://HOST:PORT[,HOST:PORT]`` names. Raise UsageError for another URL."""
    servers = url.removeprefix(SCHEME)
    if "@" in servers:
        raise UsageError(f"invalid URL: use {SCHEME}HOST:PORT; user and password are settings (kafka.sasl.username)")
    if not url.startswith(SCHEME) or not servers or "/" in servers:
        raise UsageError(f"invalid URL {url!r}: use {SCHEME}HOST:PORT[,HOST:PORT]")
    return servers


def parse_moment(at: str | None, at_offsets: list[str] | None) -> AsOf:
    """Return the moment that ``--at`` and ``--at-offset`` name. Raise UsageError if a value is invalid."""
    offsets: dict[int, int] = {}
    for text in at_offsets or []:
        partition, offset = map(whole_number, text.partition(":")[::2])
        if partition is None or offset is None:
            raise UsageError(f"invalid --at-offset {text!r}: use PARTITION:OFFSET, as in 3:971")
        if partition in offsets:
            raise UsageError(f"--at-offset names partition {partition} twice: give one offset for each partition")
        offsets[partition] = offset
    return AsOf(None if at is None else parse_time(at), offsets)


def with_options(shared: type[object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for commands whose first parameter is a ``shared``: its fields become options of the command.

    They come after the command's own options. ``shared`` is a dataclass whose fields are annotated as Typer parameters.
    """
    types = get_type_hints(shared, include_extras=True)
    shared_parameters = [
        parameter.replace(annotation=types[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(shared).parameters.items()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        parameters = [*(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own), *shared_parameters]

        @functools.wraps(command)
        def run(**values: object) -> None:
            command(shared(**{parameter.name: values.pop(parameter.name) for parameter in shared_parameters}), **values)

        # Typer reads options from the signature, so that the function gets one with the parameters of both.
        vars(run)["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate
