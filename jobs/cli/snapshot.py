"""``snapshot``: topics and end offsets of a running cluster, as a file."""

import time
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.cluster.snapshot_settings import ResourceKind
from jobs import settings
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import ConfigOption, cluster_servers
from jobs.cli.output import print_json
from jobs.sources import cluster_snapshot, snapshot_files


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
    """Store the topics of a cluster with ids, racks and end offsets, configs about groups, and levels of features.

    Take a snapshot before and after you copy a log, or every few minutes. The file gives the lag (--end-offsets). With
    --topics it gives the topics where the metadata log cannot be had, and shows the release of the brokers. Section
    kafka of the settings says how to log in.
    """
    servers = cluster_servers(url)
    console = Console.of(context)
    chosen = settings.load(config)
    with console.step(f"asking {servers}"):
        rows = cluster_snapshot.take(
            {**chosen.kafka, "bootstrap.servers": servers}, time.time_ns() // 1_000_000, console.warn
        )
    snapshot_files.append(out, rows)
    partitions = [row for row in rows if "topic" in row]
    of_type = defaultdict(list)
    for row in rows:
        of_type[row.get("resource_type")].append(row)
    (features,) = [row["configs"] for row in of_type[ResourceKind.FINALIZED_FEATURES]]
    counts = {
        "topics": len({row["topic"] for row in partitions}),
        "partitions": len(partitions),
        "groups": len(of_type[ResourceKind.GROUP]),
        "brokers": len(of_type[ResourceKind.SUPPORTED_FEATURES]),
    }
    if json:
        print_json({"file": str(out), **counts, "features": features})
        return
    levels = ", ".join(f"{name} {level}" for name, level in sorted((features or {}).items())) or "unknown"
    typer.echo(
        f"{out}: {counts['topics']} topics, {counts['partitions']} partitions, configs of {counts['groups']} groups, "
        f"{counts['brokers']} brokers; features: {levels}"
    )
