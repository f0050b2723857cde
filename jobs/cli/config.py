"""``config``: the effective settings, and where each value came from."""

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
"""In the names of librdkafka's settings, and Spark's, that are not for everybody."""


def config_command(
    context: typer.Context,
    config: ConfigOption = None,
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="As a flag would set it; repeatable.")
    ] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """The effective settings: default, file, environment and flags, in that order; secrets are not shown."""
    console = Console.of(context)
    effective = settings.explain(settings.layers(config, os.environ, settings.assignments(given or [])))
    for name, known, origin in effective:
        value = "***" if SECRET.search(name) else known
        if console.json:
            print_json({"setting": name, "value": value, "from": origin})
        else:
            print(f"{name}: {dumps(value, ensure_ascii=False)}  # {origin}")
