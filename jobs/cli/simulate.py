"""Make up the logs of a cluster whose truth is known: ``simulate``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.simulator.scenario import Scenario
from jobs.cli.console import JsonOption, QuietOption
from jobs.cli.options import ConfigOption, RemoteOption
from jobs.simulate.partition import WrittenPartition, simulate_here
from jobs.simulate.scenario_file import load_scenario


class OutputFormat(StrEnum):
    """What is written."""

    SEGMENTS = "segments"
    KAFKA_PARQUET = "kafka-parquet"


ScenarioArgument = Annotated[Path, typer.Argument(metavar="SCENARIO", help="What happens, as YAML: docs/scenarios.md.")]
SeedOption = Annotated[int, typer.Option(metavar="N", help="The same scenario and seed give the same bytes.")]
OutOption = Annotated[Path, typer.Option(metavar="DIR", help="Folder to write to; nothing may be in it.")]
ShapeOption = Annotated[
    OutputFormat,
    typer.Option(
        metavar="|".join(OutputFormat), help="Segment files as brokers have them, or the rows of Spark's Kafka source."
    ),
]


SparkOption = Annotated[
    bool, typer.Option("--spark", help="Each log partition is a task of Spark, whose workers have to reach DIR.")
]


def simulate_command(
    scenario: ScenarioArgument,
    out: OutOption,
    seed: SeedOption = 1,
    shape: ShapeOption = OutputFormat.SEGMENTS,
    spark: SparkOption = False,
    config: ConfigOption = None,
    remote: RemoteOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Simulate a scenario: write the logs of coordinators and __cluster_metadata, and the truth about them.

    DIR/truth holds, as JSON lines, every rebalance with its causes, what happened to the groups and how they ended.
    """
    records = commits = rebalances = 0
    model = load_scenario(scenario)
    if spark:
        parts = _on_spark(model, seed, out, shape, config, remote)
    else:
        parts = simulate_here(model, seed, out, shape.value)
    for written in parts:
        records += written.records
        commits += written.commits
        rebalances += written.rebalances
        if as_json:
            print(json.dumps(written._asdict()))
        elif not quiet:
            print(f"{written.topic}-{written.partition}: {written.records} records")
    if not as_json:
        print(f"{records} records, {commits} of them offset commits; {rebalances} rebalances; in {out}")


def _on_spark(
    scenario: Scenario, seed: int, out: Path, shape: OutputFormat, config: Path | None, remote: str | None
) -> Iterable[WrittenPartition]:
    from jobs import settings
    from jobs.simulate import spark as simulate
    from jobs.tables import session

    chosen = settings.load(config, flags={"spark.remote": remote})
    return simulate.run(session.get_or_create(chosen.spark), scenario, seed, out.absolute(), shape.value)
