"""The nightly run: ingest, decode, replay, audit, check and report everything that is new since the last run.

Each step does what has not been done yet, exactly once. A run may be killed at any time: the next run completes its
work, with the same result. Only one run at a time writes the tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.errors import InputError, UsageError
from jobs.checks import project, suites
from jobs.checks.validation import Result
from jobs.installation import how_to_add, software_version
from jobs.pipeline import (
    broker_logs,
    decode,
    findings,
    ingest,
    lag_history,
    maintenance,
    nights,
    offsets,
    replay,
    runs,
    seen_files,
    snapshots,
)
from jobs.pipeline.catalog_nights import working_copy
from jobs.pipeline.findings import no_cycle_search
from jobs.pipeline.group_pages import INPUTS, Page
from jobs.pipeline.nights import StepTimes, last_night
from jobs.report.data import FORMAT
from jobs.report.report_files import check_name, head_of
from jobs.settings import Settings
from jobs.sources.bounded_warnings import each_once
from jobs.sources.broker_logs import find_broker_logs, parse_zone
from jobs.sources.dump import LIVE_SCHEME, DumpFormat, Kafka, format_of, live_servers, open_dump, require_there
from jobs.sources.files import with_copy
from jobs.sources.snapshot_files import is_snapshot
from jobs.tables.catalog import CATALOG
from jobs.tables.damage import DamagedTableError
from jobs.tables.delta import Tables
from jobs.tables.lease import Lease
from jobs.tables.log import RUNS
from jobs.tables.nightly import DUMPED_FILES, NIGHTLY_STEPS
from jobs.tables.one_writer import check_damage, writing
from jobs.tables.reader import absolute
from jobs.tables.results import FINDINGS, GROUP_OFFSETS
from jobs.tables.snapshots import LAG_HISTORY
from jobs.tables.spark_errors import one_line
from jobs.tables.table import few
from jobs.tables.versions import changed_ms

if TYPE_CHECKING:
    from coordinator_core.audit.folds.group_history import GroupHistory
    from jobs.tables.working_copy import WorkingCopy


MAINTENANCE: Final = "maintenance"
PUBLISH: Final = "publish"
"""The step of nights that work on a copy of the tables of a catalog. No setting names it: they cannot do without."""


class Listener(Protocol):
    """Receives the messages of a run, as the console of the command line does.

    ``logged``: facts that the listener adds to every message of a structured log.
    """

    logged: dict[str, Any]

    def note(self, message: str, **facts: object) -> None:
        """Receive a message; ``facts`` say the same for programs."""

    def warn(self, message: str, **facts: object) -> None:
        """Receive a warning."""

    def step(self, activity: str, **progress: object) -> AbstractContextManager[None]:
        """Return a context that lasts as long as an activity; ``progress``: see ``Console.step``."""

    @property
    def shows_progress(self) -> bool:
        """Whether anything is done with the progress of a step."""


@dataclass(slots=True)
class NightlyRun:
    """One run: its tables and settings, its id, who receives its warnings, and the results of its checks so far."""

    tables: Tables
    settings: Settings
    started_at: datetime
    night: str
    warn: Callable[[str], None]
    check_results: list[Result] = field(default_factory=list)
    records: int | None = None
    """How many records this night has taken in; None: it does not know yet."""
    copy: WorkingCopy | None = None
    """What has ``tables`` where a night of a catalog works on a copy of its tables, and publishes it."""


class Step(NamedTuple):
    """A step: what it does, in words, and its function, which returns counts, or None if the step was not due."""

    activity: str
    execute: Callable[[NightlyRun], dict[str, int] | None]


class StepRun(NamedTuple):
    """A row of ``nightly_steps``."""

    night: str
    number: int
    step: str
    ended: str
    started_at: datetime
    seconds: float
    counts: dict[str, int]
    error: str | None
    version: str


class NightlyOutcome(NamedTuple):
    """The steps of a run, and the results of its checks."""

    steps: list[StepRun]
    check_results: list[Result]


def run(tables: Tables, settings: Settings, listener: Listener) -> NightlyOutcome:
    """Run the steps that the settings name, up to the first that fails. Its error is in the last StepRun.

    Raises:
        UsageError: the settings name an unknown step, or a report that is not an HTML file.
        DamagedTableError: a table is damaged; no table was changed.
        BusyError: another run is writing these tables.
        LeaseLostError: this run did not renew its lease in time, and another run took it.
    """
    step_names = _checked_steps(settings)
    check_damage(tables)
    started_at = datetime.now(UTC)
    run_id = runs.new_run_id()
    listener.logged["night"] = run_id
    length = timedelta(minutes=settings.nightly.lease_minutes)
    with writing(tables, length) as (lease, dead_holder), working_copy(tables, settings, listener.note) as copy:
        if dead_holder is not None:
            listener.warn(f"the previous run, {dead_holder}, did not finish; this run completes its work")
        home = tables if copy is None else copy.tables
        steps = _Steps(NightlyRun(home, settings, started_at, run_id, listener.warn, copy=copy), lease, listener)
        if copy is None:
            try:
                steps.take(step_names)
            finally:
                _write(tables, steps.ended, listener)
        else:
            _publish(steps, step_names, tables, copy)
    return NightlyOutcome(steps.ended, steps.nightly.check_results)


class _Steps:
    """Runs the steps of a night, up to the first that fails, and keeps how each ended."""

    def __init__(self, nightly: NightlyRun, lease: Lease, listener: Listener) -> None:
        self.nightly = nightly
        self.listener = listener
        self.ended: list[StepRun] = []
        self._lease = lease
        self._times = last_night(nightly.tables.engine()) if listener.shows_progress else StepTimes()

    def take(self, names: Sequence[str]) -> bool:
        """Run these steps. Return whether all were done."""
        nightly, before = self.nightly, len(self.ended)
        for number, name in enumerate(names):
            self._lease.check()
            progress = {
                "step": name,
                "number": before + number + 1,
                "steps": before + len(names),
                "records": nightly.records,
                "seconds_left": self._times.left(names[number:], nightly.records),
            }
            step = _run_step(nightly, nightly.night, before + number + 1, name, self.listener, progress)
            self.ended.append(step)
            if step.error is not None:
                return False
            if name == "ingest" and nightly.records:
                _prepare_checks(nightly)
        return True


def _publish(steps: _Steps, names: Sequence[str], tables: Tables, copy: WorkingCopy) -> None:
    """Run the steps on a copy of the tables of a catalog, and publish it, as far as they came.

    A night that is killed, or cannot publish, has changed nothing in the catalog: then it names no step as done there.
    """
    are_done = steps.take([name for name in names if name != MAINTENANCE])
    if not steps.take([PUBLISH]):
        _write(tables, steps.ended[-1:], steps.listener)
        return
    if are_done and MAINTENANCE in names:
        steps.take([MAINTENANCE])
    for home in (tables, copy.tables):
        _write(home, steps.ended, steps.listener)
    copy.follow([NIGHTLY_STEPS.name])
    copy.keep()


def check_settings(settings: Settings) -> None:
    """Check what a run can fail by before Spark is started.

    Raises:
        UsageError: the settings name an unknown step, or a report that is not an HTML file.
        InputError: there is nothing to ingest, a path does not exist, it is not a dump, or the project of the checks is
            not one for these tables.
    """
    steps = _checked_steps(settings)
    if "ingest" in steps:
        _check_input(settings)
    if "checks" in steps and settings.checks.project is not None:
        project.check_location(project.folder_of(settings.checks.project), absolute(settings.tables))


def _checked_steps(settings: Settings) -> list[str]:
    if settings.nightly.report is not None:
        check_name(settings.nightly.report)
    return _in_order(settings.nightly.steps)


def _check_input(settings: Settings) -> None:
    chosen = settings.input
    find_broker_logs(chosen.broker_logs)
    if chosen.broker_log_zone is not None:
        parse_zone(chosen.broker_log_zone)
    if not chosen.paths:
        raise InputError("nothing to ingest: name dumps on the command line, or set input.paths")
    for path in chosen.dumps:
        if chosen.format is None:
            format_of(path)
        else:
            require_there(path)


def _in_order(names: Iterable[str]) -> list[str]:
    chosen = set(names)
    if unknown := chosen - set(STEPS):
        raise UsageError(f"nightly.steps: unknown step {', '.join(sorted(unknown))}: use {', '.join(STEPS)}")
    return [name for name in STEPS if name in chosen]


def _run_step(
    nightly: NightlyRun, run_id: str, number: int, name: str, listener: Listener, progress: dict[str, object]
) -> StepRun:
    step, started_at, begin = ALL_STEPS[name], datetime.now(UTC), time.monotonic()
    counts: dict[str, int] | None = {}
    ended, failure = "done", None
    with listener.step(step.activity, **progress):
        try:
            counts = step.execute(nightly)
        except Exception as error:
            ended, failure = "failed", _damage(nightly.tables) or error
    seconds = round(time.monotonic() - begin, 3)
    ended = "skipped" if counts is None else ended
    count_text = "".join(f", {noun.replace('_', ' ')} {count}" for noun, count in (counts or {}).items())
    listener.note(f"{name} {ended} in {seconds:.1f} s{count_text}", step=name, seconds=seconds, **(counts or {}))
    return StepRun(
        night=run_id,
        number=number,
        step=name,
        ended=ended,
        started_at=started_at,
        seconds=seconds,
        counts=counts or {},
        error=None if failure is None else one_line(failure),
        version=software_version(),
    )


def _damage(tables: Tables) -> DamagedTableError | None:
    """Return the damage that a table has now. Spark's errors do not say what to do about it."""
    try:
        check_damage(tables)
    except DamagedTableError as error:
        return error
    return None


