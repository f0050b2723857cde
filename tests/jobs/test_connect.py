"""The same jobs and commands through Spark Connect, in a process of its own: one process has one kind of session."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pyspark.sql import SparkSession

from jobs.cli.schema import output_schema
from jobs.tables.delta import Tables
from tests.jobs.conftest import SAMPLE_LOGS, SMALL
from tests.jobs.filled_tables import TOPIC, decoded, expected, kafka_rows, sample_rows, write_json, write_parquet

SCRIPT = """
import json, sys
from typer.testing import CliRunner
from jobs import settings, udf
from jobs.cli.app import app
from jobs.tables import session

conf, commands = map(json.loads, sys.argv[1:])
spark = session.get_or_create(settings.load(flags={"spark.remote": "local[2]", "spark.conf": conf}).spark)
assert "connect" in type(spark).__module__
for command in commands:
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, (command, done.output, done.exception)
    print(json.dumps(done.stdout))
udf.register(spark)
"""

LOG = SAMPLE_LOGS / f"{TOPIC}-0"

pytestmark = pytest.mark.long
"""Whole jobs in a second JVM."""


def through_connect(*commands: list[str]) -> list[str]:
    """What each command printed."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(SMALL), json.dumps(commands)],
        env=os.environ | {"SPARK_TESTING": "1"},  # the server takes any free port
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_whole_night_through_spark_connect(spark: SparkSession, tmp_path: Path) -> None:
    home, page = str(tmp_path / "tables"), tmp_path / "report.html"
    (said,) = through_connect(["nightly", str(LOG), "--tables", home, "--cluster", "c", "--report", str(page)])
    assert said.splitlines()[-1] == str(page)
    assert page.is_file()
    rows = [row for row in sample_rows() if row["log_partition"] == 0]
    assert decoded(Tables(spark, home), "c") == sorted(expected(rows), key=lambda row: tuple(str(part) for part in row))


def test_every_command_on_tables_through_spark_connect(spark: SparkSession, tmp_path: Path) -> None:
    """Tables and lines are taken in as well; each shape is a cluster. What is printed fits the commands' schemas."""
    rows = [row for row in sample_rows() if row["log_partition"] == 0]
    home = str(tmp_path / "tables")
    dumps = {
        "parquet": write_parquet(tmp_path / "parquet", kafka_rows(rows)),
        "json": write_json(tmp_path / "dump.jsonl.gz", kafka_rows(rows)),
        "segments": LOG,
    }
    tables = ["--tables", home]
    stored = ["--tables", home, "--cluster", "segments"]
    commands = [
        *(["ingest", str(path), *tables, "--cluster", cluster] for cluster, path in dumps.items()),
        *([job, *tables] for job in ("decode", "replay", "checks", "tables")),
        ["nightly", str(LOG), *tables, "--cluster", "segments"],
        *([command, *stored] for command in ("groups", "rebalances", "findings", "audit")),
        *([command, "A-coop-a2d7", *stored] for command in ("describe", "offsets", "history", "explain")),
        ["owners", "a-coop-x8", *stored],
        ["report", *stored, "--out", str(tmp_path / "report.html")],
    ]
    said = through_connect(*([*command, "--json"] for command in commands))
    for (name, *_), printed in zip(commands, said, strict=True):
        validator = Draft202012Validator(output_schema(name))
        assert printed, name
        for line in printed.splitlines():
            validator.validate(json.loads(line))
    wanted = sorted(expected(rows), key=lambda row: tuple(str(part) for part in row))
    for cluster in dumps:
        assert decoded(Tables(spark, home), cluster) == wanted
