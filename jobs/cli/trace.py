"""``trace``: compare the coordinator model with a recorded coordinator."""

import json
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.assignors.profiles import DEFAULT, profile
from coordinator_core.coordinator.traces.compare import shown
from coordinator_core.coordinator.traces.run import StepResult, run_traces
from coordinator_core.errors import InputError
from jobs.cli.console import JsonOption, QuietOption
from jobs.cli.json_lines import read_lines
from jobs.cli.options import FAILED_GATE

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="Traces as JSON lines (docs/cases-and-traces.md), optionally gzipped.")
]


ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="Kafka release, or kip-1071, as which the model behaves. The header of a trace may name another one.",
    ),
]


def trace_command(
    file: FileArgument,
    profile_name: ProfileOption = DEFAULT.name,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run recorded traces through the coordinator model and compare every step with the recording.

    With --json: one object for each step that differs, then a summary. With --quiet: only steps that differ. Exit code
    3: at least one step differs.
    """
    equal = steps = 0
    for result in run_traces(read_lines(file), profile(profile_name)):
        steps += 1
        equal += result.equal
        if as_json and not result.equal:
            print(json.dumps(_as_object(result)))
        elif not as_json and not (quiet and result.equal):
            _print_step(result)
    if not steps:
        raise InputError(f"{file}: no steps of a trace in it, so nothing was compared")
    if as_json:
        print(json.dumps({"equal": equal, "steps": steps}))
    else:
        print(f"{equal} of {steps} steps equal")
    if equal < steps:
        raise typer.Exit(FAILED_GATE)


def _as_object(result: StepResult) -> dict[str, object]:
    return {
        "seed": result.seed,
        "step": result.number,
        "operation": result.operation,
        "differences": [
            {"part": difference.part, "expected": difference.expected, "actual": difference.actual}
            for difference in result.differences
        ],
    }


def _print_step(result: StepResult) -> None:
    where = f"trace {result.seed}, step {result.number}, {result.operation}"
    if result.equal:
        print(f"{where}: equal")
        return
    print(f"{where}: differs in {', '.join(difference.part for difference in result.differences)}")
    for difference in result.differences:
        for line in shown(difference.expected, difference.actual):
            print(f"  {difference.part} {line}")
