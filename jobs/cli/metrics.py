"""``metrics``: what the log says about groups, for Prometheus."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.answer_source import AnswerSource
from jobs.cli.gaps import lists_all, warn_of_gaps
from jobs.cli.option_groups import with_options
from jobs.cli.options import EndsOption
from jobs.formatting import visible
from jobs.metrics.families import GroupFacts, MetricNames
from jobs.queries.interface import AsOf
from jobs.sources.end_offsets import newest_ends


class MetricFormat(StrEnum):
    """Text formats of metrics."""

    PROMETHEUS = "prometheus"
    OPENMETRICS = "openmetrics"


@with_options(AnswerSource)
def metrics_command(
    source: AnswerSource,
    text_format: Annotated[
        MetricFormat, typer.Option("--format", metavar="|".join(MetricFormat), help="Text format of the metrics.")
    ] = MetricFormat.PROMETHEUS,
    names: Annotated[
        list[MetricNames] | None,
        typer.Option(
            "--names",
            metavar="|".join(MetricNames),
            help="Whose names offsets, lag and members have; repeatable; default: kafka-lag-exporter.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.prom", help="Write this file at once, for a textfile collector."),
    ] = None,
    ends: EndsOption = None,
) -> None:
    """Print metrics about all groups: state, members, rebalances, verdicts, findings, committed offsets and lag."""
    from prometheus_client import exposition
    from prometheus_client.openmetrics import exposition as openmetrics

    answers = source.answers()
    then = answers.at(AsOf())
    groups = list(then.groups())
    if not lists_all(then):
        warn_of_gaps(source.console, then)
    facts = GroupFacts(
        answers.cluster_name,
        names or [MetricNames.LAG_EXPORTER],
        groups,
        answers.newest_ends(None) if ends is None else newest_ends(ends),
        *answers.histories(),
    )
    write = openmetrics.generate_latest if text_format is MetricFormat.OPENMETRICS else exposition.generate_latest
    text = write(facts.registry()).decode("utf-8")
    if out is None:
        print("\n".join(map(visible, text.split("\n"))) if sys.stdout.isatty() else text, end="")
        return
    # A collector may read at any time: the file appears whole, under its name, or not at all.
    unfinished = out.with_name(f"{out.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(out)
