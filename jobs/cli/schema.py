"""``schema``: the JSON Schema of what a command prints."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from jobs.cli.console import JsonOption, QuietOption
from jobs.cli.output_shapes import output_schema


def schema_command(
    command: Annotated[
        str,
        typer.Argument(metavar="COMMAND", help="The command, or an address that serve answers, such as /api/groups."),
    ],
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print the JSON Schema (draft 2020-12) of one line that a command prints with --json, or of an answer of serve.

    With --json the schema is on one line.
    """
    print(json.dumps(output_schema(command), indent=None if as_json else 2))
