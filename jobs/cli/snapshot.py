"""``snapshot``: topics and end offsets of a running cluster, as a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.errors import UsageError
from jobs import settings
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import ConfigOption
from jobs.cli.output import print_json
from jobs.sources import cluster_snapshot

SCHEME = "kafka://"


def snapshot_command(
    context: typer.Context,
    url: Annotated[
        str, typer.Argument(metavar="kafka://HOST:PORT", help="The cluster, by one or more of its brokers.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE.jsonl", help="The rows are added to this file of JSON lines.")
    ],
    config: ConfigOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Store the topics of a cluster with ids, racks and end offsets, and the configs of groups, as they are now.

    Take a snapshot before and after you copy a log, or every few minutes. The file gives the lag (--end-offsets), and
    the topics where the metadata log cannot be had (--topics). Section kafka of the settings says how to log in.
    """
    servers = url.removeprefix(SCHEME)
    if not url.startswith(SCHEME) or not servers or "/" in servers:
        raise UsageError(f"invalid URL {url!r}: use {SCHEME}HOST:PORT[,HOST:PORT]")
    console = Console.of(context)
    chosen = settings.load(config)
    with console.step(f"asking {servers}"):
        rows = cluster_snapshot.take(
            {**chosen.kafka, "bootstrap.servers": servers}, time.time_ns() // 1_000_000, console.warn
        )
    cluster_snapshot.append(out, rows)
    partitions = [row for row in rows if "topic" in row]
    topics, groups = len({row["topic"] for row in partitions}), len(rows) - len(partitions)
    if json:
        print_json({"file": str(out), "topics": topics, "partitions": len(partitions), "groups": groups})
    else:
        typer.echo(f"{out}: {topics} topics, {len(partitions)} partitions, configs of {groups} groups")
