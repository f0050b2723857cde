"""``metrics``: what the log says about groups, for Prometheus."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from coordinator_core.audit.folds.tallies import tallies_of
from coordinator_core.audit.offsets.burrow import LagPoint
from coordinator_core.errors import InputError
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.history.rows import RebalanceRow
from jobs.cli.answer_source import AnswerSource
from jobs.cli.gaps import check_moment, lacks_deliveries, naming_moved, warn_of_missing
from jobs.cli.options import AtOption, EndsOption, parse_moment, with_options
from jobs.formatting import visible
from jobs.metrics.families import GroupFacts, MetricNames
from jobs.queries.interface import AllHistories, Answers
from jobs.sources.end_offsets import all_ends, newest_ends
from jobs.whole_files import write_whole


class MetricFormat(StrEnum):
    """Text formats of metrics."""

    PROMETHEUS = "prometheus"
    OPENMETRICS = "openmetrics"


NamesOption = Annotated[
    list[MetricNames] | None,
    typer.Option(
        "--names",
        metavar="|".join(MetricNames),
        help="Exporter whose metric names are used; repeatable; default: kafka-lag-exporter.",
    ),
]


@with_options(AnswerSource)
def metrics_command(
    source: AnswerSource,
    text_format: Annotated[
        MetricFormat, typer.Option("--format", metavar="|".join(MetricFormat), help="Text format of the metrics.")
    ] = MetricFormat.PROMETHEUS,
    names: NamesOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.prom", help="Write this file at once, for a textfile collector."),
    ] = None,
    at: AtOption = None,
    ends: EndsOption = None,
) -> None:
    """Print metrics about all groups: state, members, rebalances, verdicts, findings, committed offsets and lag.

    With the names of Burrow also its status of each partition and group, at the newest snapshot of the end offsets;
    with those of Kafka the counts of groups and rebalances that brokers have. With --at all of it as it was then,
    without findings, which are about the whole log.
    """
    from prometheus_client import exposition
    from prometheus_client.openmetrics import exposition as openmetrics

    answers = source.answers()
    moment = parse_moment(at, None)
    then = answers.at(moment)
    known = then.knowledge()
    groups = list(naming_moved(source.console, then.groups()))
    check_moment(source.console, then, moment)
    warn_of_missing(source.console, then, of_topics=True, of_offsets=True)
    deliveries = lacks_deliveries(then, groups)
    for reason in deliveries:
        source.console.warn(reason)
    newest = answers.newest_ends(moment.time_ms) if ends is None else newest_ends(ends, moment.time_ms)
    histories = _until(answers.histories(newest), moment.time_ms)
    facts = GroupFacts(
        answers.cluster_name,
        names or [MetricNames.LAG_EXPORTER],
        groups,
        newest,
        tallies_of(histories.rebalances, histories.verdicts, histories.violations),
        histories.findings,
        lag=_newest_lag(answers, groups, ends, moment.time_ms) if MetricNames.BURROW in (names or ()) else (),
        is_whole=not (known.reasons_with_topics() or known.about_history() or deliveries),
        moment_ms=then.span()[1] if moment.time_ms is None else moment.time_ms,
    )
    write = openmetrics.generate_latest if text_format is MetricFormat.OPENMETRICS else exposition.generate_latest
    text = write(facts.registry()).decode("utf-8")
    if out is None:
        print("\n".join(map(visible, text.split("\n"))) if sys.stdout.isatty() else text, end="")
        return
    write_whole(out, text)  # a collector may read at any time


def _until(known: AllHistories, moment_ms: int | None) -> AllHistories:
    """What had happened at a moment (None: all): a rebalance that ended later was open. Findings are left out."""
    if moment_ms is None:
        return known
    rebalances = [row for row in known.rebalances if row.at.timestamp_ms <= moment_ms]
    return AllHistories(
        [row if _was_over(row, moment_ms) else row._replace(**_open_at(row, moment_ms)) for row in rebalances],
        [row for row in known.verdicts if row.at.timestamp_ms <= moment_ms],
        [row for row in known.violations if row.at.timestamp_ms <= moment_ms],
        [],
    )


def _was_over(row: RebalanceRow, moment_ms: int) -> bool:
    return row.finished is None or row.finished.timestamp_ms <= moment_ms


def _open_at(row: RebalanceRow, moment_ms: int) -> dict[str, Any]:
    return {"outcome": "open", "is_open": True, "duration_min_ms": moment_ms - row.began_before_ms}


def _newest_lag(
    answers: Answers, groups: Sequence[GroupThen], ends: Path | None, moment_ms: int | None
) -> list[LagPoint]:
    """Return the newest point of each group and partition up to a moment; without end offsets there is none."""
    try:
        points = answers.lag(None, None if ends is None else all_ends(ends))
    except InputError:  # the source has no end offsets
        return []
    with_offsets = {then.group.group_id for then in groups if then.offsets.committed}
    newest: dict[tuple[str, str, int], LagPoint] = {}
    for point in points:  # in order of time
        if point.group_id in with_offsets and (moment_ms is None or point.timestamp_ms <= moment_ms):
            newest[point.group_id, point.topic, point.partition] = point
    return list(newest.values())