def _write(tables: Tables, steps: list[StepRun], listener: Listener) -> None:
    if not steps:
        return
    try:
        tables.create(NIGHTLY_STEPS)
        rows = few(NIGHTLY_STEPS, (step._asdict() | {"counts": [*step.counts.items()]} for step in steps))
        tables.append(NIGHTLY_STEPS, rows, steps[0].night)
    except Exception as error:
        if steps[-1].error is None:
            raise
        # What made the step fail, such as a full disk, may be the cause here too. The error of the step is reported.
        listener.warn(f"this run could not be recorded in {NIGHTLY_STEPS.name}: {one_line(error)}")


# --- steps -----------------------------------------------------------------------------------------------------------


def _ingest(nightly: NightlyRun) -> dict[str, int]:
    return ingest.listed_again(partial(_taken_in, nightly))


def _taken_in(nightly: NightlyRun) -> dict[str, int]:
    chosen = nightly.settings.input
    _check_input(nightly.settings)
    dump_format = DumpFormat(chosen.format) if chosen.format else None
    topics, warn = with_copy(chosen.copied_topic), each_once(nightly.warn)
    changed = seen_files.changes(nightly.tables, nightly.settings.cluster, chosen.dumps, dump_format, topics, warn)
    of_cluster = [path for path in changed.paths if dump_format is None and is_snapshot(path)]
    taken = snapshots.take(nightly.tables, of_cluster, nightly.settings.cluster) if of_cluster else None
    paths = [path for path in changed.paths if path not in of_cluster]
    if any(file.path not in of_cluster for file in changed.files):
        _prepare_checks(nightly)  # what is new in them changes what is judged
    is_live = any(path.startswith(LIVE_SCHEME) for path in paths)
    since = ingest.next_offsets(nightly.tables, nightly.settings.cluster) if is_live else {}
    kafka = Kafka(nightly.settings.kafka, since=since)
    live = paths if chosen.snapshots else []
    settings = nightly.settings
    with snapshots.around(nightly.tables, live, settings.kafka, settings.cluster, nightly.warn) as snapped:
        dumps = open_dump(
            nightly.tables.session,
            paths,
            dump_format=dump_format,
            topic=chosen.topic,
            topics=topics,
            kafka=kafka,
            warn=warn,
        )
        rows = ingest.run(nightly.tables, dumps, settings.cluster)
    # Behind the records: a run that is killed in between reads these files again, which adds nothing.
    if changed.files:
        seen_files.remember(nightly.tables, nightly.settings.cluster, changed.files)
    lines = _take_broker_logs(nightly)
    counts = {name: sum(getattr(row, name) or 0 for row in rows) for name in ("records", "control", "missing_offsets")}
    nightly.records = counts["records"]
    count = snapped.count + (0 if taken is None else taken.snapshots)
    more = {"snapshots": count} if live_servers(live) or taken else {}
    return {"files": len(changed.files), **counts, **more, **({} if lines is None else {"broker_lines": lines})}


