"""Questions to tables of a catalog of which this machine has a copy: without Spark, as long as it is current."""

import json
from pathlib import Path

from typer.testing import CliRunner

from jobs import nightly_run, settings
from jobs.cli.app import app
from jobs.tables.delta import Tables
from jobs.tables.kept_copy import MANIFEST, drop_kept_copy, kept_copy
from tests.jobs.null_listener import NullListener
from tests.shared_data import ROOT

SCHEMA = "main.audit"
QUESTION = ("groups", "--json", "--tables")


def test_a_copy_answers_without_spark_and_says_so(tmp_path: Path) -> None:
    place = tmp_path / "copies" / SCHEMA
    steps = ["ingest", "decode", "replay"]
    flags = {"input.paths": [str(ROOT / "data/samples/incident")], "nightly.steps": steps}
    nightly_run.run(Tables(None, str(place)), settings.load(environment={}, flags=flags), NullListener())
    (place / MANIFEST).write_text(json.dumps({SCHEMA: {"runs": [3, 1_000, 3], "group_records": [2, 61_000, 2]}}))
    config = tmp_path / "audit.yaml"
    config.write_text(json.dumps({"engine": {"working_copy": str(tmp_path / "copies")}}))
    asked = CliRunner().invoke(app, [*QUESTION, SCHEMA, "--config", str(config)])
    folder = CliRunner().invoke(app, [*QUESTION, str(place)])
    assert (asked.exit_code, asked.stdout) == (0, folder.stdout)
    assert f"the copy of {SCHEMA} as it was published at 1970-01-01T00:01:01+00:00" in " ".join(asked.stderr.split())
    drop_kept_copy(tmp_path / "copies", SCHEMA)  # whoever writes the catalog itself does so
    assert kept_copy(tmp_path / "copies", SCHEMA) is None


def test_other_tables_have_no_copy(tmp_path: Path) -> None:
    assert kept_copy(None, SCHEMA) is None
    assert kept_copy(tmp_path, "main.other") is None
    assert kept_copy(tmp_path, str(tmp_path)) is None
