"""``config``: the effective settings, and where each value came from."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from jobs import settings
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import ConfigOption
from jobs.cli.tables import print_lines


def config_command(
    context: typer.Context,
    config: ConfigOption = None,
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="As a flag would set it; repeatable.")
    ] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """The effective settings: defaults, file, environment and flags, in that order."""
    console = Console.of(context)
    effective = settings.explain(settings.layers(config, os.environ, settings.assignments(given or [])))
    lines = [{"setting": each.name, "value": each.value, "from": each.origin} for each in effective]
    print_lines(lines, as_json=console.json, title="settings")
