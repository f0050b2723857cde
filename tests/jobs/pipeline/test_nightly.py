"""Nightly: one run at a time, each step once, whatever ended the run before; clear words for what cannot be done."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from coordinator_core.audit.finding_rows import FindingKind
from coordinator_core.errors import InputError
from jobs import nightly_run, settings
from jobs.pipeline import ingest, maintenance
from jobs.sources import snapshot_files
from jobs.sources.dump import open_dump
from jobs.sources.files import Family, find_logs
from jobs.sources.topics import topic_history
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.format import FORMAT
from jobs.tables.history import HISTORY
from jobs.tables.lease import WRITER, BusyError, LeaseLostError, LeaseOwner, held
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, RUNS
from jobs.tables.nightly import LEASES, NIGHTLY_STEPS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import CHECK_RESULTS, FINDINGS, GROUP_OFFSETS
from jobs.tables.snapshots import LAG_HISTORY
from jobs.tables.spark_reader import spark_types
from jobs.tables.versions import versions
from tests.commands import rows_of_command, run_command
from tests.jobs.cli.test_snapshot import listed
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.filled_tables import TOPIC, content
from tests.jobs.null_listener import NullListener

pytestmark = pytest.mark.long
"""Each test runs whole jobs over the samples: too long for the quick tier."""

LOG = str(SAMPLE_LOGS / f"{TOPIC}-0")
HOUR = timedelta(hours=1)
COMPARED = (LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS, *HISTORY.values(), GROUP_OFFSETS, FINDINGS)


class Heard(list[str]):
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: dict[str, Any] = {}

    def note(self, message: str, **facts: Any) -> None:
        self.append(message)

    warn = note

    @contextmanager
    def step(self, what: str, **progress: Any) -> Iterator[None]:
        self.append(what)
        yield

    shows_progress = True


def chosen(**flags: Any) -> settings.Settings:
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return settings.load(environment={}, flags={"input.paths": [LOG], **dotted})


class Killed(BaseException):
    """What no step catches: the end of the process, as far as the tables can tell."""


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    made = Tables(spark, str(tmp_path_factory.mktemp("nightly")))
    nightly_run.run(made, chosen(), Heard())
    return made


def test_a_second_night_finds_nothing_new_and_both_are_in_the_ledger(undisturbed: Tables) -> None:
    before = {table.name: content(undisturbed, table, "default") for table in (*COMPARED, RUNS)}
    written = versions(undisturbed, [*COMPARED, COMMIT_SUMMARIES, LOG_RANGES, RUNS])
    done = nightly_run.run(undisturbed, chosen(), Heard())
    assert {table.name: content(undisturbed, table, "default") for table in (*COMPARED, RUNS)} == before
    assert versions(undisturbed, [*COMPARED, COMMIT_SUMMARIES, LOG_RANGES, RUNS]) == written
    assert [step.step for step in done.steps] == list(nightly_run.STEPS)
    assert {step.step for step in done.steps if step.ended != "done"} == {"report", "maintenance"}
    assert {step.ended for step in done.steps} == {"done", "skipped"}
    assert (done.steps[0].counts["files"], done.steps[0].counts["records"]) == (0, 0)
    assert not [result for result in done.check_results if result.failed]
    rows = undisturbed.read(NIGHTLY_STEPS).collect()
    assert len({row.night for row in rows}) == 2
    assert len(rows) == 2 * len(nightly_run.STEPS)


def test_the_trend_of_nights_on_a_real_log_has_what_the_log_files_say(undisturbed: Tables) -> None:
    """After a night with something new and one without: what is the trend?"""
    nightly_run.run(undisturbed, chosen(), Heard())

    first, *_, last = rows_of_command("trend", "--tables", undisturbed.location)
    assert first["new_rebalances"] is None
    assert last["new_rebalances"] == 0
    assert (first["rebalances"], first["findings"]) == (last["rebalances"], last["findings"])
    assert last["rebalances"] == len(rows_of_command("rebalances", "--log", LOG)) > 0
    assert last["findings"] == len(rows_of_command("findings", "--log", LOG)) > 0
    assert (last["violations"], last["wrong_targets"], last["total_lag"]) == (0, 0, None)


def test_nights_that_are_killed_are_made_good_by_the_next(
    undisturbed: Tables, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gets one write further than the one before, and all that those have done is done."""
    tables = Tables(spark, str(tmp_path))
    for writes in range(1, 11):
        left = iter(range(writes))

        def dying(whole: Callable[..., None], left: Iterator[int] = left) -> Callable[..., None]:
            def write(*arguments: Any, **named: Any) -> None:
                if next(left, None) is None:
                    raise Killed
                whole(*arguments, **named)

            return write

        with monkeypatch.context() as patch, suppress(Killed):
            for name in ("append", "replace", "replace_where", "merge", "delete"):
                patch.setattr(Tables, name, dying(getattr(Tables, name)))
            nightly_run.run(Tables(spark, tables.location), chosen(), Heard())
    nightly_run.run(tables, chosen(), Heard())
    for table in COMPARED:
        assert content(tables, table, "default") == content(undisturbed, table, "default"), table.name
    summaries = (content(of, COMMIT_SUMMARIES, "default", "hour_ms IS NULL") for of in (tables, undisturbed))
    assert next(summaries) == next(summaries)


