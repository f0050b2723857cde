"""Commands, run in this process as a shell runs them."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from jobs.cli.app import app


def run_command(*words: object, **options: Any) -> Result:
    """Run a command; ``options`` are those of click: ``env``, ``input``."""
    return CliRunner().invoke(app, [str(word) for word in words], **options)


def text_of_command(*words: object, **options: Any) -> str:
    """What a command prints that succeeds."""
    result = run_command(*words, **options)
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.stdout


def rows_of_command(*words: object, **options: Any) -> list[dict[str, Any]]:
    """The rows that a command prints as JSON lines."""
    return [json.loads(line) for line in text_of_command(*words, "--json", **options).splitlines()]
