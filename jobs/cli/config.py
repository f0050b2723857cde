"""``config``: the effective settings, and the source of each value."""

from __future__ import annotations

import os
import re
from json import dumps
from typing import Annotated

import typer

from jobs import settings
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import ConfigOption
from jobs.cli.output import print_json

SECRET = re.compile(r"password|secret|\.pem$", re.IGNORECASE)
"""Matches the names of librdkafka and Spark settings whose values are secret."""


def config_command(
    context: typer.Context,
    config: ConfigOption = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a value as a flag does; repeatable.")
    ] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Show the effective settings and where each value comes from: default, file, environment or flag.

    Secrets are not shown.
    """
    console = Console.of(context)
    effective = settings.explain(settings.layers(config, os.environ, settings.assignments(assignments or [])))
    for name, known, origin in effective:
        value = "***" if SECRET.search(name) else known
        if console.json:
            print_json({"setting": name, "value": value, "from": origin})
        else:
            print(f"{name}: {dumps(value, ensure_ascii=False)}  # {origin}")
