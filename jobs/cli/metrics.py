"""``metrics``: what the log says about groups, for Prometheus."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.audit.offsets.lag import LagPoint
from coordinator_core.errors import InputError
from coordinator_core.groups.proven_state import GroupThen
from jobs.cli.answer_source import AnswerSource
from jobs.cli.gaps import warn_of_missing
from jobs.cli.option_groups import with_options
from jobs.cli.options import EndsOption
from jobs.formatting import visible
from jobs.metrics.families import GroupFacts, MetricNames
from jobs.queries.interface import Answers, AsOf
from jobs.sources.end_offsets import all_ends, newest_ends
from jobs.whole_files import write_whole


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
    """Print metrics about all groups: state, members, rebalances, verdicts, findings, committed offsets and lag.

    With the names of Burrow also its status of each partition and group, at the newest snapshot of the end offsets.
    """
    from prometheus_client import exposition
    from prometheus_client.openmetrics import exposition as openmetrics

    answers = source.answers()
    then = answers.at(AsOf())
    groups = list(then.groups())
    warn_of_missing(source.console, then)
    facts = GroupFacts(
        answers.cluster_name,
        names or [MetricNames.LAG_EXPORTER],
        groups,
        answers.newest_ends(None) if ends is None else newest_ends(ends),
        *answers.histories(),
        lag=_newest_lag(answers, groups, ends) if MetricNames.BURROW in (names or ()) else (),
        is_whole=not then.knowledge().reasons(),
    )
    write = openmetrics.generate_latest if text_format is MetricFormat.OPENMETRICS else exposition.generate_latest
    text = write(facts.registry()).decode("utf-8")
    if out is None:
        print("\n".join(map(visible, text.split("\n"))) if sys.stdout.isatty() else text, end="")
        return
    write_whole(out, text)  # a collector may read at any time


def _newest_lag(answers: Answers, groups: Sequence[GroupThen], ends: Path | None) -> list[LagPoint]:
    """Return the newest point of each group and partition; without end offsets there is none."""
    given = None if ends is None else all_ends(ends)
    newest: dict[tuple[str, str, int], LagPoint] = {}
    for then in groups:
        if not then.offsets.committed:
            continue
        try:
            points = answers.lag(then.group.group_id, given)
        except InputError:  # the source has no end offsets
            return []
        newest.update({(each.group_id, each.topic, each.partition): each for each in points})
    return list(newest.values())
