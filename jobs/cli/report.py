"""``report``: one HTML page, and its data as JSON."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.audit.folds.two_logs import combined
from coordinator_core.errors import UsageError
from coordinator_core.history.knowledge import Knowledge
from coordinator_core.records import Family
from jobs.cli.answer_source import AnswerSource
from jobs.cli.options import EndsOption, SinceOption, UntilOption, with_options
from jobs.cli.output import print_written
from jobs.formatting import parse_time
from jobs.installation import software_version
from jobs.queries.from_logs.commits import lag_from_logs
from jobs.queries.from_logs.given import require_log_of_groups
from jobs.queries.from_logs.history import group_histories
from jobs.report.build import ReportHeader as Origin
from jobs.report.build import build
from jobs.report.coverage import coverage
from jobs.report.data import LagLine, Report
from jobs.report.lag_lines import lag_lines
from jobs.report.render import write
from jobs.report.report_files import check_name
from jobs.settings import Settings
from jobs.sources.bounded_warnings import each_once
from jobs.sources.end_offsets import EndOffsets, all_ends, newest_ends
from jobs.sources.files import LogFile


@with_options(AnswerSource)
def report_command(
    source: AnswerSource,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE.html", help="File name of the page; the JSON is written next to it."),
    ] = Path("report.html"),
    ends: EndsOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """Write the report about these logs, or about the tables: one HTML page, and its data as JSON next to it."""
    check_name(out)
    source = source.checked()
    since_ms, until_ms = (None if time is None else parse_time(time) for time in (since, until))
    if source.tables is None:
        logs = source.logs()
        require_log_of_groups(logs)
        made = report_of_logs(source, logs, source.settings(), ends, since_ms, until_ms)
    elif ends is not None:
        raise UsageError("--end-offsets needs --log: for tables, give the end offsets to `replay --end-offsets`")
    else:
        made = _of_tables(source, since_ms, until_ms)
    for warning in made.warnings:
        source.console.warn(warning)
    write(made, out)
    print_written("report", out, as_json=source.json)


def report_of_logs(
    source: AnswerSource,
    logs: list[LogFile],
    settings: Settings,
    ends: Path | None,
    since_ms: int | None,
    until_ms: int | None,
    noted: Callable[[Iterator[GroupHistory]], Iterator[GroupHistory]] = iter,
) -> Report:
    """Return the report about log files; ``noted`` sees each history on its way."""
    warnings: list[str] = []
    warn = each_once(warnings.append)
    lines = source.broker_logs().read(logs, warn)
    listed = source.listed_topics(logs)
    if listed is None:
        listed = lines.topics()
    with source.console.step(f"reading {counted(len(logs), 'log')}"):
        covered = list(coverage(logs))
        there = {(log.topic, log.partition) for log in covered}
        origin = Origin(
            cluster=settings.cluster,
            software=software_version(),
            made_ms=time.time_ns() // 1_000_000,
            coverage=covered,
            topics_known=listed is not None or any(file.family is Family.METADATA for file in logs),
            warnings=warnings,
            ends={} if ends is None else newest_ends(ends),
            lag_of=None if ends is None else partial(_lag_of, logs, all_ends(ends)),
            since_ms=since_ms,
            until_ms=until_ms,
            empty=[place for log in logs if (place := (log.topic, log.partition)) not in there and log.topic],
        )
        # What the logs lack is known when all histories are read: findings about the cluster, made last, ask for it.
        known: list[Knowledge] = []
        read = group_histories(logs, warn, None, settings.audit, listed, lines, known.append, over_time=True)
        return build(
            noted(combined(read)), settings.findings, origin, lambda since_ms: known[-1].shows_all_since(since_ms)
        )


def _lag_of(logs: Sequence[LogFile], ends: EndOffsets, group_id: str, partition: int) -> tuple[LagLine, ...]:
    """Return the lag of a group over time, from its partition of the log. What cannot be read was warned of before."""
    own = [log for log in logs if log.family is not Family.GROUP or log.partition in (partition, -1)]
    return lag_lines(point._asdict() for point in lag_from_logs(own, lambda _: None, group_id, ends))


def _of_tables(source: AnswerSource, since_ms: int | None, until_ms: int | None) -> Report:
    from jobs.report.stored import stored_report

    at, chosen = source.stored()
    with source.console.step("reading the tables"):
        return stored_report(at, chosen, since_ms, until_ms)
