"""Each command that writes, killed at some of its commits; ``python -m tests.kills`` kills as long as it is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

KILLS = "14"


def test_commands_that_are_killed_at_any_commit_are_made_good() -> None:
    """In a process of its own: it forks, which those that have opened a table cannot."""
    command = [sys.executable, "-m", "tests.kills", "--seconds", "1200", "--kills", KILLS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lives that differ" in done.stdout
