"""One run of everything, from where the last one ended: dumps in, decoded, replayed, judged, checked and reported.

Each step does what is not done yet and does it exactly once, whatever killed the run before at whatever moment; so a
run after a kill is the same run. Only one at a time works on the tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.errors import InputError, UsageError
from jobs.checks import suites
from jobs.checks.suites import Result
from jobs.errors import one_line
from jobs.pipeline import decode, findings, ingest, maintenance, offsets, replay, runs, seen_files
from jobs.report.render import check_name, write
from jobs.report.stored import stored_report
from jobs.settings import Settings
from jobs.sources.dump import LIVE_SCHEME, DumpFormat, Kafka, open_dump
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from jobs.tables.lease import WRITER, held
from jobs.tables.nightly import NIGHTLY_STEPS
from jobs.versions import software_version


class Listener(Protocol):
    """Who is told what goes on, as the command line's console is; ``logged`` goes with everything it is told."""

    logged: dict[str, Any]

    def note(self, message: str, **facts: Any) -> None:
        """Something worth knowing."""

    def warn(self, message: str, **facts: Any) -> None:
        """Something that was set aside."""

    def step(self, what: str) -> AbstractContextManager[None]:
        """What goes on within."""


class NullListener:
    """Does not listen."""

    def __init__(self) -> None:
        self.logged: dict[str, Any] = {}

    def note(self, message: str, **facts: Any) -> None:
        """Is not heard."""

    warn = note

    def step(self, what: str) -> AbstractContextManager[None]:
        """Is not seen."""
        return nullcontext()


@dataclass(slots=True)
class NightlyRun:
    """One run: what it works on, and what it found so far."""

    tables: Tables
    settings: Settings
    started_at: datetime
    checked: list[Result] = field(default_factory=list)


class Step(NamedTuple):
    """What to do, returning counts, or None if it is not due; and what to call it while it goes on."""

    about: str
    work: Callable[[NightlyRun], dict[str, int] | None]


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


class StepOutcome(NamedTuple):
    """The steps of a run, and the results of its checks."""

    steps: list[StepRun]
    checked: list[Result]


def run(tables: Tables, settings: Settings, listener: Listener) -> StepOutcome:
    """Run the steps that the settings name.

    Raises:
        BusyError: another run works on these tables.
        LeaseLostError: this run was silent for too long, and another one took over.
        CoordinatorAuditError: a step failed; what is done is kept, and the next run goes on there.
    """
    wanted = _wanted(settings.nightly.steps)
    if settings.nightly.report is not None:
        check_name(settings.nightly.report)
    started_at = datetime.now(UTC)
    night, identity = NightlyRun(tables, settings, started_at), runs.new_run_id()
    listener.logged["night"] = identity
    ran: list[StepRun] = []
    with held(tables, WRITER, timedelta(minutes=settings.nightly.lease_minutes)) as (lease, before):
        if before is not None:
            listener.warn(f"the run before, {before}, did not end; this one completes its work")
        try:
            for number, name in enumerate(wanted, 1):
                lease.check()
                ran.append(_ran(night, identity, number, name, listener))
                if ran[-1].error is not None:
                    break
        finally:
            _write(tables, ran, listener)
    return StepOutcome(ran, night.checked)


