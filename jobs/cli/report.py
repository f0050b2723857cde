"""``report``: one HTML page, and the same as JSON beside it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.records import Family
from jobs.cli.console import Console
from jobs.cli.options import ClusterOption, LogsOption, StoreOption, logs_of
from jobs.local_audit import group_histories
from jobs.report.build import Source, build
from jobs.report.coverage import coverage
from jobs.report.render import check_name, write
from jobs.settings import load
from jobs.versions import software_version


def report_command(
    context: typer.Context,
    log: LogsOption = None,
    store: StoreOption = None,
    cluster: ClusterOption = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE.html", help="The page; the JSON goes beside it.")
    ] = Path("report.html"),
    config: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings (YAML).")] = None,
) -> None:
    """Write the report of these logs, or of those in the tables: one page, and its data as JSON beside it."""
    check_name(out)
    settings = load(config, flags={"cluster": cluster})
    console = Console.of(context)
    logs = logs_of(log, store, cluster)
    warnings: list[str] = []
    with console.step(f"reading {len(logs)} logs"):
        source = Source(
            cluster=settings.cluster,
            software=software_version(),
            made_ms=time.time_ns() // 1_000_000,
            coverage=list(coverage(logs)),
            topics_known=any(file.family is Family.METADATA for file in logs),
            warnings=warnings,
        )
        report = build(group_histories(logs, warnings.append, audit=settings.audit), settings.findings, source)
    for each in report.warnings:
        console.warn(each)
    write(report, out)
    typer.echo(out)