def test_a_step_that_fails_ends_the_night_and_says_why(spark: SparkSession, tmp_path: Path) -> None:
    """A missing folder: nothing was taken in, nothing after it ran."""
    done = nightly_run.run(Tables(spark, str(tmp_path)), chosen(input__paths=["/no/such/folder"]), Heard())
    assert [(step.step, step.ended, step.error) for step in done.steps] == [
        ("ingest", "failed", "/no/such/folder: no such file or directory")
    ]


def test_a_step_that_nobody_knows_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"report_.*ingest, decode"):
        nightly_run.run(Tables(spark, str(tmp_path)), chosen(nightly__steps=["report_"]), Heard())


def hold(tables: Tables, owner: LeaseOwner, until: datetime) -> None:
    tables.create(LEASES)
    row = tables.spark.createDataFrame([(WRITER, owner.text, until - HOUR, until)], spark_types(LEASES.schema))
    tables.replace(LEASES, row)


@pytest.mark.parametrize("is_here", [True, False], ids=["here", "through Spark"])
def test_the_tables_are_held_by_one_run_at_a_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    """Held by a living process or by one elsewhere: busy. Dead, expired or given back: taken over."""
    monkeypatch.setattr(Tables, "is_here", lambda self: is_here)
    tables, now = Tables(spark, str(tmp_path)), datetime.now(UTC)
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    here = LeaseOwner.me()
    for owner in (here._replace(process=os.getppid()), here._replace(host="elsewhere")):
        hold(tables, owner, now + HOUR)
        with pytest.raises(BusyError, match=re.escape(owner.text)), held(tables, WRITER, HOUR):
            pass
    for owner, until in (
        (here._replace(process=int(dead.stdout)), now + HOUR),
        (here, now + HOUR),  # a run of this process that has ended
        (here._replace(host="elsewhere"), now - HOUR),
    ):
        hold(tables, owner, until)
        with held(tables, WRITER, HOUR) as (_, before):
            assert before == owner.text
    with held(tables, WRITER, HOUR) as (lease, before):
        assert before is None
        hold(tables, here._replace(host="elsewhere"), now + HOUR)
        lease.renew()
        with pytest.raises(LeaseLostError, match="elsewhere"):
            lease.check()


def test_commands_that_write_respect_who_holds_the_tables(undisturbed: Tables) -> None:
    with held(undisturbed, WRITER, HOUR):
        for command in (["ingest", LOG], ["decode"], ["replay"]):
            result = run_command(*command, "--tables", undisturbed.location)
            assert result.exit_code == 1
            assert "another run" in result.stderr.splitlines()[-1]


def test_only_files_that_are_new_or_have_changed_are_read(spark: SparkSession, tmp_path: Path) -> None:
    first, second, *_ = sorted(Path(LOG).glob("*.log"))
    dump = tmp_path / Path(LOG).name
    dump.mkdir()
    wanted = chosen(input__paths=[str(dump)], nightly__steps=["ingest"])
    tables = Tables(spark, str(tmp_path / "tables"))
    found = []
    for segment in (first, None, second):
        if segment is not None:
            shutil.copy(segment, dump)
        (step,) = nightly_run.run(tables, wanted, NullListener()).steps
        found.append((step.counts["files"], step.counts["records"]))
    assert [files for files, _ in found] == [1, 0, 1]
    assert found[1][1] == 0
    assert sum(records for _, records in found) == tables.read(LOG_RECORDS).where("kind <> 'empty'").count()


def test_a_night_of_snapshots_only_replays_the_groups_that_they_concern(spark: SparkSession, tmp_path: Path) -> None:
    """The tables of two nights, with the log and then with the snapshots, are those of one night with both."""
    file, places = tmp_path / "cluster.jsonl", [tmp_path / name for name in ("two nights", "one night")]
    nights, at_once = (Tables(spark, str(place)) for place in places)
    flags = {"nightly__steps": ["ingest", "decode", "replay", "offsets", "findings"], "input__paths": [LOG, str(file)]}
    nightly_run.run(nights, chosen(**flags | {"input__paths": [LOG]}), Heard())
    unknown = nights.read(HISTORY["target_audits"]).where("verdict = 'unknown'").count()
    assert unknown > 0
    metadata = [each for each in find_logs([SAMPLE_LOGS]) if each.family is Family.METADATA]
    shown = listed(topic_history(metadata, pytest.fail), every=1)
    snapshot_files.append(file, ({**row, "end_offset": 1 << 40} for row in shown))
    for night in (nights, at_once):
        done = nightly_run.run(night, chosen(**flags), Heard())
        assert [step.error for step in done.steps] == [None] * len(done.steps)
    assert nights.read(HISTORY["target_audits"]).where("verdict = 'unknown'").count() < unknown
    for table in (*HISTORY.values(), FINDINGS, LAG_HISTORY):
        assert content(nights, table, "default") == content(at_once, table, "default"), table.name
    assert newest_lags(nights) == newest_lags(at_once) != []
    written = versions(nights, [*COMPARED, LAG_HISTORY])
    done = nightly_run.run(nights, chosen(**flags), Heard())
    assert [step.error for step in done.steps] == [None] * len(done.steps)
    assert versions(nights, [*COMPARED, LAG_HISTORY]) == written


