"""Make up the logs of a cluster whose truth is known: ``simulate``."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.console import JsonOption, QuietOption
from jobs.scenario import load_scenario
from jobs.simulation import simulate_here


class Shape(StrEnum):
    """What is written."""

    SEGMENTS = "segments"
    KAFKA_PARQUET = "kafka-parquet"


ScenarioArgument = Annotated[Path, typer.Argument(metavar="SCENARIO", help="What happens, as YAML (data/scenarios).")]
SeedOption = Annotated[int, typer.Option(help="The same scenario and seed give the same bytes.")]
OutOption = Annotated[Path, typer.Option(metavar="DIR", help="Folder to write to; nothing may be in it.")]
ShapeOption = Annotated[
    Shape, typer.Option(help="Segment files as brokers have them, or the rows of Spark's Kafka source.")
]


def simulate_command(
    scenario: ScenarioArgument,
    out: OutOption,
    seed: SeedOption = 1,
    shape: ShapeOption = Shape.SEGMENTS,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Simulate a scenario: write __consumer_offsets and __cluster_metadata, and the truth about them.

    DIR/truth holds, as JSON lines, every rebalance with its causes, what happened to the groups and how they ended.
    """
    records = commits = rebalances = 0
    for written in simulate_here(load_scenario(scenario), seed, out, shape.value):
        records += written.records
        commits += written.commits
        rebalances += written.rebalances
        if as_json:
            print(json.dumps(written._asdict()))
        elif not quiet:
            print(f"{written.topic}-{written.partition}: {written.records} records")
    if not as_json:
        print(f"{records} records, {commits} of them offset commits; {rebalances} rebalances; in {out}")
