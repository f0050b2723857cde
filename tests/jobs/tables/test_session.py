"""Where Spark cannot start, the reason is told: by itself it only says that it did not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs import settings
from jobs.tables import session
from tests.jobs.conftest import SAMPLE_LOGS

OLD = "#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\nexit 1\n"
NEEDS = "Spark needs Java 17 or later"


@pytest.mark.parametrize(
    ("script", "problem"),
    [(None, "does not exist"), (OLD, "version 11.0.2")],
)
def test_a_java_that_is_missing_or_too_old_is_named(tmp_path: Path, script: str | None, problem: str) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    if script is not None:
        java.write_text(script)
        java.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-m", "jobs", "findings", "--store", str(tmp_path / "tables")],
        cwd=SAMPLE_LOGS.parents[2],
        env=os.environ | {"JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.returncode == 1
    message = ran.stderr.splitlines()[-1]
    assert all(part in message for part in (NEEDS, str(java), problem, "JAVA_HOME"))


def test_on_databricks_the_session_that_waits_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting:
        def getOrCreate(self) -> str:  # noqa: N802
            return "the one there is"

    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "client.4.6")
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", Waiting())
    assert session.get_or_create(settings.load().spark) == "the one there is"