def _wanted(names: Iterable[str]) -> list[str]:
    chosen = set(names)
    if unknown := chosen - set(STEPS):
        raise UsageError(f"nightly.steps: no step {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    return [name for name in STEPS if name in chosen]


def _ran(night: NightlyRun, identity: str, number: int, name: str, listener: Listener) -> StepRun:
    step, started_at, begin = STEPS[name], datetime.now(UTC), time.monotonic()
    counts: dict[str, int] | None = {}
    ended, failure = "done", None
    with listener.step(step.about):
        try:
            counts = step.work(night)
        except Exception as error:
            ended, failure = "failed", error
    seconds = round(time.monotonic() - begin, 3)
    ended = "skipped" if counts is None else ended
    listener.note(
        f"{name} {ended} in {seconds:.1f} s{_said(counts or {})}", step=name, seconds=seconds, **(counts or {})
    )
    said = None if failure is None else one_line(failure)
    return StepRun(identity, number, name, ended, started_at, seconds, counts or {}, said, software_version())


def _said(counts: Mapping[str, int]) -> str:
    return "".join(f", {name.replace('_', ' ')} {count}" for name, count in counts.items())


def _write(tables: Tables, ran: list[StepRun], listener: Listener) -> None:
    if not ran:
        return
    try:
        tables.create(NIGHTLY_STEPS)
        rows = tables.spark.createDataFrame(ran, NIGHTLY_STEPS.schema)
        tables.append(NIGHTLY_STEPS, rows, ran[0].night)
    except Exception as error:
        if ran[-1].error is None:
            raise
        # What stopped the step, a full disk say, stops this as well; the step's own error is the one to tell.
        listener.warn(f"{NIGHTLY_STEPS.name} does not know of this run: {one_line(error)}")


# --- steps -----------------------------------------------------------------------------------------------------------


def _ingest(night: NightlyRun) -> dict[str, int]:
    chosen = night.settings.input
    if not chosen.paths:
        raise InputError("nothing to take in: name dumps, or set input.paths")
    shape = DumpFormat(chosen.format) if chosen.format else None
    changed = seen_files.changes(night.tables, night.settings.cluster, chosen.paths, shape)
    is_live = any(path.startswith(LIVE_SCHEME) for path in changed.paths)
    since = ingest.next_offsets(night.tables, night.settings.cluster) if is_live else {}
    kafka = Kafka(night.settings.kafka, since=since)
    dumps = open_dump(night.tables.spark, changed.paths, shape=shape, topic=chosen.topic, kafka=kafka)
    rows = ingest.run(night.tables, dumps, night.settings.cluster)
    if changed.files:
        seen_files.remember(night.tables, night.settings.cluster, changed.files)
    counts = {name: sum(row[name] or 0 for row in rows) for name in ("records", "control", "missing_offsets")}
    return {"files": len(changed.files), **counts}


def _decode(night: NightlyRun) -> dict[str, int]:
    rows = decode.run(night.tables)
    return {name: sum(row[name] or 0 for row in rows) for name in ("records", "decoded", "quarantined", "control")}


def _replay(night: NightlyRun) -> dict[str, int]:
    done = replay.run(night.tables, night.settings.audit)
    return {"groups": sum(each.groups for each in done), "rows": sum(sum(each.rows.values()) for each in done)}


def _offsets(night: NightlyRun) -> dict[str, int]:
    return {"offsets": offsets.run(night.tables)}


def _findings(night: NightlyRun) -> dict[str, int]:
    found = findings.run(night.tables, night.settings.findings)
    return {"findings": sum(found.values())}


def _checks(night: NightlyRun) -> dict[str, int]:
    night.checked = suites.run(night.tables, night.settings.checks, night.started_at)
    failed = sum(result.passed is False for result in night.checked)
    return {"checks": len(night.checked), "failed": failed}


def _report(night: NightlyRun) -> dict[str, int] | None:
    out = night.settings.nightly.report
    if out is None:
        return None
    made = stored_report(night.tables, night.settings)
    write(made, out)
    return {"groups": len(made.groups), "findings": made.findings_seen}


def _maintain(night: NightlyRun) -> dict[str, int] | None:
    """Due so many days after the last time, or, if there was none, after the first run."""
    every = night.settings.maintenance.every_days
    if every is None:
        return None
    due = night.started_at - timedelta(days=every)
    if night.tables.exists(NIGHTLY_STEPS):
        ran = night.tables.read(NIGHTLY_STEPS)
        last = F.max(F.when((F.col("step") == "maintenance") & (F.col("ended") == "done"), F.col("started_at")))
        (row,) = ran.agg(F.coalesce(last, F.min("started_at")).alias("at")).collect()
        since = night.started_at if row.at is None else row.at.astimezone(UTC)
    else:
        since = night.started_at
    if since > due:
        return None
    return maintenance.run(night.tables, CATALOG.values(), night.settings.maintenance, night.started_at)


STEPS: Final = {
    "ingest": Step("taking in the dumps", _ingest),
    "decode": Step("decoding", _decode),
    "replay": Step("replaying", _replay),
    "offsets": Step("keeping the committed offsets", _offsets),
    "findings": Step("looking for findings", _findings),
    "checks": Step("checking", _checks),
    "report": Step("writing the report", _report),
    "maintenance": Step("maintaining the tables", _maintain),
}
"""In the order in which they run."""