def _prepare_checks(nightly: NightlyRun) -> None:
    if "checks" in nightly.settings.nightly.steps:
        suites.prepare(nightly.tables)


def _take_broker_logs(nightly: NightlyRun) -> int | None:
    """Take in the application logs of brokers that are new or have changed; None: none are named."""
    chosen = nightly.settings.input
    if not chosen.broker_logs:
        return None
    cluster = nightly.settings.cluster
    files = seen_files.changed(nightly.tables, cluster, find_broker_logs(chosen.broker_logs))
    zone = None if chosen.broker_log_zone is None else parse_zone(chosen.broker_log_zone)
    count = broker_logs.take(nightly.tables, [file.path for file in files], cluster, nightly.warn, zone)
    if files:
        seen_files.remember(nightly.tables, cluster, files)
    return count


def _decode(nightly: NightlyRun) -> dict[str, int]:
    rows = decode.run(nightly.tables)
    return {
        name: sum(getattr(row, name) or 0 for row in rows) for name in ("records", "decoded", "quarantined", "control")
    }


def _replay(nightly: NightlyRun) -> dict[str, int]:
    summaries = replay.run(nightly.tables, nightly.settings.audit)
    rows = sum(sum(summary.rows.values()) for summary in summaries)
    broker_logs.settle(nightly.tables, nightly.settings.cluster)
    return {"groups": sum(summary.groups for summary in summaries), "rows": rows}


