"""What a nightly run cannot do is one line and an exit code; nothing is lost, and the next run goes on."""

import json
import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml
from click.testing import Result
from pyspark.sql import SparkSession

from jobs.nightly_run import STEPS
from jobs.pipeline import typed_tables
from jobs.tables.delta import Tables
from jobs.tables.format import FORMAT
from jobs.tables.log import LOG_RECORDS, RUNS
from tests.commands import run_command
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.filled_tables import TOPIC, kafka_rows, sample_rows, write_json

pytestmark = pytest.mark.long

LOG = SAMPLE_LOGS / f"{TOPIC}-0"


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Tables:
    return Tables(spark, str(tmp_path / "tables"))


def nightly(tables: Tables, dump: Path, *options: str, steps: tuple[str, ...] = ("ingest", "decode")) -> Result:
    file = Path(tables.location).with_suffix(".yaml")
    file.write_text(yaml.safe_dump({"nightly": {"steps": list(steps)}}))
    return run_command("nightly", dump, "--tables", tables.location, "--config", file, "--log-format", "json", *options)


def complaint(result: Result) -> str:
    """The last line on standard error, which is the one that says why."""
    line = json.loads(result.stderr.splitlines()[-1])
    assert line["level"] == "error"
    assert "\n" not in line["message"]
    return str(line["message"])


def test_a_folder_that_is_not_there(tables: Tables) -> None:
    result = nightly(tables, Path("/no/such/folder"))
    assert result.exit_code == 1
    assert re.match("/no/such/folder: no such file", complaint(result))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("ALTER TABLE {} SET TBLPROPERTIES ('" + FORMAT + "' = '99')", "format 99"),
        ("ALTER TABLE {} ADD COLUMNS (cluster_2 string)", None),
        ("CREATE OR REPLACE TABLE {} USING delta AS SELECT '' AS cluster", "column run_id is missing"),
    ],
)
def test_a_table_of_another_form_is_left_alone(tables: Tables, change: str, problem: str | None) -> None:
    """A column more does no harm."""
    tables.create(RUNS)
    typed_tables.create(tables)
    tables.spark.sql(change.format(tables.name(RUNS)))
    before = tables.read(RUNS).schema
    result = nightly(tables, LOG)
    assert tables.read(RUNS).schema == before
    if problem is None:
        assert result.exit_code == 0, result.stderr
    else:
        assert result.exit_code == 1
        assert problem in complaint(result)


def test_a_half_written_table_is_named(tables: Tables) -> None:
    tables.create(LOG_RECORDS)
    for part in Path(tables.location, "log_records", "_delta_log").glob("*0.*"):
        part.write_text('{"protocol')
    result = nightly(Tables(tables.spark, tables.location), LOG)
    assert result.exit_code == 1
    assert "log_records is damaged: " in complaint(result)
    assert "rebuild" in complaint(result)


@contextmanager
def no_room() -> Iterator[None]:
    """This process and the JVM write no file of more than 2 KB: what a full disk looks like, without filling one."""
    java = [child.pid for child in psutil.Process().children(recursive=True) if child.name() == "java"]
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in (os.getpid(), *java)}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (2048, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_named_and_when_there_is_room_again_the_next_run_completes_it(tables: Tables) -> None:
    assert nightly(tables, LOG, steps=("ingest",)).exit_code == 0
    with no_room():
        result = nightly(tables, LOG)
    assert result.exit_code == 1
    assert "File too large" in complaint(result)
    assert nightly(tables, LOG).exit_code == 0
    (run,) = tables.read(RUNS).where("job = 'decode' AND records > 0").collect()
    assert (run.records, run.decoded, run.control) == (313, 301, 12)


def test_a_check_that_fails_is_exit_code_3(tables: Tables, tmp_path: Path) -> None:
    rows = kafka_rows(sample_rows()[:4])
    rows[1]["key"] = b"\x00"
    result = nightly(
        tables, write_json(tmp_path / "dump.jsonl.gz", rows), "--json", steps=("ingest", "decode", "checks")
    )
    assert result.exit_code == 3
    again = run_command("checks", "--tables", tables.location, "--json")
    assert again.exit_code == 3
    failed = [line["check"] for line in map(json.loads, again.stdout.splitlines()) if line["verdict"] == "failed"]
    assert "quarantine_rate" in failed


def test_wrong_usage_is_exit_code_2(tables: Tables) -> None:
    assert nightly(tables, LOG, "--no-such-option").exit_code == 2


def test_a_log_without_a_record_gives_an_empty_report(tables: Tables, tmp_path: Path) -> None:
    folder = tmp_path / f"{TOPIC}-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"")
    result = nightly(tables, folder, "--report", str(tmp_path / "report.html"), steps=tuple(STEPS))
    assert result.exit_code == 0, result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["groups"], report["findings"]) == ([], [])


def test_a_report_that_is_no_page_is_refused_before_any_work(tables: Tables, tmp_path: Path) -> None:
    result = nightly(tables, LOG, "--report", str(tmp_path / "report.pdf"))
    assert result.exit_code == 2
    assert ".html" in complaint(result)
    assert not tables.exists(RUNS)
