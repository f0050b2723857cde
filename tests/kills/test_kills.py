"""Each command that writes, killed at some of its commits; ``python -m tests.kills`` kills as long as it is told."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

KILLS = "14"
STOPS = "6"


OPTIONS = {
    "killed": ["--kills", KILLS],
    "stopped": ["--kills", STOPS, "--stops"],
    "stopped, by Spark": ["--kills", STOPS, "--stops", "--by-spark", "--life", "first-night", "--life", "second-night"],
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_what_happens_to_a_command_at_any_commit_is_made_good(options: list[str]) -> None:
    """In a process of its own: it forks, which those that have opened a table cannot."""
    command = [sys.executable, "-m", "tests.kills", "--seconds", "1200", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lives that differ" in done.stdout
