"""What ``whatif`` says of its figures: that they are an estimate, and what they rest on."""

import json
import shutil
from pathlib import Path

from typer.testing import Result

from jobs.cli.whatif import OF_DELAY
from tests.commands import run_command
from tests.jobs.conftest import SAMPLE_LOGS
from tests.matrix.removals import metadata_without_last

WORKERS = """
lasts: 8m
cluster: {brokers: 1, partitions: 1}
groups:
  sinks:
    type: connect-kip-848
    assignor: sessioned
    members: 3
    connectors: {jdbc: 4, s3: 2}
    delay: 1m
    events: [{at: 3m, crash: 1}]
"""


def run(*arguments: object) -> Result:
    result = run_command(*arguments)
    assert result.exit_code == 0, result.output
    return result


def test_idle_time_under_another_delay_is_called_an_estimate(tmp_path: Path) -> None:
    scenario, logs = tmp_path / "scenario.yaml", tmp_path / "logs"
    scenario.write_text(WORKERS)
    run("simulate", scenario, "--seed", 1, "--out", logs)
    told = run("whatif", "sinks", "--delay", 0, "--json", "--log", logs)
    actual, _, hypothetical = map(json.loads, told.stdout.splitlines())
    assert hypothetical["idle_ms"] < actual["idle_ms"]
    assert OF_DELAY in told.stderr
    assert OF_DELAY not in run("whatif", "sinks", "--assignor", "compatible", "--log", logs).stderr


def test_figures_without_the_last_topics_say_so(tmp_path: Path) -> None:
    """Rounds whose topics are not known do not count, and all that do are before the end of the metadata log."""
    shutil.copytree(SAMPLE_LOGS, tmp_path / "logs")
    command = ("whatif", "C-consumer", "--static", 45_000, "--log", tmp_path / "logs")
    assert "the metadata log ends at" not in run(*command).stderr
    metadata_without_last(5_000)(tmp_path / "logs")
    assert "the metadata log ends at" in run(*command).stderr