def _offsets(nightly: NightlyRun) -> dict[str, int]:
    return {"offsets": offsets.run(nightly.tables), "lags": lag_history.run(nightly.tables)}


def _page_of(limits: Thresholds, history: GroupHistory) -> Page:
    """Return what the report has of a group."""
    from jobs.report.parts import page_of  # not at the top: in most nights nothing is made

    return page_of(history, limits)


def _findings(nightly: NightlyRun) -> dict[str, int]:
    limits, chosen = nightly.settings.findings, nightly.settings.nightly
    page = None if chosen.report is None or "report" not in chosen.steps else partial(_page_of, limits)
    by_kind = findings.run(nightly.tables, limits, nightly.night, page)
    return {"findings": sum(by_kind.values())}


def _checks(nightly: NightlyRun) -> dict[str, int] | None:
    if not suites.can_run():
        what = "the checks of tables of results were left out: only measures were judged"
        nightly.warn(f"{what}, as Great Expectations is not installed: {how_to_add('checks')}")
    nightly.check_results = suites.run(nightly.tables, nightly.settings, nightly.started_at, nightly.night)
    failed = sum(result.passed is False for result in nightly.check_results)
    return {"checks": len(nightly.check_results), "failed": failed}


def _trend(nightly: NightlyRun) -> dict[str, int]:
    return {"clusters": nights.count(nightly.tables, nightly.night)}


def _is_current(tables: Tables, settings: Settings, out: Path) -> bool:
    """Return whether the report in this file is what ``stored_report`` would return now.

    Thresholds are those of the findings in the tables.
    """
    data = out.with_suffix(".json")
    if not (out.is_file() and data.is_file()):
        return False
    made = head_of(data)
    same = (made.get("format"), made.get("software"), made.get("cluster"))
    if same != (FORMAT, software_version(), settings.cluster):
        return False
    # Later, and not at the same time: within a millisecond nothing tells which of the two was first.
    return bool(
        changed_ms(tables, (*INPUTS, FINDINGS, GROUP_OFFSETS, LAG_HISTORY, RUNS, DUMPED_FILES)) < made["made_ms"]
    )


def _report(nightly: NightlyRun) -> dict[str, int] | None:
    out = nightly.settings.nightly.report
    if out is None:
        return None
    # Findings know the thresholds that they were made with, and so the report does, too.
    knows = "findings" in nightly.settings.nightly.steps
    if knows and _is_current(nightly.tables, nightly.settings, out):
        return None
    from jobs.report.render import write  # not at the top: in most nights nothing is made
    from jobs.report.stored import kept_report, stored_report

    engine = nightly.tables.engine()
    with no_cycle_search():
        if knows and findings.has_pages(nightly.tables):
            report, texts = kept_report(engine, nightly.settings)
            write(report, out, texts)
        else:
            report = stored_report(engine, nightly.settings)
            write(report, out)
    return {"groups": len(report.groups), "findings": report.findings_seen}


def _published(nightly: NightlyRun) -> dict[str, int]:
    assert nightly.copy is not None
    return nightly.copy.publish()


def _maintain(nightly: NightlyRun) -> dict[str, int] | None:
    """Maintain the tables if ``every_days`` have passed since the last maintenance, or else since the first run."""
    every = nightly.settings.maintenance.every_days
    if every is None:
        return None
    due = nightly.started_at - timedelta(days=every)
    if nightly.tables.exists(NIGHTLY_STEPS):
        last = "max(CASE WHEN step = 'maintenance' AND ended = 'done' THEN started_at END)"
        steps = f"SELECT coalesce({last}, min(started_at)) AS since FROM $nightly_steps"
        (row,) = nightly.tables.engine().rows(steps)
        since = nightly.started_at if row["since"] is None else row["since"].astimezone(UTC)
    else:
        since = nightly.started_at
    if since > due:
        return None
    homes = [nightly.tables] if nightly.copy is None else [nightly.copy.there, nightly.tables]
    chosen = nightly.settings.maintenance
    *_, counts = (maintenance.run(home, CATALOG.values(), chosen, nightly.started_at) for home in homes)
    if nightly.copy is not None:
        nightly.copy.follow()
    return counts


STEPS: Final = {
    "ingest": Step("ingesting the dumps", _ingest),
    "decode": Step("completing the decoded records", _decode),
    "replay": Step("replaying", _replay),
    "offsets": Step("storing the committed offsets", _offsets),
    "findings": Step("computing findings", _findings),
    "trend": Step("counting what the night has found", _trend),
    "checks": Step("checking the tables", _checks),
    "report": Step("writing the report", _report),
    MAINTENANCE: Step("maintaining the tables", _maintain),
}
"""The steps that a setting names, in the order in which they run."""

ALL_STEPS: Final = STEPS | {PUBLISH: Step("publishing to the catalog", _published)}
