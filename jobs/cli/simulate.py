"""``simulate``: logs of a simulated cluster, with ground truth."""

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
    """Format of the simulated logs."""

    SEGMENTS = "segments"
    KAFKA_PARQUET = "kafka-parquet"


ScenarioArgument = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML), see docs/scenarios.md.")
]
SeedOption = Annotated[
    int, typer.Option(metavar="N", help="Random seed. The same scenario and seed give the same bytes.")
]
OutOption = Annotated[Path, typer.Option(metavar="DIR", help="Output folder; must be new or empty.")]
ShapeOption = Annotated[
    OutputFormat,
    typer.Option(
        metavar="|".join(OutputFormat), help="Write segment files as brokers do, or rows of Spark's Kafka source."
    ),
]


SparkOption = Annotated[
    bool,
    typer.Option("--spark", help="Run as a Spark job, one task for each log partition; all workers must reach DIR."),
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
    """Simulate a scenario: write the logs of the coordinators and __cluster_metadata, with ground truth.

    DIR/truth has, as JSON lines, every rebalance with its causes, the events of the groups, and their final states.
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
