"""``config``: the effective settings, and the source of each value."""

from __future__ import annotations

import os
from json import dumps
from typing import Annotated

import typer

from jobs import settings
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import ConfigOption
from jobs.cli.output import print_json
from jobs.secret_values import shown, shown_name


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

    Settings for Spark and for Kafka's client are shown as *** unless they are known to be harmless.
    """
    console = Console.of(context)
    effective = settings.explain(settings.layers(config, os.environ, settings.assignments(assignments or [])))
    for name, known, origin in effective:
        label, value = shown_name(name), shown(name, known)
        if console.json:
            print_json({"setting": label, "value": value, "from": origin})
        else:
            print(f"{label}: {dumps(value, ensure_ascii=False)}  # {origin}")
