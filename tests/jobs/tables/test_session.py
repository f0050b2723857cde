"""Where Spark cannot start, the reason is told: by itself it only says that it did not."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs import settings
from jobs.tables import session
from tests.jobs.conftest import SAMPLE_LOGS

OLD = "#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\nexit 1\n"
NEEDS = "Spark needs Java 17 or later"


@pytest.mark.parametrize(("script", "problem"), [(None, "does not exist"), (OLD, "version 11.0.2")])
def test_a_java_that_is_missing_or_too_old_is_named(tmp_path: Path, script: str | None, problem: str) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    if script is not None:
        java.write_text(script)
        java.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-m", "jobs", "decode", "--tables", str(tmp_path / "tables")],
        cwd=SAMPLE_LOGS.parents[2],
        env=os.environ | {"JAVA_HOME": str(tmp_path), "COORDINATOR_AUDIT_ENGINE__RUNNER": "spark"},
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


@pytest.mark.parametrize(
    ("has_little_to_do", "own", "expected"),
    [
        (False, {}, None),
        (True, {}, session.QUICK_START),
        (True, {session.JAVA_OPTIONS: "-Xss4m"}, f"{session.QUICK_START} -Xss4m"),
    ],
)
def test_a_jvm_that_has_little_to_do_starts_quickly_and_options_of_the_settings_come_last(
    has_little_to_do: bool, own: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Built(dict[str, str]):
        def __getattr__(self, _: str) -> "Callable[..., Built]":
            return lambda name, value="": self.update({name: value}) or self

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", built := Built())
    monkeypatch.setattr(session, "_with_delta_jars", lambda builder: builder)
    monkeypatch.setattr(Built, "getOrCreate", lambda self: None, raising=False)
    wanted = settings.load().spark.model_copy(update={"conf": own})
    session.get_or_create(wanted, has_little_to_do=has_little_to_do)
    assert built.get(session.JAVA_OPTIONS) == expected


@pytest.mark.parametrize("dump_format", [{}, {"COORDINATOR_AUDIT_INPUT__FORMAT": "segments"}], ids=["found", "named"])
def test_a_night_on_a_folder_that_is_not_there_fails_before_spark_starts(
    dump_format: dict[str, str], tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "jobs", "nightly", str(tmp_path / "nowhere"), "--tables", str(tmp_path / "tables")],
        cwd=SAMPLE_LOGS.parents[2],
        env=os.environ | dump_format | {"JAVA_HOME": str(tmp_path), "COORDINATOR_AUDIT_ENGINE__RUNNER": "spark"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert (ran.returncode, ran.stderr) == (1, f"error: {tmp_path}/nowhere: no such file or directory\n")


def test_what_a_jvm_prints_is_kept_apart(tmp_path: Path) -> None:
    """A child has the file for good; this process has its own streams again, and its standard error all the time."""
    script = (
        "import subprocess, sys\n"
        "from jobs.tables.jvm_output import jvm_output, kept_apart\n"
        "print('before')\n"
        "with kept_apart():\n"
        "    child = subprocess.Popen(['sh', '-c', 'read line; echo ivy; echo log4j >&2'], stdin=subprocess.PIPE)\n"
        "    print('starting', file=sys.stderr)\n"
        "child.communicate(b'go')\n"
        "print('after')\n"
        "print(jvm_output().read_text().split())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=SAMPLE_LOGS.parents[2],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == ["before", "after", "['ivy', 'log4j']"]
    assert ran.stderr == "starting\n"
    assert len(list(tmp_path.glob("coordinator-audit-spark-*.log"))) == 1