def newest_lags(tables: Tables) -> list[Any]:
    rows = tables.read(GROUP_OFFSETS)
    (last,) = rows.agg({"run_id": "max"}).collect()
    of_last = rows.where(rows.run_id == last[0])
    return sorted(map(tuple, of_last.select("group_id", "topic", "partition", "end_offset", "lag").collect()), key=str)


def test_tables_of_a_newer_release_or_of_another_form_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    newer = Tables(spark, str(tmp_path / "newer"))
    newer.create(RUNS)
    spark.sql(f"ALTER TABLE {newer.name(RUNS)} SET TBLPROPERTIES ('{FORMAT}' = '99')")
    with pytest.raises(InputError, match="format 99"):
        Tables(spark, newer.location).create(RUNS)
    changed = Tables(spark, str(tmp_path / "changed"))
    spark.createDataFrame([("x",)], "cluster string").write.format("delta").save(f"{changed.location}/runs")
    with pytest.raises(InputError, match=r"column run_id is missing.*string"):
        changed.create(RUNS)
    torn = Tables(spark, str(tmp_path / "torn"))
    torn.create(RUNS)
    for part in Path(torn.location, "runs", "_delta_log").glob("*0.*"):
        part.write_text('{"protocol')
    with pytest.raises(InputError, match=r"torn/runs"):
        Tables(spark, str(tmp_path / "torn")).create(RUNS)


def test_maintenance_drops_old_values_and_keeps_what_makes_records_known(undisturbed: Tables, tmp_path: Path) -> None:
    """The same dump again adds nothing, though the values are gone."""
    tables, now = undisturbed, datetime.now(UTC)
    # As if no decoded row gave these values back.
    tables.spark.sql(f"UPDATE {tables.name(LOG_RECORDS)} SET value = X'01' WHERE kind = 'record' AND log_offset < 9")
    rows = tables.read(LOG_RECORDS)
    count, tombstones = rows.count(), rows.where("kind = 'record' AND value IS NULL").count()
    wanted = chosen(maintenance__keep_values_days=0, maintenance__vacuum_hours=0).maintenance
    found = maintenance.run(tables, [LOG_RECORDS], wanted, now)
    assert {file.name for file in Path(tables.location, LOG_RECORDS.name).glob("*.parquet")} == {
        Path(file).name for file in tables.read(LOG_RECORDS).inputFiles()
    }
    rows = tables.read(LOG_RECORDS)
    assert found == {"tables": 1, "values_dropped": rows.where("value_dropped").count()}
    assert found["values_dropped"] > 0
    assert rows.where("kind = 'record' AND value IS NULL AND value_dropped IS NULL").count() == tombstones
    assert rows.where("kind = 'record' AND value IS NOT NULL").isEmpty()
    before = content(tables, LOG_RECORDS, "default")
    ingest.run(tables, open_dump(tables.spark, [LOG]), "default")
    assert content(tables, LOG_RECORDS, "default") == before
    assert len(before) == count


def test_findings_that_the_settings_name_fail_the_night(undisturbed: Tables, tmp_path: Path) -> None:
    """Exit code 3 while a finding counts, 0 where all are accepted or the kind does not fail a night.

    Each night is a first one: what an earlier one found counts no more. Groups of other partitions are not known, so
    that it is unknown whether something failed where nothing did.
    """
    kinds = sorted({row.kind for row in undisturbed.read(FINDINGS).select("kind").collect()})
    others = sorted(set(map(str, FindingKind)) - set(kinds))
    codes = {}
    known = {"names": kinds, "until": "9999-12-31", "reason": "known"}
    for name, fail_on, accepted in (("named", kinds[:1], []), ("accepted", ["any"], [known]), ("others", others, [])):
        config = tmp_path / f"{name}.yaml"
        config.write_text(
            yaml.safe_dump({"checks": {"findings": {"fail_on": fail_on}}, "gates": {"accepted": accepted}})
        )
        tables = Tables(undisturbed.spark, str(tmp_path / name))
        result = run_command("nightly", LOG, "--tables", tables.location, "--config", config)
        codes[name] = result.exit_code
        (failing,) = tables.read(CHECK_RESULTS).where("check = 'failing_findings'").collect()
        assert failing.passed is (False if name == "named" else None), result.output
    assert codes == {"named": 3, "accepted": 0, "others": 0}
